"""The help page of a command: what applies to it, with choices and defaults; as wide as the terminal."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator

from tilewise.base.declare import HOW, SHOW, WHAT, WHERE, Argument, Arguments, Example
from tilewise.cli import JOBS, Page, names, page_of, subcommands

GROUPS = (WHAT, HOW, WHERE, SHOW)
_COLUMN = 24  # where texts begin
_FEW = 4  # arguments that are not worth leaving out
_SHORT_EXAMPLES = 3
_TIED = "\N{NO-BREAK SPACE}"
_WORD = re.compile(r"\w+")


def help_was_printed(words: list[str]) -> bool:
    """Print the help page that a command line asks for, wherever it does so; return whether it does."""
    before = words[: words.index("--")] if "--" in words else words
    if not {"-h", "--help"} & set(before):
        return False
    name = " ".join(words[:2])  # of a subcommand
    if name not in names():
        name = words[1] if words[0] == "plan" and words[1] in JOBS else words[0]
    print(page(page_of(name), short="--help" not in before))
    return True


def page(command: Page, short: bool = False) -> str:
    """Usage, what the command does, its arguments under their headings, then its subcommands and examples.

    With `short` one screen: the arguments that most people use, and the first examples.
    """
    name, arguments = command.name, command.arguments
    width = max(60, min(100, shutil.get_terminal_size((80, 24)).columns))
    lines = [
        *textwrap.wrap(f"usage: tilewise {usage(name, arguments)}", width, subsequent_indent="       "),
        "",
        *textwrap.wrap(command.description, width),
    ]
    left_out = len([each for each in arguments.shown() if not _is_common(each)]) if short else 0
    short = short and left_out > _FEW
    for heading, group in groups(arguments, short):
        lines += ["", _bold(heading)]
        for each in group:
            lines += _entry(each, width)
    below = [page_of(each) for each in subcommands(name)]
    for heading, shown in (
        (
            "Subcommands",
            [Example(f"tilewise {usage(each.name, each.arguments)}", each.description) for each in below],
        ),
        ("Examples", command.examples[: _SHORT_EXAMPLES if short else None]),
    ):
        lines += ["", _bold(heading)] if shown else []
        for line, said in shown:
            lines.append(f"  {line}")
            lines += textwrap.wrap(said, width, initial_indent=" " * 6, subsequent_indent=" " * 6)
    if short:
        lines += ["", f"{left_out} more flags: tilewise {name} --help"]
    return "\n".join(lines)


def usage(name: str, arguments: Arguments) -> str:
    """The command line in short: what must be given, and whether there is more."""
    places = [_place(each) for each in arguments.positions]
    flags = [each for each in arguments.shown() if each not in arguments.positions]
    needed = [f"{min(each.spellings, key=len)} {shown_value(each)}" for each in flags if each.needed]
    more = ["[flags]"] if len(flags) > len(needed) else []
    return " ".join([name, *places, *needed, *more])


def groups(arguments: Arguments, short: bool = False) -> Iterator[tuple[str, list[Argument]]]:
    """The arguments that apply, under their headings; with `short` those that most people use."""
    shown = [each for each in arguments.shown() if not short or _is_common(each)]
    for heading in GROUPS:
        group = [each for each in shown if each.flag.group == heading]
        if group:
            yield heading, group


def shown_value(one: Argument) -> str:
    """Placeholder of a value, such as FILE, or NAME[,NAME…] for several in one word."""
    name = one.value.name
    if not one.flag.joined:
        return name
    return f"{name}[{one.flag.joined}{name}{'…' if one.flag.joined == ',' else ''}]"


def parts_of(one: Argument) -> tuple[str, tuple[str, ...], str]:
    """Its help, its choices unless the help names them all, and its default; empty where there is none."""
    said = one.help.strip()
    named = all(choice in ("auto", *_WORD.findall(said)) for choice in one.choices)
    default = one.flag.default
    if not default and one.default not in (None, False, (), "", {}) and not one.needed and not one.rest:
        default = str(one.default)
    return said, () if named else one.choices, default


def _is_common(one: Argument) -> bool:
    return one.flag.common or one.needed or not one.name.startswith("-")


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
    spelt = sorted(one.spellings, key=len)
    if one.rest or not spelt[0].startswith("-") or one.kind is bool:
        return ", ".join(spelt)
    return f"{', '.join(spelt)} {shown_value(one)}"


def _place(one: Argument) -> str:
    spelt = one.name
    return f"[{spelt}…]" if one.rest else spelt if one.needed else f"[{spelt}]"


def _text(one: Argument) -> str:
    """Help, choices and default."""
    said, choices, default = parts_of(one)
    return " ".join(
        filter(
            None,
            (
                said,
                f"[choices: {', '.join(choices)}]" if choices else "",
                f"[default:{_TIED}{default}]" if default else "",
                "May be repeated." if one.several else "",
            ),
        )
    )


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else text
