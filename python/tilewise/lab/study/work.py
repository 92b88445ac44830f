"""The folder that points run in: inputs made once and known by stamps, outputs removed, dead folders swept.

random-64x64-float64-0.npy          a generated matrix, in a folder that others use too
.random-64x64-float64-0.npy.made    {"owner": "/home/me/results/quick/…", "state": [size, time]}
work/a/.owner                       the path of points.a.jsonl, which its part holds locked while it lives

A stamp is written twice: before the file is made, without its state, and after. So a file whose making was
cut short by SIGKILL, or that was left by a killed study, is known for what it is.
"""

from __future__ import annotations

import contextlib
import fcntl
import filecmp
import os
import shutil
from collections.abc import Callable

import msgspec

from tilewise.base import safely
from tilewise.base.errors import RunError, UsageError
from tilewise.base.staging import replace
from tilewise.base.undecodable import UNDECODABLE
from tilewise.engine.child import Ended, run_words
from tilewise.files.formats import format_of
from tilewise.files.target import check_folder
from tilewise.lab.study.inputs import PreparedInput, state_of

FOLDER, TRACES = "work", "traces"  # beside the points


class Work:
    """The folder in which points run; what it made is removed at the end, unless it is to be kept.

    `ours`: the folder itself goes too where it is empty. `alone`: nobody else lays files there, so that
    an input that is there already is what a run before left when it was killed, and goes as well. Where
    others do, stamps tell what the study of `owner`, a results folder, has made; all else is compared with
    what would be made, and stays.
    """

    def __init__(
        self, folder: str, keep: bool, ours: bool = True, alone: bool | None = None, owner: str = ""
    ) -> None:
        self._owner = os.path.abspath(owner) if owner else ""
        self._known: set[str] = set()
        self.folder = os.path.abspath(folder)
        self._keep = keep
        self._ours = ours
        self._alone = ours if alone is None else alone
        self._made: set[str] = set()
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise UsageError(f"no folder can be created at {folder}: {error.strerror or error}") from None
        check_folder(self.folder, "matrices of the points")

    def prepare(
        self, made: PreparedInput, run: Callable[[list[str], str, float | None], Ended] = run_words
    ) -> None:
        """Makes an input unless it is there already, complete; raises RunError when that fails.

        UsageError where a file that is not this study's is there under its name, and holds something else.
        """
        if not made.generate:
            return
        path = os.path.join(self.folder, made.word)
        if os.path.exists(path) and (path in self._known or self._is_there(path, made, run)):
            self._known.add(path)
            return
        if not self._alone:
            self._stamp(path, made=False)
        ended = run([*made.generate, "-q"], self.folder, None)
        if not ended.exit_code:
            self._made.add(path)
            self._known.add(path)
            if not self._alone:
                self._stamp(path, made=True)
        elif not os.path.exists(path):  # another process may have been faster
            remove(path)
            raise RunError(f"the input {made.name} could not be created: {ended.message()}")

    def _is_there(
        self, path: str, made: PreparedInput, run: Callable[[list[str], str, float | None], Ended]
    ) -> bool:
        """Tell whether the file at `path` is the input, so that it need not be made."""
        stamp = None if self._alone else read_stamp(path)
        ours = self._alone or (stamp is not None and stamp.owner == self._owner != "")
        if ours and stamp is not None and stamp.state is None:  # killed before it could be stamped
            remove(path)
            return False
        if self._alone or is_untouched(path, stamp):
            if ours:
                self._made.add(path)
            return True
        self._compare(path, made, run)
        return True

    def _compare(
        self, path: str, made: PreparedInput, run: Callable[[list[str], str, float | None], Ended]
    ) -> None:
        """Makes the input once more under another name; UsageError where `path` holds something else."""
        stem, ending = os.path.splitext(made.word)
        converted = not format_of(made.word).reproducible
        again = f"check-{stem}{'.npy' if converted else ending}"
        old = f"check-old-{stem}.npy"
        words = [again if word == made.word else word for word in made.generate]
        jobs = [[*words, "--force", "-q"]]
        if converted:
            jobs.append(["convert", made.word, "-o", old, "--force", "-q"])
        try:
            for each in jobs:
                ended = run(each, self.folder, None)
                if ended.exit_code and each[0] == "generate":
                    raise RunError(f"the input {made.name} could not be checked: {ended.message()}")
            other = os.path.join(self.folder, old) if converted else path
            if not same_bytes(os.path.join(self.folder, again), other):
                raise UsageError(
                    f"{path} already exists and is not the matrix that the input {made.name} asks for",
                    "move it away, or use --work with another folder",
                )
        finally:
            for name in (again, old):
                remove(os.path.join(self.folder, name))

    def _stamp(self, path: str, made: bool) -> None:
        try:
            write_stamp(path, self._owner, made)
        except OSError as error:
            raise RunError(f"{self.folder} cannot be written: {error.strerror or error}") from None

    def again(self) -> None:
        """Makes the folder once more where somebody has removed it; RunError where that fails."""
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise RunError(f"no folder can be created at {self.folder}: {error.strerror or error}") from None

    def keep_trace(self, name: str, results: str) -> str:
        """Moves a timeline to the results; returns its path from there. RunError where there is none."""
        goal = os.path.join(TRACES, name)
        try:
            os.makedirs(os.path.join(results, TRACES), exist_ok=True)
            shutil.move(os.path.join(self.folder, name), os.path.join(results, goal))
        except OSError as error:
            raise RunError(f"the timeline {name} cannot be kept: {error.strerror or error}") from None
        return goal

    def discard(self, output: str) -> None:
        """Removes a point's output, file or folder, and what stands beside it under its name."""
        if not output or not os.path.isdir(self.folder):
            return
        stem = os.path.splitext(output)[0]
        for name in os.listdir(self.folder):
            if name == output or name.startswith(stem):
                path = os.path.join(self.folder, name)
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    with contextlib.suppress(OSError):
                        os.unlink(path)

    def close(self) -> None:
        """Removes the inputs that were made, and the folder where it is empty and ours."""
        disown(self.folder)
        if self._keep:
            for path in self._made if not self._alone else ():
                with contextlib.suppress(OSError):  # from now on it is nobody's to remove
                    write_stamp(path, "", made=True)
            return
        for path in self._made:
            remove(path)
        if self._ours:
            with contextlib.suppress(OSError):
                os.rmdir(self.folder)
                if os.path.basename(os.path.dirname(self.folder)) == FOLDER:  # one of several parts
                    os.rmdir(os.path.dirname(self.folder))


class Stamp(msgspec.Struct, frozen=True):
    """`owner` is the results folder whose study removes the file, empty for none; `state` of `state_of`."""

    owner: str
    state: tuple[int, int] | None = None


def stamp_path(path: str) -> str:
    """Where the stamp of the file at `path` lies."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.made")


def read_stamp(path: str) -> Stamp | None:
    """The stamp of the file at `path`; None where there is none that can be read."""
    try:
        with open(stamp_path(path), "rb") as file:
            return msgspec.json.decode(file.read(), type=Stamp)
    except (OSError, *UNDECODABLE):
        return None


def write_stamp(path: str, owner: str, made: bool) -> None:
    """Stamps the file at `path`, once it is made with its state. Raises OSError."""
    replace(stamp_path(path), msgspec.json.encode(Stamp(owner, state_of(path) if made else None)))


def is_untouched(path: str, stamp: Stamp | None) -> bool:
    """Tell whether the file at `path` is still the one that was stamped."""
    return stamp is not None and stamp.state == state_of(path)


def same_bytes(one: str, other: str) -> bool:
    """Tell whether two files hold the same bytes."""
    return os.path.isfile(one) and os.path.isfile(other) and filecmp.cmp(one, other, shallow=False)


def remove(path: str) -> None:
    """Removes a file or a folder and its stamp, as far as they are there."""
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    with contextlib.suppress(OSError):
        os.unlink(stamp_path(path))


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
