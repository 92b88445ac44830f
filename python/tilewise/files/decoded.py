"""Makes raw files of inputs that cannot be read in place, compressed or in colours, while a job runs."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import time
from collections.abc import Callable
from typing import BinaryIO

import msgspec

from tilewise.base import forked
from tilewise.base.claim import Claim
from tilewise.base.errors import RunError, UsageError
from tilewise.base.memory import available_memory
from tilewise.base.owner import part_path
from tilewise.base.staging import Staged
from tilewise.files.disk import require_free
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import FORMATS, format_module
from tilewise.files.region import Region, Source, is_encoded
from tilewise.files.regular import guarded

_ATTEMPTS = 100
_LEAST = 256 << 20  # bytes that a library may take in any case
_TIMES = 32  # a picture's colours as wide numbers, twice, and what they are computed from


def decoded(
    source: Source,
    folder: str,
    identity: str,
    memory: int | None = None,
    check: Callable[[], None] = lambda: None,
) -> Region:
    """The numbers of `source`, little-endian, in a new file `.{base}.{identity}.raw` in `folder`.

    The caller removes that file. The format's library works in a child, which takes `memory` bytes at most
    (None: 32 times what the file has and promises), but may have 256 MiB. Meanwhile `check` is called, and
    may raise. Raises RunError when the disk is too full, UsageError when the input turns out to be broken;
    no file is left behind then.
    """
    whole = source.uncut
    require_free(folder, whole.all_bytes, f"the decoded {source.name}")
    staged, descriptor = _new_file(folder, os.path.basename(source.path), identity, source.name)
    with staged.or_none(), os.fdopen(descriptor, "w+b") as out:
        apart(lambda: unpack(whole, out), whole, whole.all_bytes, memory, check)
    return Region(
        path=staged.part,
        name=source.name,
        rows=whole.rows,
        columns=whole.columns,
        dtype=source.dtype,
        order=source.order,
        file_bytes=whole.all_bytes,
        steps=source.steps,
    ).cut(*source.window)


def unpack(source: Source, out: BinaryIO) -> None:
    """Writes the numbers of `source` to `out`; UsageError where they are fewer or more than was said."""
    with guarded(_unreadable(source)):
        try:
            format_module(source.path).decode(source, out)
            out.flush()
            size = os.fstat(out.fileno()).st_size
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            size = source.all_bytes + 1  # at least
        if size != source.all_bytes:
            what = "more" if size > source.all_bytes else f"{size}"
            raise UsageError(
                f"{source.name} holds {what} bytes of numbers, but its header promises {source.all_bytes}"
            )


def apart(
    work: Callable[[], None],
    source: Source,
    size: int,
    memory: int | None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Has a child do `work` with `source`, which writes `size` bytes to a file; see `decoded`."""
    if memory is None:
        whole = math.prod(source.part.shape) * ITEMSIZE[source.dtype] if source.part else source.all_bytes
        memory = min(available_memory(), _TIMES * (whole + max(0, source.file_bytes)))
    try:
        forked.run(work, check, bounds=forked.Bounds(max(_LEAST, memory), size))
    except forked.DiedError as error:
        raise UsageError(f"{_unreadable(source)}: {error.message}", error.advice) from None


def _unreadable(source: Source) -> str:
    return f"{source.name} is not a readable {_kind(source)} file"


def _kind(source: Source) -> str:
    known = f".{source.format}"
    return known if known in FORMATS else source.format


def _new_file(folder: str, base: str, identity: str, name: str) -> tuple[Staged, int]:
    """A file that gets no other name, and its descriptor; numbered where one file has two of the inputs."""
    for attempt in range(_ATTEMPTS):
        ending = f"{attempt}.raw" if attempt else "raw"
        path = part_path(os.path.join(folder, base), identity, ending)
        try:
            staged = Staged(part=path, claim=Claim("", "", undo=[path]))
            return staged, staged.make(0o600)
        except FileExistsError:
            continue
        except OSError as error:
            raise RunError(
                f"no file can be created in {folder} for the decoded {name}: {error.strerror}"
            ) from None
    raise RunError(f"{folder} is full of files such as {path}; remove them")


class Decoding:
    """Raw files in a `folder` that has room for matrices, one for each encoded input."""

    def __init__(self, inputs: list[Region], folder: str, identity: str) -> None:
        self._inputs = inputs
        self._folder = folder
        self._identity = identity
        self._made: list[str] = []
        self.seconds = 0.0

    @property
    def claim(self) -> Claim:
        """The files that may be made, for whoever clears up when we are killed."""
        endings = ["raw", *(f"{number}.raw" for number in range(1, len(self._inputs)))]
        paths = [
            part_path(os.path.join(self._folder, os.path.basename(source.path)), self._identity, ending)
            for source in self._inputs
            if is_encoded(source)
            for ending in endings
        ]
        return Claim("", "", undo=paths)

    def decode(self, memory: int | None, check: Callable[[], None]) -> list[Region]:
        """The inputs, each encoded one replaced by its raw file, as `decoded` makes and raises it."""
        begin = time.perf_counter()
        regions = []
        for source in self._inputs:
            if isinstance(source, Source) and source.encoded:
                raw: Region = decoded(source, self._folder, self._identity, memory, check)
                self._made.append(raw.path)
                raw = msgspec.structs.replace(raw, transposed=source.transposed)
            else:
                raw = source
            regions.append(_said_of_slices(raw, source))
        self.seconds = time.perf_counter() - begin if self._made else 0.0
        return regions

    def remove(self) -> None:
        """Removes the raw files; safe at any time."""
        for path in self._made:
            with contextlib.suppress(OSError):
                os.unlink(path)
        self._made = []


def _said_of_slices(region: Region, source: Region) -> Region:
    """`region` by the name that ranks give to a slice of `source`, where that is a stack."""
    if not isinstance(source, Source) or not source.stack or source.part is None:
        return region
    return msgspec.structs.replace(region, name=source.part.slice_name(source.name))
