"""Asks a folder how fast it takes data past the page cache, by writing a little to a file without a name.

What was found is good for a day; whoever runs the job keeps it, as planning leaves the profile as it is.
"""

from __future__ import annotations

import mmap
import os
import time
from typing import NamedTuple

from tilewise.machine import profile, storage

_PIECE = 8 << 20
_GOOD_FOR = 24 * 3600.0  # seconds
_asked: dict[str, profile.Device] = {}  # by this process


class Probed(NamedTuple):
    """What is to be kept of a folder's device, under `key` of the profile."""

    key: str
    device: profile.Device


def device_of(folder: str, host: str) -> tuple[profile.Device | None, Probed | None]:
    """The device below `folder` as the profile has it, or as it is asked now, and then what is to be kept.

    None where it takes nothing past the page cache.
    """
    key = profile.device_key(host, storage.mount_point(os.path.join(folder, "")))
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
