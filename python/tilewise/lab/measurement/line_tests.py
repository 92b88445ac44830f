"""Whether lines of one kind differ between two measurements: by themselves, and beside their neighbours.

How far lines scatter that did not change is read off the middle of them: Efron, Journal of the American
Statistical Association 99 (2004) 96. Variances are shrunken (`tilewise.lab.statistics.variances`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tilewise.lab.statistics.intervals import probability, student
from tilewise.lab.statistics.variances import Pair, pooled, shrunken

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


def judge(
    rows: list[Pair], around: list[list[int]], least: float, drift: float, telling: int
) -> list[tuple[float, float, float | None]]:
    """Of each row of one kind: the chance of its difference without a change, half its 95 % interval, and
    what its neighbours (`around`, places in `rows`) share. `least` and `drift` are logarithms."""
    import numpy as np

    whole = shrunken([pooled(row.residuals()) for row in rows], [row.freedom for row in rows])
    differences = np.array([row.difference for row in rows])
    middles = [float(np.median(differences[near])) if near else None for near in around]
    own_variance = shrunken(
        [pooled(_less(row, rows, near)) for row, near in zip(rows, around, strict=True)],
        [row.freedom for row in rows],
    )
    far, width = np.zeros(len(rows)), np.zeros(len(rows))
    for i, (row, near) in enumerate(zip(rows, around, strict=True)):
        if near:
            far[i] = differences[i] - (middles[i] or 0.0)
            width[i] = math.sqrt(own_variance.variance[i] * row.factor * (1 + 1.57 / len(near)))
    known = np.flatnonzero((width > 0) & np.isfinite(width))
    if len(known) >= telling:
        width[known] *= scatter(far[known] / width[known])
    judged = []
    for i, row in enumerate(rows):
        spread = whole.variance[i] * row.factor
        total = spread + 2 * drift * drift
        chance = 1.0
        reach = math.inf
        if row.freedom > 0:
            own = float(own_variance.variance[i]) * row.factor if around[i] else 0.0
            alone = max(spread - own, 0.0) ** 2 / row.freedom
            freedom = total**2 / (alone + own**2 / (row.freedom + own_variance.freedom))
            chance = probability(differences[i], math.sqrt(total), freedom)
            reach = student(row.freedom + whole.freedom) * math.sqrt(spread)
            if width[i] > 0 and far[i] * differences[i] > 0 and abs(differences[i]) > least:
                own_freedom = row.freedom + own_variance.freedom
                chance = min(chance, probability(float(far[i]), float(width[i]), own_freedom))
            chance = min(1.0, 2 * chance)
        judged.append((chance, reach, middles[i]))
    return judged


def scatter(z: Numbers) -> float:
    """How many times as wide as expected the middle of these lies, at least 1; those far off are left out."""
    import numpy as np

    near = np.abs(z - np.median(z))
    near = near[near <= 3 * max(1.0, 1.4826 * float(np.median(near)))]
    return max(1.0, 1.4826 * float(np.median(near)))


def _less(row: Pair, rows: list[Pair], near: list[int]) -> tuple[Numbers, Numbers]:
    """Residuals less the middle of what the neighbours' are in the same launch, where all have as many."""
    import numpy as np

    mine = row.residuals()
    if not near or any(rows[i].counts != row.counts for i in near):
        return mine
    theirs = [rows[i].residuals() for i in near]
    return (
        mine[0] - np.median([their[0] for their in theirs], axis=0),
        mine[1] - np.median([their[1] for their in theirs], axis=0),
    )
