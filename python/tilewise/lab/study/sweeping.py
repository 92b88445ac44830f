"""Removes the work folders of parts that were killed, when the next part or run of a study begins.

work/a/.owner      the path of points.a.jsonl, which its part holds locked for as long as it lives
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil

from tilewise.base import safely

OWNER = ".owner"
_LONGEST = 4096  # bytes of a path


def own(folder: str, points: str) -> None:
    """Says in `folder` whose it is: of the part that writes to `points`. Raises OSError."""
    with open(os.path.join(folder, OWNER), "w", encoding="utf-8") as file:
        file.write(os.path.abspath(points))


def disown(folder: str) -> None:
    """`folder` is swept no more, whatever it holds."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(folder, OWNER))


def sweep(folder: str) -> None:
    """Removes folders in `folder` whose owners are dead: nobody holds their points locked.

    One is renamed under the lock of its points, so that it is nobody else's when it is removed. What cannot
    be locked or removed stays.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                gone = path if name.startswith(".swept-") else _taken(path)
                if gone:
                    shutil.rmtree(gone, ignore_errors=True)


def _taken(path: str) -> str:
    """The new name of `path` where its owner is dead; empty where it lives, or there is none."""
    if os.path.islink(path):
        return ""
    try:
        with os.fdopen(safely.open_file(os.path.join(path, OWNER)), encoding="utf-8") as file:
            points = os.open(file.read(_LONGEST), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return ""
    try:
        fcntl.flock(points, fcntl.LOCK_SH | fcntl.LOCK_NB)
        above, name = os.path.split(path)
        gone = os.path.join(above, f".swept-{name}-{os.getpid():x}")
        os.rename(path, gone)
        return gone
    except OSError:  # it lives, or the file system has no locks to tell
        return ""
    finally:
        os.close(points)
