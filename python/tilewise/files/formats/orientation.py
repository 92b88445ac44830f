"""The orientation of a picture (EXIF and TIFF tag 274): numbers stay as stored, with a warning."""

from __future__ import annotations

from typing import Any

import numpy

Array = numpy.ndarray[Any, numpy.dtype[Any]]
TAG = 274
_SHOWN = {
    2: "mirrored from left to right",
    3: "turned by 180°",
    4: "mirrored from top to bottom",
    5: "with rows and columns exchanged",
    6: "turned by 90° to the right",
    7: "with rows and columns exchanged, from the last to the first",
    8: "turned by 90° to the left",
}


def ignored(orientation: Any) -> tuple[str, ...]:
    """The warning for a picture that viewers turn; none where they show it as it is stored."""
    if not isinstance(orientation, int) or orientation not in _SHOWN:
        return ()
    return (f"viewers show it {_SHOWN[orientation]} (orientation {orientation}), but it is read as stored",)


def as_stored(shown: Array, orientation: Any) -> Array:
    """The picture, shape (rows, columns, …), as it was before a library turned it by `orientation`."""
    turned_back = {
        2: lambda: shown[:, ::-1],
        3: lambda: shown[::-1, ::-1],
        4: lambda: shown[::-1],
        5: lambda: numpy.swapaxes(shown, 0, 1),
        6: lambda: numpy.rot90(shown),
        7: lambda: numpy.swapaxes(shown[::-1, ::-1], 0, 1),
        8: lambda: numpy.rot90(shown, -1),
    }
    return turned_back[orientation]() if orientation in turned_back else shown
