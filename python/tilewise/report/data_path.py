"""Data paths drawn: which rank reads what of the file, what goes between ranks, who writes.

    input file   [0 1 0 1|2 3 2 3]      the file in its own order; colours say which rank needs a piece
                   │ │   … reading
    ranks          0   1   2   3        ⇄ exchange
                   │ │   … writing
    output file  [0 1 0 1|2 3 2 3]

Four ranks on a 2 × 2 grid stand for any number. The lower half is the upper one in a mirror, arrows turned.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from html import escape
from typing import Any

from tilewise.errors import clean
from tilewise.report.figures.style import themed_names
from tilewise.report.page import Drawing

_WIDTH, _HEIGHT = 420.0, 262.0
_MIDDLE = _HEIGHT / 2
_LEFT, _RIGHT, _STRIP = 26.0, 394.0, (24.0, 44.0)
_RANKS = [_LEFT + (_RIGHT - _LEFT) * (2 * rank + 1) / 8 for rank in range(4)]
_TOP = _MIDDLE - 16  # of the ranks' boxes
_OWNERS = (0, 1, 0, 1, 2, 3, 2, 3)  # of a file's eight pieces, row by row, on a 2 × 2 grid
_COLOURS = tuple(f"var(--series-{place})" for place in (0, 1, 2, 3))
_FAINT = "var(--muted)"

WORDS = {
    "root": "rank 0 alone, and a message for each of the others: everything goes through one process",
    "root_collective": "rank 0 alone, and one collective call with all others",
    "per_rank": "a file for each rank, so that nobody waits for anybody",
    "collective": "all ranks in one call of MPI-IO, which joins their pieces into large ones",
    "split_collective": "the same in two halves, begin and end, with room for work between them",
    "two_phase": "each rank a panel of its own in one piece, then an exchange among ranks",
    "uncached": "whole pages past the page cache, then an exchange among ranks",
    "independent": "each rank its own pieces of the one file, through a file view",
    "positioned": "each rank its own pieces of the one file, one call a piece",
    "mapped": "each rank the pages of the one file that it touches",
    "sieve": "each rank all from its first to its last piece, of which it picks its own",
    "none": "no file: every rank makes its own block",
}
_GATHER = "gather"  # of a transposition
_JOINED = ("collective", "split_collective", "two_phase", "uncached")


@dataclasses.dataclass(frozen=True)
class Side:
    """The upper half, or its mirror; `inward` arrows go to the ranks."""

    mirrored: bool

    def y(self, value: float) -> float:
        return _HEIGHT - value if self.mirrored else value

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: str, style: str = "") -> str:
        """An arrow from the file's side to the ranks' side, turned round where the file is written."""
        a, b = (start[0], self.y(start[1])), (end[0], self.y(end[1]))
        return _arrow(b, a, colour, style) if self.mirrored else _arrow(a, b, colour, style)

    def shade(self, upper: tuple[float, float], lower: tuple[float, float], y: float, colour: str) -> str:
        """What a rank takes of the file, from the strip down to `y`."""
        corners = ((upper[0], _STRIP[1]), (upper[1], _STRIP[1]), (lower[1], y), (lower[0], y))
        points = " ".join(f"{x:.1f},{self.y(at):.1f}" for x, at in corners)
        return f'<polygon points="{points}" fill="{colour}" fill-opacity=".2"/>'


def data_path(key: str, title: str, read: str, write: str, between: str = "", more: str = "") -> Drawing:
    """The path of a job's data with the strategies `read` and `write`; `between` names the exchange, if any.

    `more` goes behind the caption.
    """
    parts = [
        f'<svg class="plot" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{_safe(title)}">',
        _words(_LEFT, 12, f"input: {_named(read)}", "start", "var(--ink)", 11),
        *_half(read, Side(False)),
        *_half(write, Side(True)),
        *_ranks(between),
        _words(_LEFT, _HEIGHT - 5, f"output: {_named(write)}", "start", "var(--ink)", 11),
        "</svg>",
    ]
    said = [f"{title}. Reads: {WORDS.get(read, read)}."]
    said.append("Writes the same way." if read == write else f"Writes: {WORDS.get(write, write)}.")
    said += [more] if more else []
    markup = "".join(parts)
    return Drawing(key, title, " ".join(said), markup, _alone(markup))


def way_of(record: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """How the job of `record` reads, how it writes, and what goes between ranks; None where it does not say.

    A transposition that gathers writes through rank 0, whatever way of writing is named.
    """
    variant = record.get("variant")
    if not isinstance(variant, Mapping) or not isinstance(variant.get("io"), str):
        return None
    read, _, write = variant["io"].partition(":")
    if not record.get("inputs"):
        read = "none"
    exchange, algorithm = str(variant.get("exchange", "none")), str(variant.get("algorithm", ""))
    if (variant.get("ranks") or 1) == 1 or exchange == "none":
        return read, write or read, ""
    if algorithm == _GATHER:
        return read, "root", f"{_GATHER}, {exchange}"
    return read, write or read, f"{variant.get('decomposition') or algorithm}, {exchange}"


def _named(strategy: str) -> str:
    return "made by the ranks" if strategy == "none" else strategy


def _half(strategy: str, side: Side) -> list[str]:
    if strategy == "none":
        return []
    if strategy == "per_rank":
        return _own_files(side)
    parts = _strip(side)
    if strategy in ("root", "root_collective"):
        return parts + _through_root(side, strategy == "root_collective")
    if strategy in _JOINED:
        return parts + _panels(side)
    if strategy == "sieve":
        return parts + _sieve(side)
    dash = "3 2" if strategy == "mapped" else ""
    for place, owner in enumerate(_OWNERS):
        end = _RANKS[owner] + _aside(place), _TOP - 2
        parts.append(side.line((_piece(place)[2], _STRIP[1] + 2), end, _COLOURS[owner], dash))
    return parts


def _aside(place: int) -> float:
    return -7.0 if place % 4 < 2 else 7.0


def _piece(place: int) -> tuple[float, float, float]:
    """Left, right and middle of one of the file's pieces."""
    width = (_RIGHT - _LEFT) / len(_OWNERS)
    left = _LEFT + place * width
    return left, left + width, left + width / 2


def _strip(side: Side) -> list[str]:
    top = min(side.y(_STRIP[0]), side.y(_STRIP[1]))
    parts = []
    for place, owner in enumerate(_OWNERS):
        left, right, _ = _piece(place)
        parts.append(_box(left + 0.5, top, right - left - 1, _STRIP[1] - _STRIP[0], _COLOURS[owner], 1.5))
    return parts


def _own_files(side: Side) -> list[str]:
    parts = []
    top = min(side.y(_STRIP[0]), side.y(_STRIP[1]))
    for rank, x in enumerate(_RANKS):
        parts.append(_box(x - 28, top, 56, _STRIP[1] - _STRIP[0], _COLOURS[rank], 4))
        parts.append(side.line((x, _STRIP[1] + 2), (x, _TOP - 2), _COLOURS[rank]))
    return parts


def _through_root(side: Side, together: bool) -> list[str]:
    first, low = _RANKS[0], _TOP - 2
    parts = [side.shade((_LEFT, _RIGHT), (first - 12, first + 4), low, _FAINT)]
    parts.append(side.line((first - 4, _STRIP[1] + 3), (first - 4, low), "var(--ink)", "wide"))
    if together:
        level = side.y(_TOP - 14)
        corner = [(first + 14, side.y(low)), (first + 14, level), (_RANKS[-1], level)]
        parts += [_path(corner), *(_path([(x, level), (x, side.y(low))]) for x in _RANKS[1:])]
        ends = [(first + 14, level)] if side.mirrored else [(x, level) for x in _RANKS[1:]]
        return parts + [_arrow(end, (end[0], side.y(low)), "var(--ink)") for end in ends]
    for rank, x in enumerate(_RANKS[1:], 1):
        level, start = side.y(_TOP - 12 - 9 * rank), first + 21 - 5 * rank
        bend = [(start, side.y(low)), (start, level), (x, level), (x, side.y(low))]
        end = bend[1] if side.mirrored else bend[2]
        parts += [_path(bend, _COLOURS[rank]), _arrow(end, (end[0], side.y(low)), _COLOURS[rank])]
    return parts


def _panels(side: Side) -> list[str]:
    """Each rank takes a quarter of the file in one piece; then pieces change hands."""
    parts, level = [], _STRIP[1] + 20
    for rank, x in enumerate(_RANKS):
        left, right = _piece(2 * rank)[0] + 2, _piece(2 * rank + 1)[1] - 2
        parts.append(side.shade((left, right), (x - 26, x + 26), level, _FAINT))
        top = min(side.y(level), side.y(level + 8))
        for half, place in enumerate((2 * rank, 2 * rank + 1)):
            parts.append(_box(x - 26 + 26 * half, top, 26, 8, _COLOURS[_OWNERS[place]], 1))
            start = (x - 13 + 26 * half, level + 10)
            owner = _OWNERS[place]
            parts.append(side.line(start, (_RANKS[owner] + _aside(place), _TOP - 2), _COLOURS[owner]))
    return parts


def _sieve(side: Side) -> list[str]:
    parts = []
    for rank, x in enumerate(_RANKS):
        own = [place for place, owner in enumerate(_OWNERS) if owner == rank]
        span = _piece(own[0])[0] + 2, _piece(own[-1])[1] - 2
        parts.append(side.shade(span, (x - 14, x + 14), _TOP - 12, _COLOURS[rank]))
        parts.append(side.line((x, _TOP - 20), (x, _TOP - 2), _COLOURS[rank], "wide"))
    return parts


def _ranks(between: str) -> list[str]:
    parts = []
    for rank, x in enumerate(_RANKS):
        parts.append(_box(x - 22, _TOP, 44, 32, _COLOURS[rank], 6))
        parts.append(_words(x, _MIDDLE + 4, f"rank {rank}", "middle", "var(--paper)", 11))
    if between and not between.startswith(f"{_GATHER},"):  # its messages are those of the root that writes
        for here, there in itertools.pairwise(_RANKS):
            a, b = (here + 25, _MIDDLE), (there - 25, _MIDDLE)
            parts += [_arrow(a, b, "var(--ink)"), _arrow(b, a, "var(--ink)")]
    if between:
        parts.append(_words(_RIGHT, _HEIGHT - 5, f"between: {between}", "end", _FAINT, 11))
    return parts


def _box(x: float, y: float, width: float, height: float, colour: str, corner: float) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{corner:g}" '
        f'fill="{colour}"/>'
    )


def _words(x: float, y: float, text: str, anchor: str, colour: str, size: float) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{colour}">'
        f"{_safe(text)}</text>"
    )


def _path(points: list[tuple[float, float]], colour: str = "var(--ink)") -> str:
    steps = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="M{steps}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _arrow(a: tuple[float, float], b: tuple[float, float], colour: str, style: str = "") -> str:
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


def _alone(markup: str) -> str:
    """The drawing as a file: light colours, white paper, a namespace."""
    head, _, body = markup.partition(">")
    paper = f'<rect width="{_WIDTH:g}" height="{_HEIGHT:g}" fill="var(--paper)"/>'
    name = ' xmlns="http://www.w3.org/2000/svg" font-family="DejaVu Sans, Verdana, sans-serif"'
    return themed_names(f"{head}{name}>{paper}{body}") + "\n"


def _safe(text: object) -> str:
    return escape(clean(text), quote=True)
