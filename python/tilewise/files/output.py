"""Outputs: checked before anything runs, written into a part file, given their name only at the very end."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

import msgspec

from tilewise.errors import RunError, UsageError
from tilewise.files import format_module
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.files.regular import require_utf8
from tilewise.units import bytes_text

_NAME_MAX = 255  # bytes of one name on every common file system


class Target(msgspec.Struct, frozen=True):
    """A place that was found fit to be written: `path` with links followed, `name` as the user wrote it.

    `mode` is the permission of the file that will be replaced, or None for a new one.
    """

    path: str
    name: str
    mode: int | None


class Output(msgspec.Struct):
    """A part file beside its future name: header written, full size, waiting for its numbers."""

    target: Target
    region: Region

    def commit(self, sync: bool = False) -> None:
        """Gives the part file its name, at once and completely; `sync` also makes the name durable.

        Raises RunError when that fails; the old file, if there was one, is still there then.
        """
        try:
            os.replace(self.region.path, self.target.path)
            if sync:
                _sync_folder(os.path.dirname(self.target.path))
        except OSError as error:
            raise RunError(
                f"the finished part file {self.region.path} cannot get the name {self.target.name}: "
                f"{error.strerror}"
            ) from None

    def discard(self) -> str:
        """Removes the part file; returns its path when that is not possible, else an empty string."""
        try:
            os.unlink(self.region.path)
        except FileNotFoundError:
            pass
        except OSError:
            return self.region.path
        return ""


def check_target(name: str, force: bool) -> Target:
    """The place called `name`, if an output may be written there, else UsageError; changes nothing."""
    if not name:
        raise UsageError("the output has an empty name, but a path was expected")
    require_utf8(name)
    format_module(name)
    path = os.path.realpath(name)
    folder = os.path.dirname(path)
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    except OSError as error:
        raise UsageError(f"the output {name} cannot be looked at: {error.strerror}") from None
    check_folder(folder, f"the output {name}")
    if old is None:
        return Target(path, name, None)
    if stat.S_ISDIR(old.st_mode):
        raise UsageError(f"the output {name} is a folder, but a file name was expected")
    if not stat.S_ISREG(old.st_mode):
        raise UsageError(f"the output {name} exists and is no regular file")
    if not force:
        raise UsageError(f"the output {name} exists already", "--force replaces it")
    return Target(path, name, stat.S_IMODE(old.st_mode))


def check_folder(folder: str, what: str) -> None:
    """Raises UsageError unless new files can be made in `folder`; `what` begins the sentence."""
    if not os.path.isdir(folder):
        kind = "is no folder" if os.path.lexists(folder) else "does not exist"
        raise UsageError(f"{what} cannot be written: {folder} {kind}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{what} cannot be written: no permission to make files in {folder}")


def create(target: Target, shape: tuple[int, int], dtype: str, order: str, identity: str) -> Output:
    """Makes the part file for a `shape` matrix of `dtype` beside `target`, named with the job's `identity`.

    Raises RunError when the disk has too little room, with both numbers, or when the file cannot be made;
    nothing is left behind then.
    """
    head: bytes = format_module(target.path).header(shape, dtype, order)
    size = len(head) + shape[0] * shape[1] * ITEMSIZE[dtype]
    folder = os.path.dirname(target.path)
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    if size > free:
        raise RunError(
            f"the disk is too full for {target.name}: it needs {bytes_text(size)}, "
            f"{folder} has {bytes_text(free)} left"
        )
    part = _part_path(target.path, identity)
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise _cannot_make(error, target, folder) from None
    try:
        if target.mode is not None:
            os.fchmod(descriptor, target.mode)
        os.write(descriptor, head)
        os.ftruncate(descriptor, size)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise RunError(
            f"{target.name} cannot be given its size of {bytes_text(size)}: {error.strerror}"
        ) from None
    finally:
        os.close(descriptor)
    region = Region(
        path=part,
        name=target.name,
        offset=len(head),
        rows=shape[0],
        columns=shape[1],
        dtype=dtype,
        order=order,
        file_bytes=size,
    )
    return Output(target, region)


def _sync_folder(path: str) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _cannot_make(error: OSError, target: Target, folder: str) -> UsageError | RunError:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT):
        return UsageError(f"the output {target.name} cannot be written: {error.strerror} in {folder}")
    return RunError(f"no file can be made in {folder} for {target.name}: {error.strerror}")


def _part_path(path: str, identity: str) -> str:
    folder, base = os.path.split(path)
    tail = f".{identity}.part"
    room = _NAME_MAX - len(tail.encode()) - 1
    short = base.encode()[:room].decode(errors="ignore")
    return os.path.join(folder, f".{short}{tail}")
