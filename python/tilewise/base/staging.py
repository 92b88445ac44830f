"""Stages what others must not see half done: a hidden name is changed for the own one at one moment.

    make                  seal                      take_name               settle the claim
    .C.npy.….part         what others must not      the part is C.npy       what is left beside it goes
                          change meanwhile          from here on

What fails before `take_name` leaves what was there as it was. Nothing behind it takes the name back.

Design: docs/design/publication.md.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import resource
from collections.abc import Callable, Iterator, Sequence

import msgspec

from tilewise.base import rights
from tilewise.base.claim import Claim
from tilewise.base.errors import RunError, TilewiseError, VerificationError, disk_failure, one_line
from tilewise.base.owner import new_owner, part_path
from tilewise.base.streams import is_stream, write_stream

ASIDE = ".old"  # behind the name of a new folder: the old one, while both change names in steps
_HEAD_MAX = 1 << 20  # bytes; headers are far shorter
_HELD_MAX = min(256, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)  # descriptors of one process
_AT_FDCWD = -100
_NOREPLACE, _EXCHANGE = 1, 2
_MISSING = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)  # a kernel, or a file system, that cannot do it
_held: set[int] = set()


class Seal:
    """Hold on to a part while ranks write to it: what gets the name must be the file that was made.

    Between its making and its name a part lies in a folder that others may write to as well. Its descriptor
    stays open, so that no other file can have its inode; its header of `head` bytes is known, so that the
    numbers behind it mean what they did. It must end up with `size` bytes, or `at_least` so many, where these
    are given. Raises OSError.
    """

    def __init__(
        self, path: str, name: str, head: int = 0, size: int | None = None, at_least: int = 0
    ) -> None:
        self.path = path
        self._name = name
        self._size, self._at_least = size, at_least
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

    def trouble(self) -> TilewiseError | None:
        """Say why `path` must not get a name: another file, another size, a spoilt header."""
        try:
            status = os.lstat(self.path)
            if (status.st_dev, status.st_ino) != (self._device, self.inode):
                return self._foreign("was replaced by another program")
            if self._size is not None and status.st_size != self._size:
                return self._foreign(f"has {status.st_size} bytes where {self._size} were expected")
            if status.st_size < self._at_least:
                return self._foreign(
                    f"has {status.st_size} bytes where at least {self._at_least} were expected"
                )
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
        """Let go; safe to call twice."""
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


class Staged(msgspec.Struct, kw_only=True):
    """A file or a folder called `part` for now; `seals` hold on to what was made.

    The claim says what it will be called, and what goes if it never is, for whoever clears up after a death.
    """

    part: str
    claim: Claim
    seals: list[Seal] = []

    @classmethod
    def beside(cls, path: str, identity: str, name: str = "", more: Sequence[str] = ()) -> Staged:
        """A file for `path`, which the user calls `name`, and files whose hidden names end in `more`.

        Nothing is made yet. `identity` is that of the job, or of the process.
        """
        part = part_path(path, identity)
        made = [part, *(part + ending for ending in more)]
        return Staged(part=part, claim=Claim(path, name, undo=made, beside=made))

    def make(self, mode: int = 0o666) -> int:
        """Make the hidden file, which must not be there yet; its descriptor. Raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.part, flags, mode)
        self.claim.inode = os.fstat(descriptor).st_ino
        return descriptor

    def seal(self, *seals: Seal) -> None:
        """Hold on to the part, by the first of the seals, and to what belongs to it; to nothing else."""
        self.release()
        self.seals = list(seals)
        self.claim.inode = seals[0].inode

    def take_name(self, new: bool = False) -> None:
        """Give a file its name, and what the old one has. Raises OSError.

        FileExistsError for a `new` one where there is something.
        """
        if new:
            name_new_file(self.part, self.claim.path)
        else:
            rights.hand_on(self.claim.path, self.part, self.claim.inode)
            os.replace(self.part, self.claim.path)

    def release(self) -> None:
        """Let go of the files that were held; safe to call twice."""
        for seal in self.seals:
            seal.close()

    def discard(self) -> list[str]:
        """Remove what has no name and needs none; the paths of what could not be removed."""
        self.release()
        return self.claim.settle()

    @contextlib.contextmanager
    def or_none(self) -> Iterator[None]:
        """Around its making: whatever is raised there, nothing is left behind."""
        with contextlib.ExitStack() as undo:
            undo.callback(self.discard)
            yield
            undo.pop_all()


def name_folder(staged: Staged, new: bool, force: bool, old: Callable[[], list[str]]) -> None:
    """Give a folder its name, at once and completely: over nothing, or in exchange with what has the name.

    `old` lists the files of that, and raises UsageError where it may not go. Raises OSError too;
    FileExistsError for a `new` one where somebody made something in the meantime, unless `force`.
    """
    path = staged.claim.path
    if new or not os.path.lexists(path):
        try:
            name_new(staged.part, path)
            return
        except FileExistsError:
            if not force:
                raise
    expect_old(staged, old())
    entries = sorted(os.listdir(path))
    for entry in os.listdir(staged.part):
        like = entry if entry in entries else entries[0]
        rights.hand_on(os.path.join(path, like), os.path.join(staged.part, entry))
    rights.hand_on(path, staged.part, staged.claim.inode)
    exchange(staged.part, path)


def expect_old(staged: Staged, entries: Sequence[str]) -> None:
    """Claim the old folder, with these `entries`: it will lie where the new one was made, or aside."""
    folders = (staged.part, staged.part + ASIDE)
    staged.claim.beside = [path for folder in folders for path in within(folder, entries)]


def within(folder: str, entries: Sequence[str]) -> list[str]:
    """The paths of what lies in a folder, and then its own."""
    return [*(os.path.join(folder, entry) for entry in entries), folder]


@contextlib.contextmanager
def naming(name: str, force: bool = False) -> Iterator[None]:
    """Around the step that gives `name`: its failures become RunErrors."""
    try:
        yield
    except FileExistsError:
        raise RunError(
            f"another program created {name} during the run; it was left as it is",
            "run again" if force else "another name, or --force to replace it",
        ) from None
    except OSError as error:
        raise disk_failure(f"{name} cannot be published, and its part file was removed", error) from None


def replace(path: str | os.PathLike[str], data: bytes) -> None:
    """Give the file at `path` new content: whoever reads it finds the old one or the new one, never a part.

    A stream gets it as it is. Raises OSError, and leaves nothing then.
    """
    if is_stream(os.fspath(path)):
        write_stream(os.fspath(path), data)
        return
    staged = Staged.beside(os.path.realpath(path), new_owner().identity)
    with staged.or_none():
        with os.fdopen(staged.make(), "wb") as file:
            file.write(data)
        staged.take_name()


def replace_or_fail(path: str, data: bytes, said: str = "") -> None:
    """Replace the file at `path`, or raise a RunError that calls it `said`, or by its path."""
    try:
        replace(path, data)
    except OSError as error:
        raise RunError(f"{said or path} cannot be written: {error.strerror or error}") from None


def sync_path(path: str) -> None:
    """Make what a file or a folder holds durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def synced(folder: str, name: str) -> list[str]:
    """Make the names in `folder` durable; a warning where that fails."""
    try:
        sync_path(folder)
    except OSError as error:
        return [f"{name} is complete, but its name may be lost in a crash: {one_line(error)}"]
    return []


def name_new(part: str, path: str) -> None:
    """Rename the folder `part` to `path`; FileExistsError where somebody made something there meanwhile."""
    if _renamed(part, path, _NOREPLACE):
        return
    if os.path.lexists(path):  # plain renaming goes over an empty folder
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    os.rename(part, path)


def name_new_file(part: str, path: str) -> None:
    """Rename `part` to `path`, but never over what somebody made there in the meantime: FileExistsError."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: look, then rename
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.replace(part, path)
    else:
        with contextlib.suppress(OSError):  # it has its name; who tidies up tries again, and says so
            os.unlink(part)


def exchange(part: str, path: str) -> str:
    """Let the folders `part` and `path` change names; returns where what was at `path` is now.

    At once where the kernel and the file system have that. Else by three renamings: for a moment there is no
    `path`, and where the second one fails, the first is taken back. Where the third one fails `path` is new
    all the same, and the old one stays aside.
    """
    if _renamed(part, path, _EXCHANGE):
        return part
    aside = part + ASIDE
    os.rename(path, aside)
    try:
        os.rename(part, path)
    except BaseException:
        os.rename(aside, path)
        raise
    try:
        os.rename(aside, part)
    except OSError:
        return aside
    return part


def _renamed(old: str, new: str, how: int) -> bool:
    """True where renameat2 did it; False where there is none that can, OSError where it failed."""
    call = _renameat2()
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), how) == 0:
        return True
    number = ctypes.get_errno()
    if number in _MISSING:
        return False
    raise OSError(number, os.strerror(number), new)


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    """The C library's, where it has one."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    call.restype = ctypes.c_int
    function: Callable[..., int] = call
    return function
