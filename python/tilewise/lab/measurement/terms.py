"""The terms of a machine by which jobs are planned, out of what was measured of it.

Rates are those of one core, and of all of a node's: of copies of arrays well past the caches, of products, of
files that the page cache holds. Messages are a short one's seconds and a long one's rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tilewise.lab.measurement.fit import one_operation
from tilewise.lab.measurement.result import Line
from tilewise.machine.terms import KINDS, Term, gemm

LEAST_ERROR = 0.3  # of a term: jobs do other things than a measurement does, until they teach
DISTURBED = 0.6
_NEAR = ("core", "cache", "socket", "sibling")  # levels within a node, the likeliest of ranks first


def terms_of(lines: Iterable[Line], cores: int) -> dict[str, Term]:
    """What `lines` say of a node with so many `cores`; nothing of what was not measured."""
    lines = [line for line in lines if line.summary is not None and not line.skipped]
    found: dict[str, Term | None] = {
        "copy": _of_threads(lines, lambda line: line.kind == "memory" and line.name == "copy", cores),
        "read": _of_ranks(lines, "read"),
        "write": _of_ranks(lines, "write_new"),
        "recall": _recalled(lines),
        "link/node": _link(lines, ("node",)),
        "message/node": _message(lines, ("node",)),
        "link/core": _link(lines, _NEAR),
        "message/core": _message(lines, _NEAR),
    }
    for dtype in {line.dtype for line in lines if line.kind == "compute"}:
        if gemm(dtype) in KINDS:
            found[gemm(dtype)] = _products(lines, dtype, cores)
    return {name: term for name, term in found.items() if term is not None}


def _of_threads(lines: Sequence[Line], wanted: Callable[[Line], bool], cores: int) -> Term | None:
    """The rates of the largest arrays on one thread and on as many as there are cores."""
    some = [line for line in lines if wanted(line) and line.rate()]
    most = max((line.bytes for line in some), default=0)
    one = [line for line in some if line.bytes == most and line.threads == 1]
    all_ = [line for line in some if line.bytes == most and line.threads == cores]
    return _term(one, (all_[0].rate() or 0.0) if all_ else 0.0)


def _products(lines: Sequence[Line], dtype: str, cores: int) -> Term | None:
    """The best rate of a core by the kernel of jobs, with all cores at work where that was measured."""
    some = [line for line in lines if line.kind == "compute" and line.dtype == dtype and line.rate()]
    some = [line for line in some if not line.chosen or line.kernel == line.chosen]
    all_ = [line for line in some if line.threads == cores] or some
    best = max(all_, key=lambda line: (line.rate() or 0.0) / line.threads, default=None)
    if best is None:
        return None
    return Term(rate=(best.rate() or 0.0) / best.threads, error=_error(best), source="measured")


def _of_ranks(lines: Sequence[Line], series: str) -> Term | None:
    """Of files in the page cache: one rank's rate, and that of the most ranks together."""
    some = [
        line
        for line in lines
        if line.kind == "file" and line.name == "positioned" and line.series == series and line.rate()
        if line.found() in ("warm", "none", "") and line.layout in ("interleaved", "")
    ]
    most = max((line.bytes for line in some), default=0)
    some = sorted((line for line in some if line.bytes == most), key=lambda line: line.ranks)
    if not some:
        return None
    return _term([line for line in some if line.ranks == 1] or some[:1], some[-1].rate() or 0.0)


def _recalled(lines: Sequence[Line]) -> Term | None:
    """What a write after a pause takes longer than one that follows another: its pages were the host's."""
    new, rested = _of_ranks(lines, "write_new"), _of_ranks(lines, "write_rested")
    if new is None or rested is None or not (rested.rate < new.rate and rested.node < new.node):
        return None
    return Term(
        rate=1 / (1 / rested.rate - 1 / new.rate),
        node=1 / (1 / rested.node - 1 / new.node),
        error=1.5 * LEAST_ERROR,  # it differs from one moment to the next
        source="measured",
    )


def _link(lines: Sequence[Line], levels: Sequence[str]) -> Term | None:
    large = _messages(lines, levels)
    if not large:
        return None
    line = large[-1]
    several = [each for each in large if each.bytes == line.bytes and each.pairs > 1]
    rate = line.bytes / one_operation(line)
    together = max((each.pairs * each.bytes / one_operation(each) for each in several), default=0.0)
    return Term(rate=rate, node=max(together, rate), error=_error(line), source="measured")


def _message(lines: Sequence[Line], levels: Sequence[str]) -> Term | None:
    small = _messages(lines, levels)
    if not small:
        return None
    return Term(seconds=one_operation(small[0]), error=_error(small[0]), source="measured")


def _messages(lines: Sequence[Line], levels: Sequence[str]) -> list[Line]:
    """To and fro between pairs at the first of the levels that was measured, the shortest first."""
    some = [
        line
        for line in lines
        if line.kind == "ping" and line.name == "blocking" and line.pattern == "roundtrip"
        if line.pairs == 1 and one_operation(line) > 0
    ]
    level = next((level for level in levels if any(line.level == level for line in some)), "")
    return sorted((line for line in some if line.level == level), key=lambda line: line.bytes)


def _term(lines: Sequence[Line], node: float) -> Term | None:
    if not lines:
        return None
    rate = lines[0].rate() or 0.0
    return Term(rate=rate, node=max(rate, node), error=_error(lines[0]), source="measured")


def _error(line: Line) -> float:
    return DISTURBED if line.labels else LEAST_ERROR
