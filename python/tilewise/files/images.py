"""Images that Pillow unpacks as grey values and packs again: a format is a value of `PillowFormat`."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from tilewise.errors import UsageError
from tilewise.files.checks import numbers_bytes, require_positive, require_rows
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region, Source
from tilewise.files.regular import open_regular

_PANEL = 32 << 20
_SIXTEEN_BITS = ("I;16", "I;16B", "I;16L", "I")
_WITH_ALPHA = ("LA", "RGBA", "PA", "La", "RGBa")


class PillowFormat(msgspec.Struct, frozen=True):
    """A kind of image: Pillow's name of it, the longest side it can have, and what packing it is told.

    Its methods are what `tilewise.files` asks of a format's module.
    """

    kind: str
    extent_max: int
    options: dict[str, Any] = {}

    def inspect(self, path: str, name: str, member: str) -> Source:
        """The grey values of the image at `path`: uint8, or uint16 where it has 16 bits."""
        file, size = open_regular(path, name)
        file.close()
        if size == 0:
            raise UsageError(f"{name} is empty, but a {self.kind} image was expected")
        with _opened(path, self.kind) as image:
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
            notes=(f"a {self.kind} image is compressed",),
            warnings=_warnings(mode, transparent),
        )

    def decode(self, source: Source, out: BinaryIO) -> None:
        """Unpacks the image as a whole: Pillow cannot do it by parts, and refuses enormous ones."""
        import numpy

        with _opened(source.path, self.kind) as image:
            if image.mode in _SIXTEEN_BITS:
                values = numpy.asarray(image)
            elif image.mode == "CMYK":
                values = numpy.asarray(image.convert("RGB").convert("L"))
            else:
                values = numpy.asarray(image.convert("L"))
        high = max(1, _PANEL // max(1, values.shape[1] * 8))
        native = numpy.dtype(source.dtype).newbyteorder("<")
        for row in range(0, values.shape[0], high):
            out.write(numpy.ascontiguousarray(values[row : row + high], native).data)

    def create(
        self,
        path: str,
        name: str,
        member: str,
        shape: tuple[int, int],
        dtype: str,
        order: str,
        header: bool = False,
    ) -> Region:
        """Makes the raw file beside `path` that the numbers go to before they are packed."""
        require_rows(order, name, "an image")
        require_positive(*shape, name, "an image")
        if max(shape) > self.extent_max:
            raise UsageError(
                f"{name} cannot hold {shape[0]}×{shape[1]}: this format ends at {self.extent_max}"
            )
        size = shape[0] * shape[1] * ITEMSIZE[dtype]
        raw = path + ".raw"
        with open(raw, "xb") as file:
            file.truncate(size)
        return Region(path=raw, name=name, rows=shape[0], columns=shape[1], dtype=dtype, file_bytes=size)

    def encode(self, raw: Region, path: str, name: str, member: str) -> None:
        """Packs the numbers of `raw` into the file at `path`."""
        import numpy
        from PIL import Image

        numbers = numpy.memmap(
            raw.path, numpy.dtype(raw.dtype).newbyteorder("<"), "r", 0, (raw.rows, raw.columns)
        )
        Image.fromarray(numpy.asarray(numbers)).save(path, format=self.kind, **self.options)


@contextlib.contextmanager
def _opened(path: str, kind: str) -> Iterator[Any]:
    from PIL import Image

    with warnings.catch_warnings():
        # From a size on Pillow suspects an attack and warns; a refusal is what the user can act on.
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path, formats=[kind]) as image:
            yield image


def _warnings(mode: str, transparent: bool) -> tuple[str, ...]:
    from tilewise.files.grey import ALPHA_IGNORED, GREY_TAKEN

    found = []
    if mode == "1":
        found.append("its bits are taken as 0 and 255")
    elif mode not in ("L", "LA", "La", *_SIXTEEN_BITS):
        found.append(GREY_TAKEN)
    if transparent:
        found.append(ALPHA_IGNORED)
    return tuple(found)
