"""Planes of a picture, one above the other: which of its colours are taken, and what is said of the others.

    in a file   R G B R G B …        as a matrix   R R R …   plane 0, `rows` of them
                R G B R G B …                      G G G …   plane 1
                                                   B B B …   plane 2

Planes are grey (1), grey and transparency (2), red, green and blue (3), or these and transparency (4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy

Array = numpy.ndarray[Any, numpy.dtype[Any]]
MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}  # as Pillow calls them
GREY = (1,)
WEIGHTS = (0.299, 0.587, 0.114)  # of red, green and blue in the grey value
GREY_TAKEN = "its colours are replaced by the grey value 0.299 R + 0.587 G + 0.114 B"
ALPHA_IGNORED = "its transparency is ignored"
_PANEL = 8 << 20
ORIENTATION = 274  # the tag of EXIF and TIFF
_SHOWN = {
    2: "mirrored from left to right",
    3: "turned by 180°",
    4: "mirrored from top to bottom",
    5: "with rows and columns exchanged",
    6: "turned by 90° to the right",
    7: "with rows and columns exchanged, from the last to the first",
    8: "turned by 90° to the left",
}
_TURNED_BACK: dict[int, Callable[[Array], Array]] = {
    2: lambda shown: shown[:, ::-1],
    3: lambda shown: shown[::-1, ::-1],
    4: lambda shown: shown[::-1],
    5: lambda shown: numpy.swapaxes(shown, 0, 1),
    6: numpy.rot90,
    7: lambda shown: numpy.swapaxes(shown[::-1, ::-1], 0, 1),
    8: lambda shown: numpy.rot90(shown, -1),
}


def grey(colours: Array) -> Array:
    """The grey values, shape (…), of `colours`, shape (…, 3 or more), in the same dtype, rounded to it."""
    exact = numpy.result_type(colours.dtype, numpy.float64)
    value = sum(numpy.multiply(colours[..., each], WEIGHTS[each], dtype=exact) for each in range(3))
    if colours.dtype.kind in "iu":
        value = numpy.rint(value)
    return numpy.asarray(value).astype(colours.dtype)


def taken(own: int, wanted: tuple[int, ...]) -> int:
    """Count the planes that are taken of a picture with `own`, where `wanted` says what is of use.

    All of them, else all but the transparency, else the grey value.
    """
    if own in wanted:
        return own
    colours = own - 1 if own in (2, 4) else own
    return colours if colours in wanted else 1


def lost(own: int, count: int) -> tuple[str, ...]:
    """Warn of what is lost where `count` of `own` planes are taken."""
    losses = []
    if own >= 3 and count < 3:
        losses.append(GREY_TAKEN)
    if own in (2, 4) and count not in (2, 4):
        losses.append(ALPHA_IGNORED)
    return tuple(losses)


def darker(largest: int, dtype: str) -> tuple[str, ...]:
    """Warn where the largest number is not that of files which are written."""
    usual = 255 if dtype == "uint8" else 65535
    if largest == usual:
        return ()
    return (
        f"its numbers go up to {largest} and are used unchanged; an image written from them goes up to "
        f"{usual} and looks darker",
    )


def write_planes(picture: Array, dtype: str, out: BinaryIO) -> None:
    """Writes a picture of shape (rows, columns, planes) plane by plane, little-endian, in panels."""
    stored = numpy.dtype(dtype).newbyteorder("<")
    high = max(1, _PANEL // max(1, picture.shape[1] * stored.itemsize))
    for plane in range(picture.shape[2]):
        for row in range(0, picture.shape[0], high):
            out.write(numpy.ascontiguousarray(picture[row : row + high, :, plane], stored).data)


def panels(path: str, planes: int, rows: int, columns: int, dtype: str) -> Iterator[Array]:
    """The other way: rows of a raw file's picture, of shape (some, columns, planes), from the top down."""
    stored = numpy.dtype(dtype).newbyteorder("<")
    stacked = numpy.memmap(path, stored, "r", 0, (planes, rows, columns))
    high = max(1, _PANEL // max(1, columns * planes * stored.itemsize))
    for row in range(0, rows, high):
        yield numpy.ascontiguousarray(numpy.moveaxis(stacked[:, row : row + high], 0, -1))


def turned_by_viewers(orientation: Any) -> tuple[str, ...]:
    """The warning for a picture that viewers turn; none where they show it as it is stored."""
    if not isinstance(orientation, int) or orientation not in _SHOWN:
        return ()
    return (f"viewers show it {_SHOWN[orientation]} (orientation {orientation}), but it is read as stored",)


def as_stored(shown: Array, orientation: Any) -> Array:
    """The picture, shape (rows, columns, …), as it was before a library turned it by `orientation`."""
    return _TURNED_BACK[orientation](shown) if orientation in _TURNED_BACK else shown
