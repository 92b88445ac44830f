"""Writes what the package has of its own declarations: python/tilewise/api/options.pyi, cli/complete.tsv.

The first has the flags of each command as types, for editors and type checkers; the second has them as the
shells ask for them on TAB. `python tools/package_tables.py` writes both; tests compare.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
import typing
from pathlib import Path
from typing import Any

from tilewise.api.signature import LEFT_OUT, python_name
from tilewise.base.declare import Argument, declared
from tilewise.cli import names, page_of
from tilewise.cli.complete import Row
from tilewise.files.formats import InputFlags
from tilewise.operations import options_of

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "python/tilewise/api/options.pyi"
COMPLETIONS = ROOT / "python/tilewise/cli/complete.tsv"
COMMANDS = ("multiply", "transpose", "stencil", "svd", "convert", "generate", "norm", "measure")
ARGUMENTS = {"svd": ("values_only",)}  # which a function declares itself, as its return type depends on them
# Values that say more than the words of a command line.
TYPES = {
    "each": "int | str | Sequence[int]",
    "grid": "str | tuple[int, int]",
    "shape": "str | tuple[int, int]",
    "hint": "Sequence[str]",
    "missing": "str | Sequence[str]",
    "memory": "str | int",
    "deadline": "str | float",
    **dict.fromkeys(("rows", "columns"), "str | int | slice"),
    "scale": "str | float",
    "weights": "str | os.PathLike[str] | ArrayLike",
    **dict.fromkeys(("hosts", "simulate", "trace", "folder"), "str | os.PathLike[str]"),
}
# Flags of a job whose words are made into something else.
WORDS = dict.fromkeys(("io", "dtype", "separator", "decimal"), "str")
HEAD = '''"""The options of each function: the flags of its command. Written by tools/package_tables.py."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Required, TypedDict

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
'''


Flags = dict[str, tuple[Any, str, bool]]  # each flag's type, its help, and whether it must be there


def flags_of(kind: type) -> Flags:
    """The flags that a class of them declares itself, by their spelling; those of its bases are left out."""
    hints = typing.get_type_hints(kind)
    own = inspect.get_annotations(kind)
    return {
        name: (hints[one.field], one.help, one.needed)
        for one in declared(kind)
        if one.field in own and not one.flag.place and (name := python_name(one)) not in LEFT_OUT
    }


def options_class(name: str, base: str, flags: Flags, listed: bool) -> str:
    """One TypedDict; `listed`: a text may be a list of what it lists."""
    lines = [f"class {name}({base}, total=False):"]
    for flag, (kind, said, needed) in flags.items():
        lines += textwrap.wrap(said, 106, initial_indent="    # ", subsequent_indent="    # ")
        text = TYPES.get(flag) or (not listed and WORDS.get(flag)) or _written(kind, listed)
        lines.append(f"    {flag}: {f'Required[{text}]' if needed else text}")
    return "\n".join(lines if flags else [*lines, "    pass"])


def _written(kind: Any, listed: bool) -> str:
    plain = [each for each in (typing.get_args(kind) or (kind,)) if each is not type(None)]
    if listed and any(each is str or typing.get_origin(each) is list for each in plain):
        return "str | Sequence[str] | Sequence[int]"
    return " | ".join(each.__name__ for each in plain)


def written() -> str:
    """The whole module."""
    from tilewise.engine.request import Request
    from tilewise.lab.measurement.request import MeasureRequest
    from tilewise.operations.operation import OfOneInput
    from tilewise.planning.choices import Choices

    words = ", ".join(f'"{command}"' for command in COMMANDS if command != "measure")
    head = f"{HEAD}\n    Job = Literal[{words}]"
    classes = [
        head,
        options_class(
            "JobOptions", "TypedDict", flags_of(Choices) | flags_of(InputFlags) | flags_of(Request), False
        ),
    ]
    for command in COMMANDS:
        name = f"{command.capitalize()}Options"
        if command == "measure":
            classes.append(options_class(name, "TypedDict", flags_of(MeasureRequest), True))
            continue
        kind = options_of(command)
        flags = flags_of(kind) | (flags_of(OfOneInput) if issubclass(kind, OfOneInput) else {})
        options = {flag: flags[flag] for flag in flags if flag not in ARGUMENTS.get(command, ())}
        classes.append(options_class(name, "JobOptions", options, False))
    return "\n\n\n".join(classes) + "\n"


def formatted() -> str:
    """The same as the house formats it."""
    words = [str(Path(sys.executable).with_name("ruff")), "format", "--stdin-filename", str(TARGET), "-"]
    done = subprocess.run(words, input=written(), capture_output=True, text=True, check=True, cwd=ROOT)
    return str(done.stdout)


def completions() -> str:
    """The table of what each command takes, equal rows of several commands as one."""
    rows: dict[Row, list[str]] = {}
    for name in names():
        for one in page_of(name).arguments.shown():
            rows.setdefault(_row(one), []).append(name)
    return "".join(f"{_line(row, commands)}\n" for row, commands in rows.items())


def _line(row: Row, commands: list[str]) -> str:
    names, words, endings = map(" ".join, (row.names, row.words, (f"*{each}" for each in row.endings)))
    return "\t".join((",".join(commands), names, str(row.takes), words, row.joined, endings, row.text))


def _row(one: Argument) -> Row:
    known = one.choices or (one.value.known() if one.value.known else ())
    count = 0 if one.kind is bool else 2 if one.rest else 1
    text = one.help.partition(". ")[0].rstrip(".")
    return Row(tuple(one.spellings), count, known, one.flag.joined, one.value.endings, text)


if __name__ == "__main__":
    TARGET.write_text(formatted(), encoding="utf-8")
    COMPLETIONS.write_text(completions(), encoding="utf-8")
