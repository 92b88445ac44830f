"""One HTML file of any report: sections of words, tables, figures; no network, readable without scripts."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from tilewise.errors import clean
from tilewise.machine.replacing import replace
from tilewise.report.figures import style
from tilewise.report.figures.inline import inline
from tilewise.report.figures.style import Plot
from tilewise.report.file_names import FileNames
from tilewise.report.table import Cell, Table

_FOLDER = Path(__file__).parent
_RAISED = ("#f4f6f8", "#1f252d")  # behind figures and facts; light and dark
_LONG = 40  # characters: longer words in a cell may break
_WORDY = 18  # characters of a figure with its unit: longer ones may be broken
_TALL = 40  # rows: a longer table scrolls by itself
_HINT = (
    '<p class="note hint">Point at a figure for its values; drag to enlarge, double click for all of it.</p>'
)
_GENERATED = "Made by tilewise; no part of this page comes from elsewhere."


@dataclasses.dataclass(frozen=True)
class Fact:
    """A figure worth seeing first: what, how much, and under which circumstances."""

    name: str
    value: str
    note: str = ""


@dataclasses.dataclass
class Drawing:
    """A figure that is markup already, drawn by us with everything escaped: an <svg> in the page's colours.

    `alone` is the same as a file of its own, empty where there is none; `plot` is what a picture is made of;
    a wide one has a row for itself.
    """

    key: str
    title: str
    caption: str
    markup: str
    alone: str = ""
    wide: bool = False
    plot: Plot | None = None


@dataclasses.dataclass
class Section:
    """A part of a page: words first, then figures and tables."""

    key: str
    title: str
    words: list[str] = dataclasses.field(default_factory=list)
    tables: list[Table] = dataclasses.field(default_factory=list)
    plots: list[Plot] = dataclasses.field(default_factory=list)
    drawings: list[Drawing] = dataclasses.field(default_factory=list)

    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.words or self.tables or self.plots or self.drawings)


@dataclasses.dataclass
class Page:
    """A whole report; `scripts` are our own, for drawings that need more than the page's."""

    title: str
    subtitle: str
    sections: list[Section]
    facts: list[Fact] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    scripts: list[str] = dataclasses.field(default_factory=list)


def write(page: Page, path: str | os.PathLike[str]) -> None:
    """Writes `page` into the file `path`; an older one is replaced as a whole. Raises OSError."""
    replace(path, html(page).encode())


def html(page: Page) -> str:
    """The page as text."""
    names = FileNames()
    sections = [section for section in page.sections if not section.empty()]
    anchors = [names.fresh(section.key) for section in sections]
    scripts = [(_FOLDER / "page.js").read_text(encoding="utf-8"), *dict.fromkeys(page.scripts)]
    allowed = " ".join(map(_digest, scripts))
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}"
    links = [
        f'<li><a href="#{anchor}">{_text(section.title)}</a></li>'
        for anchor, section in zip(anchors, sections, strict=True)
    ]
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="generator" content="tilewise">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{_text(page.title)}</title>\n<style>{_style()}</style>\n</head>\n<body>",
        f"<header>\n<h1>{_text(page.title)}</h1>\n<p>{_text(page.subtitle)}</p>",
        _facts(page.facts),
        _list("warnings", page.warnings),
        f'<nav aria-label="Contents"><ul>{"".join(links)}</ul></nav>\n{_HINT}</header>\n<main>',
        *[_section(anchor, section, names) for anchor, section in zip(anchors, sections, strict=True)],
        f"</main>\n<footer>{_GENERATED}</footer>",
        *[f"<script>{script}</script>" for script in scripts],
        "</body>\n</html>\n",
    ]
    return "\n".join(filter(None, parts))


def _digest(script: str) -> str:
    """What a page's policy calls `script` by: no other may run in it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _style() -> str:
    sides = [f"{style.variables(side)}--raised:{_RAISED[side]};" for side in (0, 1)]
    dark = f"@media screen and (prefers-color-scheme: dark){{:root{{{sides[1]}}}}}"
    return f":root{{color-scheme:light dark;{sides[0]}}}{dark}" + (_FOLDER / "page.css").read_text(
        encoding="utf-8"
    )


def _text(words: object) -> str:
    return escape(clean(words), quote=True)


def _prose(words: str) -> str:
    """Words in which `backticks` stand around what one types."""
    return re.sub(r"`([^`<>]+)`", r"<code>\1</code>", _text(words))


def _facts(facts: Sequence[Fact]) -> str:
    if not facts:
        return ""
    parts = []
    for fact in facts:
        note = f'<dd class="note">{_text(fact.note)}</dd>' if fact.note else ""
        parts.append(f"<div><dt>{_text(fact.name)}</dt><dd>{_text(fact.value)}</dd>{note}</div>")
    return f'<dl class="facts">{"".join(parts)}</dl>'


def _list(kind: str, items: Sequence[str]) -> str:
    return f'<ul class="{kind}">{"".join(f"<li>{_text(item)}</li>" for item in items)}</ul>' if items else ""


def _section(anchor: str, section: Section, names: FileNames) -> str:
    parts = [f'<section id="{anchor}">\n<h2>{_text(section.title)}</h2>']
    parts += [f"<p>{_prose(words)}</p>" for words in section.words]
    figures = [_drawing(drawing, names) for drawing in section.drawings]
    figures += [_figure(plot, names) for plot in section.plots]
    if figures:
        parts.append(f'<div class="figures">\n{"".join(figures)}</div>')
    open_ones = [table for table in section.tables if not table.folded]
    if open_ones:
        parts.append(f'<div class="tables">\n{"".join(_table(table, names) for table in open_ones)}</div>')
    for table in section.tables:
        if table.folded:
            summary = f"{_text(table.title)} ({len(table.rows)})"
            parts.append(f"<details><summary>{summary}</summary>\n{_table(table, names)}</details>")
    return "\n".join([*parts, "</section>"])


def _figure(plot: Plot, names: FileNames) -> str:
    name = names.fresh(f"figure-{plot.key}")
    drawing = inline(dataclasses.replace(plot, key=name))
    return f'<figure id="{name}">{drawing}<figcaption>{_text(plot.caption)}</figcaption></figure>\n'


def _drawing(drawing: Drawing, names: FileNames) -> str:
    name = names.fresh(f"figure-{drawing.key}")
    kind = ' class="wide"' if drawing.wide else ""
    words = f"<figcaption>{_text(drawing.caption)}</figcaption>"
    return f'<figure id="{name}"{kind}>{drawing.markup}{words}</figure>\n'


def _table(table: Table, names: FileNames) -> str:
    heads = []
    for column in table.columns:
        unit = f"<small>{_text(column.unit)}</small>" if column.unit else ""
        kind = ' class="number"' if column.numbers else ""
        heads.append(f'<th scope="col"{kind}>{_text(column.title)}{unit}</th>')
    rows = [f"<tr>{_row(table, row)}</tr>" for row in table.rows]
    tall = " tall" if len(rows) > _TALL else ""
    name = names.fresh(f"table-{table.key}")
    grid = (
        f'<div class="scroll{tall}" tabindex="0"><table class="sortable" aria-labelledby="{name}-title">\n'
        f"<thead><tr>{''.join(heads)}</tr></thead>\n"
        f"<tbody>{chr(10).join(rows)}</tbody></table></div>"
    )
    # Heads alone tell nothing: then the notes say why there is no more.
    return (
        f'<div class="table" id="{name}"><h3 id="{name}-title">{_text(table.title)}</h3>\n'
        f"{grid if rows else ''}{_list('notes', table.notes)}</div>\n"
    )


def _row(table: Table, row: Sequence[Cell]) -> str:
    cells = []
    for place, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
        tag, scope = ("th", ' scope="row"') if place == 0 else ("td", "")
        wordy = column.numbers and len(cell.text) > _WORDY
        kinds = (
            ["number"] * column.numbers
            + ["wordy"] * wordy
            + [cell.tone] * bool(cell.tone)
            + ["long"] * (len(cell.text) > _LONG and not wordy)
        )
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        value = f' data-v="{cell.value:.6g}"' if cell.value is not None else ""
        hint = f' title="{_text(cell.hint)}"' if cell.hint else ""
        mark = f"<sup>{_text(cell.mark)}</sup>" if cell.mark else ""
        cells.append(f"<{tag}{scope}{kind}{value}{hint}>{_text(cell.text)}{mark}</{tag}>")
    return "".join(cells)
