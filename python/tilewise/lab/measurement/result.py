"""Points that a measurement asks the worker for, and its result: lines with raw samples."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import Any

import msgspec

from tilewise.lab.statistics.summary import Summary
from tilewise.launch.job import Point, Stop
from tilewise.machine.disturbance import Disturbance

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
        """State of the page cache: `cold` matters to reading only."""
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


class PairMatrix(msgspec.Struct, kw_only=True):
    """Every pair of ranks, one pair at a time: seconds of a message, one way; 0 on the diagonal.

    None stands for what was not measured. `level` is `node` where every rank has a node of its own, else
    empty.
    """

    bytes: int
    level: str = ""
    ranks: list[str]
    seconds: list[list[float | None]]


class CurvePiece(msgspec.Struct, frozen=True):
    """Seconds = `alpha` + `beta` × bytes, from `begin` to `end` bytes, both included (None: and so on)."""

    begin: float
    alpha: float
    beta: float
    end: float | None = None

    def seconds(self, size: float) -> float:
        """Seconds of one operation on `size` bytes, whether or not that lies in the piece."""
        return self.alpha + self.beta * size


class FittedCurve(msgspec.Struct, frozen=True, kw_only=True):
    """Up to three pieces in order of `begin`, and how far they miss what was left out of the fit.

    `key` says what of: "ping/core/blocking", a message one way; "collective/core/bcast/library/2ranks"; or
    "file/positioned/read/2ranks", one call on one block by each rank at once. Errors are relative; None where
    nothing was left out.
    """

    key: str
    pieces: list[CurvePiece]
    median_error: float | None = None
    largest_error: float | None = None

    def seconds(self, size: float) -> float:
        """Seconds of one operation on `size` bytes.

        Between two pieces, where the way changes at a size that was not measured, it runs evenly from one
        to the other, on logarithmic scales.
        """
        place = max(bisect.bisect_right([piece.begin for piece in self.pieces], size) - 1, 0)
        piece = self.pieces[place]
        if piece.end is None or size <= piece.end or place + 1 == len(self.pieces):
            return piece.seconds(size)
        after = self.pieces[place + 1]
        low, high = piece.seconds(piece.end), after.seconds(after.begin)
        if min(low, high) <= 0 or piece.end <= 0:
            return piece.seconds(size)
        part = math.log(size / piece.end) / math.log(after.begin / piece.end)
        return float(low * (high / low) ** part)


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """All that was fitted; None stands for what was not measured.

    `injection`: bytes a second that all pairs between two nodes get at most, together. `copy_rate`: bytes a
    second, read and written, of a copy on all cores. `labels` has what disturbed the measurement of a cost,
    by its key, or of one of these two, by its name; nothing for what was measured on a quiet machine.
    """

    costs: list[FittedCurve] = []
    injection: float | None = None
    copy_rate: float | None = None
    labels: dict[str, list[str]] = {}

    def cost(self, key: str) -> FittedCurve | None:
        """Curve that `key` names; None where that was not measured."""
        return next((cost for cost in self.costs if cost.key == key), None)


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
    matrices: list[PairMatrix] = []
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


SIMULATED = "simulated device"  # a label, where `environment.simulated_devices` is set in the record
ON_DEVICE = ("device", "managed")  # kinds of memory with addresses on a device
ARRAYS = {"copy": 2, "triad": 3, "read": 1, "write": 1}  # held and moved, as STREAM counts
_FILE_SAMPLES = 9  # at least, of all series together, with those that do not count
_FILE_RATE = 2e9  # bytes a second: a guess, for the progress bar
_STARTING, _FILLING = 0.3, 0.2  # seconds of a launch, and of the arrays of a point of memory: likewise


def has_simulated_devices(environment: object) -> bool:
    """Tell by a record's environment whether a driver for tests played its graphics processors."""
    return isinstance(environment, dict) and environment.get("simulated_devices") is True


class PlannedPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A point of a launch. `role`: `line`, or `matrix`: a cell of the table of pairs. `skipped`: why not."""

    point: Point
    level: str = ""
    ranks: int = 1
    role: str = "line"
    skipped: str = ""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One start of the worker, done several times. `cpus`: the core of each rank; empty: bound as jobs are.

    `hosts` are those for ranks with their slots (0: not said), none: this one; `what` names it for people,
    and `names` its ranks where cores do not.
    """

    what: str
    kind: str
    ranks: int
    threads: int = 1
    cpus: list[int] = []
    hosts: dict[str, int] = {}
    names: list[str] = []
    place: str = "core"
    level: str = ""
    oversubscribed: bool = False
    stop: Stop
    asks: list[PlannedPoint]

    def seconds(self) -> float:
        """About how long it takes, for the progress bar."""
        return _STARTING + sum(self._point(ask) for ask in self.asks if not ask.skipped)

    def _point(self, ask: PlannedPoint) -> float:
        usual = min(self.stop.seconds, 1.0)
        if ask.point.kind != "file":
            return max(usual, _FILLING) if ask.point.kind == "memory" else usual
        return max(usual, _FILE_SAMPLES * ask.ranks * ask.point.blocks * ask.point.bytes / _FILE_RATE)


def refusal(buffer: str, no_gpu: str) -> str:
    """Why a point is not run whose memory is of the kind `buffer`; `no_gpu`: why there is no device."""
    return f"{buffer} buffers: {no_gpu}" if no_gpu and buffer not in ("", "malloc") else ""


def line_of(ask: PlannedPoint, series: str, stop: Stop) -> Line:
    """The line of a point's series, without samples."""
    point = ask.point
    line = Line(
        key="",
        kind=point.kind,
        name=point.name,
        series=series,
        pattern=point.pattern,
        level=ask.level,
        pairs=len(point.pairs),
        ranks=ask.ranks,
        threads=point.threads,
        bytes=point.bytes,
        size=point.size,
        dtype=point.dtype,
        kernel="" if point.kind != "compute" else series if point.kernels else "fast",
        blocks=point.blocks,
        layout=point.layout,
        buffer=point.buffer,
        cache=point.cache,
        check=point.check,
        shift=point.shift,
        sync=point.sync,
        amount=amount(ask, series),
        unit="flop" if point.kind == "compute" else "B",
        warmup=stop.warmup,
        skipped=ask.skipped,
    )
    line.key = key(line, point.gpus)
    return line


def key(line: Line, gpus: int = 0) -> str:
    """Names a line, the same in every measurement: nothing that depends on how long or how often."""
    if line.kind == "ping":
        words = [line.level, line.name, line.pattern, f"{line.pairs}pairs", f"{line.bytes}B"]
        words += [line.buffer] * (line.buffer != "") + [f"{gpus}gpus"] * (gpus > 0)
    elif line.kind == "collective":
        words = [line.level, line.name, line.pattern, f"{line.ranks}ranks", f"{line.bytes}B"]
    elif line.kind == "file":
        words = [line.name, line.series, line.layout, line.buffer, line.found(), f"check-{line.check}"]
        words += (
            ["sync"] * line.sync + [f"shift{line.shift}"] * (line.shift > 0) + [f"{gpus}gpus"] * (gpus > 0)
        )
        words += [f"{line.ranks}ranks", f"{line.blocks}x{line.bytes}B"]
    elif line.kind == "memory":
        words = [line.name, f"{line.threads}threads", f"{line.bytes}B"]
    else:
        words = [line.name, line.dtype, f"{line.threads}threads", str(line.size)]
        words += [line.kernel] * (line.kernel not in ("", "fast"))
    words += [SIMULATED.replace(" ", "-")] * (SIMULATED in line.labels)  # never compared with a real one
    return "/".join([line.kind, *words])


def amount(ask: PlannedPoint, series: str) -> float:
    """Bytes or operations of one timed operation, over all ranks together."""
    point = ask.point
    if point.kind == "ping":
        there_and_back = 2 if series == "roundtrip" and point.name in ("blocking", "nonblocking") else 1
        return float(there_and_back * point.bytes * len(point.pairs))
    if point.kind == "collective":
        others = ask.ranks - 1
        messages = {"allreduce": 2 * others, "alltoallv": ask.ranks * others}.get(point.name, others)
        return float(point.bytes * messages)
    if point.kind == "file":
        return float(ask.ranks * point.blocks * point.bytes)
    if point.kind == "memory":
        return float(ask.ranks * ARRAYS[point.name] * point.bytes)
    each = 8.0 if point.dtype.startswith("complex") else 2.0
    return ask.ranks * each * float(point.size) ** 3
