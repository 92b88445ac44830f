"""Compares what ranks unpack with what the format's own library reads, on a few chunks of each packed input.

    ● ─ ─ ●      the first chunk, and the last of the first row
    ─ ? ─ ─      one that is stored, one that is not, one without all filters, two at random
    ● ─ ? ●      the first of the last row, and the last

A worker unpacks these in a process of its own and without MPI, while the library reads the same blocks here.
Where they differ, the library reads the whole input, and a warning says so.

Design: docs/design/formats.md.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import IO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import plural
from tilewise.files.decoded import apart
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import format_module
from tilewise.files.region import Chunks, Rectangle, Region, Source
from tilewise.files.regular import guarded
from tilewise.launch import launcher, worker
from tilewise.launch.job import encode, quit_job

OFF = "TILEWISE_NO_DECODING_CHECK"
_LEAST_BYTES = 1 << 20  # of unpacked numbers that are compared
_SHARE = 512  # of all numbers, where that is more: what costs less than a percent of the reading
_SURE = 2  # chunks that are compared, however large
_RANDOM = 2
_PATIENCE = 60.0  # seconds


def checked(regions: Sequence[Region], memory: int | None = None) -> list[Region]:
    """The `regions`, each packed one compared; where ranks read it wrongly, `encoded` for the library.

    Costs the unpacking of 1 MiB, or 1/512 of the numbers, twice. Raises what the format's library raises of a
    broken file.
    """
    if os.environ.get(OFF):
        return list(regions)
    return [
        _checked(region.uncut, memory).cut(*region.window)
        if isinstance(region, Source) and region.chunks is not None
        else region
        for region in regions
    ]


def unchecked(regions: Sequence[Region]) -> bool:
    """True if ranks unpack an input that was not compared."""
    return any(
        region.chunks is not None and not (isinstance(region, Source) and region.compared)
        for region in regions
    )


def _checked(source: Source, memory: int | None) -> Region:
    import tempfile

    assert source.chunks is not None
    samples = _samples(source.chunks, source.rows, source.columns, ITEMSIZE[source.dtype])
    if not samples:
        return source
    blocks = [_block(source, index) for index in samples]
    with (
        tempfile.TemporaryFile() as told,
        tempfile.TemporaryFile() as out,
        _Unpacking(source, samples, blocks, told, out) as unpacking,
    ):
        try:
            expected = _read(source, blocks, memory)  # meanwhile
        except UsageError:
            if unpacking.done()[1]:
                return source  # both find it broken, and a rank will say where
            raise
        ours, why = unpacking.done()
    if expected is None:
        note = "the installed library cannot unpack it, so its decoding was not compared"
        return msgspec.structs.replace(source, notes=(*source.notes, note))
    wrong = [mine != theirs for mine, theirs in zip(ours, expected, strict=True)].count(True)
    if not wrong:
        return msgspec.structs.replace(source, compared=len(samples))
    # Words of the worker are about a chunk by itself, so they name the wrong place.
    said = "it cannot unpack a chunk" if why else f"{wrong} of {plural(len(samples), 'chunk')} differed"
    warning = f"read by its format's library, which is slower, since tilewise reads it differently: {said}"
    return msgspec.structs.replace(
        source,
        encoded=True,
        encoding="binary",
        byte_order="little",
        chunks=None,
        warnings=(*source.warnings, warning),
    )


class _Unpacking:
    """A worker that unpacks `blocks`, those of the chunks `samples`, by a job in one file into another."""

    def __init__(
        self,
        source: Source,
        samples: Sequence[int],
        blocks: Sequence[Rectangle],
        told: IO[bytes],
        out: IO[bytes],
    ) -> None:
        fault = os.environ.get("TILEWISE_FAULT", "")
        regions: list[Region] = [_alone(source, *each) for each in zip(samples, blocks, strict=True)]
        job = msgspec.structs.replace(quit_job(), command="unpack", inputs=regions, fault=fault)
        self._bytes = [_bytes(block, source) for block in blocks]
        self._out = out
        told.write(encode(job))
        told.seek(0)  # a file, since a pipe breaks where the worker ends before it reads
        command = [launcher.find_worker().path, "--unpack"]
        self._worker = subprocess.Popen(
            command, stdin=told, stdout=out, stderr=subprocess.PIPE, env=worker.without_mpi()
        )

    def __enter__(self) -> _Unpacking:
        return self

    def __exit__(self, *what: object) -> None:
        self._worker.kill()
        self._worker.communicate()

    def done(self) -> tuple[list[bytes], str]:
        """The bytes of each block, and what the worker could not do, in words."""
        try:
            _, errors = self._worker.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            return [b""] * len(self._bytes), f"no end within {_PATIENCE:.0f} s"
        code = self._worker.returncode
        why = " ".join(errors.decode("utf-8", "replace").split()) or f"exit code {code}" if code else ""
        self._out.seek(0)
        return [self._out.read(count) for count in self._bytes], why


def _read(source: Source, blocks: Sequence[Rectangle], memory: int | None) -> list[bytes] | None:
    """The bytes of each block by the format's library; None where it lacks what that takes."""
    import tempfile

    import numpy

    stored = numpy.dtype(source.dtype).newbyteorder(">" if source.byte_order == "big" else "<")
    sizes = [_bytes(block, source) for block in blocks]
    with tempfile.TemporaryFile() as out:

        def work() -> None:
            with guarded(f"{source.name} is not a readable .{source.format} file"):
                for numbers in format_module(source.path).blocks(source, blocks) or ():
                    out.write(numpy.ascontiguousarray(numbers, stored).data)
                out.flush()

        apart(work, source, sum(sizes), memory)
        out.seek(0)
        found = [out.read(size) for size in sizes]
    return found if found[0] else None


def _bytes(block: Rectangle, source: Source) -> int:
    (top, bottom), (left, right) = block
    return (bottom - top) * (right - left) * ITEMSIZE[source.dtype]


def _samples(chunks: Chunks, rows: int, columns: int, item: int) -> list[int]:
    """Numbers of the chunks to compare, the most telling first, as many as fit."""
    import random

    across, count = -(-columns // chunks.shape[1]), len(chunks.offsets)
    kinds = [
        next((index for index, size in enumerate(chunks.bytes) if size != 0), 0),
        next((index for index, size in enumerate(chunks.bytes) if size == 0), 0),
        next((index for index, skipped in enumerate(chunks.skipped) if skipped), 0),
    ]
    ends, corners = [0, count - 1], [across - 1, count - across]
    others = [random.randrange(count) for _ in range(_RANDOM)] if count else []
    ordered = (*ends, *others[:1], *kinds, *corners, *others[1:])
    found = list(dict.fromkeys(index for index in ordered if 0 <= index < count))
    most = max(_LEAST_BYTES // item, rows * columns // _SHARE)
    return found[: max(_SURE, most // max(1, chunks.numbers))]


def _block(source: Source, index: int) -> Rectangle:
    """Rows and columns of the matrix that a chunk holds."""
    assert source.chunks is not None
    high, wide = source.chunks.shape
    across = -(-source.columns // wide)
    row, column = index // across * high, index % across * wide
    return (row, min(row + high, source.rows)), (column, min(column + wide, source.columns))


def _alone(source: Source, index: int, block: Rectangle) -> Region:
    """A region of that chunk only."""
    chunks = source.chunks
    assert chunks is not None
    (top, bottom), (left, right) = block
    alone = msgspec.structs.replace(
        chunks,
        offsets=[chunks.offsets[index]],
        bytes=[chunks.bytes[index]],
        skipped=[chunks.skipped[index]] if chunks.skipped else [],
        paths=[chunks.paths[index]] if chunks.paths else [],
    )
    return msgspec.structs.replace(
        source.region(), rows=bottom - top, columns=right - left, chunks=alone, transposed=False
    )
