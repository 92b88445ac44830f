"""Data paths drawn: which rank reads what of the file, what goes between ranks, who writes.

    input file   [0 1 0 1|2 3 2 3]      the file in its own order; colours say which rank needs a piece
                   │ │   … reading
    ranks          0   1   2   3        ⇄ exchange
                   │ │   … writing
    output file  [0 1 0 1|2 3 2 3]

As many ranks as there were, on their grid, and four that stand for more. The lower half is the upper one in a
mirror, arrows turned.
"""

from __future__ import annotations

import dataclasses
import itertools
from html import escape

from tilewise.base.errors import clean
from tilewise.lab.report.page import Drawing
from tilewise.lab.report.style import themed_names
from tilewise.launch.record import Record

_WIDTH, _HEIGHT = 420.0, 262.0
_TALL = _HEIGHT + 14  # with what goes between ranks below
_MIDDLE = _HEIGHT / 2
_LEFT, _RIGHT, _STRIP = 26.0, 394.0, (24.0, 44.0)
_DEEP = _STRIP[1] - _STRIP[0]
_TOP = _MIDDLE - 16  # of the ranks' boxes
_MOST = 4  # ranks that are drawn
_COLOURS = tuple(f"var(--rank-{place})" for place in range(_MOST))
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
_APART = ", not joined"
WORDS |= {
    f"collective{_APART}": "all ranks in one MPI-IO call, each its own pieces: two phases are switched off",
    f"split_collective{_APART}": "the same in two halves, each rank its own pieces: two phases are off",
    f"uncached{_APART}": "each rank its own pieces past the page cache, many by one call",
}

Point = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class DataWay:
    """How a job reads and writes, what goes between its ranks, and their grid as it is drawn."""

    read: str
    write: str
    between: str = ""
    grid: tuple[int, int] = (2, 2)

    @property
    def drawn(self) -> int:
        """How many ranks are drawn."""
        return self.grid[0] * self.grid[1]


class _Seats:
    """Where ranks stand, and who owns which piece of the file: each has two, on `grid`, row by row."""

    def __init__(self, grid: tuple[int, int]) -> None:
        down, across = grid
        count = down * across
        self.ranks = [_LEFT + (_RIGHT - _LEFT) * (2 * rank + 1) / (2 * count) for rank in range(count)]
        self.owners = [row // 2 * across + column for row in range(2 * down) for column in range(across)]

    def piece(self, place: int) -> tuple[float, float, float]:
        """Left, right and middle of one of the file's pieces."""
        width = (_RIGHT - _LEFT) / len(self.owners)
        left = _LEFT + place * width
        return left, left + width, left + width / 2

    def goal(self, place: int) -> Point:
        """Where at its owner's box a piece arrives: the first of two to the left."""
        owner = self.owners[place]
        return self.ranks[owner] + (-7.0 if self.owners.index(owner) == place else 7.0), _TOP - 2


def data_path(key: str, title: str, way: DataWay, more: str = "") -> Drawing:
    """The path of a job's data; `more` goes behind the caption."""
    seats, read, write = _Seats(way.grid), way.read, way.write
    parts = [
        _words(_LEFT, 12, f"input: {_named(read)}", "start", "var(--ink)"),
        *_half(seats, read, writes=False),
        f'<g transform="matrix(1 0 0 -1 0 {_HEIGHT:g})">{"".join(_half(seats, write, writes=True))}</g>',
        *_ranks(seats, way.between),
        _words(_LEFT, _HEIGHT - 5, f"output: {_named(write)}", "start", "var(--ink)"),
    ]
    said = [f"{title}. Reads: {WORDS.get(read, read)}."]
    said.append("Writes the same way." if read == write else f"Writes: {WORDS.get(write, write)}.")
    said += [more] if more else []
    box = f'viewBox="0 0 {_WIDTH:g} {_TALL:g}"'
    inline = f'<svg class="plot" {box} role="img" aria-label="{_safe(title)}">{"".join(parts)}</svg>'
    # As a file: light colours, white paper, a namespace.
    paper = f'<rect width="{_WIDTH:g}" height="{_TALL:g}" fill="var(--paper)"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="DejaVu Sans, Verdana, sans-serif">'
    alone = themed_names(f"{head}{paper}{''.join(parts)}</svg>\n")
    return Drawing(key, title, " ".join(said), inline, alone)


def way_of(record: Record) -> DataWay:
    """How the job of `record` reads, how it writes, and what goes between ranks.

    A transposition that gathers writes through rank 0, whatever way of writing is named. MPI-IO joins the
    pieces of a collective call only where no hint of the job forbids it.
    """
    variant = record.variant
    read, _, write = variant.io.partition(":")
    write = write or read
    if read == "uncached" and any(record.result.get("stage", ())):
        read = f"{read}{_APART}"
    read = _as_done(read, variant.hints.get("romio_cb_read", ""))
    write = _as_done(write, variant.hints.get("romio_cb_write", ""))
    if not record.inputs or all(each.format == "generated" for each in record.inputs):
        read = "none"
    grid, exchange, algorithm = _drawn_grid(variant.grid, variant.ranks), variant.exchange, variant.algorithm
    if variant.ranks == 1 or exchange == "none":
        return DataWay(read, write, grid=grid)
    if algorithm == _GATHER:
        return DataWay(read, "root", f"{_GATHER}, {exchange}", grid)
    return DataWay(read, write, f"{variant.decomposition or algorithm}, {exchange}", grid)


def _as_done(strategy: str, joining: str) -> str:
    return (
        f"{strategy}{_APART}"
        if strategy in ("collective", "split_collective") and joining == "disable"
        else strategy
    )


def _drawn_grid(grid: tuple[int, int], ranks: int) -> tuple[int, int]:
    """The grid of up to four ranks; of more, what is as long, as wide or as square with four."""
    down, across = grid
    if down * across == ranks <= _MOST:
        return grid
    if ranks < _MOST:
        return ranks, 1
    return (1, _MOST) if down <= 1 < across else (_MOST, 1) if across <= 1 < down else (2, 2)


def _named(strategy: str) -> str:
    return "made by the ranks" if strategy == "none" else strategy


def _half(seats: _Seats, strategy: str, writes: bool) -> list[str]:
    """Draw what lies between a file above and the ranks below; where the file is written, arrows turn."""
    if strategy == "none":
        return []
    if strategy == "per_rank":
        return _own_files(seats, writes)
    strip = []
    for place, owner in enumerate(seats.owners):
        left, right, _ = seats.piece(place)
        strip.append(_box(left + 0.5, _STRIP[0], right - left - 1, _DEEP, _COLOURS[owner], 1.5))
    if strategy in ("root", "root_collective"):
        return strip + _through_root(seats, writes, strategy == "root_collective")
    if strategy in _JOINED:
        return strip + _panels(seats, writes)
    if strategy == "sieve":
        return strip + _sieve(seats, writes)
    dash = "3 2" if strategy == "mapped" else ""
    for place, owner in enumerate(seats.owners):
        start = seats.piece(place)[2], _STRIP[1] + 2
        strip.append(_flow(writes, start, seats.goal(place), _COLOURS[owner], dash))
    return strip


def _own_files(seats: _Seats, writes: bool) -> list[str]:
    parts = []
    for rank, x in enumerate(seats.ranks):
        parts.append(_box(x - 28, _STRIP[0], 56, _DEEP, _COLOURS[rank], 4))
        parts.append(_flow(writes, (x, _STRIP[1] + 2), (x, _TOP - 2), _COLOURS[rank]))
    return parts


def _through_root(seats: _Seats, writes: bool, together: bool) -> list[str]:
    first, others, low = seats.ranks[0], seats.ranks[1:], _TOP - 2
    parts = [_shade((_LEFT, _RIGHT), (first - 12, first + 4), low, _FAINT)]
    parts.append(_flow(writes, (first - 4, _STRIP[1] + 3), (first - 4, low), "var(--ink)", "wide"))
    if together and others:
        level = _TOP - 14
        parts.append(_path([(first + 14, low), (first + 14, level), (others[-1], level)]))
        parts += [_path([(x, level), (x, low)]) for x in others]
        ends = [first + 14] if writes else others
        return parts + [_arrow((x, level), (x, low), "var(--ink)") for x in ends]
    for rank, x in enumerate(others, 1):
        level, start = _TOP - 12 - 9 * rank, first + 21 - 5 * rank
        parts.append(_path([(start, low), (start, level), (x, level), (x, low)], _COLOURS[rank]))
        end = start if writes else x
        parts.append(_arrow((end, level), (end, low), _COLOURS[rank]))
    return parts


def _panels(seats: _Seats, writes: bool) -> list[str]:
    """Each rank takes its share of the file in one piece; then pieces change hands."""
    parts, level = [], _STRIP[1] + 20
    for rank, x in enumerate(seats.ranks):
        left, right = seats.piece(2 * rank)[0] + 2, seats.piece(2 * rank + 1)[1] - 2
        parts.append(_shade((left, right), (x - 26, x + 26), level, _FAINT))
        for half, place in enumerate((2 * rank, 2 * rank + 1)):
            colour, start = _COLOURS[seats.owners[place]], (x - 13 + 26 * half, level + 10)
            parts.append(_box(x - 26 + 26 * half, level, 26, 8, colour, 1))
            parts.append(_flow(writes, start, seats.goal(place), colour))
    return parts


def _sieve(seats: _Seats, writes: bool) -> list[str]:
    parts = []
    for rank, x in enumerate(seats.ranks):
        own = [place for place, owner in enumerate(seats.owners) if owner == rank]
        span = seats.piece(own[0])[0] + 2, seats.piece(own[-1])[1] - 2
        parts.append(_shade(span, (x - 14, x + 14), _TOP - 12, _COLOURS[rank]))
        parts.append(_flow(writes, (x, _TOP - 20), (x, _TOP - 2), _COLOURS[rank], "wide"))
    return parts


def _ranks(seats: _Seats, between: str) -> list[str]:
    parts = []
    for rank, x in enumerate(seats.ranks):
        parts.append(_box(x - 22, _TOP, 44, 32, _COLOURS[rank], 6))
        parts.append(_words(x, _MIDDLE + 4, f"rank {rank}", "middle", "var(--paper)"))
    if between and not between.startswith(f"{_GATHER},"):  # its messages are those of the root that writes
        for here, there in itertools.pairwise(seats.ranks):
            a, b = (here + 25, _MIDDLE), (there - 25, _MIDDLE)
            parts += [_arrow(a, b, "var(--ink)"), _arrow(b, a, "var(--ink)")]
    if between:
        parts.append(_words(_LEFT, _TALL - 5, f"between: {between}", "start", _FAINT))
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
    """Shade what a rank takes of the file: from `upper` (left, right) at the strip down to `lower` at `y`."""
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
