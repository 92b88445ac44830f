"""Whether two inputs are one matrix and its transpose, as far as their headers tell."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from tilewise.files.region import Region

_ASIDE = ("path", "name", "transposed", "format", "notes", "warnings")  # what may differ, or is looked at


def are_transposes(left: Region, right: Region) -> bool:
    """Whether both are the same numbers of one file, or of one generator, and just one is transposed.

    Numbers that lie column by column are those of the transpose row by row: a row-order and a column-order
    matrix at one place of one file are the same too.
    """
    first, second = _by_rows(left), _by_rows(right)
    return first.transposed != second.transposed and _lies(first) == _lies(second)


def _by_rows(region: Region) -> Region:
    """The same, as the transpose of a matrix that lies row by row; where it lies as a whole in one file."""
    if region.order == "C" or region.tiles or region.chunks is not None or region.encoding != "binary":
        return region
    turned = {"order": "C", "transposed": not region.transposed}
    return msgspec.structs.replace(region, rows=region.columns, columns=region.rows, **turned)


def _lies(region: Region) -> list[Any]:
    """Everything that says which numbers these are."""
    facts = [getattr(region, name, None) for name in type(region).__struct_fields__ if name not in _ASIDE]
    return [_file(region.path), *facts]


def _file(path: str) -> Any:
    """A file by itself, whatever it is called; by its name where it cannot be asked."""
    try:
        found = os.stat(path)
    except OSError:
        return path
    return found.st_dev, found.st_ino
