"""What is told before a study begins: how many launches, and how long they take.

The study's file says how long all of a scale takes on two quiet cores; of what is left, it is a part.
"""

from __future__ import annotations

from tilewise.base.units import plural

_BUSY = 0.5  # processes that want a core, on average of the last minute: with fewer, nobody else is there


def time_text(minutes: float) -> str:
    """`6 minutes`, `40 seconds`: no more digits than an estimate has."""
    return f"{minutes:.0f} minutes" if minutes >= 1.5 else f"{max(5, 5 * round(12 * minutes))} seconds"


def foretold(left: int, whole: int, points: int, minutes: float | None, load: float) -> str:
    """`360 launches of 120 points; about 5 minutes on two quiet cores`, of the `left` of `whole` launches.

    `minutes` are those of the whole, None where nobody said; `load` is the system's average over a minute.
    """
    said = f"{plural(left, 'launch')} of {plural(points, 'point')}"
    if minutes is None or not whole:
        return said
    said += f"; about {time_text(minutes * left / whole)} on two quiet cores"
    if load > _BUSY:
        said += f", and longer here: others use this machine now (load {load:.1f})"
    return said
