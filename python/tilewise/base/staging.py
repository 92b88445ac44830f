"""What others must never see half done: made under a hidden name, which it changes for its own at one moment.

    make                  seal                      take_name               settle the claim
    .C.npy.….part         what others must not      the part is C.npy       what is left beside it goes
                          change meanwhile          from here on

What fails before `take_name` leaves what was there as it was. Nothing behind it takes the name back.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

import msgspec

from tilewise.base import renaming, rights
from tilewise.base.claim import Claim
from tilewise.base.errors import RunError, disk_failure, one_line
from tilewise.base.owner import new_owner, part_path
from tilewise.base.seal import Seal
from tilewise.base.streams import is_stream, write_stream


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
        return cls(part=part, claim=Claim(path, name, undo=made, beside=made))

    def make(self, mode: int = 0o666) -> int:
        """Makes the hidden file, which must not be there yet; its descriptor. Raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.part, flags, mode)
        self.claim.inode = os.fstat(descriptor).st_ino
        return descriptor

    def take_name(self, new: bool = False) -> None:
        """Gives a file its name, and what the old one has. Raises OSError.

        FileExistsError for a `new` one where there is something.
        """
        if new:
            renaming.name_new_file(self.part, self.claim.path)
        else:
            rights.hand_on(self.claim.path, self.part, self.claim.inode)
            os.replace(self.part, self.claim.path)

    def release(self) -> None:
        """Lets go of the files that were held; safe to call twice."""
        for seal in self.seals:
            seal.close()

    def discard(self) -> list[str]:
        """Removes what has no name and needs none; returns the paths of what could not be removed."""
        self.release()
        return self.claim.settle()

    @contextlib.contextmanager
    def or_none(self) -> Iterator[None]:
        """Around its making: whatever is raised there, nothing is left behind."""
        try:
            yield
        except BaseException:
            self.discard()
            raise


def name_folder(staged: Staged, new: bool, force: bool, old: Callable[[], None]) -> None:
    """Gives a folder its name, at once and completely: over nothing, or in exchange with what has the name.

    `old` looks at that before, and raises UsageError where it may not go. Raises OSError too;
    FileExistsError for a `new` one where somebody made something in the meantime, unless `force`.
    """
    path = staged.claim.path
    if new or not os.path.lexists(path):
        try:
            renaming.name_new(staged.part, path)
            return
        except FileExistsError:
            if not force:
                raise
    old()
    entries = sorted(os.listdir(path))
    for entry in os.listdir(staged.part):
        like = entry if entry in entries else entries[0]
        rights.hand_on(os.path.join(path, like), os.path.join(staged.part, entry))
    rights.hand_on(path, staged.part, staged.claim.inode)
    renaming.exchange(staged.part, path)


def expect_old(staged: Staged, entries: Sequence[str]) -> None:
    """Behind the exchange the old folder, with these `entries`, lies where the new one was made, or aside."""
    folders = (staged.part, staged.part + renaming.ASIDE)
    staged.claim.beside = [path for folder in folders for path in within(folder, entries)]


def within(folder: str, entries: Sequence[str]) -> list[str]:
    """The paths of what lies in a folder, and then its own."""
    return [*(os.path.join(folder, entry) for entry in entries), folder]


@contextlib.contextmanager
def naming(name: str, force: bool = False) -> Iterator[None]:
    """Around the step that gives `name`: its failures in words."""
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
    """Gives the file at `path` new content: whoever reads it finds the old one or the new one, never a part.

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
    """The same, with a RunError that has the file in words: `said`, or its path."""
    try:
        replace(path, data)
    except OSError as error:
        raise RunError(f"{said or path} cannot be written: {error.strerror or error}") from None


def sync_path(path: str) -> None:
    """Makes what a file or a folder holds durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def synced(folder: str, name: str) -> list[str]:
    """Makes the names in `folder` durable; a warning where that fails."""
    try:
        sync_path(folder)
    except OSError as error:
        return [f"{name} is complete, but its name may be lost in a crash: {one_line(error)}"]
    return []
