"""Data paths drawn: which rank reads what of the file, what goes between ranks, who writes.

    input file   [0 1 0 1|2 3 2 3]      the file in its own order; colours say which rank needs a piece
                   │ │   … reading
    ranks          0   1   2   3        ⇄ exchange
                   │ │   … writing
    output file  [0 1 0 1|2 3 2 3]

Four ranks on a 2 × 2 grid stand for any number. The lower half is the upper one in a mirror, arrows turned.
"""

from __future__ import annotations

import itertools
from html import escape

from tilewise.base.errors import clean
from tilewise.launch.record import Record
from tilewise.report.figures.style import themed_names
from tilewise.report.page import Drawing

_WIDTH, _HEIGHT = 420.0, 262.0
_MIDDLE = _HEIGHT / 2
_LEFT, _RIGHT, _STRIP = 26.0, 394.0, (24.0, 44.0)
_DEEP = _STRIP[1] - _STRIP[0]
_RANKS = [_LEFT + (_RIGHT - _LEFT) * (2 * rank + 1) / 8 for rank in range(4)]
_TOP = _MIDDLE - 16  # of the ranks' boxes
_OWNERS = (0, 1, 0, 1, 2, 3, 2, 3)  # of a file's eight pieces, row by row, on a 2 × 2 grid
_COLOURS = tuple(f"var(--series-{place})" for place in (0, 1, 2, 3))
_FAINT = "var(--muted)"

WORDS = {
    "root": "rank 0 alone, with one message per other rank: all data goes through one process",
    "root_collective": "rank 0 alone, with one collective call for all other ranks",
    "per_rank": "one file per rank, so no rank waits for another",
    "collective": "all ranks in one MPI-IO call, which joins their pieces into large ones",
    "split_collective": "the same in two halves, begin and end, with computation in between",
    "two_phase": "each rank one contiguous panel, then an exchange between ranks",
    "uncached": "whole pages past the page cache, then an exchange between ranks",
    "independent": "each rank its own pieces of the file, through a file view",
    "shared_pointer": "each rank in its turn the next piece of the file, then an exchange between ranks",
    "ordered": "all ranks in one call the next pieces of the file, then an exchange between ranks",
    "positioned": "each rank its own pieces of the file, one call per piece",
    "mapped": "each rank the pages of the file that it uses",
    "sieve": "each rank everything from its first to its last piece, keeping only its own",
    "none": "no file: every rank generates its own block",
}
_GATHER = "gather"  # of a transposition
_JOINED = ("collective", "split_collective", "shared_pointer", "ordered", "two_phase", "uncached")


Point = tuple[float, float]


def data_path(key: str, title: str, read: str, write: str, between: str = "", more: str = "") -> Drawing:
    """The path of a job's data with the strategies `read` and `write`; `between` names the exchange, if any.

    `more` goes behind the caption.
    """
    parts = [
        _words(_LEFT, 12, f"input: {_named(read)}", "start", "var(--ink)"),
        *_half(read, writes=False),
        f'<g transform="matrix(1 0 0 -1 0 {_HEIGHT:g})">{"".join(_half(write, writes=True))}</g>',
        *_ranks(between),
        _words(_LEFT, _HEIGHT - 5, f"output: {_named(write)}", "start", "var(--ink)"),
    ]
    said = [f"{title}. Reads: {WORDS.get(read, read)}."]
    said.append("Writes the same way." if read == write else f"Writes: {WORDS.get(write, write)}.")
    said += [more] if more else []
    box = f'viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}"'
    inline = f'<svg class="plot" {box} role="img" aria-label="{_safe(title)}">{"".join(parts)}</svg>'
    # As a file: light colours, white paper, a namespace.
    paper = f'<rect width="{_WIDTH:g}" height="{_HEIGHT:g}" fill="var(--paper)"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="DejaVu Sans, Verdana, sans-serif">'
    alone = themed_names(f"{head}{paper}{''.join(parts)}</svg>\n")
    return Drawing(key, title, " ".join(said), inline, alone)


def way_of(record: Record) -> tuple[str, str, str]:
    """How the job of `record` reads, how it writes, and what goes between ranks.

    A transposition that gathers writes through rank 0, whatever way of writing is named.
    """
    variant = record.variant
    read, _, write = variant.io.partition(":")
    if not record.inputs:
        read = "none"
    exchange, algorithm = variant.exchange, variant.algorithm
    if variant.ranks == 1 or exchange == "none":
        return read, write or read, ""
    if algorithm == _GATHER:
        return read, "root", f"{_GATHER}, {exchange}"
    return read, write or read, f"{variant.decomposition or algorithm}, {exchange}"


def _named(strategy: str) -> str:
    return "made by the ranks" if strategy == "none" else strategy


def _half(strategy: str, writes: bool) -> list[str]:
    """What lies between a file above and the ranks below it; where the file is written, arrows are turned."""
    if strategy == "none":
        return []
    if strategy == "per_rank":
        return _own_files(writes)
    strip = []
    for place, owner in enumerate(_OWNERS):
        left, right, _ = _piece(place)
        strip.append(_box(left + 0.5, _STRIP[0], right - left - 1, _DEEP, _COLOURS[owner], 1.5))
    if strategy in ("root", "root_collective"):
        return strip + _through_root(writes, strategy == "root_collective")
    if strategy in _JOINED:
        return strip + _panels(writes)
    if strategy == "sieve":
        return strip + _sieve(writes)
    dash = "3 2" if strategy == "mapped" else ""
    for place, owner in enumerate(_OWNERS):
        end = _RANKS[owner] + _aside(place), _TOP - 2
        strip.append(_flow(writes, (_piece(place)[2], _STRIP[1] + 2), end, _COLOURS[owner], dash))
    return strip


def _aside(place: int) -> float:
    return -7.0 if place % 4 < 2 else 7.0


def _piece(place: int) -> tuple[float, float, float]:
    """Left, right and middle of one of the file's pieces."""
    width = (_RIGHT - _LEFT) / len(_OWNERS)
    left = _LEFT + place * width
    return left, left + width, left + width / 2


def _own_files(writes: bool) -> list[str]:
    parts = []
    for rank, x in enumerate(_RANKS):
        parts.append(_box(x - 28, _STRIP[0], 56, _DEEP, _COLOURS[rank], 4))
        parts.append(_flow(writes, (x, _STRIP[1] + 2), (x, _TOP - 2), _COLOURS[rank]))
    return parts


def _through_root(writes: bool, together: bool) -> list[str]:
    first, low = _RANKS[0], _TOP - 2
    parts = [_shade((_LEFT, _RIGHT), (first - 12, first + 4), low, _FAINT)]
    parts.append(_flow(writes, (first - 4, _STRIP[1] + 3), (first - 4, low), "var(--ink)", "wide"))
    if together:
        level = _TOP - 14
        parts.append(_path([(first + 14, low), (first + 14, level), (_RANKS[-1], level)]))
        parts += [_path([(x, level), (x, low)]) for x in _RANKS[1:]]
        ends = [first + 14] if writes else _RANKS[1:]
        return parts + [_arrow((x, level), (x, low), "var(--ink)") for x in ends]
    for rank, x in enumerate(_RANKS[1:], 1):
        level, start = _TOP - 12 - 9 * rank, first + 21 - 5 * rank
        parts.append(_path([(start, low), (start, level), (x, level), (x, low)], _COLOURS[rank]))
        end = start if writes else x
        parts.append(_arrow((end, level), (end, low), _COLOURS[rank]))
    return parts


def _panels(writes: bool) -> list[str]:
    """Each rank takes a quarter of the file in one piece; then pieces change hands."""
    parts, level = [], _STRIP[1] + 20
    for rank, x in enumerate(_RANKS):
        left, right = _piece(2 * rank)[0] + 2, _piece(2 * rank + 1)[1] - 2
        parts.append(_shade((left, right), (x - 26, x + 26), level, _FAINT))
        for half, place in enumerate((2 * rank, 2 * rank + 1)):
            owner, start = _OWNERS[place], (x - 13 + 26 * half, level + 10)
            end = _RANKS[owner] + _aside(place), _TOP - 2
            parts.append(_box(x - 26 + 26 * half, level, 26, 8, _COLOURS[owner], 1))
            parts.append(_flow(writes, start, end, _COLOURS[owner]))
    return parts


def _sieve(writes: bool) -> list[str]:
    parts = []
    for rank, x in enumerate(_RANKS):
        own = [place for place, owner in enumerate(_OWNERS) if owner == rank]
        span = _piece(own[0])[0] + 2, _piece(own[-1])[1] - 2
        parts.append(_shade(span, (x - 14, x + 14), _TOP - 12, _COLOURS[rank]))
        parts.append(_flow(writes, (x, _TOP - 20), (x, _TOP - 2), _COLOURS[rank], "wide"))
    return parts


def _ranks(between: str) -> list[str]:
    parts = []
    for rank, x in enumerate(_RANKS):
        parts.append(_box(x - 22, _TOP, 44, 32, _COLOURS[rank], 6))
        parts.append(_words(x, _MIDDLE + 4, f"rank {rank}", "middle", "var(--paper)"))
    if between and not between.startswith(f"{_GATHER},"):  # its messages are those of the root that writes
        for here, there in itertools.pairwise(_RANKS):
            a, b = (here + 25, _MIDDLE), (there - 25, _MIDDLE)
            parts += [_arrow(a, b, "var(--ink)"), _arrow(b, a, "var(--ink)")]
    if between:
        parts.append(_words(_RIGHT, _HEIGHT - 5, f"between: {between}", "end", _FAINT))
    return parts


def _box(x: float, y: float, width: float, height: float, colour: str, corner: float) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{corner:g}" '
        f'fill="{colour}"/>'
    )


def _words(x: float, y: float, text: str, anchor: str, colour: str) -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" font-size="11" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {where}>{_safe(text)}</text>"


def _shade(upper: Point, lower: Point, y: float, colour: str) -> str:
    """What a rank takes of the file: from `upper` (left, right) at the strip down to `lower` at `y`."""
    corners = ((upper[0], _STRIP[1]), (upper[1], _STRIP[1]), (lower[1], y), (lower[0], y))
    points = " ".join(f"{x:.1f},{at:.1f}" for x, at in corners)
    return f'<polygon points="{points}" fill="{colour}" fill-opacity=".2"/>'


def _flow(writes: bool, start: Point, end: Point, colour: str, style: str = "") -> str:
    """An arrow from the file's side to the ranks', turned round where the file is written."""
    return _arrow(end, start, colour, style) if writes else _arrow(start, end, colour, style)


def _path(points: list[Point], colour: str = "var(--ink)") -> str:
    steps = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="M{steps}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _arrow(a: Point, b: Point, colour: str, style: str = "") -> str:
    """A line from `a` to `b` with a head; `style` is "wide", or a dash."""
    length = max(((b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2) ** 0.5, 1e-9)
    x, y = (b[0] - a[0]) / length, (b[1] - a[1]) / length
    size = 7.0 if style == "wide" else 5.0
    foot = b[0] - size * x, b[1] - size * y
    half = size * 0.5
    head = (b, (foot[0] - half * y, foot[1] + half * x), (foot[0] + half * y, foot[1] - half * x))
    points = " ".join(f"{px:.1f},{py:.1f}" for px, py in head)
    width = 3 if style == "wide" else 1.4
    dash = f' stroke-dasharray="{style}"' if style and style != "wide" else ""
    return (
        f'<path d="M{a[0]:.1f} {a[1]:.1f} L{foot[0]:.1f} {foot[1]:.1f}" stroke="{colour}" '
        f'stroke-width="{width}"{dash}/><polygon points="{points}" fill="{colour}"/>'
    )


def _safe(text: object) -> str:
    return escape(clean(text), quote=True)
