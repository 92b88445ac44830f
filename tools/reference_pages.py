"""Writes the generated parts of the pages in docs/reference.

`python tools/reference_pages.py` writes them, from what the commands declare, from the tables of algorithms,
exchanges and I/O strategies, and from the public headers; a test compares. Each part stands between two
comments that name it; what is around them is written by hand.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import cpp_declarations
from tilewise.base.declare import HOW, SHOW, WHERE, Argument, declared
from tilewise.cli.help import shown_value
from tilewise.cli.jobs import Shown
from tilewise.engine.request import Request
from tilewise.operations import OPERATIONS, options_of
from tilewise.planning.choices import Choices, exchanges_of
from tilewise.planning.names import EXCHANGES, IO

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
        rows = []
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
            rows.append(cells)
        table = _table("| flag | meaning | values | default | not for |", rows)
        parts.append(f"## {heading}\n\n{table}")
    return "\n\n".join(parts)


def algorithms(command: str) -> str:
    """The table of the algorithms of an operation."""
    kinds = options_of(command).algorithms.values()
    return _table(
        "| name | what it does | ranks |",
        ((f"`{each.name}`", each.summary, each.takes_text) for each in kinds),
    )


def exchanges(command: str) -> str:
    """The table of the exchanges of an operation, and of the algorithms or halos that can use each."""
    kind = options_of(command)
    users = kind.halos or {one.name: one.exchanges for one in kind.algorithms.values()}
    rows = [
        (
            f"`{name}`",
            kind.exchange_words.get(name, EXCHANGES[name]),
            ", ".join(user for user, able in users.items() if name in able),
        )
        for name in exchanges_of(kind)
    ]
    return _table(f"| name | what it does | {'halos' if kind.halos else 'with'} |", rows)


def ways() -> str:
    """The table of the I/O strategies."""
    rows = [(f"`{name}`", way.words, way.buffers) for name, way in IO.items()]
    return _table("| name | how a binary file is moved | buffers |", rows)


def _table(heading: str, rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join([heading, "|---" * (heading.count("|") - 1) + "|", *(_row(*cells) for cells in rows)])


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") or "–" for cell in cells) + " |"


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


def _parts() -> dict[str, dict[str, Callable[[], str]]]:
    """What makes each part of each page."""
    pages: dict[str, dict[str, Callable[[], str]]] = {
        "common-flags.md": {"flags": flags},
        "cpp.md": {"headers": cpp_declarations.page},
        "formats.md": {"ways": ways},
    }
    for name in OPERATIONS:
        kind = options_of(name)
        parts = pages.setdefault(f"{name}.md", {})
        if len(kind.algorithms) > 1:
            parts["algorithms"] = partial(algorithms, name)
        if exchanges_of(kind):
            parts["exchanges"] = partial(exchanges, name)
    return {page: parts for page, parts in pages.items() if parts}


PARTS = _parts()


def written(page: str) -> str:
    """The text of a page of `PARTS` with its generated parts made anew."""
    text = (PAGES / page).read_text(encoding="utf-8")
    for name, make in PARTS[page].items():
        begin, end = f"<!-- {name}: tools/reference_pages.py -->\n", f"\n<!-- end of {name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{page} has no part between {begin.strip()} and {end.strip()}")
        text = f"{before}{begin}\n{make()}\n{end}{after}"
    return text


if __name__ == "__main__":
    for each in PARTS:
        (PAGES / each).write_text(written(each), encoding="utf-8")
