"""The .pgm, .ppm and .pnm images: binary grey ones are read in place, plain and coloured ones decoded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, BinaryIO

from tilewise.base.errors import UsageError
from tilewise.files.checks import (
    numbers_bytes,
    printable,
    require_positive,
    require_room,
    require_size,
)
from tilewise.files.formats import Format, ending_of
from tilewise.files.headed import create_headed
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

FORMAT = Format(numbers=("uint8", "uint16"), byte_order="big", picture=True)
_HEADER_MAX = 64 << 10  # bytes, comments included
_BLANK = re.compile(rb"[ \t\n\v\f\r]|#[^\n\r]*[\n\r]")
_FIELD = re.compile(rb"(?:%b)*([0-9]{1,10})" % _BLANK.pattern)
_COMMENT = re.compile(rb"#[^\n\r]*")
_NO_DIGIT = re.compile(rb"[^0-9\s]")
_PANEL = 8 << 20


def inspect(path: str, name: str, member: str, planes: tuple[int, ...] = (1,)) -> Source:
    """The image at `path`: uint8, or uint16 when its maximum is above 255.

    A matrix of its grey values, or of its planes where they are of use.
    """
    file, size = open_regular(path, name)
    with file:
        head = file.read(_HEADER_MAX)
    magic = head[:2]
    if magic not in (b"P2", b"P3", b"P5", b"P6"):
        if magic in (b"P1", b"P4", b"P7"):
            what = f"is an image of kind {magic.decode()}"
        else:
            what = f"begins with {printable(magic.decode('latin1'))!r}" if head else "is empty"
        raise UsageError(f"{name} {what}, but P2, P3, P5 or P6 was expected")
    columns, rows, maximum, offset = _fields(head, name)
    if not 1 <= maximum <= 65535:
        raise UsageError(f"{name} declares the largest value {maximum}, but 1 to 65535 was expected")
    require_positive(rows, columns, name, "an image")
    dtype = "uint8" if maximum < 256 else "uint16"
    numbers_bytes(rows, columns, dtype, name)
    colour = magic in (b"P3", b"P6")
    if magic == b"P5":
        require_size(name, size, offset, rows, columns, dtype)
    elif magic == b"P6":
        require_size(name, size, offset, rows, 3 * columns, dtype)
    else:
        # A digit for each, and something between them.
        require_room(name, size, offset, 1, 2 * rows * columns * (3 if colour else 1) - 1, "uint8")
    notes = ("its values are stored as text",) if magic in (b"P2", b"P3") else ()
    warnings: tuple[str, ...] = ()
    if maximum not in (255, 65535):
        from tilewise.files.formats.colours import darker

        warnings = darker(maximum, dtype)
    count = 1
    if colour:
        from tilewise.files.formats.colours import lost, taken

        count = taken(3, planes)
        warnings += lost(3, count)
    return Source(
        path=path,
        name=name,
        offset=offset,
        rows=count * rows,
        columns=columns,
        dtype=dtype,
        byte_order="big" if magic == b"P5" and dtype == "uint16" else "little",
        file_bytes=size,
        format=ending_of(path)[1:],
        encoded=magic != b"P5",
        planes=count,
        notes=notes,
        warnings=warnings,
    )


def decode(source: Source, out: BinaryIO) -> None:
    """Write grey values or planes; of binary colours a few MiB at a time."""
    import numpy

    from tilewise.files.formats.colours import grey

    native = numpy.dtype(source.dtype).newbyteorder("<")
    left = source.rows // source.planes * source.columns
    plane = left * native.itemsize
    with open(source.path, "rb") as file:
        head = file.read(_HEADER_MAX)
        magic, largest = head[:2], _fields(head, source.name)[2]
        samples = 1 if magic == b"P2" else 3
        file.seek(source.offset)
        plain = _plain(file.read(), left * samples, source.name) if magic in (b"P2", b"P3") else None
        while left > 0:
            count = min(left, _PANEL // 32)
            if plain is not None:
                values, plain = plain[: count * samples], plain[count * samples :]
            else:
                values = numpy.fromfile(file, numpy.dtype(source.dtype).newbyteorder(">"), count * samples)
            if values.max(initial=0) > largest:
                raise UsageError(
                    f"{source.name} has the value {values.max()}, but the largest in its header is {largest}",
                    "the right largest value in its header, behind width and height",
                )
            values = values.astype(native)
            if values.size != count * samples:
                raise UsageError(f"{source.name} is truncated: its values end too early")
            if source.planes == 1:
                out.write((values if samples == 1 else grey(values.reshape(-1, 3))).data)
            else:  # pieces of the planes, each at its place
                at = out.tell()
                for number, colour in enumerate(values.reshape(-1, samples).T):
                    out.seek(at + number * plane)
                    out.write(numpy.ascontiguousarray(colour).data)
                out.seek(at + count * native.itemsize)
            left -= count


def create(new: New) -> Region:
    """Writes a header of kind P5, for grey values of one or two bytes in big endian."""
    require_positive(*new.shape, new.name, "an image")
    head = b"P5\n%d %d\n%d\n" % (new.shape[1], new.shape[0], 255 if new.dtype == "uint8" else 65535)
    return create_headed(new, head, FORMAT.byte_order_of(new.dtype))


def _fields(head: bytes, name: str) -> tuple[int, int, int, int]:
    """Width, height, largest value, and where the values begin: behind one blank after them."""
    at, numbers = 2, []
    for what in ("width", "height", "largest value"):
        match = _FIELD.match(head, at)
        if match is None or (at == match.start(1)):
            raise UsageError(f"{name} has no {what} in its header")
        numbers.append(int(match[1]))
        at = match.end()
    blank = _BLANK.match(head, at)
    if blank is None:
        raise UsageError(f"{name} has no blank behind its header")
    return numbers[0], numbers[1], numbers[2], blank.end()


def _plain(text: bytes, count: int, name: str) -> Array:
    """Parse `count` whole numbers of a text, between blanks and comments; fewer where it ends."""
    import numpy

    text = _COMMENT.sub(b"", text)
    odd = _NO_DIGIT.search(text)
    words = text if odd is None else text[: odd.start()].rstrip(b"0123456789")
    numbers = numpy.fromstring(words, numpy.int64, sep=" ")[:count]
    if odd is not None and numbers.size < count:
        word = text[len(words) : odd.end() + 99].split(None, 1)[0].decode("latin1")
        raise UsageError(f"{name} has {printable(word)!r}, but a whole number was expected")
    return numbers
