"""Needs of disks: what outputs take at least, what file systems have left, the refusal with both numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec

from tilewise.base.errors import RunError
from tilewise.base.units import bytes_text, listing

OUTPUT_ELSEWHERE = "-o on another disk, or free space there"
DECODE_ELSEWHERE = "TMPDIR=FOLDER on another disk, or free space there"


class Want(msgspec.Struct, frozen=True):
    """`bytes` that `name` needs in `folder`; `grows`: how many more is known when it is written."""

    folder: str
    bytes: int
    name: str
    grows: bool = False


class DiskNeed(msgspec.Struct, frozen=True):
    """The need of all that is wanted of one file system; `free` is None where it does not say.

    `advice`: what to do where it has too little.
    """

    folder: str
    needed: int
    free: int | None
    names: list[str]
    grows: bool = False
    advice: str = OUTPUT_ELSEWHERE

    def text(self) -> str:
        """Describe the need, and what is left."""
        said = f"{'at least ' if self.grows else ''}{bytes_text(self.needed)} in {self.folder}"
        return said if self.free is None else f"{said}, of {bytes_text(self.free)} left"

    def require(self) -> None:
        """Raises RunError where there is less than is needed."""
        if self.free is not None and self.needed > self.free:
            raise RunError(
                f"the disk is too full for {listing(self.names)}: it needs {bytes_text(self.needed)}, "
                f"{self.folder} has {bytes_text(self.free)} left",
                self.advice,
            )


def disk_needs(wants: Iterable[Want], advice: str = OUTPUT_ELSEWHERE) -> list[DiskNeed]:
    """Add up what is wanted of each file system, with that `advice`."""
    of_device: dict[int, DiskNeed] = {}
    for want in wants:
        device = os.stat(want.folder).st_dev
        before = of_device.get(device, DiskNeed(want.folder, 0, _free(want.folder), [], advice=advice))
        of_device[device] = msgspec.structs.replace(
            before,
            needed=before.needed + want.bytes,
            names=[*before.names, want.name],
            grows=before.grows or want.grows,
        )
    return list(of_device.values())


def require_free(folder: str, size: int, name: str) -> None:
    """Raises RunError unless the file system of `folder` has `size` bytes left for `name`."""
    DiskNeed(folder, size, _free(folder), [name]).require()


def _free(folder: str) -> int | None:
    """A file system without blocks, such as /proc, does not say what it has room for."""
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize if room.f_blocks else None
