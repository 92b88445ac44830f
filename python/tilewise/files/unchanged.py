"""Notices that somebody writes to an input while it is read: by its time, its size and some of its pages."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterable

from tilewise.files.region import Region

_PAGE = 4096
_SAMPLES = 16  # pages of a file
_FILES = 64  # of a folder of tiles

State = tuple[int, int, int, int]


class Inputs:
    """The files of `regions` as they are now. Costs some 16 small reads a file."""

    def __init__(self, regions: Iterable[Region]) -> None:
        self._files: list[tuple[str, str, State | None]] = []
        for region in regions:
            paths = [tile.path for tile in region.tiles] if region.tiles else [region.path]
            step = -(-len(paths) // _FILES)
            self._files += [(region.name, path, _state(path)) for path in paths[::step] if path]

    def warnings(self) -> list[str]:
        """One for each input that is no longer what it was."""
        changed = dict.fromkeys(name for name, path, before in self._files if _state(path) != before)
        return [
            f"{name} was written to while it was read: the result may be of its old numbers, its new ones or "
            "some of both"
            for name in changed
        ]


def _state(path: str) -> State | None:
    """Inode, size, time, and a checksum of some pages; None where it cannot be looked at."""
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        found = os.fstat(file.fileno())
        with contextlib.suppress(OSError, AttributeError):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        last = max(0, found.st_size - _PAGE)
        pages = (os.pread(file.fileno(), _PAGE, last * i // (_SAMPLES - 1)) for i in range(_SAMPLES))
        digest = 0
        for page in pages:
            digest = zlib.crc32(page, digest)
        return found.st_ino, found.st_size, found.st_mtime_ns, digest
    return None
