"""Reads a command's words with cyclopts: prints help pages, and says every mistake in one line of our own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import cyclopts
from cyclopts import App

from tilewise.errors import UsageError


def parse(name: str, function: Callable[..., Any], words: list[str]) -> Any:
    """What `function` returns for `words`, or None when they asked for help, which is printed then.

    Raises UsageError for words that `function` does not take.
    """
    app = App(
        name=f"tilewise {name}",
        help_flags=["--help", "-h"],
        version_flags=[],
        default_parameter=cyclopts.Parameter(negative=(), show_default=False),
    )
    app.default(function)
    if {"--help", "-h"} & set(words):
        # Asked for anywhere, also behind a flag that still lacks its value.
        app.help_print([])
        return None
    _require_whole_numbers(app, words)
    try:
        command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    except cyclopts.CycloptsError as error:
        raise UsageError(_sentence(error, name, words), f"tilewise {name} --help") from None
    return command(*bound.args, **bound.kwargs)


def _require_whole_numbers(app: App, words: list[str]) -> None:
    """Raises UsageError where a flag wants a whole number and has a fraction, which cyclopts would round."""
    fraction = re.compile(r"[+-]?[\d_]*\.\d*")
    if not any(fraction.fullmatch(word.rpartition("=")[2]) for word in words):
        return  # nearly always: looking at what flags want takes milliseconds
    arguments = app.assemble_argument_collection(parse_docstring=False)
    flags = {name for one in arguments if one.hint in (int, int | None) for name in one.names}
    for place, word in enumerate(words):
        if word == "--":
            return
        flag, equals, value = word.partition("=")
        if flag not in flags:
            continue
        if not equals:
            value = words[place + 1] if place + 1 < len(words) else ""
        if fraction.fullmatch(value):
            raise UsageError(f"{flag} wants a whole number, not {value!r}")


def _sentence(error: cyclopts.CycloptsError, name: str, words: list[str]) -> str:
    """One line for any mistake."""
    argument = getattr(error, "argument", None)
    flag = str(getattr(argument, "name", "") or "")
    token = getattr(error, "token", None)
    keyword = str(getattr(token, "keyword", None) or flag)
    if isinstance(error, cyclopts.UnknownOptionError):
        return f"{name} has no flag {keyword or _last_word(error)}"
    if isinstance(error, cyclopts.RepeatArgumentError):
        return f"{keyword} was given more than once"
    if isinstance(error, cyclopts.MissingArgumentError):
        given = [spelling for spelling in getattr(argument, "names", ()) if spelling in words]
        return f"{given[0]} wants a value" if given else f"{name} needs {flag}"
    if isinstance(error, cyclopts.CoercionError) and token is not None:
        kind = getattr(argument, "hint", None)
        wanted = {int: "a whole number", float: "a number"}.get(kind, "another kind of value")  # type: ignore[arg-type]
        hint = {int | None: "a whole number", float | None: "a number"}.get(kind, wanted)  # type: ignore[arg-type]
        return f"{keyword} wants {hint}, not {token.value!r}"
    unused = getattr(error, "unused_tokens", None)
    if unused:
        return f"{name} does not know what to do with {' '.join(map(repr, unused))}"
    return " ".join(str(error).split())


def _last_word(error: Exception) -> str:
    return str(error).split(":")[-1].split("?")[0].strip(" .")
