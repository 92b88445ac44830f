"""A timeline of `--trace`, read: what each rank did when, which messages went between ranks.

rank 0   [ input    [ file ] ][ compute   ]     spans lie within one another; the innermost names
         [ input   ][ file ][ ][ compute  ]     the phase, so that `phases()` are disjoint
"""

from __future__ import annotations

import dataclasses
import gzip
import io
import os
import zlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
import numpy

from tilewise.base.errors import UsageError
from tilewise.base.undecodable import UNDECODABLE
from tilewise.lab.report.style import PHASES

KINDS = (*PHASES, "mpi")  # "mpi": a call of MPI, within a span
MPI = len(PHASES)
_LARGEST = 1 << 30  # bytes
Array: TypeAlias = "numpy.ndarray[Any, numpy.dtype[Any]]"
_SPAN = numpy.dtype([("start", "f8"), ("end", "f8"), ("name", "i4"), ("kind", "i4")])
_MESSAGE = numpy.dtype(
    [("source", "i4"), ("target", "i4"), ("start", "f8"), ("end", "f8"), ("bytes", "i8"), ("tag", "i8")]
)
_CALLS = ("mpi", "collective")


class _Event(msgspec.Struct):
    ph: str
    name: str = ""
    cat: str = ""
    ts: float = 0.0
    dur: float = 0.0
    pid: int | str = 0
    id: int | str | None = None
    args: dict[str, Any] = {}


class _File(msgspec.Struct):
    traceEvents: list[_Event]  # noqa: N815 (the format's name)
    otherData: dict[str, Any] = {}  # noqa: N815


@dataclasses.dataclass
class Rank:
    """One rank: `spans` (start, end, name, kind) by start, the longer first; `kind` is a place in KINDS."""

    name: str
    spans: Array

    def phases(self) -> Array:
        """Disjoint intervals (start, end, name, kind) in order: at each moment the innermost phase."""
        return _innermost(self.spans[self.spans["kind"] != MPI])

    def calls(self) -> Array:
        """The calls of MPI, which are disjoint."""
        calls: Array = self.spans[self.spans["kind"] == MPI]
        return calls


@dataclasses.dataclass
class Timeline:
    """One run: times in seconds from its beginning.

    `messages` (source, target, start, end, bytes, tag) by start; source and target are places in `ranks`;
    a tag of -1 is a one-sided message. `about` is what the trace says of itself, such as messages that
    found no room.
    """

    title: str
    seconds: float
    ranks: list[Rank]
    names: list[str]
    messages: Array
    about: dict[str, Any]

    def spans(self) -> int:
        """How many spans and calls there are."""
        return sum(len(rank.spans) for rank in self.ranks)


def read_timeline(path: str | os.PathLike[str], title: str = "") -> Timeline:
    """Reads a file of `--trace`, `.gz` or not. Raises UsageError where it is none."""
    try:
        with open(path, "rb") as packed:
            data = packed.read(_LARGEST + 1)
        if data[:2] == b"\x1f\x8b":
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise UsageError(f"{os.fspath(path)} is larger than 1 GiB, too large for a timeline")
        file = msgspec.json.decode(data, type=_File)
        return timeline_of(file.traceEvents, file.otherData, title)
    except (  # ValueError, TypeError: a text where a number is to be, such as a message's bytes
        *(*UNDECODABLE, ValueError, TypeError, OverflowError),
        *(EOFError, zlib.error, gzip.BadGzipFile),
    ) as error:
        raise UsageError(f"{os.fspath(path)}: no timeline of --trace ({error})") from None
    except OSError as error:
        raise UsageError(
            f"{os.fspath(path)}: the timeline cannot be read: {error.strerror or error}"
        ) from None


def timeline_of(events: Sequence[_Event], about: dict[str, Any], title: str = "") -> Timeline:
    """Make a timeline of events in memory."""
    ranks: dict[int | str, str] = {}
    order: dict[int | str, float] = {}
    names: dict[str, int] = {}
    spans: dict[int | str, list[tuple[float, float, int, int]]] = {}
    seconds = 0.0
    for event in events:
        if event.ph == "M" and event.name == "process_name":
            ranks[event.pid] = str(event.args.get("name", event.pid))
        elif event.ph == "M" and event.name == "process_sort_index":
            order[event.pid] = float(event.args.get("sort_index", 0))
        elif event.ph == "X":
            ranks.setdefault(event.pid, str(event.pid))
            end = (event.ts + event.dur) * 1e-6
            seconds = max(seconds, end)
            kind = MPI if event.cat in _CALLS else KINDS.index(event.cat) if event.cat in PHASES else -1
            if kind >= 0:
                name = names.setdefault(event.name, len(names))
                spans.setdefault(event.pid, []).append((event.ts * 1e-6, end, name, kind))
    pids = sorted(ranks, key=lambda pid: (order.get(pid, 0.0), str(pid).zfill(9)))
    messages = _messages(events, {pid: place for place, pid in enumerate(pids)})
    if len(messages):
        seconds = max(seconds, float(messages["end"].max()))
    return Timeline(
        title or str(about.get("command", "")),
        seconds,
        [Rank(ranks[pid], _by_start(spans.get(pid, []))) for pid in pids],
        list(names),
        messages,
        about,
    )


def _by_start(spans: list[tuple[float, float, int, int]]) -> Array:
    array = numpy.array(spans, dtype=_SPAN)
    return array[numpy.lexsort((-array["end"], array["start"]))]


def _messages(events: Sequence[_Event], places: dict[int | str, int]) -> Array:
    begun: dict[int | str | None, _Event] = {}
    messages = []
    for event in events:
        if event.ph == "s":
            begun[event.id] = event
    for event in events:
        if event.ph == "f" and (left := begun.get(event.id)) and {event.pid, left.pid} <= places.keys():
            tag = left.args.get("tag")
            messages.append(
                (
                    places[left.pid],
                    places[event.pid],
                    left.ts * 1e-6,
                    max(left.ts, event.ts) * 1e-6,
                    int(left.args.get("bytes") or 0),
                    -1 if tag is None else int(tag),
                )
            )
    array = numpy.array(messages, dtype=_MESSAGE)
    return array[numpy.argsort(array["start"], kind="stable")]


def _innermost(spans: Array) -> Array:
    innermost: list[tuple[float, float, int, int]] = []
    open_ones: list[tuple[float, int, int]] = []  # (end, name, kind), the innermost last
    at = 0.0

    def until(moment: float) -> None:
        nonlocal at
        while open_ones and at < moment:
            end, name, kind = open_ones[-1]
            stop = min(end, moment)
            if stop > at:
                innermost.append((at, stop, name, kind))
                at = stop
            if end <= moment:
                open_ones.pop()
        at = max(at, moment)

    for start, end, name, kind in spans.tolist():
        until(start)
        open_ones.append((end, name, kind))
    until(float("inf"))
    return numpy.array(innermost, dtype=_SPAN)


def joined(intervals: Array) -> Array:
    """Disjoint `intervals`; those that touch and are of one kind are one: a picture of them has no seams."""
    if len(intervals) < 2:
        return intervals
    same = intervals["kind"][1:] == intervals["kind"][:-1]
    first = numpy.concatenate(([True], ~(same & (intervals["start"][1:] - intervals["end"][:-1] < 1e-9))))
    joint: Array = intervals[first].copy()
    joint["end"] = intervals["end"][numpy.concatenate((first[1:], [True]))]
    return joint


def merged(intervals: Array, seconds: float, columns: int) -> Array:
    """Disjoint `intervals` as so many columns show them: in each what takes most of it, or nothing."""
    edges = numpy.linspace(0.0, seconds, columns + 1)
    taken = numpy.zeros((len(KINDS) + 1, columns))
    for kind in range(len(KINDS)):
        mine = intervals[intervals["kind"] == kind]
        if len(mine):
            before = numpy.concatenate(([0.0], numpy.cumsum(mine["end"] - mine["start"])))
            place = numpy.searchsorted(mine["start"], edges, side="left")
            over = numpy.maximum(0.0, mine["end"][numpy.maximum(place - 1, 0)] - edges) * (place > 0)
            taken[kind] = numpy.diff(before[place] - over)
    taken[-1] = seconds / columns - taken[:-1].sum(axis=0)
    winner = numpy.argmax(taken, axis=0)
    cuts = numpy.flatnonzero(numpy.diff(winner)) + 1
    starts, ends = numpy.concatenate(([0], cuts)), numpy.concatenate((cuts, [columns]))
    spans = numpy.zeros(len(starts), dtype=_SPAN)
    spans["start"], spans["end"], spans["name"], spans["kind"] = (
        edges[starts],
        edges[ends],
        -1,
        winner[starts],
    )
    return spans[spans["kind"] < len(KINDS)]
