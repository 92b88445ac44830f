"""Reads a command's words, and says every mistake in one line.

    A.npy  B.npy  -o  C.npy  --ranks  4  --seed=7  -n4  -q      --  -a-name.npy
    ─────  ─────  ─────────  ──────────  ────────  ───  ──          ───────────
    positions     a flag and its value, in three ways   a switch    only positions from here on

Not a library's work: the import of one takes longer than all else that the front does for a small job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from tilewise.base.declare import Argument, Arguments, Flags, arguments_of
from tilewise.base.errors import UsageError
from tilewise.base.units import nearest

_NUMBERS = {int: ("a whole number", re.compile(r"[+-]?[0-9]+")), float: ("a number", None)}
_NEGATIVE = re.compile(r"-[0-9.]")
Values = dict[str, dict[str, Any]]  # by owner and field
Kind = TypeVar("Kind", bound=Flags)


def parse(name: str, kind: type[Kind], words: list[str]) -> Kind:
    """Return what `words` say for the command `name`, whose arguments `kind` declares.

    Raises UsageError for words that it does not take, and for values that it does not allow.
    """
    return kind(**parse_fields(name, [kind], words)[0])


def parse_fields(name: str, kinds: Sequence[type[msgspec.Struct]], words: list[str]) -> list[dict[str, Any]]:
    """Return the fields of each of `kinds` that `words` give, unchecked."""
    arguments = arguments_of(*kinds)
    try:
        values = read(name, arguments, words)
    except UsageError as error:
        raise UsageError(error.message, error.advice or f"tilewise {name} --help") from None
    for each in arguments.every():
        given = values[each.owner]
        if each.field in given:
            word = given[each.field]
            if each.flag.parse is not None:
                given[each.field] = each.flag.parse(word, each.name)
            elif word == "auto" and each.default is None and each.choices:
                given[each.field] = None
    return [values[kind.__name__] for kind in kinds]


def read(name: str, arguments: Arguments, words: list[str]) -> Values:
    """Return the words by owner and field; UsageError for one that is not declared, or lacks."""
    positions: list[str] = []
    unused: list[str] = []
    given: dict[Argument, Any] = {}
    rest = iter(words)
    for word in rest:
        if word == "--":
            for left in rest:
                _take(left, arguments, positions, unused)
        elif not word.startswith("-") or word == "-" or _is_position(word, arguments, positions):
            _take(word, arguments, positions, unused)
        else:
            spelt, equals, text = word.partition("=")
            if spelt not in arguments.flags and word[:2] in arguments.flags and word[1] != "-":
                spelt, equals, text = word[:2], "=", word[2:]  # -n4
            flag = arguments.flags.get(spelt)
            if flag is None:
                raise UsageError(f"{name} has no flag {spelt}", nearest(spelt, arguments.flags))
            if flag in given and not flag.several:
                raise UsageError(f"{spelt} was given more than once")
            if flag.kind is bool:
                if equals:
                    raise UsageError(f"{spelt} takes no value, but got {text!r}")
                given[flag] = True
                continue
            value = _value(spelt, flag, text if equals else _next(spelt, flag, rest))
            given[flag] = (*given.get(flag, ()), value) if flag.several else value
    if unused:
        raise UsageError(f"{name} does not take {' '.join(map(repr, unused))}")
    _require(name, arguments, positions, given)
    for at, each in enumerate(arguments.positions[: len(positions)]):
        given[each] = tuple(positions[at:]) if each.rest else positions[at]
    values: Values = {owner: {} for owner in arguments.owners}
    for each, value in given.items():
        values[each.owner][each.field] = value
    return values


def _take(word: str, arguments: Arguments, positions: list[str], unused: list[str]) -> None:
    places = arguments.positions
    room = len(positions) < len(places) or (places and places[-1].rest)
    (positions if room else unused).append(word)


def _is_position(word: str, arguments: Arguments, positions: list[str]) -> bool:
    """A negative number where a position is free, such as rows from the end."""
    return bool(_NEGATIVE.match(word)) and len(positions) < len(arguments.positions)


def _next(spelt: str, flag: Argument, rest: Iterator[str]) -> str:
    """The next word as the value of a flag: no other flag, but perhaps a negative number."""
    text = next(rest, None)
    if text is None:
        raise UsageError(f"{spelt} needs a value")
    if text.startswith("-") and not (text == "-" and flag.flag.stream) and not _NEGATIVE.match(text):
        raise UsageError(f"{spelt} needs a value")
    return text


def _value(spelt: str, flag: Argument, text: str) -> Any:
    if flag.kind not in _NUMBERS:
        return text
    wanted, pattern = _NUMBERS[flag.kind]
    try:
        if pattern is None or pattern.fullmatch(text):
            return flag.kind(text)
    except ValueError:
        pass
    raise UsageError(f"{spelt} expects {wanted}, not {text!r}")


def _require(name: str, arguments: Arguments, positions: list[str], given: dict[Argument, Any]) -> None:
    missing = [
        *(each for each in arguments.positions[len(positions) :] if not each.rest),
        *(each for each in dict.fromkeys(arguments.flags.values()) if each not in given),
    ]
    for each in missing:
        if each.needed:
            raise UsageError(f"{name} needs {each.name}", _example(each))


def _example(needed: Argument) -> str:
    """A flag that is missing, with a value; nothing where none can be given for it."""
    endings = needed.value.endings
    value = "results" if endings == ("/",) else "C.npy" if ".npy" in endings else ""
    return f"{needed.spellings[-1]} {value}" if value and not needed.flag.place else ""
