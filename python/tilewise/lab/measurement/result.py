"""What a measurement comes out as: lines of tables with raw samples, and what a reader must know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tilewise.lab.statistics.summary import Summary
from tilewise.machine.disturbance import Disturbance
from tilewise.machine.model import Model

VERSION = 1


class Line(msgspec.Struct, kw_only=True):
    """One figure: a point and one of its series. `key` names it, the same in every measurement.

    `amount` is what an operation moves or computes, in `unit` (B or flop): rate = amount / seconds.
    `launches` are raw samples, a list a launch; a sample is the mean of `inner` operations in a row.
    `outliers` are marked by their places in `launches`: pairs (launch, sample). `share` is the rate as a part
    of what carries it (`carrier` says what that is, and its rate). `kernel` is what computed a product:
    `tiles` or `blas` where both were timed in turn, and then `chosen` is what jobs use for it; else `fast`.
    `labels` say what disturbed it. Where `skipped` says why, nothing was measured, and there is no summary.
    """

    key: str
    kind: str
    name: str
    series: str = "seconds"
    pattern: str = ""
    level: str = ""
    pairs: int = 0
    ranks: int = 1
    threads: int = 1
    bytes: int = 0
    size: int = 0
    dtype: str = ""
    kernel: str = ""
    chosen: str = ""
    blocks: int = 0
    layout: str = ""
    buffer: str = ""
    cache: str = ""
    check: str = ""
    shift: int = 0
    sync: bool = False
    amount: float = 0.0
    unit: str = "B"
    inner: int = 1
    warmup: int = 0
    launches: list[list[float]] = []
    by_rank: list[float] = []
    devices: list[str] = []
    outliers: list[tuple[int, int]] = []
    summary: Summary | None = None
    share: float | None = None
    carrier: str = ""
    labels: list[str] = []
    notes: list[str] = []
    skipped: str = ""

    def found(self) -> str:
        """What the page cache has: `cold` matters to reading only."""
        return "warm" if self.cache == "cold" and self.series != "read" else self.cache

    def rate(self) -> float | None:
        """Amount a second at the median."""
        if self.summary is None or self.summary.median <= 0 or self.amount <= 0:
            return None
        return self.amount / self.summary.median


class Level(msgspec.Struct, kw_only=True):
    """A distance between cores: where it was measured, or why this machine lacks it."""

    name: str
    cpus: list[int] = []
    missing: str = ""


class Matrix(msgspec.Struct, kw_only=True):
    """Every pair of ranks, one pair at a time: seconds of a message, one way; 0 on the diagonal.

    None stands for what was not measured. `level` is `node` where every rank has a node of its own, else
    empty.
    """

    bytes: int
    level: str = ""
    ranks: list[str]
    seconds: list[list[float | None]]


class Measurement(msgspec.Struct, kw_only=True):
    """Everything of one `tilewise measure`.

    `launches` counts the starts of the worker for each point; `seed` made the order of the points.
    """

    tilewise: str
    version: int = VERSION
    command: list[str]
    time: str
    seconds: float
    kinds: list[str] = []
    launches: int = 1
    seed: int = 0
    environment: dict[str, Any]
    clock: dict[str, float] = {}
    levels: list[Level] = []
    lines: list[Line] = []
    matrices: list[Matrix] = []
    disturbances: list[Disturbance] = []
    model: Model = Model()
    warnings: list[str] = []


def kind_of(label: str) -> str:
    """A label without its figures: `other programs busy`."""
    return label.partition(" (")[0]


def once(labels: Sequence[str]) -> list[str]:
    """The first of those that differ only in what stands in brackets."""
    first: dict[str, str] = {}
    for label in labels:
        first.setdefault(kind_of(label), label)
    return list(first.values())
