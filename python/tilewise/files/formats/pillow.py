"""Images that Pillow unpacks as grey values or planes and packs again: a format is a `PillowFormat`."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import shape_text
from tilewise.files.checks import numbers_bytes, require_positive
from tilewise.files.headed import raw_beside
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import Bounded, size_of

_PANEL = 32 << 20
_WITH_ALPHA = ("LA", "RGBA", "PA", "La", "RGBa")


class PillowFormat(msgspec.Struct, frozen=True):
    """A kind of image: Pillow's name of it, the longest side it can have, and what packing it is told.

    Its methods are what `tilewise.files` asks of a format's module.
    """

    kind: str
    extent_max: int
    options: dict[str, Any] = {}

    def inspect(self, path: str, name: str, member: str, planes: tuple[int, ...] = (1,)) -> Source:
        """The image at `path`, uint8 or, of 16 bits, uint16: its grey values, or what `planes` takes."""
        from tilewise.files.formats import colours, ending_of

        size = size_of(path, name, f"{self.kind} image")
        with _opened(path, self.kind) as image:
            columns, rows = image.size
            own, dtype, said = self._facts(image)
            shown = _shown_otherwise(image)
        count = colours.taken(own, planes)
        numbers_bytes(count * rows, columns, dtype, name)
        return Source(
            path=path,
            name=name,
            rows=count * rows,
            columns=columns,
            dtype=dtype,
            file_bytes=size,
            planes=count,
            format=ending_of(path)[1:],
            encoded=True,
            notes=(f"a {self.kind} image is compressed",),
            warnings=said + colours.lost(own, count) + shown,
        )

    def decode(self, source: Source, out: BinaryIO) -> None:
        """Unpacks the image as a whole: Pillow cannot do it by parts, and refuses enormous ones."""
        import numpy

        from tilewise.files.formats.colours import grey, write_planes

        with _opened(source.path, self.kind) as image:
            picture = self._picture(image, source)
        if source.planes > 1 or picture.shape[2] < 3:
            write_planes(picture[..., : source.planes], source.dtype, out)
            return
        high = max(1, _PANEL // max(1, picture.shape[1] * 8))
        native = numpy.dtype(source.dtype).newbyteorder("<")
        for row in range(0, picture.shape[0], high):
            out.write(grey(picture[row : row + high]).astype(native).data)

    def _facts(self, image: Any) -> tuple[int, str, tuple[str, ...]]:
        """Planes of an opened image, their dtype, and what should be known of its numbers."""
        grey = image.mode in ("1", "L", "LA", "La")
        transparent = image.mode in _WITH_ALPHA or "transparency" in image.info
        return (1 if grey else 3) + transparent, "uint8", ()

    def _picture(self, image: Any, source: Source) -> Any:
        """The numbers of an opened image, of shape (rows, columns, planes), at least those of `source`."""
        import numpy

        from tilewise.files.formats.colours import MODES

        own = 1 if image.mode in ("1", "L", "LA", "La") else 3
        return numpy.atleast_3d(numpy.asarray(image.convert(MODES[max(own, source.planes)])))

    def create(self, new: New) -> Region:
        """Makes the raw file that the numbers, with the rows of all planes, go to before they are packed."""
        require_positive(*new.shape, new.name, "an image")
        rows, columns = new.shape[0] // new.planes, new.shape[1]
        if max(rows, columns) > self.extent_max:
            raise UsageError(
                f"{new.name} cannot hold {shape_text(rows, columns)}: this format allows "
                f"at most {self.extent_max}"
            )
        return raw_beside(new)

    def encode(self, raw: Region, path: str, planes: int) -> None:
        """Packs the numbers of `raw` into the file at `path`."""
        import numpy
        from PIL import Image

        numbers = numpy.memmap(
            raw.path, numpy.dtype(raw.dtype).newbyteorder("<"), "r", 0, (raw.rows, raw.columns)
        )
        picture = numpy.asarray(numbers)
        if planes > 1:
            picture = numpy.ascontiguousarray(numpy.moveaxis(picture.reshape(planes, -1, raw.columns), 0, -1))
        Image.fromarray(picture).save(path, format=self.kind, **self.options)


@contextlib.contextmanager
def _opened(path: str, kind: str) -> Iterator[Any]:
    from PIL import Image

    with warnings.catch_warnings():
        # From a size on Pillow suspects an attack and warns; a refusal is what the user can act on.
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Bounded(path) as file, Image.open(file, formats=[kind]) as image:
            yield image


def _shown_otherwise(image: Any) -> tuple[str, ...]:
    """Warnings for what viewers show and the numbers are not: a turned picture, further frames."""
    from tilewise.files.formats.colours import ORIENTATION, turned_by_viewers

    frames = getattr(image, "n_frames", 1)
    further = (f"it has {frames} frames, of which the first is taken",) if frames > 1 else ()
    return turned_by_viewers(image.getexif().get(ORIENTATION)) + further
