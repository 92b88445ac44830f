"""Checks that every format makes of a header: a number type we know, two dimensions, a possible size.

Design: docs/design/formats.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewise.base.errors import UsageError
from tilewise.base.units import listing, shape_text
from tilewise.files.dtypes import ITEMSIZE

if TYPE_CHECKING:
    import numpy

LARGEST = 1 << 62  # bytes; the seam carries signed 64-bit integers
HEADER_MAX = 8 << 20  # bytes; a longer header of a matrix is a lie
MANIFEST = "manifest.json"
PAGE = 4096
PAGE_ALIGNED_FROM = 1 << 20  # bytes of numbers; below, a page of padding would be most of the file
_MEANT = ("scale_factor", "add_offset", "_Unsigned", "valid_range", "valid_min", "valid_max")
_NO_NUMBERS = ("_FillValue", "missing_value")
_SHOWN = 20  # names in a message
MOST_BYTES = 64 << 20  # of one chunk; a thread has three at a time
MOST_CHUNKS = 1 << 21  # whose places are a list that goes to every rank


def is_plain(name: str) -> bool:
    """True for a name in a manifest that lies in its own folder, and is not the manifest."""
    return name not in ("", ".", "..", MANIFEST) and not set(name) & set("/\\\0")


def number_type(dtype: numpy.dtype[Any], name: str) -> str:
    """Our name of `dtype` (bool counts as uint8), or UsageError for what is not a number."""
    known = "uint8" if dtype.name == "bool" else dtype.name
    if known in ITEMSIZE and dtype.fields is None and dtype.subdtype is None:
        return known
    if dtype.hasobject:
        what = "Python objects, which tilewise never unpickles"
    elif dtype.fields is not None:
        what = f"records with the fields {', '.join(dtype.names or ())}"
    elif dtype.kind in "SUV":
        what = f"text or raw bytes ({dtype.name})"
    elif dtype.kind in "mM":
        what = f"dates or durations ({dtype.name})"
    else:
        what = f"{dtype.name}, which differs from machine to machine"
    raise UsageError(f"{name} holds {what}, but numbers were expected: {', '.join(ITEMSIZE)}")


def byte_order(dtype: numpy.dtype[Any]) -> str:
    """`big` or `little`; single bytes are little."""
    return "big" if dtype.str[0] == ">" else "little"


def require_shape(shape: tuple[int, ...], name: str) -> None:
    """Raises UsageError for extents that no array can have."""
    if any(extent < 0 for extent in shape) or max(shape, default=0) > sys.maxsize:
        raise UsageError(f"{name} declares the shape {shape}, which no array can have")


def numbers_bytes(rows: int, columns: int, dtype: str, name: str, shape: Sequence[int] = ()) -> int:
    """Bytes of the numbers alone; UsageError for extents that no file can have.

    Messages show `shape`, here as below, where the array is no matrix.
    """
    size = rows * columns * ITEMSIZE[dtype]
    if min(rows, columns) < 0 or max(rows, columns, size) > LARGEST:
        shown = shape_text(*(shape or (rows, columns)))
        raise UsageError(f"{name} declares the shape {shown}, which no array can have")
    return size


def require_size(
    name: str, size: int, offset: int, rows: int, columns: int, dtype: str, shape: Sequence[int] = ()
) -> None:
    """Raises UsageError unless a file of `size` bytes ends exactly where its header says."""
    expected = offset + numbers_bytes(rows, columns, dtype, name, shape)
    if size != expected:
        what = "it is truncated" if size < expected else "it has more data than its header declares"
        raise UsageError(
            f"{name} has {size} bytes, but its header ({shape_text(*(shape or (rows, columns)))} {dtype} "
            f"from byte {offset}) promises {expected}: {what}"
        )


def require_room(
    name: str, size: int, offset: int, rows: int, columns: int, dtype: str, shape: Sequence[int] = ()
) -> None:
    """Raises UsageError unless the numbers from byte `offset` on end within a file of `size` bytes."""
    end = offset + numbers_bytes(rows, columns, dtype, name, shape)
    if offset < 0 or end > size:
        shown = shape_text(*(shape or (rows, columns)))
        raise UsageError(
            f"{name} has {size} bytes, but its {shown} {dtype} from byte {offset} on "
            f"would end at byte {end}: it is truncated"
        )


def require_positive(rows: int, columns: int, name: str, kind: str) -> None:
    """Raises UsageError for a matrix without numbers where the format cannot say that."""
    if min(rows, columns) < 1:
        raise UsageError(f"{name} would be {shape_text(rows, columns)}, but {kind} holds at least one number")


def not_applied(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """A warning where a variable's attributes change what its numbers mean; they are taken as stored."""
    found = [key for key in _MEANT if key in attributes]
    found += [key for key in _NO_NUMBERS if key in attributes and not _is_nan(attributes, key)]
    if not found:
        return ()
    plural = len(found) > 1
    return (f"the attribute{'s' if plural else ''} {listing(found)} {'are' if plural else 'is'} not applied",)


def fill_values(
    attributes: Mapping[str, Any], dtype: str, default: Sequence[float] = ()
) -> tuple[float, ...]:
    """Numbers of `dtype` that stand for none, by a variable's attributes; `default` without `_FillValue`."""
    import numpy

    said = [value for key in _NO_NUMBERS if key in attributes for value in numpy.ravel(attributes[key])]
    said += [] if "_FillValue" in attributes else default
    numbers = [numpy.asarray(value) for value in said if numpy.asarray(value).dtype.kind in "iuf"]
    with numpy.errstate(all="ignore"):
        cast = [(each, each.astype(dtype)) for each in numbers]
    return tuple(fill.item() for each, fill in cast if fill.dtype.kind not in "iu" or fill == each)


class NoChoiceError(UsageError):
    """A file has none, or several, of what a name without a member would mean."""


def pick(name: str, base: str, noun: str, matrices: Sequence[str]) -> str:
    """The only one of `matrices` (members of the file `base`), or NoChoiceError that lists them."""
    if len(matrices) == 1:
        return matrices[0]
    if not matrices:
        raise NoChoiceError(f"{name} holds no {noun} with two dimensions of numbers")
    shown = ", ".join(printable(member) for member in matrices[:_SHOWN])
    more = f" and {len(matrices) - _SHOWN} more" if len(matrices) > _SHOWN else ""
    raise NoChoiceError(
        f"{name} names no {noun}, but one was expected: {shown}{more}",
        f"name one of them: {base}:{printable(matrices[0])}",
    )


def choose(
    name: str, base: str, noun: str, member: str, members: Collection[str], matrices: Sequence[str]
) -> str:
    """Pick `member` of the file `base`, or its only matrix; UsageError where there is none, or several."""
    if member and member not in members:
        raise missing(name, noun, member, list(members))
    return member or pick(name, base, noun, matrices or (list(members) if len(members) == 1 else []))


def missing(name: str, noun: str, member: str, there: Sequence[str]) -> UsageError:
    """The error to raise where the file of `name` has no `member`, but those that are `there`."""
    file = re.sub(rf":/?{re.escape(member.removeprefix('/'))}(\[[^\[\]]*\])?$", "", name)
    shown = ", ".join(map(printable, there[:_SHOWN]))
    told = f"its {noun}s are {shown}" if shown else f"it holds no {noun} of numbers"
    return UsageError(f"{file} has no {noun} {printable(member)}; {told}")


def printable(text: str) -> str:
    """`text` for a message of one line, cut after 100 characters."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[:100])
    return shown + "…" if len(text) > 100 else shown


def _is_nan(attributes: Mapping[str, Any], key: str) -> bool:
    """True where the attribute is NaN, which means no number, applied or not."""
    import numpy

    try:
        return bool(numpy.all(numpy.isnan(attributes[key])))
    except (TypeError, ValueError, OSError):  # its type is no float, or cannot be read
        return False
