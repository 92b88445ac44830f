"""What an input looks like: its time, its size and some of its pages.

Looked at again after the job, that tells whether somebody wrote to it meanwhile; looked at on other hosts by
the worker, whether they have the same file.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterable

import msgspec

from tilewise.files.region import Region, Source

PAGES = 16  # of a file: the first, and then evenly from the first number to the last
_PAGE = 4096
_FILES = 64  # of a folder of tiles


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A file at a moment. Numbers lie from `begin` to `end`; `digest` is the CRC-32 of some pages."""

    bytes: int
    modified: int  # nanoseconds since 1970
    inode: int
    begin: int
    end: int
    digest: int


class Watched(msgspec.Struct, frozen=True):
    """One file of `region`, as it was when the job began; None where it could not be looked at."""

    region: Region
    path: str
    begin: int
    end: int
    look: Look | None


class Inputs:
    """The files of `regions` as they are now. Costs some 16 small reads a file."""

    def __init__(self, regions: Iterable[Region]) -> None:
        self.files: list[Watched] = []
        for region in regions:
            pieces = _pieces(region)
            for path, begin, end in pieces[:: -(-len(pieces) // _FILES) or 1]:
                self.files.append(Watched(region, path, begin, end, look(path, begin, end)))

    def warnings(self) -> list[str]:
        """One for each input that is no longer what it was."""
        changed = dict.fromkeys(
            each.region.name for each in self.files if look(each.path, each.begin, each.end) != each.look
        )
        return [
            f"{name} was written to while it was read: the result may mix old and new numbers"
            for name in changed
        ]


def _pieces(region: Region) -> list[tuple[str, int, int]]:
    """Each file of `region`, and where in it the numbers lie; the end may be beyond the file's."""
    from tilewise.files.dtypes import ITEMSIZE

    item = ITEMSIZE[region.dtype]
    if region.tiles:
        return [
            (tile.path, tile.offset, tile.offset + tile.extent(region.order) * item)
            for tile in region.tiles
            if tile.path
        ]
    if not region.path:
        return []
    whole = region.encoding != "binary" or getattr(region, "encoded", False)
    span = region.span if isinstance(region, Source) else region.bytes
    return [(region.path, region.offset, 1 << 62 if whole else region.offset + span)]


def look(path: str, begin: int, end: int) -> Look | None:
    """The file as it is now; None where it cannot be looked at."""
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        with contextlib.suppress(OSError, AttributeError):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        end = min(end, status.st_size)
        begin = min(begin, end)
        last = max(0, end - _PAGE - begin)
        digest = 0
        for place in (0, *(begin + last * i // (PAGES - 2) for i in range(PAGES - 1))):
            digest = zlib.crc32(os.pread(file.fileno(), _PAGE, place), digest)
        return Look(
            bytes=status.st_size,
            modified=status.st_mtime_ns,
            inode=status.st_ino,
            begin=begin,
            end=end,
            digest=digest,
        )
    return None
