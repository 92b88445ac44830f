"""Makes lines and tables of what the launches found, and says what part of their carrier they reach."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

from tilewise.base.units import bytes_text, plural, rate_text
from tilewise.lab.measurement.result import (
    ON_DEVICE,
    SIMULATED,
    Launch,
    Line,
    PairMatrix,
    PlannedPoint,
    key,
    line_of,
    once,
)
from tilewise.lab.measurement.run import FoundPoint, RunResult
from tilewise.lab.statistics.intervals import decided, launch_interval
from tilewise.lab.statistics.summary import summarise

CHOICES = ("tiles", "blas")
TYPES = ("float32", "float64")  # that there are tiles for
WORTH = 1.05
"""The other kernel is so many times as fast where the choice is called wrong; `compare` has 5 % too."""

_SAID = {"tiles": "tiles", "blas": "BLAS"}


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One type and size: how many times as fast as the `chosen` kernel the other is, with a 95 % interval.

    `holds` is None where the interval reaches to both sides of 1.05, or a single launch gives none.
    """

    dtype: str
    size: int
    chosen: str
    ratio: float
    low: float
    high: float
    holds: bool | None

    @property
    def other(self) -> str:
        """The kernel that jobs do not use."""
        (name,) = {*CHOICES} - {self.chosen}
        return name


def choices(lines: Sequence[Line]) -> list[Choice]:
    """Compare the lines of both kernels, by type and size, in their order."""
    both: dict[tuple[str, int], dict[str, Line]] = {}
    for line in lines:
        if line.chosen in CHOICES and line.kernel in CHOICES and line.summary is not None:
            both.setdefault((line.dtype, line.size), {})[line.kernel] = line
    return [_choice(pair[CHOICES[0]].chosen, pair) for pair in both.values() if len(pair) == len(CHOICES)]


def _choice(chosen: str, pair: dict[str, Line]) -> Choice:
    (other,) = {*CHOICES} - {chosen}
    ratios = [
        statistics.median(ours) / statistics.median(theirs)
        for ours, theirs in zip(pair[chosen].launches, pair[other].launches, strict=True)
        if ours and theirs and min(theirs) > 0
    ]
    ratio = statistics.median(ratios) if ratios else float("nan")
    interval = launch_interval(ratios)
    low, high = interval or (ratio, ratio)
    return Choice(
        dtype=pair[chosen].dtype,
        size=pair[chosen].size,
        chosen=chosen,
        ratio=ratio,
        low=low,
        high=high,
        holds=None if interval is None else decided(lambda each: each <= WORTH, ratio, interval),
    )


def sentences(found: Sequence[Choice]) -> list[str]:
    """One for each type: the choice holds, is wrong at a size, or is not decided."""
    types = dict.fromkeys(choice.dtype for choice in found)
    return [_sentence(dtype, [choice for choice in found if choice.dtype == dtype]) for dtype in types]


def _sentence(dtype: str, found: list[Choice]) -> str:
    wrong = [choice for choice in found if choice.holds is False]
    if wrong:
        worst = max(wrong, key=lambda choice: choice.ratio)
        others = [choice for choice in wrong if choice is not worst]
        more = f", and faster at {_sizes(others)}" if others else ""
        return (
            f"{dtype}: the choice of {_SAID[worst.chosen]} is wrong here:"
            f" {_SAID[worst.other]} {_told(worst)} as fast at {worst.size}²{more};"
            f" use --kernel {worst.other}"
        )
    open_ = [choice for choice in found if choice.holds is None]
    if open_:
        worst = max(open_, key=lambda choice: choice.ratio)
        return (
            f"{dtype}: the choice of kernel is undecided here at {_sizes(open_)}: at {worst.size}²"
            f" {_SAID[worst.other]} {_told(worst)} as fast as {_SAID[worst.chosen]}, which jobs use;"
            " measure with more --launches"
        )
    each = [
        f"{_SAID[kernel]} at {_sizes([choice for choice in found if choice.chosen == kernel])}"
        for kernel in dict.fromkeys(choice.chosen for choice in found)
    ]
    return f"{dtype}: the choice of kernel holds here: {', '.join(each)}"


def _told(choice: Choice) -> str:
    verb = "are" if choice.other == "tiles" else "is"
    return f"{verb} {choice.ratio:.2f} ({choice.low:.2f}–{choice.high:.2f}) times"


def _sizes(found: list[Choice]) -> str:
    return ", ".join(f"{choice.size}²" for choice in found)


_NAMES = {"ping": ("",), "file": ("write", "read")}  # series of points that were not run


def lines_of(launches: Sequence[Launch], ran: RunResult) -> list[Line]:
    """A line for each series of each point, in the order of the plan, and one for what was not run.

    Writing before a cold reading is writing: it counts once where warm readings were asked for too.
    """
    lines = []
    for index, launch in enumerate(launches):
        for place, ask in enumerate(launch.asks):
            if ask.role == "line":
                points = ran.found.get((index, place), [])
                lines += _lines(launch, ask, points, ran.labels[index], ran.failed.get(index, ""))
    warm = {line.key for line in lines if line.cache != "cold"}
    return [line for line in lines if line.cache != "cold" or line.key not in warm]


def _lines(
    launch: Launch, ask: PlannedPoint, points: Sequence[FoundPoint], labels: list[str], failed: str
) -> list[Line]:
    names = list(dict.fromkeys(series.name for one in points for series in one.series if series.samples))
    if not names:
        why = next(
            (one.skipped for one in points if one.skipped),
            ask.skipped or failed or "the worker found nothing",
        )
        lines = [line_of(ask, name, launch.stop) for name in _unmeasured(ask)]
        for line in lines:
            line.skipped = why
        return lines
    lines = []
    for name in names:
        line = line_of(ask, name, launch.stop)
        there = [(one, series) for one in points for series in one.series if series.name == name]
        line.launches = [series.samples for _, series in there]
        line.inner = there[0][0].inner
        told = [series.warmup for _, series in there if series.warmup is not None]
        line.warmup = max(told, default=line.warmup)
        line.by_rank = _mean([series.by_rank for _, series in there])
        line.devices = there[0][0].devices
        simulated = any(one.simulated_devices for one, _ in there)
        line.chosen = there[0][0].chosen if ask.point.kernels else ""
        line.notes = list(dict.fromkeys(note for one, _ in there for note in one.notes))
        line.notes += [f"a later launch failed: {failed}"] * bool(failed)
        line.labels = once([*[SIMULATED] * simulated, *labels])
        line.key = key(line, ask.point.gpus)
        line.summary, line.outliers = summarise(line.launches)
        lines.append(line)
    return lines


def _unmeasured(ask: PlannedPoint) -> Sequence[str]:
    if ask.point.kind == "ping":
        return (ask.point.pattern,)
    return ask.point.kernels or _NAMES.get(ask.point.kind, ("seconds",))


def _mean(rows: Sequence[Sequence[float]]) -> list[float]:
    """Mean of each rank over launches."""
    width = min((len(row) for row in rows), default=0)
    return [sum(row[rank] for row in rows) / len(rows) for rank in range(width)]


def matrices_of(launches: Sequence[Launch], ran: RunResult) -> list[PairMatrix]:
    """The tables of all pairs: seconds of a message one way, the median over launches."""
    matrices: dict[tuple[int, int], PairMatrix] = {}
    for index, launch in enumerate(launches):
        names = launch.names or [f"core {cpu}" for cpu in launch.cpus]
        names = names or [f"rank {rank}" for rank in range(launch.ranks)]
        for place, ask in enumerate(launch.asks):
            if ask.role != "matrix":
                continue
            samples = [
                sample
                for one in ran.found.get((index, place), [])
                for series in one.series
                for sample in series.samples
            ]
            size = ask.point.bytes
            empty = [
                [0.0 if row == column else None for column in range(launch.ranks)]
                for row in range(launch.ranks)
            ]
            matrix = matrices.setdefault(
                (index, size), PairMatrix(bytes=size, level=launch.level, ranks=names, seconds=empty)
            )
            (low, high) = ask.point.pairs[0]
            if samples:
                matrix.seconds[low][high] = matrix.seconds[high][low] = statistics.median(samples) / 2
    return list(matrices.values())


def add_shares(lines: Sequence[Line], links: dict[str, float]) -> None:
    """Sets `share` and `carrier`.

    What carries messages in a node and cached files is a copy in memory, messages between nodes the link;
    products are compared with the fastest of their type and threads. `links` are bytes a second. What a disk
    or a graphics processor's bus carries has no share, since neither is measured by itself.
    """
    copies = [line for line in lines if line.kind == "memory" and line.name == "copy" and line.summary]
    for line in lines:
        rate = line.rate()
        if rate is None:
            continue
        if line.kind in ("ping", "collective") and line.level == "node":
            if links:
                name = max(links, key=lambda link: links[link])
                _set(line, rate, links[name], f"link {name}, {rate_text(links[name], 'B/s')}")
        elif line.kind == "ping" and line.buffer not in ON_DEVICE:
            _by_copy(line, rate, copies, line.pairs, line.bytes)
        elif line.kind == "file" and _in_memory(line):
            _by_copy(line, rate, copies, line.ranks, line.ranks * line.blocks * line.bytes)
        elif line.kind == "compute":
            best = max(
                other.rate() or 0.0
                for other in lines
                if (other.kind, other.dtype, other.threads) == ("compute", line.dtype, line.threads)
            )
            whose = f"fastest {line.dtype} product of {plural(line.threads, 'thread')}"
            _set(line, rate, best, f"{whose}, {rate_text(best, 'FLOP/s')}")


def _in_memory(line: Line) -> bool:
    """Tell whether blocks of a file only go from one place in this node's memory to another."""
    to_disk = line.sync and line.series != "read"
    ours = line.buffer not in ON_DEVICE
    return line.cache == "warm" and line.name != "uncached" and ours and not to_disk


def _by_copy(line: Line, rate: float, copies: Sequence[Line], streams: int, size: int) -> None:
    """Against bytes copied a second: by as many threads, of arrays of about the size."""
    if not copies:
        return
    threads = min({copy.threads for copy in copies}, key=lambda count: (abs(count - streams), count))
    near = min(
        (copy for copy in copies if copy.threads == threads),
        key=lambda copy: abs(math.log(copy.bytes / max(size, 1))),
    )
    disturbed = f", disturbed ({', '.join(near.labels)})" if near.labels else ""
    copied = (near.rate() or 0.0) / 2  # the rate counts what is read and what is written
    whose = f"memory copy by {plural(threads, 'thread')}, {bytes_text(near.bytes)}"
    _set(line, rate, copied, f"{whose}: {rate_text(copied, 'B/s')}{disturbed}")


def _set(line: Line, rate: float, most: float, carrier: str) -> None:
    if most > 0:
        line.share, line.carrier = rate / most, carrier
