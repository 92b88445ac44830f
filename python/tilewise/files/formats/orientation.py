"""The orientation of a picture (EXIF and TIFF tag 274): numbers stay as stored, with a warning."""

from __future__ import annotations

from collections.abc import Callable
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


_TURNED_BACK: dict[int, Callable[[Array], Array]] = {
    2: lambda shown: shown[:, ::-1],
    3: lambda shown: shown[::-1, ::-1],
    4: lambda shown: shown[::-1],
    5: lambda shown: numpy.swapaxes(shown, 0, 1),
    6: numpy.rot90,
    7: lambda shown: numpy.swapaxes(shown[::-1, ::-1], 0, 1),
    8: lambda shown: numpy.rot90(shown, -1),
}


def as_stored(shown: Array, orientation: Any) -> Array:
    """The picture, shape (rows, columns, …), as it was before a library turned it by `orientation`."""
    return _TURNED_BACK[orientation](shown) if orientation in _TURNED_BACK else shown
