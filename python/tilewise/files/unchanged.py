"""Looks at an input: its times, its size and some of its pages.

Looked at again after the job, or before one that goes on, that tells whether somebody wrote to it meanwhile;
looked at on other hosts by the worker, whether they have the same file. Every file of an input is looked at;
of many, the pages of some.

A program can set the time of the last change of a file's numbers (`cp -p`, `rsync -t`), but not that of its
inode (ctime), which each writing and each setting of times changes. A copy on another host has another one:
the worker does not ask for it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import zlib
from collections.abc import Iterable

import msgspec

from tilewise.files.formats import format_module
from tilewise.files.region import Region, Source

PAGES = 16  # of a file: the first, and then evenly from the first number to the last
_PAGE = 4096
_FILES = 64  # of an input, whose pages are looked at


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A file at a moment. Numbers lie from `begin` to `end`; `digest` is the CRC-32 of so many `pages`."""

    bytes: int
    modified: int  # nanoseconds since 1970
    changed: int  # the inode, on which no program sets the time
    inode: int
    pages: int
    begin: int
    end: int
    digest: int

    @property
    def numbers(self) -> tuple[int, int, int]:
        """The facts that tell of its numbers, as far as nobody has put it back."""
        return self.bytes, self.modified, self.digest


class Watched(msgspec.Struct, frozen=True):
    """A file of `region`, as it was when the job began; None where it could not be looked at."""

    region: Region
    path: str
    begin: int
    end: int
    look: Look | None


class Inputs:
    """The files of `regions` as they are now. Costs some 16 small reads a file, of up to 64 files each."""

    def __init__(self, regions: Iterable[Region]) -> None:
        self.files: list[Watched] = []
        for region in regions:
            pieces = _pieces(region)
            step = -(-len(pieces) // _FILES) or 1
            for index, (path, begin, end) in enumerate(pieces):
                found = look(path, begin, end, PAGES if index % step == 0 else 0)
                self.files.append(Watched(region, path, begin, end, found))

    def warnings(self) -> list[str]:
        """Warn of each input that is no longer what it was."""
        changed: dict[str, bool] = {}
        for each in self.files:
            now = look(each.path, each.begin, each.end, each.look.pages if each.look is not None else PAGES)
            if now != each.look:
                name = each.region.name
                changed[name] = changed.get(name, True) and is_touched(now, each.look)
        return [
            f"{name} was {'touched, and perhaps ' if touched else ''}written to while it was read: "
            "the result may mix old and new numbers"
            for name, touched in changed.items()
        ]


def is_touched(now: Look | None, then: Look | None) -> bool:
    """True where of two that differ only the inodes do: numbers may be others, or nothing but the mode is."""
    return now is not None and then is not None and now.numbers == then.numbers


def _pieces(region: Region) -> list[tuple[str, int, int]]:
    """Each file of `region`, and where in it the numbers lie; the end may be beyond the file's."""
    from tilewise.files.dtypes import ITEMSIZE

    item = ITEMSIZE[region.dtype]
    if any(tile.path for tile in region.tiles):
        return [
            (tile.path, tile.offset, tile.offset + tile.extent(region.order) * item)
            for tile in region.tiles
            if tile.path
        ]
    if not region.path:
        return []
    if os.path.isdir(region.path):
        walk = sorted((folder, name) for folder, _, names in os.walk(region.path) for name in names)
        return [(os.path.join(*each), 0, 1 << 62) for each in walk]
    whole = region.encoding != "binary" or bool(region.tiles) or getattr(region, "encoded", False)
    span = region.uncut.span if isinstance(region, Source) else region.uncut.bytes
    others: list[str] = []
    if isinstance(region, Source) and region.encoded:
        module = format_module(region.path)
        others = module.others(region) if hasattr(module, "others") else []
    return [
        (region.path, region.offset, 1 << 62 if whole else region.offset + span),
        *((path, 0, 1 << 62) for path in others),
    ]


def look(path: str, begin: int, end: int, pages: int = PAGES) -> Look | None:
    """The file as it is now; None where it cannot be looked at."""
    with contextlib.suppress(OSError):
        if pages == 0:
            return _look(os.stat(path), begin, end, 0, 0)
        with open(path, "rb", buffering=0, opener=_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return None
            with contextlib.suppress(OSError, AttributeError):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            end = min(end, status.st_size)
            begin = min(begin, end)
            last = max(0, end - _PAGE - begin)
            digest = 0
            for place in (0, *(begin + last * i // (pages - 2) for i in range(pages - 1))):
                digest = zlib.crc32(os.pread(file.fileno(), _PAGE, place), digest)
            return _look(status, begin, end, pages, digest)
    return None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # for the other end of a pipe


def _look(status: os.stat_result, begin: int, end: int, pages: int, digest: int) -> Look:
    return Look(
        bytes=status.st_size,
        modified=status.st_mtime_ns,
        changed=status.st_ctime_ns,
        inode=status.st_ino,
        pages=pages,
        begin=min(begin, status.st_size),
        end=min(end, status.st_size),
        digest=digest,
    )
