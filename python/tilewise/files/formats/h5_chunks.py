"""Finds the chunks of an HDF5 dataset, for ranks that unpack them themselves.

Design: docs/design/formats.md.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy

from tilewise.base.errors import UsageError
from tilewise.base.programs import installing
from tilewise.files.checks import MOST_BYTES, MOST_CHUNKS, printable
from tilewise.files.region import Chunks, Filter
from tilewise.files.slices import ArrayPart

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped,unused-ignore]

Array = numpy.ndarray[Any, numpy.dtype[Any]]
_FILTERS = {1: "inflate", 2: "shuffle", 3: "fletcher32"}  # by the library's numbers
_PACKINGS = ((), ("shuffle",), ("inflate",), ("inflate", "shuffle"))  # as undone; a checksum may be anywhere
_PACKERS = {
    **{1: "gzip", 4: "szip", 5: "n-bit", 6: "scale-offset", 305: "lzo", 307: "bzip2", 32000: "lzf"},
    **{32001: "blosc", 32004: "lz4", 32008: "bitshuffle", 32013: "zfp", 32015: "zstd", 32017: "sz"},
    **{32018: "fcidecomp", 32019: "jpeg", 32024: "sz3", 32026: "blosc2", 32028: "sperr"},
}
_TRIED = 8  # chunks that are read by their coordinates, until one tells
_ASKED_ONE_BY_ONE = 1000  # chunks; each question walks through the index


def chunks_of(dataset: h5py.Dataset, part: ArrayPart, name: str, size: int) -> Chunks | None:
    """The chunks that `part` of a chunked dataset lies in; None where ranks cannot unpack them."""
    if dataset.chunks is None or 0 in (part.rows, part.columns):
        return None
    numbers = math.prod(dataset.chunks)
    if numbers * dataset.dtype.itemsize > MOST_BYTES:
        return None
    filters = _filters(dataset)
    if filters is None or not _known_good(dataset, filters):
        return None
    strides = [math.prod(dataset.chunks[place + 1 :]) for place in range(len(dataset.chunks))]
    fixed = [(place, each) for place, each in enumerate(part.index) if each is not None]
    down, *wide = (place for place, each in enumerate(part.index) if each is None)
    across = wide[0] if wide else None
    high, broad = dataset.chunks[down], 1 if across is None else dataset.chunks[across]
    count = -(-part.columns // broad)
    total = -(-part.rows // high) * count
    if total > MOST_CHUNKS:
        return None
    stored = stored_chunks(dataset)
    if stored is None:
        return None
    corners = numpy.array([each.chunk_offset for each in stored], "i8").reshape(-1, dataset.ndim)
    lengths = numpy.array([each.size for each in stored], "i8")
    masks = numpy.array([each.filter_mask for each in stored], "i8") & ((1 << len(filters)) - 1)
    if not _places_hold(dataset, stored, corners):
        return None
    if _unfiltered_edge(dataset, corners, lengths, masks, filters):
        return None
    begins = numpy.array([each.byte_offset for each in stored], "i8")
    if (begins > size - lengths).any():
        end = int(begins.max()) + int(lengths[begins.argmax()])
        raise UsageError(f"{name} has {size} bytes, but a chunk up to byte {end}: it is truncated")
    wanted = numpy.ones(len(stored), bool)
    for place, index in fixed:
        wanted &= corners[:, place] // dataset.chunks[place] == index // dataset.chunks[place]
    places = corners[wanted, down] // high * count
    if across is not None:
        places += corners[wanted, across] // broad
    table = numpy.zeros((3, total), "i8")
    table[:, places] = begins[wanted], lengths[wanted], _as_undone(masks[wanted], len(filters))
    offsets, bytes_, skipped = table.tolist()
    return Chunks(
        shape=(high, broad),
        steps=(strides[down], 1 if across is None else strides[across]),
        start=sum(index % dataset.chunks[place] * strides[place] for place, index in fixed),
        numbers=numbers,
        filters=filters,
        offsets=offsets,
        bytes=bytes_,
        skipped=skipped if any(skipped) else [],
        fill=fill_of(dataset),
    )


def stored_chunks(dataset: h5py.Dataset) -> list[h5py.h5d.StoreInfo] | None:
    """List each chunk that is stored; None where that would take too long."""
    found: list[h5py.h5d.StoreInfo] = []
    if hasattr(dataset.id, "chunk_iter"):
        dataset.id.chunk_iter(found.append)
    else:
        count = dataset.id.get_num_chunks()
        if count > _ASKED_ONE_BY_ONE:
            return None
        found = [dataset.id.get_chunk_info(index) for index in range(count)]
    return [each for each in found if each.byte_offset is not None]


def packed_by(dataset: h5py.Dataset, also_moved: bool = False) -> str:
    """Names of the filters that packed the chunks; `also_moved`: or moved bytes, or added a checksum."""
    return " and ".join(_packer(*each) for each in _applied(dataset) if also_moved or each[0] not in (2, 3))


def require_filters(dataset: h5py.Dataset, name: str) -> None:
    """Raises UsageError where the library has no filter to unpack the chunks with, and hdf5plugin neither."""
    for bit, (number, stored) in enumerate(_applied(dataset)):
        if _is_there(number):
            continue
        chunks = stored_chunks(dataset)
        if chunks is not None and all(each.filter_mask >> bit & 1 for each in chunks):
            continue
        packer = _packer(number, stored)
        raise UsageError(
            f"{name} is packed by {packer} (HDF5 filter {number}), which the HDF5 library does not have here",
            installing("hdf5plugin") if number in _PACKERS else "h5repack -f NONE, where that filter is",
        )


def _applied(dataset: h5py.Dataset) -> list[tuple[int, bytes]]:
    """Number and stored name of each filter, the first one first."""
    properties = dataset.id.get_create_plist()
    found = (properties.get_filter(place) for place in range(properties.get_nfilters()))
    return [(number, stored) for number, _, _, stored in found]


def _packer(number: int, stored: bytes) -> str:
    known = _PACKERS.get(number)
    return known or printable(stored.decode(errors="replace")) or f"HDF5 filter {number}"


def _is_there(number: int) -> bool:
    """True where the library has the filter, from hdf5plugin if that is installed."""
    import h5py

    if h5py.h5z.filter_avail(number):
        return True
    with contextlib.suppress(ImportError, OSError):
        import hdf5plugin  # noqa: F401 - gives its filters to the library

        return bool(h5py.h5z.filter_avail(number))
    return False


def _filters(dataset: h5py.Dataset) -> list[Filter] | None:
    """List what undoes the filters of the dataset, the last one first; None where ranks do not know one."""
    properties = dataset.id.get_create_plist()
    undone = []
    for place in range(properties.get_nfilters()):
        number, _, values, _ = properties.get_filter(place)
        if number not in _FILTERS:
            return None
        item = values[0] if number == 2 and values else 1
        undone.append(Filter(name=_FILTERS[number], item=max(1, item)))
    return undone[::-1]


def _known_good(dataset: h5py.Dataset, filters: list[Filter]) -> bool:
    """True where the dataset has only properties that ranks are known to unpack as the library does.

    The library decodes all others, slower and as right. h5py does not show the kind of index and the
    options of chunks: `_places_hold` and `_unfiltered_edge` find them out.
    """
    import h5py

    packing = tuple(each.name for each in filters if each.name != "fletcher32")
    return (
        dataset.id.get_type() == h5py.h5t.py_create(dataset.dtype, logical=True)
        and not dataset.file.userblock_size  # from which some versions of the library count, and some do not
        and packing in _PACKINGS
        and len(filters) - len(packing) <= 1
    )


def _places_hold(dataset: h5py.Dataset, stored: list[h5py.h5d.StoreInfo], corners: Array) -> bool:
    """True where the chunks lie where the library says.

    Newer files have an index of its own kind for one unlimited dimension. It puts that dimension first, and
    the library leaves the coordinates in that sequence. h5py cannot tell it from the older index, which any
    dataset may have. So a chunk is read by its coordinates. In an older file that is the chunk that was said
    to be there, in a newer one that which was said to be at the `turned` coordinates.
    """
    chunk = dataset.chunks
    inside = (corners < dataset.shape).all() and not (corners % chunk).any()
    if not inside or len(numpy.unique(corners, axis=0)) < len(corners):
        return False
    unlimited = [axis for axis, limit in enumerate(dataset.maxshape) if limit is None]
    if len(unlimited) != 1 or unlimited == [0]:
        return True
    grid = corners // chunk
    sequence = [unlimited[0], *(axis for axis in range(len(chunk)) if axis != unlimited[0])]
    turned = grid[:, sequence] * chunk
    there = {tuple(corner): each for corner, each in zip(corners.tolist(), stored, strict=True)}
    moved = numpy.flatnonzero((turned != corners).any(axis=1)).tolist()
    with open(dataset.file.filename, "rb") as file:
        for place in moved[:_TRIED]:
            try:
                data = dataset.id.read_direct_chunk(tuple(corners[place].tolist()))[1]
            except (RuntimeError, OSError):  # nothing is stored at these coordinates
                return False
            if _bytes(file, stored[place]) != data:
                return False
            other = there.get(tuple(turned[place].tolist()))
            if other is None or _bytes(file, other) != data:
                return True
    return not moved


def _bytes(file: BinaryIO, chunk: h5py.h5d.StoreInfo) -> bytes:
    file.seek(chunk.byte_offset)
    return file.read(chunk.size)


def _unfiltered_edge(
    dataset: h5py.Dataset, corners: Array, lengths: Array, masks: Array, filters: list[Filter]
) -> bool:
    """True where filters may have left out the chunks that reach beyond the dataset's edge.

    Their masks do not say so. Such a chunk has its full size, and a filtered one rarely has, unless shuffle
    is all that it went through.
    """
    whole = lengths == math.prod(dataset.chunks) * dataset.dtype.itemsize
    edge = (corners + dataset.chunks > dataset.shape).any(axis=1)
    return bool((whole & edge & (masks != (1 << len(filters)) - 1)).any())


def _as_undone(masks: Array, filters: int) -> Array:
    """Masks whose bits count `filters` as they are undone; those of a file count them as applied."""
    return sum(((masks >> bit & 1) << (filters - 1 - bit) for bit in range(filters)), numpy.zeros_like(masks))


def fill_of(dataset: h5py.Dataset) -> str:
    """The number of what is not stored, as hexadecimal digits of the file's bytes.

    h5py has zeros where the library is not to write any.
    """
    import h5py

    never = dataset.id.get_create_plist().get_fill_time() == h5py.h5d.FILL_TIME_NEVER
    return numpy.asarray(0 if never else dataset.fillvalue, dataset.dtype).tobytes().hex()
