"""The network between hosts, and the way within one, as `tilewise measure` found them."""

from __future__ import annotations

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.undecodable import UNDECODABLE

HOW = "tilewise measure ping --hosts FILE --levels core,node --json RESULT.json"
_WITHIN = ("core", "cache", "socket", "sibling")  # the first of them that was measured


class Way(msgspec.Struct, frozen=True):
    """How many bytes a second it carries, and the seconds that a message takes on it."""

    bandwidth: float
    latency: float


class Network(msgspec.Struct, frozen=True):
    """From host to host, and from rank to rank of a host."""

    between: Way
    within: Way


class _Summary(msgspec.Struct):
    minimum: float


class _Line(msgspec.Struct):
    kind: str
    pattern: str = ""
    level: str = ""
    pairs: int = 0
    bytes: int = 0
    summary: _Summary | None = None


class _Result(msgspec.Struct):
    lines: list[_Line]


def measured_network(path: str, hosts: int) -> Network:
    """What the result in `path` says; UsageError where it is none, or says too little for so many hosts."""
    try:
        with open(path, "rb") as file:
            result = msgspec.json.decode(file.read(), type=_Result)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    except UNDECODABLE as error:
        raise UsageError(f"{path} is not a result of tilewise measure: {error}", HOW) from None
    ways = {level: way for level in ("node", *_WITHIN) if (way := _way(result.lines, level)) is not None}
    within = next((ways[level] for level in _WITHIN if level in ways), None)
    between = ways.get("node") if hosts > 1 else within
    if between is None or within is None:
        raise UsageError(f"{path} has no messages of two sizes from host to host and within a host", HOW)
    return Network(between=between, within=within)


def _way(lines: list[_Line], level: str) -> Way | None:
    """By the shortest message and the longest of one pair of ranks; None where these are not two.

    By the fastest sample of each: that of others contains what the two ranks waited for a processor.
    """
    seconds: dict[int, float] = {}
    for line in lines:
        there = (line.kind, line.pattern, line.level, line.pairs) == ("ping", "roundtrip", level, 1)
        if there and line.summary is not None:
            once = line.summary.minimum / 2  # of there and back
            seconds[line.bytes] = min(once, seconds.get(line.bytes, once))
    if not seconds:
        return None
    least, most = min(seconds), max(seconds)
    longer = seconds[most] - seconds[least]
    return Way(bandwidth=(most - least) / longer, latency=seconds[least]) if longer > 0 else None
