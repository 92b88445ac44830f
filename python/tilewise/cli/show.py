"""`tilewise show A [rows [columns]]`: prints numbers of a matrix; without ranges, its corners."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from tilewise.base.declare import Flag
from tilewise.cli.parse import parse
from tilewise.files.formats import FROM, MATRIX, read_as
from tilewise.files.style import TextFlags
from tilewise.launch.join import Join

if TYPE_CHECKING:
    from tilewise.files.region import Region

_EDGE = 3  # rows and columns shown at each end
_GAP = "…"


class ShowFlags(TextFlags, frozen=True, kw_only=True):
    """Print elements of a matrix: its corners, or the given rows and columns with all digits.

    Examples:
        tilewise show A.npy
            The corners of the matrix.
        tilewise show A.npy 0:3 -2:
            The first three rows of the last two columns.
    """

    a: Annotated[str, Flag("A matrix file, or one of its members.", value=MATRIX, place=True)]
    rows: Annotated[str | None, Flag("Rows: 3, 0:5, -2: or ::10.", place=True)] = None
    columns: Annotated[str | None, Flag("Columns, in the same form.", place=True)] = None
    from_: Annotated[str | None, FROM] = None


def main(words: list[str], joined: Join | None) -> int:
    """Run the command; return its exit code."""
    flags = parse("show", ShowFlags, words)
    from tilewise import files
    from tilewise.base.units import plural
    from tilewise.cli.streams import warn
    from tilewise.files.reading import binary, rows_of
    from tilewise.files.slices import range_of, rows_needed

    name, rows, columns, style = flags.a, flags.rows, flags.columns, flags.read_style
    name = read_as({"a": name}, flags.from_)["a"]
    most = rows_needed(rows) if rows is not None else None
    files.require_text(name, style)
    source = files.inspect(name, most, style=style)
    extents = (source.rows, source.columns)

    lost: list[str] = []

    def tell() -> None:
        warn(f"{name}: {said}" for said in (*source.warnings, *lost))

    if rows is None:
        with binary(source, warn=lost.append) as region:
            tell()
            _print(corners(region))
        return 0
    picked = range(extents[0])[range_of(rows, extents[0], "row")]
    across = range_of(columns or ":", extents[1], "column")
    for said, found, count in (
        ("row", picked, extents[0]),
        ("column", range(extents[1])[across], extents[1]),
    ):
        if not found:
            warn([f"{name} has {plural(count, said)}, and none of them was asked for"])
    if not picked:
        return 0
    with binary(source, max(picked) + 1, lost.append) as region:
        tell()
        for row in rows_of(region, picked):
            sys.stdout.write(
                " ".join(
                    repr(value) if isinstance(value, float) else str(value) for value in row[across].tolist()
                )
                + "\n"
            )
    return 0


def corners(region: Region) -> list[list[str]]:
    """The first and last rows and columns as text; a gap where something was left away."""
    from tilewise.files.reading import rows_of

    columns = _ends(region.columns)
    lines = []
    for number in _ends(region.rows):
        if number is None:
            lines.append([_GAP] * len(columns))
            continue
        row = next(rows_of(region, range(number, number + 1)))
        lines.append([_GAP if column is None else _short(row[column]) for column in columns])
    return lines


def _ends(extent: int) -> list[int | None]:
    if extent <= 2 * _EDGE + 1:
        return list(range(extent))
    return [*range(_EDGE), None, *range(extent - _EDGE, extent)]


def _short(value: Any) -> str:
    plain = value.item()
    return str(plain) if isinstance(plain, int) else f"{plain:.6g}"


def _print(lines: list[list[str]]) -> None:
    width = max((len(cell) for line in lines for cell in line), default=0)
    for line in lines:
        sys.stdout.write("  ".join(f"{cell:>{width}}" for cell in line) + "\n")
