"""Claims of a study's source with their verdicts: about the machine, and about the source's own numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tilewise.base.units import plural
from tilewise.lab.report.study_format import number
from tilewise.lab.report.study_labels import labels, last
from tilewise.lab.report.table import Cell, Table, text_columns
from tilewise.lab.study.claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE, VERDICTS, Verdict, spelled
from tilewise.lab.study.evaluation import Evaluated

_TONE = {HOLDS: "good", FAILS: "bad", UNDECIDED: "strong", UNTESTABLE: "faint"}
_DIGITS = 3
_WHERE = "holds where it is"


def claims(studies: Sequence[Evaluated], own: bool = False) -> Table | None:
    """Every claim of the source with its verdict and the figure that decides; None without any.

    `own`: those that follow from the source's own numbers, or do not.
    """
    verdicts = [each.verdicts for each in studies]
    places = [place for place, each in enumerate(verdicts[0]) if each.own == own]
    if not places:
        return None
    names = labels(studies)
    title = "What the source says of its own numbers" if own else f"What the source claims{_scales(studies)}"
    table = Table("claims-own" if own else "claims", title, text_columns("claim"))
    for name in names:
        table.columns += text_columns(name or "verdict", "figure" + (f" · {name}" if name else ""))
    table.columns += text_columns(_WHERE, "place in the source, notes")
    file = studies[0].results.study.file
    for place in places:
        first = verdicts[0][place]
        nothing = Verdict(text=first.text, verdict=UNTESTABLE)
        ours = [each[place] if place < len(each) else nothing for each in verdicts]
        cells = [Cell(first.text)]
        for verdict in ours:
            data = {"claim": verdict.text, "verdict": verdict.verdict}
            said = _said(verdict, own or bool(names[0]))
            shown = {"label": "figure"} if verdict.figure is not None else {}
            cells.append(Cell(said, hint=verdict.reason, tone=_TONE[verdict.verdict], data=data))
            cells.append(Cell(figure_text(verdict), verdict.figure, hint=_launches(verdict), data=shown))
        reason = next((verdict.reason for verdict in ours if verdict.reason), "")
        hint = "\n".join(spelled(file, file.claims[place].figure))
        hint = "\n".join(filter(None, (f"holds where {first.holds}" if first.holds else "", hint)))
        where = {"label": _WHERE} if first.holds else {}
        cells.append(Cell(condition(first) if first.holds else "", hint=hint, data=where))
        table.add(*cells, _sentences(first.source, reason, first.note))
    if not own:
        table.notes = [
            "in brackets: the 95 % interval, and the launches of the point with fewest; undecided: the claim"
            " is true of a part only of its interval, or there are too few launches"
        ]
    return table


def condition(verdict: Verdict) -> str:
    """A claim's condition in words, `above 2 and below 3 ×`, without how a figure is picked (`at most`)."""
    return f"{verdict.condition} {verdict.unit.partition(', at ')[0]}".rstrip()


def _sentences(*parts: str) -> str:
    """`Part 2, results. Needs 16 cores. On two hosts.`"""
    said = (f"{part[:1].upper()}{part[1:].rstrip('.')}." for part in parts if part)
    return " ".join(said)


def figure_text(verdict: Verdict) -> str:
    """`2.04 × (1.85 to 2.22, n = 3)`; empty where a claim has no figure."""
    if verdict.figure is None:
        return ""
    unit = f" {verdict.unit}" if verdict.unit else ""
    told = []
    if verdict.low is not None and verdict.high is not None and verdict.low < verdict.high:
        told.append(f"{number(verdict.low, _DIGITS)} to {number(verdict.high, _DIGITS)}")
    told += [f"n = {verdict.n}"] if verdict.n is not None else []
    bracketed = f" ({', '.join(told)})" if told else ""
    return f"{number(verdict.figure, _DIGITS)}{unit}{bracketed}"


def _launches(verdict: Verdict) -> str:
    if verdict.n is None:
        return ""
    return (
        f"{plural(verdict.n, 'launch')} of the point with fewest, of {plural(len(verdict.points), 'point')}"
    )


def _scales(studies: Sequence[Evaluated]) -> str:
    """`, at scale tiny`, where all results have one."""
    sessions = [last(each.results) for each in studies]
    scales = {session.scale for session in sessions if session is not None}
    return f", at scale {scales.pop()}" if len(scales) == 1 else ""


def _said(verdict: Verdict, short: bool) -> str:
    return VERDICTS[verdict.verdict].removesuffix(" here") if short else VERDICTS[verdict.verdict]


def counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many claims about the machine have each verdict."""
    return {name: sum(each.verdict == name and not each.own for each in verdicts) for name in VERDICTS}
