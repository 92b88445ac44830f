"""Where the chunks of an HDF5 dataset lie, for ranks that unpack them themselves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tilewise.base.errors import UsageError
from tilewise.files.chunks import MOST_BYTES, MOST_CHUNKS
from tilewise.files.region import Chunks, Filter
from tilewise.files.slices import Part

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped,unused-ignore]

_FILTERS = {1: "inflate", 2: "shuffle", 3: "fletcher32"}  # by the library's numbers
_ASKED_ONE_BY_ONE = 1000  # chunks; each question walks through the index


def chunks_of(dataset: h5py.Dataset, part: Part, name: str, size: int) -> Chunks | None:
    """The chunks that `part` of a chunked dataset lies in; None where ranks cannot unpack them."""
    import h5py

    if dataset.chunks is None or dataset.file.userblock_size or 0 in (part.rows, part.columns):
        return None
    if dataset.id.get_type() != h5py.h5t.py_create(dataset.dtype, logical=True):
        return None
    numbers = math.prod(dataset.chunks)
    if numbers * dataset.dtype.itemsize > MOST_BYTES:
        return None
    filters = _filters(dataset)
    if filters is None:
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
    stored = _stored(dataset)
    if stored is None:
        return None
    offsets, lengths, skipped = [0] * total, [0] * total, [0] * total
    for each in stored:
        corner = each.chunk_offset
        if any(not corner[place] <= index < corner[place] + dataset.chunks[place] for place, index in fixed):
            continue
        place = corner[down] // high * count + (0 if across is None else corner[across] // broad)
        if not 0 <= place < total or each.byte_offset is None:
            continue
        if each.byte_offset + each.size > size:
            raise UsageError(
                f"{name} has {size} bytes, but a chunk up to byte {each.byte_offset + each.size}: "
                "it is truncated"
            )
        offsets[place], lengths[place] = each.byte_offset, each.size
        # Bits count filters as they were applied, and here they are undone.
        skipped[place] = sum(
            (each.filter_mask >> bit & 1) << (len(filters) - 1 - bit) for bit in range(len(filters))
        )
    return Chunks(
        shape=(high, broad),
        steps=(strides[down], 1 if across is None else strides[across]),
        start=sum(index % dataset.chunks[place] * strides[place] for place, index in fixed),
        numbers=numbers,
        filters=filters,
        offsets=offsets,
        bytes=lengths,
        skipped=skipped if any(skipped) else [],
        fill=_fill(dataset),
    )


def _filters(dataset: h5py.Dataset) -> list[Filter] | None:
    """What undoes the dataset's filters, the last one first; None where ranks do not know one."""
    properties = dataset.id.get_create_plist()
    undone = []
    for place in range(properties.get_nfilters()):
        number, _, values, _ = properties.get_filter(place)
        if number not in _FILTERS:
            return None
        item = values[0] if number == 2 and values else 1
        undone.append(Filter(name=_FILTERS[number], item=max(1, item)))
    return undone[::-1]


def _stored(dataset: h5py.Dataset) -> list[h5py.h5d.StoreInfo] | None:
    """What is known of each chunk that is stored; None where that would take too long."""
    found: list[h5py.h5d.StoreInfo] = []
    if hasattr(dataset.id, "chunk_iter"):
        dataset.id.chunk_iter(found.append)
        return found
    count = dataset.id.get_num_chunks()
    if count > _ASKED_ONE_BY_ONE:
        return None
    return [dataset.id.get_chunk_info(index) for index in range(count)]


def _fill(dataset: h5py.Dataset) -> str:
    import numpy

    return numpy.asarray(dataset.fillvalue, dataset.dtype).tobytes().hex()
