"""The help page of a command: what applies to it, with choices and defaults; as wide as the terminal."""

from __future__ import annotations

import inspect
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator

from tilewise.base.declare import HOW, SHOW, WHAT, WHERE, Argument, Arguments

_COLUMN = 24  # where texts begin
_TIED = "\N{NO-BREAK SPACE}"
_WORD = re.compile(r"\w+")
_KINDS = {int: "N", float: "X", str: "TEXT"}


def page(name: str, said: str, arguments: Arguments) -> str:
    """Usage, what the command does, then its arguments under their headings."""
    width = max(60, min(100, shutil.get_terminal_size((80, 24)).columns))
    shown = [each for each in arguments.every() if not each.hidden]
    places = [_place(each) for each in arguments.positions]
    needed = [_left(each) for each in shown if each not in arguments.positions and _is_needed(each)]
    usage = " ".join(["usage: tilewise", name, *places, *needed, "[flags]"])
    lines = [
        *textwrap.wrap(usage, width, subsequent_indent="       "),
        "",
        *textwrap.wrap(_first(said), width),
    ]
    for heading in (WHAT, HOW, WHERE, SHOW):
        group = [each for each in shown if each.parameter.group == heading]
        if group:
            lines += ["", _bold(heading)]
        for each in group:
            lines += _entry(each, width)
    return "\n".join(lines)


def _entry(one: Argument, width: int) -> Iterator[str]:
    left = f"  {_left(one)}"
    text = [line.replace(_TIED, " ") for line in textwrap.wrap(_text(one), width - _COLUMN)] or [""]
    if len(left) + 2 > _COLUMN:
        yield left
        left = ""
    yield f"{left:<{_COLUMN}}{text[0]}".rstrip()
    for more in text[1:]:
        yield " " * _COLUMN + more


def _left(one: Argument) -> str:
    spelt = sorted(one.parameter.spellings, key=len)
    if one.rest or not spelt[0].startswith("-") or one.kind is bool:
        return ", ".join(spelt)
    return f"{', '.join(spelt)} {_KINDS.get(one.kind, 'TEXT')}"


def _place(one: Argument) -> str:
    spelt = one.parameter.spellings[0]
    return f"[{spelt}…]" if one.rest else spelt if _is_needed(one) else f"[{spelt}]"


def _text(one: Argument) -> str:
    """Help, choices and default."""
    parts = [one.parameter.help.strip()]
    if not all(choice in ("auto", *_WORD.findall(parts[0])) for choice in one.choices):
        parts.append(f"[choices: {', '.join(one.choices)}]")
    default = one.parameter.default
    if not default and one.default not in (None, False, (), "", {}, inspect.Parameter.empty):
        default = str(one.default)
    if default:
        parts.append(f"[default:{_TIED}{default}]")
    if one.several:
        parts.append("May be given again.")
    return " ".join(filter(None, parts))


def _is_needed(one: Argument) -> bool:
    return one.default is inspect.Parameter.empty and not one.rest


def _first(said: str) -> str:
    return " ".join(said.split("\n\n", maxsplit=1)[0].split())


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else text
