"""Which tiles are taken of a field that does not fit, by the cost that is stated."""

from __future__ import annotations

import itertools

import pytest
from tilewise.operations.stencil.cut import LEAST_COLUMNS, LEAST_ROWS, Field, Tiles, cheapest, smallest


def taken(tiles: Tiles, field: Field) -> int:
    """Numbers of two fields around a tile."""
    reach = 2 * tiles.depth * field.radius
    return 2 * min(field.rows, tiles.rows + reach) * min(field.columns, tiles.columns + reach)


def chosen(
    field: Field, room: int, depth: int | None = None, ranks: int = 1, whole: bool = False
) -> Tiles | None:
    return cheapest(field, depth, ranks, whole, lambda tiles: taken(tiles, field) - room)


SHAPES = [(16384, 16384), (200, 10**7), (10**7, 200), (70, 900), (5000, 3001)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("steps", [1, 64, 10**6])
def test_what_is_taken_fits_and_nothing_near_it_is_cheaper(shape: tuple[int, int], steps: int) -> None:
    for radius, share in itertools.product((1, 4), (2, 10, 40)):
        field = Field(*shape, radius, steps, steps)
        tiles = chosen(field, 2 * shape[0] * shape[1] // share)
        if tiles is None:
            least = smallest(field, None, False)
            assert taken(least, field) > 2 * shape[0] * shape[1] // share
            continue
        room = 2 * shape[0] * shape[1] // share
        assert taken(tiles, field) <= room
        assert tiles.columns >= min(LEAST_COLUMNS, shape[1])
        for depth in (tiles.depth // 2, tiles.depth * 2):
            other = chosen(field, room, depth) if 1 <= depth <= steps else None
            assert other is None or field.cost(other) >= 0.999 * field.cost(tiles)


def test_whole_rows_while_they_are_of_use() -> None:
    field = Field(16384, 16384, 1, 64, 64)
    tiles = chosen(field, 45_000_000)
    assert tiles is not None and tiles.columns == 16384 and tiles.depth == 64 and field.passes(64) == 1
    wide = Field(500, 10**7, 1, 64, 64)
    tiles = chosen(wide, 45_000_000)
    assert tiles is not None and tiles.columns < 10**7
    assert chosen(wide, 45_000_000, whole=True) is None


def test_every_rank_has_as_many_tiles() -> None:
    field = Field(16384, 16384, 1, 64, 64)
    for ranks in (2, 3, 7):
        tiles = chosen(field, 45_000_000, ranks=ranks)
        assert tiles is not None and -(-16384 // tiles.rows) % ranks == 0


def test_passes_end_at_snapshots() -> None:
    assert Field(9, 9, 1, 20, 8).passes(8) == 3
    assert Field(9, 9, 1, 20, 8).passes(3) == 8
    assert Field(9, 9, 1, 0, 1).passes(1) == 1
    assert smallest(Field(9, 9, 1, 20, 8), None, False) == Tiles(9, 9, 1)
    assert smallest(Field(10**4, 10**4, 1, 20, 8), 5, True) == Tiles(LEAST_ROWS, 10**4, 5)


@pytest.mark.parametrize("columns", [1023, 1024, 1900, 2047, 2048, 5000])
def test_what_is_advised_is_taken(columns: int) -> None:
    field = Field(2100, columns, 1, 60, 60)
    least = smallest(field, 4, False)

    def over(tiles: Tiles) -> int:
        return tiles.rows * tiles.columns - least.rows * least.columns

    assert cheapest(field, 4, 1, False, over) is not None
