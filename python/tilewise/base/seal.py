"""Holds on to a part file while ranks write to it: what gets the name must be the file that was made.

Between its making and its name a part lies in a folder that others may write to as well. Its descriptor stays
open, so that no other file can have its inode; its header is known, so that the numbers behind it mean what
they did.
"""

from __future__ import annotations

import contextlib
import os
import resource

from tilewise.base.errors import RunError, TilewiseError, VerificationError, disk_failure

_HEAD_MAX = 1 << 20  # bytes; headers are far shorter
_HELD_MAX = min(256, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)  # descriptors of one process
_held: set[int] = set()


class Seal:
    """The file or folder at `path` as it is now, with a header of `head` bytes. Raises OSError."""

    def __init__(self, path: str, name: str, head: int = 0) -> None:
        self.path = path
        self._name = name
        self._head_bytes = min(head, _HEAD_MAX)
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            status = os.fstat(self._file)
            self.inode = status.st_ino
            self._device = status.st_dev
            self._head = os.pread(self._file, self._head_bytes, 0) if self._head_bytes else b""
        except BaseException:
            os.close(self._file)
            raise
        if len(_held) < _HELD_MAX:
            _held.add(self._file)
        else:
            os.close(self._file)
            self._file = -1

    def trouble(self, size: int | None = None, at_least: int = 0) -> TilewiseError | None:
        """Why `path` must not get a name: another file, another size than `size`, a spoilt header."""
        try:
            status = os.lstat(self.path)
            if (status.st_dev, status.st_ino) != (self._device, self.inode):
                return self._foreign("was replaced by another program")
            if size is not None and status.st_size != size:
                return self._foreign(f"has {status.st_size} bytes where {size} were expected")
            if status.st_size < at_least:
                return self._foreign(f"has {status.st_size} bytes where at least {at_least} were expected")
            if self._head_bytes and self._read() != self._head:
                return VerificationError(
                    f"the header of {self._name} changed while it was written; the output was discarded",
                    "run again, and check what else writes to that folder",
                )
        except FileNotFoundError:
            return self._foreign("was removed by another program")
        except OSError as error:
            return disk_failure(f"the part file of {self._name} cannot be inspected", error)
        return None

    def close(self) -> None:
        """Lets go; safe to call twice."""
        if self._file >= 0:
            _held.discard(self._file)
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = -1

    def _read(self) -> bytes:
        if self._file >= 0:
            return os.pread(self._file, self._head_bytes, 0)
        with open(self.path, "rb", buffering=0) as file:
            return file.read(self._head_bytes) or b""

    def _foreign(self, what: str) -> RunError:
        return RunError(
            f"the part file of {self._name}, {self.path}, {what} while this ran",
            "run again when nothing else changes that folder",
        )
