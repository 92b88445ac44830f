"""Writes the generated parts of docs/reference/common-flags.md and docs/reference/cpp.md.

`python tools/reference_pages.py` writes them, from what the commands declare and from the public headers; a
test compares. Each part stands between two comments that name it; what is around them is written by hand.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import cpp_declarations
from tilewise.base.declare import HOW, SHOW, WHERE, Argument, declared
from tilewise.cli.help import shown_value
from tilewise.cli.jobs import Shown
from tilewise.engine.request import Request
from tilewise.operations import OPERATIONS, options_of
from tilewise.planning.choices import Choices

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs/reference"
HEADINGS = {
    HOW: "How the job is done",
    WHERE: "Where it runs",
    SHOW: "What is shown and kept",
}
NONE: tuple[Any, ...] = (None, False, (), "", {}, inspect.Parameter.empty)


def flags() -> str:
    """A table for each group of the flags that every job has, and the commands that refuse one."""
    commands = {name: {each.field: each for each in declared(options_of(name))} for name in OPERATIONS}
    common = [*declared(Choices), *declared(Request), *declared(Shown)]
    parts = []
    for group, heading in HEADINGS.items():
        rows = [
            f"## {heading}",
            "",
            "| flag | meaning | values | default | not for |",
            "|---|---|---|---|---|",
        ]
        for one in (each for each in common if each.flag.group == group):
            own = {name: arguments.get(one.field) for name, arguments in commands.items()}
            there = {name: argument for name, argument in own.items() if argument is not None}
            refused = [f"`{name}`" for name, argument in there.items() if argument.hidden]
            cells = (
                _spelt(one),
                one.help.strip(),
                _values(there),
                _default(one),
                ", ".join(refused),
            )
            rows.append("| " + " | ".join(cell.replace("|", "\\|") or "–" for cell in cells) + " |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def _spelt(one: Argument) -> str:
    word = "" if one.kind is bool else f" {shown_value(one)}"
    return ", ".join(f"`{each}`" for each in sorted(one.spellings, key=len))[:-1] + f"{word}`"


def _values(there: dict[str, Argument]) -> str:
    """The values that a flag may have, where all commands that take it agree on them."""
    choices = {argument.choices for argument in there.values() if not argument.hidden}
    if len(choices) > 1:
        return "see the command's page"
    return ", ".join(f"`{each}`" for each in next(iter(choices), ()))


def _default(one: Argument) -> str:
    return one.flag.default or ("" if one.default in NONE else f"`{one.default}`")


def written(page: str) -> str:
    """The text of a page of `PAGES` with its generated part made anew."""
    name, make = {"common-flags.md": ("flags", flags), "cpp.md": ("headers", cpp_declarations.page)}[page]
    text = (PAGES / page).read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: tools/reference_pages.py -->\n", f"\n<!-- end of {name} -->"
    new, count = re.subn(
        f"{re.escape(begin)}.*{re.escape(end)}", lambda _: f"{begin}\n{make()}\n{end}", text, flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(f"{page} has no part between {begin.strip()} and {end.strip()}")
    return new


if __name__ == "__main__":
    for each in ("common-flags.md", "cpp.md"):
        (PAGES / each).write_text(written(each), encoding="utf-8")
