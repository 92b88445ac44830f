"""File systems: their kind, what the page cache holds, and how fast a device takes data past it."""

from __future__ import annotations

import errno
import functools
import mmap
import os
import time
from typing import NamedTuple

from tilewise.machine import profile

_SAMPLES = 24
_PSEUDO = ("rootfs",)
_IN_MEMORY = ("tmpfs", "ramfs")
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "9p", "fuse")
_PIECE = 8 << 20
_GOOD_FOR = 24 * 3600.0  # seconds
_asked: dict[str, profile.Device] = {}  # by this process
_OWN = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay", *_IN_MEMORY)


def file_system(path: str, mounts: str = "/proc/self/mountinfo") -> str:
    """The type of the file system that holds `path` (`ext4`, `xfs`, `tmpfs`, `lustre`, …), or `unknown`."""
    return _mounted(path, mounts)[0]


def mount_point(path: str) -> str:
    """Return where the file system that holds `path` is mounted; empty where nobody knows.

    Reads the kernel's list once for each folder.
    """
    return _mount_of(os.path.dirname(path) or ".")


@functools.lru_cache(maxsize=64)
def _mount_of(folder: str) -> str:
    return _mounted(folder, "/proc/self/mountinfo")[2]


def described(path: str, devices: bool = True, mounts: str = "/proc/self/mountinfo") -> str:
    """The file system that holds `path` and what it lies on: `ext4 on /dev/vda1`, `nfs4 on server:/home`.

    One in memory lies on nothing; without `devices`, disks of this machine are left out too.
    """
    kind, device, _ = _mounted(path, mounts)
    local = device.startswith("/") and not kind.startswith(_REMOTE)
    if not device or kind in _IN_MEMORY or device in ("none", kind) or (local and not devices):
        return kind
    return f"{kind} on {device}"


def _mounted(path: str, mounts: str) -> tuple[str, str, str]:
    """Type, device and mount point of what holds `path`: `unknown` and nothing where nobody knows."""
    try:
        with open(mounts, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return "unknown", "", ""
    real = os.path.realpath(path)
    best, kind, device = "", "unknown", ""
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        point = _plain(fields[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best) and right.split()[0] not in _PSEUDO:
            best, (kind, device) = point, (*right.split(), "")[:2]
    return kind, _plain(device), best


def _plain(field: str) -> str:
    """The kernel writes blanks and the like as octal."""
    return field.encode().decode("unicode_escape") if "\\" in field else field


def is_local(path: str) -> bool:
    """Return whether `path` is on a file system of this machine, whose pages others cannot change."""
    return not file_system(path).startswith(_REMOTE)


def is_own(path: str) -> bool:
    """Return whether `path` surely is on a disk or in memory of this machine; unknown ones may be shared."""
    return file_system(path) in _OWN


def takes_direct(path: str) -> bool:
    """Return whether the file `path`, or a new one in folder `path`, can be opened past the page cache."""
    flag = getattr(os, "O_DIRECT", None)
    if flag is None:
        return False
    nameless = getattr(os, "O_TMPFILE", 0) | os.O_RDWR if os.path.isdir(path) else os.O_RDONLY
    try:
        os.close(os.open(path, nameless | flag | os.O_CLOEXEC, 0o600))
    except OSError:
        return False  # then it goes through the cache, as files do
    return True


def cache_state(path: str) -> str:
    """`cached`, `partly`, `cold` or `unknown`: a few pages are asked for with "do not wait for the disk"."""
    flag = getattr(os, "RWF_NOWAIT", None)
    if flag is None:
        return "unknown"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return "unknown"
    try:
        size = os.fstat(descriptor).st_size
        # Not the first page: looking at the header has just brought that in.
        offsets = [size * sample // (_SAMPLES + 1) for sample in range(1, _SAMPLES + 1)]
        there = sum(_is_cached(descriptor, offset, flag) for offset in offsets)
    except OSError:
        return "unknown"  # this file system cannot tell
    finally:
        os.close(descriptor)
    return "cached" if there == _SAMPLES else "partly" if there > _SAMPLES // 10 else "cold"


def _is_cached(descriptor: int, offset: int, flag: int) -> bool:
    try:
        os.preadv(descriptor, [bytearray(1)], offset, flag)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return False
        raise
    return True


class Probed(NamedTuple):
    """Device of a folder, to be kept under `key` of the profile."""

    key: str
    device: profile.Device


def device_of(folder: str, host: str) -> tuple[profile.Device | None, Probed | None]:
    """The device below `folder` as the profile has it, or as it is asked now, and then what is to be kept.

    None where it takes nothing past the page cache.
    """
    key = profile.device_key(host, mount_point(os.path.join(folder, "")))
    kept = profile.load().devices.get(key)
    if _is_good(kept):
        return kept, None
    device = _asked.get(key)  # by another plan, of another variant for example
    if not _is_good(device):
        rate = direct_write_rate(folder)
        if rate is None:
            return None, None
        device = _asked[key] = profile.Device(rate, time.time())
    assert device is not None
    return device, Probed(key, device)


def _is_good(device: profile.Device | None) -> bool:
    return device is not None and 0 <= time.time() - device.when < _GOOD_FOR


def direct_write_rate(folder: str, pieces: int = 2) -> float | None:
    """Bytes a second of writing with O_DIRECT in `folder`; None where that cannot be done.

    Takes some 10 ms on a fast device, and ends after the first piece on a slow one. The file never has a
    name, so nothing is left behind, whatever happens.
    """
    flags = getattr(os, "O_DIRECT", 0), getattr(os, "O_TMPFILE", 0)
    if not all(flags):
        return None
    try:
        descriptor = os.open(folder, os.O_RDWR | flags[0] | flags[1] | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        with mmap.mmap(-1, _PIECE) as buffer:  # lies on a page border, as O_DIRECT wants it
            buffer[:] = b"\1" * _PIECE
            os.posix_fallocate(descriptor, 0, pieces * _PIECE)
            begin = time.perf_counter()
            for piece in range(pieces):
                if os.pwrite(descriptor, buffer, piece * _PIECE) != _PIECE:
                    return None
                seconds = time.perf_counter() - begin
                if seconds > 0.05:
                    return (piece + 1) * _PIECE / seconds
            return pieces * _PIECE / max(seconds, 1e-9)
    except OSError:
        return None
    finally:
        os.close(descriptor)
