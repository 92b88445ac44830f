"""What one start of the worker measures, and what the lines of its points are called.

Launch ─┬─ ranks, cores, environment         one start of the worker
        └─ PlannedPoint ─┬─ Point                     what the worker is told
                └─ level, ranks, role …      what only the front knows
"""

from __future__ import annotations

import msgspec

from tilewise.lab.measurement.result import Line
from tilewise.launch.job import Point, Stop

SIMULATED = "simulated device"  # the label of what the driver of the tests has played
ON_DEVICE = ("device", "managed")  # kinds of memory with addresses on a device
ARRAYS = {"copy": 2, "triad": 3, "read": 1, "write": 1}  # held and moved, as STREAM counts
_FILE_SAMPLES = 9  # at least, of all series together, with those that do not count
_FILE_RATE = 2e9  # bytes a second: a guess, for the progress bar


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
        return 0.1 + sum(self._point(ask) for ask in self.asks if not ask.skipped)

    def _point(self, ask: PlannedPoint) -> float:
        usual = min(self.stop.seconds, 1.0)
        if ask.point.kind != "file":
            return usual
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
