"""The cut of a stencil's field: among ranks, and into tiles where it is larger than memory, by a stated rule.

Decomposition: of all grids that fit, the one whose ranks have the least to get; what lies in one piece in
memory counts once, what lies scattered (columns of a matrix stored row by row) `SCATTERED` times. Depth: as
many sweeps as one pass over memory does best, but no more than cost an eighth of additional arithmetic.

Tiles: a pass goes from file to file, tile after tile, and does `depth` sweeps over each. For these it needs
R = depth · radius cells around a tile, which neighbouring tiles compute, too:

    cost of a number = passes · TRANSFER · (1 + 2R / columns) · (1 + CALL / columns)
                       + steps · (1 + R / rows) · (1 + R / columns)

in sweeps over it, where TRANSFER is what it costs to read, convert and write it, and CALL numbers are moved
in the time that a call for each row of a narrow tile costs. A factor is 1 where a tile is as long as the
field. Rows around a tile are read once, as the rank goes downwards; columns again. So deep passes read less,
and compute more twice. Of depths that need different numbers of passes, and of some widths, the cheapest is
taken, each time with as many rows as fit. Design: docs/design/stencil.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import listing, plural, shape_text
from tilewise.launch.constants import constants
from tilewise.operations.stencil.options import HALOS
from tilewise.operations.stencil.weights import Weights

SCATTERED = 4
SHARE = 8  # of a part's extent, to which a halo may go


class Passes(msgspec.Struct, frozen=True):
    """Sweeps that one pass over memory does best, by the worker's kernel, of radius 1 and on.

    More save traffic, but what strips and ranks compute twice grows with them.
    """

    best_steps_star_float32: list[int]
    best_steps_star_float64: list[int]
    best_steps_box_float32: list[int]
    best_steps_box_float64: list[int]


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """The field to be cut: one plane's rows and columns; `radius` of the weights; `by_rows`: rows are
    contiguous.

    `periodic`: both directions go round.
    """

    rows: int
    columns: int
    radius: int
    by_rows: bool
    periodic: bool = False

    def parts(self, grid: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of the smallest part."""
        return self.rows // grid[0], self.columns // grid[1]

    def deepest(self, grid: tuple[int, int]) -> int | None:
        """Sweeps for which the smallest part has cells enough to give; None where nobody asks for them."""
        extents = [part for part, count in zip(self.parts(grid), grid, strict=True) if count > 1]
        return min(extents) // self.radius if extents else None

    def fits(self, grid: tuple[int, int], depth: int) -> bool:
        """True if every rank has a part, from which neighbours can take `depth` sweeps' worth of cells."""
        if grid == (1, 1):
            return True
        deepest = self.deepest(grid)
        return min(self.parts(grid)) > 0 and (deepest is None or depth <= deepest)

    def halo(self, grid: tuple[int, int]) -> int:
        """Cells that a rank gets for each cell of depth, scattered cells counted more."""
        above = 2 * -(-self.columns // grid[1]) if grid[0] > 1 else 0
        beside = 2 * -(-self.rows // grid[0]) if grid[1] > 1 else 0
        return above * (1 if self.by_rows else SCATTERED) + beside * (SCATTERED if self.by_rows else 1)


def decompose(
    cut: Cut, ranks: int, wanted: str | None, grid: tuple[int, int] | None, depth: int | None, why: list[str]
) -> tuple[str, tuple[int, int]]:
    """Decomposition and grid of `ranks` ranks; UsageError, with what would do, where they do not fit."""
    if grid is not None:
        return _given(cut, ranks, wanted, grid)
    least = depth or 1
    if wanted in ("rows", "columns"):
        shape = (ranks, 1) if wanted == "rows" else (1, ranks)
        require_parts(cut, shape, ranks)
        return wanted, shape
    shapes = [(p, ranks // p) for p in range(1, ranks + 1) if ranks % p == 0]
    fitting = [shape for shape in shapes if cut.fits(shape, least)]
    if wanted == "grid":  # one that deserves the name, if there is any
        fitting = [shape for shape in fitting if min(shape) > 1] or fitting
    if not fitting:
        # The best of those that nearly do says what is wrong.
        shape = min(shapes, key=lambda each: (-min(cut.parts(each)), cut.halo(each)))
        require_parts(cut, shape, ranks)
        return wanted or _name(shape), shape  # too deep: said where the depth is looked at
    shape = min(fitting, key=lambda each: (cut.halo(each), -each[0] if cut.by_rows else each[0]))
    if ranks > 1 and wanted is None:
        how = {
            "rows": "whole rows have the smallest contiguous halos",
            "columns": "whole columns have the smallest halos",
            "grid": "rectangles have the smallest halos",
        }
        if not cut.by_rows:
            how |= {
                "rows": "whole rows have the smallest halos",
                "columns": "whole columns have the smallest contiguous halos",
            }
        why.append(f"{_name(shape)}: {how[_name(shape)]}")
    return wanted or _name(shape), shape


def most_ranks(cut: Cut, ranks: int, wanted: str | None, depth: int | None) -> int:
    """The largest number of ranks up to `ranks` that the matrix has parts for."""

    def works(count: int) -> bool:
        shapes = [(count, 1)] if wanted == "rows" else [(1, count)] if wanted == "columns" else []
        shapes = shapes or [(p, count // p) for p in range(1, count + 1) if count % p == 0]
        return any(cut.fits(shape, depth or 1) for shape in shapes)

    return next((count for count in range(ranks, 1, -1) if works(count)), 1)


def pass_sweeps(weights: Weights, dtype: str) -> int:
    """Sweeps that one pass over memory does best."""
    form = "star" if weights.is_star else "box"
    by_radius: list[int] = getattr(constants("stencil", Passes), f"best_steps_{form}_{dtype}")
    return by_radius[weights.radius - 1]


def choose_depth(cut: Cut, grid: tuple[int, int], wanted: int | None, stretch: int, best: int) -> int:
    """Sweeps for each exchange and pass; UsageError, with both numbers, where a part is too small.

    `stretch`: the most that are ever done at once; deeper halos would only travel unused.
    """
    deepest = cut.deepest(grid)
    if wanted is not None:
        wanted = max(1, min(wanted, stretch))
        if deepest is not None and wanted > deepest:
            raise _too_deep(cut, grid, wanted, deepest)
        return wanted
    if deepest is not None and deepest < 1:
        raise _too_deep(cut, grid, 1, deepest)
    if deepest is not None:
        best = min(best, max(1, deepest // SHARE))
    return max(1, min(best, stretch))


def choose_halo(wanted: str | None, exchange: str) -> str:
    """How cells get into messages; UsageError where the exchange cannot do it so."""
    if wanted is None or exchange == "none":
        return wanted or "packed"
    if exchange not in HALOS[wanted]:
        raise UsageError(
            f"--halo {wanted} makes no sense with --exchange {exchange}: it takes "
            f"{listing(HALOS[wanted], 'or')}",
            "--halo packed",
        )
    return wanted


def _name(grid: tuple[int, int]) -> str:
    return "rows" if grid[1] == 1 else "columns" if grid[0] == 1 else "grid"


def _given(cut: Cut, ranks: int, wanted: str | None, grid: tuple[int, int]) -> tuple[str, tuple[int, int]]:
    p, q = grid
    if 0 in grid:
        raise UsageError(f"--grid {p}x{q} has no ranks; both numbers must be 1 or more")
    if p * q != ranks:
        raise UsageError(
            f"--grid {p}x{q} makes {plural(p * q, 'rank')}, but there are {ranks}", f"-n {p * q}"
        )
    if (wanted == "rows" and q > 1) or (wanted == "columns" and p > 1):
        line = f"{ranks}x1" if wanted == "rows" else f"1x{ranks}"
        raise UsageError(
            f"--grid {p}x{q} and --decomposition {wanted} contradict each other", f"--grid {line}"
        )
    require_parts(cut, grid, ranks)
    return wanted or _name(grid), grid


def require_parts(cut: Cut, grid: tuple[int, int], ranks: int) -> None:
    """Raises UsageError where there are more ranks than rows, or than columns."""
    if ranks == 1:
        return
    if cut.rows * cut.columns == 0:
        raise UsageError(
            f"{plural(ranks, 'rank')} cannot share a {shape_text(cut.rows, cut.columns)} matrix: it is empty",
            "-n 1",
        )
    for extent, count, noun, other in (
        (cut.rows, grid[0], "row", "columns"),
        (cut.columns, grid[1], "column", "rows"),
    ):
        if count > extent:
            across = cut.columns if noun == "row" else cut.rows
            instead = f"-n {max(1, extent)}" + (f", or --decomposition {other}" if across >= ranks else "")
            raise UsageError(
                f"{plural(count, 'rank')} cannot share {plural(extent, noun)} of a "
                f"{shape_text(cut.rows, cut.columns)} matrix: each needs at least one",
                instead,
            )


def _too_deep(cut: Cut, grid: tuple[int, int], depth: int, deepest: int) -> UsageError:
    rows, columns = cut.parts(grid)
    wanted = depth * cut.radius
    down = grid[0] > 1 and wanted > rows
    part = plural(rows, "row") if down else plural(columns, "column")
    advice = f"--depth {deepest}" if deepest >= 1 else "fewer ranks"
    return UsageError(
        f"--depth {depth} with weights of radius {cut.radius} needs "
        f"{plural(wanted, 'row' if down else 'column')} of each neighbour, but the smallest part has {part}",
        advice,
    )


TRANSFER = 64
CALL = 2048
LEAST_ROWS, LEAST_COLUMNS = 64, 1024  # of a tile, as stored; smaller ones would be read for most of the time
_MULTIPLE = 16  # of columns: cache lines


class Tiles(NamedTuple):
    """Rows and columns of a tile, as they are stored, and sweeps of a pass."""

    rows: int
    columns: int
    depth: int


class Field(NamedTuple):
    """A plane as it is stored, and what is to be done: at most `stretch` sweeps without a snapshot."""

    rows: int
    columns: int
    radius: int
    steps: int
    stretch: int

    def passes(self, depth: int) -> int:
        """Passes of so many sweeps, each of which ends at the latest where a snapshot is due."""
        whole, rest = divmod(max(1, self.steps), self.stretch)
        return whole * -(-self.stretch // depth) + -(-rest // depth)

    def cost(self, tiles: Tiles) -> float:
        """Sweeps over a number that all that is done with it costs."""
        reach = tiles.depth * self.radius
        down = reach / tiles.rows if tiles.rows < self.rows else 0.0
        across = call = 0.0
        if tiles.columns < self.columns:
            across, call = reach / tiles.columns, CALL / tiles.columns
        sweeps = self.steps * (1 + down) * (1 + across)
        return self.passes(tiles.depth) * TRANSFER * (1 + 2 * across) * (1 + call) + sweeps


def cheapest(
    field: Field,
    depth: int | None,
    ranks: int,
    whole_rows: bool,
    over: Callable[[Tiles], int],
) -> Tiles | None:
    """The cheapest tiles that fit, of as many bands as all `ranks` have work with; None where none fit.

    `over`: bytes that tiles need beyond what there is, at most 0 where they fit, and more by the same number
    for each row. `depth` is what the user wants, `whole_rows`: a tile is as wide as the field.
    """
    found: list[Tiles] = []
    for sweeps in [depth] if depth else _depths(field.stretch):
        for columns in _widths(field.columns, whole_rows):
            rows = _most_rows(field, columns, sweeps, over)
            if rows > 0:
                found.append(_dealt(field, Tiles(rows, columns, sweeps), ranks))
    return min(found, key=field.cost) if found else None


def smallest(field: Field, depth: int | None, whole_rows: bool) -> Tiles:
    """The least that is ever taken."""
    columns = min(_widths(field.columns, whole_rows))
    return Tiles(min(field.rows, LEAST_ROWS), columns, depth or 1)


def _depths(stretch: int) -> Iterator[int]:
    """Depths that make different numbers of passes, the deepest first."""
    passes, before = 1, 0
    while before != 1:
        depth = -(-stretch // passes)
        if depth != before:
            yield depth
        before, passes = depth, max(passes + 1, passes * 5 // 4)


def _widths(columns: int, whole: bool) -> Iterator[int]:
    parts = 1
    while parts == 1 or (not whole and columns // parts >= LEAST_COLUMNS):
        yield columns if parts == 1 else min(columns, -(-columns // parts // _MULTIPLE + 1) * _MULTIPLE)
        parts = max(parts + 1, parts * 3 // 2)


def _most_rows(field: Field, columns: int, depth: int, over: Callable[[Tiles], int]) -> int:
    """As many rows as fit; 0 where too few do."""
    if over(Tiles(field.rows, columns, depth)) <= 0:
        return field.rows
    least = min(field.rows, LEAST_ROWS)
    beyond = over(Tiles(least, columns, depth))
    if beyond > 0 or least == field.rows:
        return 0
    row = over(Tiles(least + 1, columns, depth)) - beyond
    return min(field.rows - 1, least + (-beyond // row if row > 0 else 0))


def _dealt(field: Field, tiles: Tiles, ranks: int) -> Tiles:
    """Tiles that are nearly equal, and that every rank has as many of."""
    bands, strips = -(-field.rows // tiles.rows), -(-field.columns // tiles.columns)
    if bands * strips % ranks:
        bands = -(-bands // ranks) * ranks
    return tiles._replace(rows=-(-field.rows // bands))
