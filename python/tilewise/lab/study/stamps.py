"""Stamps beside generated inputs in a folder that others use too: who made a file, and that it is still that.

random-64x64-float64-0.npy          the matrix
.random-64x64-float64-0.npy.made    {"owner": "/home/me/results/quick/…", "state": [size, time]}

A stamp is written twice: before the file is made, without its state, and after. So a file whose making was
cut short by SIGKILL, or that was left by a killed study, is known for what it is.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil

import msgspec

from tilewise.base.staging import replace
from tilewise.base.undecodable import UNDECODABLE


class Stamp(msgspec.Struct, frozen=True):
    """`owner` is the results folder whose study removes the file, empty for none; `state` of `state_of`."""

    owner: str
    state: tuple[int, int] | None = None


def name_of(path: str) -> str:
    """Where the stamp of the file at `path` lies."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.made")


def read(path: str) -> Stamp | None:
    """The stamp of the file at `path`; None where there is none that can be read."""
    try:
        with open(name_of(path), "rb") as file:
            return msgspec.json.decode(file.read(), type=Stamp)
    except (OSError, *UNDECODABLE):
        return None


def write(path: str, owner: str, made: bool) -> None:
    """Stamps the file at `path`, once it is made with its state. Raises OSError."""
    replace(name_of(path), msgspec.json.encode(Stamp(owner, state_of(path) if made else None)))


def state_of(path: str) -> tuple[int, int]:
    """Bytes and time of change in ns of a file, or of all files of a folder; they tell of other contents."""
    if not os.path.isdir(path):
        status = os.stat(path)
        return status.st_size, status.st_mtime_ns
    inside = [os.stat(os.path.join(at, name)) for at, _, names in os.walk(path) for name in names]
    return sum(each.st_size for each in inside), max((each.st_mtime_ns for each in inside), default=0)


def is_untouched(path: str, stamp: Stamp | None) -> bool:
    """Whether the file at `path` is still the one that was stamped."""
    return stamp is not None and stamp.state == state_of(path)


def same(one: str, other: str) -> bool:
    """Whether two files hold the same bytes."""
    return os.path.isfile(one) and os.path.isfile(other) and filecmp.cmp(one, other, shallow=False)


def remove(path: str) -> None:
    """Removes a file or a folder and its stamp, as far as they are there."""
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    with contextlib.suppress(OSError):
        os.unlink(name_of(path))
