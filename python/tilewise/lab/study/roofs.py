"""Roofs of a figure: what was measured of the machine in the same study, and bounds the points under it.

slope (GB/s) ╱────────── height (GFLOP/s)       a point at intensity x can have min(slope · x, height)
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tilewise.base.errors import UsageError
from tilewise.lab.study import claims_check
from tilewise.lab.study.claims import judge
from tilewise.lab.study.results import Results
from tilewise.lab.study.schema import Claim, PlotWanted, Roof
from tilewise.lab.study.study import Study
from tilewise.lab.study.tables import Table


class Bound(msgspec.Struct, kw_only=True):
    """A roof as it was measured here: one of `slope` and `height` is None."""

    label: str
    slope: float | None = None
    height: float | None = None


def bounds(results: Results, tables: Sequence[Table], wanted: PlotWanted) -> tuple[list[Bound], list[str]]:
    """The roofs of `wanted` that could be measured here, and why the others are missing."""
    made, missing = [], []
    for roof in wanted.roofs:
        told = judge(results, list(tables), _claim(roof))
        if told.figure is None:
            missing.append(f"no roof {roof.label}: {told.reason}")
        elif roof.slope:
            made.append(Bound(label=roof.label, slope=told.figure))
        else:
            made.append(Bound(label=roof.label, height=told.figure))
    return made, missing


def check(study: Study, wanted: PlotWanted) -> None:
    """Raises UsageError, before anything runs, for a roof that has no figure, or a wrong one."""
    for roof in wanted.roofs:
        where = f"{study.path}: plots {wanted.name}, the roof {roof.label!r}"
        if bool(roof.slope) == bool(roof.height):
            raise UsageError(f"{where} needs either a slope or a height")
        claims_check.check(study, _claim(roof), where)


def _claim(roof: Roof) -> Claim:
    """Its figure is looked up as that of a claim is, names of the study included."""
    return Claim(text=roof.label, figure=roof.slope or roof.height, holds="figure > 0")
