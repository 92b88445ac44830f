"""The page of timelines (`--trace`): runs above each other on one axis, each rank's seconds by phase."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence

from tilewise.lab.report.figures.stacks import Stack, stacks
from tilewise.lab.report.figures.style import PHASES, short
from tilewise.lab.report.page import Page, Section
from tilewise.lab.report.table import Table, number_columns, quantity, text_columns
from tilewise.lab.report.timeline import KINDS, Rank, Timeline, read_timeline
from tilewise.lab.report.timeline_page import timeline_drawing

ABREAST = 4  # runs in one picture
_RANKS = 64  # drawn: more are in the table


def trace_page(paths: Sequence[str]) -> Page:
    """The page of the timelines in `paths`; UsageError where one of them is none."""
    names = [os.path.basename(path) for path in paths]
    names = names if len(set(names)) == len(names) else list(paths)
    lines = [read_timeline(path) for path in paths]
    if len(lines) > 1:  # which may all be of the same command
        lines = [
            dataclasses.replace(line, title=" · ".join(filter(None, (line.title, short(name)))))
            for name, line in zip(names, lines, strict=True)
        ]
    sections = [timeline_section(lines[place : place + ABREAST]) for place in range(0, len(lines), ABREAST)]
    for place, (name, line) in enumerate(zip(names, lines, strict=True), 1):
        seconds = {rank.name: _phases(rank) for rank in line.ranks}
        rows = [Stack(rank, told) for rank, told in list(seconds.items())[:_RANKS]]
        caption = "Each rank is in one phase at a time." + _more(len(seconds) - _RANKS)
        plots = [stacks(f"ranks-{place}", f"Seconds of each rank: {name}", caption, rows)] if rows else []
        sections.append(Section(f"ranks-{place}", f"Ranks of {name}", [], [_table(seconds, place)], plots))
    return Page("Timeline", ", ".join(names), sections)


def timeline_section(lines: Sequence[Timeline]) -> Section:
    """Some runs above each other."""
    return Section("timeline", "Timeline", drawings=[timeline_drawing(lines)])


def _more(count: int) -> str:
    return f" {count} more ranks are in the table." if count > 0 else ""


def _phases(rank: Rank) -> dict[str, float]:
    told: dict[str, float] = {}
    for start, end, _, kind in rank.phases().tolist():
        told[KINDS[kind]] = told.get(KINDS[kind], 0.0) + end - start
    return told


def _table(ranks: Mapping[str, Mapping[str, float]], place: int) -> Table:
    names = [name for name in PHASES if any(name in seconds for seconds in ranks.values())]
    table = Table(f"ranks-{place}", "Seconds of each rank", text_columns("rank"))
    table.columns += number_columns(*names, unit="s")
    for rank, seconds in ranks.items():
        table.add(rank, *[quantity(seconds.get(name, 0.0)) for name in names])
    table.folded = len(table.rows) > 16
    return table
