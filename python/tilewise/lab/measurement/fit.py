"""Fits what operations cost to measured lines: up to three straight pieces each, tested on sizes left out.

seconds │                      ╱ large        Each piece is α + β·bytes. A message is sent at once while it
        │               ___╱                  is small (eager), after asking from some size on (rendezvous),
        │        ┌──╱  rendezvous             and past the caches when it is large. Where the protocol
        │ ───────┘                            changes, time really jumps; elsewhere pieces meet.
        │ eager
        └────────────────────────── bytes

Design: docs/design/measuring.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from tilewise.lab.measurement.result import CurvePiece, FittedCurve, Line, Model, once
from tilewise.machine.terms import KINDS, Term, gemm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


PIECES = 3
FOLDS = 3
LEAST_SIZES = 6  # for several pieces: fewer sizes leave none out, so that nothing would test them
LEAST_POINTS = 2  # of a piece; where there are fewer sizes in all, one piece holds them
_USUAL = (
    "",
    "interleaved",
    "malloc",
    "warm",
    "none",
    "counts",
)  # of files; what else there is, is in the key
SIMPLER = 0.95
"""One more piece must bring the error on sizes left out to this share, or it is not worth having."""


def fit(lines: Iterable[Line]) -> Model:
    """Costs of messages, collectives and files, the injection limit of a node, and the rate of a copy.

    Of each key its sizes are fitted, where there are two or more; lines without a summary are passed over.
    Raises nothing for lines it knows nothing about. Some tens of milliseconds for each key.
    """
    lines = [line for line in lines if line.summary is not None]
    curves: dict[str, dict[int, float]] = defaultdict(dict)
    labels: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        key, seconds = cost_key(line), one_operation(line)
        if key and line.bytes > 0 and seconds > 0:
            curves[key][line.bytes] = seconds
            labels[key] += line.labels
    costs = [fit_cost(key, curve) for key, curve in sorted(curves.items()) if len(curve) > 1]
    copy = largest_copy(lines)
    labels["injection"] = [label for line in several_between_nodes(lines) for label in line.labels]
    labels["copy_rate"] = copy.labels if copy is not None else []
    return Model(
        costs=costs,
        injection=injection(lines),
        copy_rate=copy.rate() if copy is not None else None,
        labels={key: once(words) for key, words in labels.items() if words},
    )


def cost_key(line: Line) -> str:
    """Key of a line's curve.

    `ping/LEVEL/NAME`, with `/device`, `/stream` for a stream, `/PAIRSpairs` where several talk;
    `collective/LEVEL/NAME/PATTERN/RANKSranks`; `file/NAME/SERIES/RANKSranks`, and what is unusual of it.
    """
    if line.kind == "ping":
        words = [line.level, line.name, *[line.buffer] * (line.buffer != "")]
        words += ["stream"] * (line.pattern == "stream") + [f"{line.pairs}pairs"] * (line.pairs > 1)
    elif line.kind == "collective":
        words = [line.level, line.name, line.pattern, f"{line.ranks}ranks"]
    elif line.kind == "file" and line.blocks > 0:
        words = [line.name, line.series, f"{line.ranks}ranks"]
        words += [word for word in (line.layout, line.buffer, line.found(), line.check) if word not in _USUAL]
        words += ["sync"] * line.sync + ["shift0"] * (line.shift == 0 and line.ranks > 1)
    else:
        return ""
    return "/".join([line.kind, *words])


def one_operation(line: Line) -> float:
    """Seconds of a message one way, of a collective, or of one call on one block of a file."""
    if line.summary is None:
        return 0.0
    there_and_back = line.kind == "ping" and line.pattern == "roundtrip" and line.name not in ("put", "get")
    return line.summary.median / (2 if there_and_back else max(line.blocks, 1))


def fit_cost(key: str, curve: dict[int, float]) -> FittedCurve:
    """Fit seconds by bytes (two or more sizes, all positive); errors come from sizes left out.

    Sizes are left out in three lots, and predicted by a fit that never saw them. Never left out are the
    least and the largest size, and the two around each cut of the whole fit: what lies beyond the ends of a
    protocol cannot be told from inside it. Coefficients come from all sizes. The errors that are told are
    also what the number of pieces is chosen by, of three at most, and so a little too good.
    """
    import numpy as np

    sizes = np.array(sorted(curve), dtype=np.float64)
    seconds = np.array([curve[int(size)] for size in sizes])
    most = search(sizes, seconds, PIECES if len(sizes) >= LEAST_SIZES else 1)
    kept = {0, len(sizes) - 1, *(place for cut in most[1:] for place in (cut - 1, cut))}
    inside = [place for place in range(len(sizes)) if place not in kept]
    best: tuple[int, Numbers | None] = (1, None)
    for count in range(1, min(PIECES, len(most)) + 1):
        errors = _left_out(sizes, seconds, inside, count)
        if errors is None:
            break
        if best[1] is None or _badness(errors) < SIMPLER * _badness(best[1]):
            best = (count, errors)
    count, missed = best
    return FittedCurve(
        key=key,
        pieces=pieces(sizes, seconds, search(sizes, seconds, count)),
        median_error=None if missed is None else float(np.median(missed)),
        largest_error=None if missed is None else float(missed.max()),
    )


def _badness(errors: Numbers) -> float:
    return math.sqrt(float((errors**2).mean()))


def _left_out(sizes: Numbers, seconds: Numbers, inside: list[int], count: int) -> Numbers | None:
    """Relative errors at `inside` places, each predicted from a fit without it; None where none can be."""
    import numpy as np

    if not inside or len(sizes) < 4:
        return None
    errors = []
    for fold in range(min(FOLDS, len(inside))):
        out = inside[fold::FOLDS]
        rest = np.setdiff1d(np.arange(len(sizes)), out)
        cost = FittedCurve(
            key="", pieces=pieces(sizes[rest], seconds[rest], search(sizes[rest], seconds[rest], count))
        )
        errors += [abs(cost.seconds(float(sizes[place])) / float(seconds[place]) - 1) for place in out]
    return np.array(errors)


def search(sizes: Numbers, seconds: Numbers, most: int) -> list[int]:
    """Where up to `most` pieces begin (places in `sizes`), so that the squared relative error is least.

    Dynamic programming over all cuts: `least[c][e]` is the least error of c pieces over the first e sizes. n
    sizes take n²/2 fits of a line.
    """
    count = len(sizes)
    error = {
        (begin, end): straight(sizes[begin:end], seconds[begin:end])[2]
        for begin in range(count)
        for end in range(begin + min(LEAST_POINTS, count), count + 1)
    }
    least: list[dict[int, tuple[float, list[int]]]] = [{0: (0.0, [])}]
    for _ in range(most):
        row: dict[int, tuple[float, list[int]]] = {}
        for end in range(1, count + 1):
            for begin, (sum_, cuts) in least[-1].items():
                if (begin, end) in error and sum_ + error[begin, end] < row.get(end, (math.inf, []))[0]:
                    row[end] = (sum_ + error[begin, end], [*cuts, begin])
        least.append(row)
    costs = [row[count] for row in least[1:] if count in row]
    return min(costs, key=lambda pair: pair[0])[1]


def straight(sizes: Numbers, seconds: Numbers) -> tuple[float, float, float]:
    """α, β ≥ 0 of least squared relative error, and that error: non-negative least squares."""
    import numpy as np
    from scipy.optimize import nnls  # type: ignore[import-untyped,unused-ignore]

    scale = float(sizes.max())
    coefficients, norm = nnls(np.column_stack([1 / seconds, sizes / scale / seconds]), np.ones(len(sizes)))
    return float(coefficients[0]), float(coefficients[1]) / scale, float(norm) ** 2


def pieces(sizes: Numbers, seconds: Numbers, begins: list[int]) -> list[CurvePiece]:
    """Pieces over the given cuts, from the least to the largest size of each; the first one from 0, the last
    one on and on. Two that cross between their sizes meet there."""
    fitted: list[CurvePiece] = []
    for begin, end in zip(begins, [*begins[1:], len(sizes)], strict=True):
        alpha, beta, _ = straight(sizes[begin:end], seconds[begin:end])
        first, last = float(sizes[begin]) if fitted else 0.0, float(sizes[end - 1])
        if fitted and beta != fitted[-1].beta:
            crossing = (fitted[-1].alpha - alpha) / (beta - fitted[-1].beta)
            if float(sizes[begin - 1]) < crossing < first:
                first = crossing
                fitted[-1] = msgspec.structs.replace(fitted[-1], end=crossing)
        fitted.append(
            CurvePiece(begin=first, alpha=alpha, beta=beta, end=None if end == len(sizes) else last)
        )
    return fitted


def injection(lines: Iterable[Line]) -> float | None:
    """Bytes a second that leave a node when several pairs send at once, in the best way: the middle rate
    of large messages, since small ones pass in one burst into the buffers of cards and switches."""
    rates: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    several = several_between_nodes(lines)
    large = min(1 << 20, max((line.bytes for line in several), default=0))
    for line in several:
        if line.bytes >= large and one_operation(line) > 0:
            rate = line.pairs * line.bytes / one_operation(line)
            rates[line.name, line.pattern, line.pairs].append(rate)
    return max((median(seconds) for seconds in rates.values()), default=None)


def several_between_nodes(lines: Iterable[Line]) -> list[Line]:
    """Messages of several pairs at once between two nodes."""
    return [line for line in lines if line.kind == "ping" and line.level == "node" and line.pairs > 1]


def largest_copy(lines: Iterable[Line]) -> Line | None:
    """The copy of the largest arrays by the most threads: its rate is in bytes a second, read and written."""
    copies = [line for line in lines if line.kind == "memory" and line.name == "copy" and line.rate()]
    return max(copies, key=lambda line: (line.bytes, line.threads), default=None)


LEAST_ERROR = 0.3  # of a term: jobs do other things than a measurement does, until they teach
DISTURBED = 0.6
_NEAR = ("core", "cache", "socket", "sibling")  # levels within a node, the likeliest of ranks first


def terms_of(lines: Iterable[Line], cores: int) -> dict[str, Term]:
    """Derive terms of a node with so many `cores` from `lines`; none of what was not measured."""
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
    """Rates of files in the page cache: of one rank, and of the most ranks together."""
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
    """Rate at which the host gives pages back: what a write after a pause takes longer than the next one."""
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
