"""Everything there is to show of a results folder, in one call: for terminal, reports and programs.

claims.json      a list of verdicts, beside the points
"""

from __future__ import annotations

import contextlib
import os

import msgspec

from tilewise.base.staging import replace
from tilewise.lab.study import checks, plots, results, tables
from tilewise.lab.study.claims import Verdict, judge
from tilewise.lab.study.plots import FigurePlot, draw
from tilewise.lab.study.points import StudyPoint
from tilewise.lab.study.results import Results
from tilewise.lab.study.study import Study
from tilewise.lab.study.tables import FigureTable, evaluate

CLAIMS = "claims.json"
_KEPT = ("verdict", "figure", "low", "high", "n", "threshold", "reason")


class Evaluated(msgspec.Struct, kw_only=True):
    """A study's results with its tables, plots and verdicts on claims, in the order of the file."""

    results: Results
    tables: list[FigureTable]
    plots: list[FigurePlot]
    verdicts: list[Verdict]


def check(study: Study, points: list[StudyPoint]) -> None:
    """Raises UsageError, before anything runs, where tables, plots or claims ask for what is not there."""
    for table in study.file.tables:
        tables.check(study, points, table)
    for plot in study.file.plots:
        plots.check(study, points, plot)
    checks.check_names(study)
    for number, claim in enumerate(study.file.claims, 1):
        checks.check_claim(study, claim, f"{study.path}: claims {number}")


def load(folder: str) -> Evaluated:
    """Reads and evaluates `folder`, or the newest results below it; UsageError where there are none."""
    loaded = results.load(folder)
    file = loaded.study.file
    made = [evaluate(loaded, wanted) for wanted in file.tables]
    return Evaluated(
        results=loaded,
        tables=made,
        plots=[draw(loaded, wanted, made) for wanted in file.plots],
        verdicts=[judge(loaded, made, claim) for claim in file.claims],
    )


def keep_claims(found: Evaluated) -> None:
    """Writes the verdicts into the results folder; nothing where it cannot be written, or has no claims."""
    results = found.results
    scale = results.sessions[-1].scale if results.sessions else "default"
    listed = [
        {
            "study": results.study.name,
            "claim": each.claim.text,
            "source": each.claim.source,
            **{name: getattr(each, name) for name in _KEPT},
            "unit": each.claim.unit,
            "scale": scale,
            "own_numbers": each.own,
        }
        for each in found.verdicts
    ]
    if listed:
        with contextlib.suppress(OSError):
            text = msgspec.json.format(msgspec.json.encode(listed), indent=1) + b"\n"
            replace(os.path.join(results.folder, CLAIMS), text)
