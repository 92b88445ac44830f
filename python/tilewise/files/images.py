"""What .png and .jpeg share: Pillow looks at them, unpacks them as grey values, and packs them again."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO

from tilewise.errors import UsageError
from tilewise.files.checks import numbers_bytes, require_positive, require_rows
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region, Source
from tilewise.files.regular import open_regular

_PANEL = 32 << 20
_SIXTEEN_BITS = ("I;16", "I;16B", "I;16L", "I")
_WITH_ALPHA = ("LA", "RGBA", "PA", "La", "RGBa")


def inspect_image(path: str, name: str, kind: str) -> Source:
    """The grey values of the image at `path`, which must be a `kind` (`PNG`, `JPEG`)."""
    file, size = open_regular(path, name)
    file.close()
    if size == 0:
        raise UsageError(f"{name} is empty, but a {kind} image was expected")
    with _opened(path, kind) as image:
        columns, rows = image.size
        mode = image.mode
        transparent = mode in _WITH_ALPHA or "transparency" in image.info
    dtype = "uint16" if mode in _SIXTEEN_BITS else "uint8"
    numbers_bytes(rows, columns, dtype, name)
    return Source(
        path=path,
        name=name,
        rows=rows,
        columns=columns,
        dtype=dtype,
        file_bytes=size,
        format=os.path.splitext(path)[1].lower()[1:],
        encoded=True,
        notes=(f"a {kind} image is compressed", *_notes(mode, transparent)),
    )


def decode_image(source: Source, out: BinaryIO, kind: str) -> None:
    """Unpacks the image as a whole: Pillow cannot do it by parts, and refuses enormous ones."""
    import numpy

    with _opened(source.path, kind) as image:
        if image.mode in _SIXTEEN_BITS:
            values = numpy.asarray(image)
        elif image.mode in ("1", "L"):
            values = numpy.asarray(image.convert("L"))
        elif image.mode == "CMYK":
            values = numpy.asarray(image.convert("RGB").convert("L"))
        else:
            values = numpy.asarray(image.convert("L"))
    high = max(1, _PANEL // max(1, values.shape[1] * 8))
    native = numpy.dtype(source.dtype).newbyteorder("<")
    for row in range(0, values.shape[0], high):
        out.write(numpy.ascontiguousarray(values[row : row + high], native).data)


def create_raw(
    path: str, name: str, shape: tuple[int, int], dtype: str, order: str, extent_max: int
) -> Region:
    """Makes the raw file beside `path` that the numbers go to before they are packed."""
    require_rows(order, name, "an image")
    require_positive(*shape, name, "an image")
    if max(shape) > extent_max:
        raise UsageError(f"{name} cannot hold {shape[0]}×{shape[1]}: this format ends at {extent_max}")
    size = shape[0] * shape[1] * ITEMSIZE[dtype]
    raw = path + ".raw"
    with open(raw, "xb") as file:
        file.truncate(size)
    return Region(path=raw, name=name, rows=shape[0], columns=shape[1], dtype=dtype, file_bytes=size)


def encode_image(raw: Region, path: str, kind: str, **options: Any) -> None:
    """Packs the numbers of `raw` into the file at `path`."""
    import numpy
    from PIL import Image

    numbers = numpy.memmap(
        raw.path, numpy.dtype(raw.dtype).newbyteorder("<"), "r", 0, (raw.rows, raw.columns)
    )
    Image.fromarray(numpy.asarray(numbers)).save(path, format=kind, **options)


@contextlib.contextmanager
def _opened(path: str, kind: str) -> Iterator[Any]:
    from PIL import Image

    with warnings.catch_warnings():
        # From a size on Pillow suspects an attack and warns; a refusal is what the user can act on.
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path, formats=[kind]) as image:
            yield image


def _notes(mode: str, transparent: bool) -> list[str]:
    from tilewise.files.grey import NOTE, NOTE_ALPHA

    notes = []
    if mode == "1":
        notes.append("its bits are taken as 0 and 255")
    elif mode not in ("L", "LA", "La", *_SIXTEEN_BITS):
        notes.append(NOTE)
    if transparent:
        notes.append(NOTE_ALPHA)
    return notes
