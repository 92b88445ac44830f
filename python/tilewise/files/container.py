"""Files that a dataset is added to: a copy replaces them, so that nobody else may change them meanwhile."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from typing import BinaryIO

from tilewise.base.errors import UsageError
from tilewise.base.owner import hidden, part_path
from tilewise.files.target import Target


def version_of(path: str) -> tuple[int, int, int] | None:
    """What changes when a file does: inode, size, time; None where there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


@contextlib.contextmanager
def shared(path: str, name: str) -> Iterator[BinaryIO]:
    """Opens a container that no program holds open for writing, as HDF5's lock tells; else UsageError."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"the output {name} cannot be added: another program has {path} open for writing",
                "wait until it has finished, and run again",
            ) from None
        except OSError:  # a file system without locks
            pass
        yield file


def require_alone(target: Target) -> None:
    """Raises UsageError where another job is adding to the same container: its part lies beside ours."""
    folder, base = os.path.split(target.path)
    for entry in os.listdir(folder):
        found = hidden(entry)
        if found is None or os.path.join(folder, entry) != part_path(target.path, found.owner.identity):
            continue
        owner = found.owner
        if owner.is_dead() or owner.is_me:
            continue
        raise UsageError(
            f"the output {target.name} cannot be added: another job ({owner.text()}) is writing to {base}",
            f"wait until it has finished, or remove {os.path.join(folder, entry)} if it no longer runs",
        )
