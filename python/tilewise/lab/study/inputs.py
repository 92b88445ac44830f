"""The matrices that points need: made once by `tilewise generate` and reused, or files of the user's."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable
from functools import lru_cache

import msgspec

from tilewise.base.errors import RunError, UsageError
from tilewise.base.units import parse_shape
from tilewise.engine.child import Ended, run_words
from tilewise.files.dtypes import parse_dtype
from tilewise.files.formats import format_of, split_input
from tilewise.files.generated import generated, parse_seed
from tilewise.files.target import check_folder
from tilewise.lab.study import stamps, sweeping
from tilewise.lab.study.schema import Input

_TEXT_BYTES = 25  # of a number with all its digits, in a text
FOLDER, TRACES = "work", "traces"  # beside the points
_WHOLE = 256 << 20  # bytes up to which a file's whole content is its identity
_SAMPLE = 1 << 20


class PreparedInput(msgspec.Struct, frozen=True, kw_only=True):
    """An input of a point: `word` stands in the command line; `generate` makes it, empty for a file.

    `bytes` is what it takes on disk, about; `identity` changes with what it holds.
    """

    name: str
    word: str
    identity: str
    bytes: int
    generate: list[str] = []


def resolve(name: str, wanted: Input, fill: Callable[[str], str], study_path: str) -> PreparedInput:
    """The input as one point needs it; `fill` fills holes. UsageError where there is no such file."""
    if wanted.path:
        path = os.path.join(
            os.path.dirname(os.path.abspath(study_path)), os.path.expanduser(fill(wanted.path))
        )
        base, *_ = split_input(path)
        return _file(name, base, path[len(base) :])
    shape, kind, dtype = fill(wanted.shape), fill(wanted.kind), fill(wanted.dtype)
    seed, ending = fill(str(wanted.seed)), fill(wanted.format).lstrip(".")
    return _generated(name, shape, kind, dtype, seed, ending, study_path)


@lru_cache(maxsize=4096)
def _generated(
    name: str, shape: str, kind: str, dtype: str, seed: str, ending: str, study_path: str
) -> PreparedInput:
    """The input that `generate` makes; UsageError for what it would refuse."""
    where = f"{study_path}: inputs.{name}"
    rows, columns = parse_shape(shape, f"{where}.shape")
    if not rows * columns:
        raise UsageError(f"{where}.shape {shape} has no elements to measure")
    word = f"{kind}-{rows}x{columns}-{dtype}-{seed}.{ending}"
    if re.search(r"[/\s]|^[-.]", word):
        raise UsageError(f"{where} cannot be created as a file named {word!r}")
    _check_makeable(kind, dtype, seed, ending, where)
    bits = re.search(r"(\d+)$", dtype)
    each = _TEXT_BYTES if format_of(f"A.{ending}").text else int(bits[1]) // 8 if bits else 8
    words = [
        "generate",
        "-o",
        word,
        "--shape",
        f"{rows}x{columns}",
        "--dtype",
        dtype,
        "--kind",
        kind,
        "--seed",
        seed,
    ]
    return PreparedInput(name=name, word=word, identity=word, bytes=rows * columns * each, generate=words)


def _check_makeable(kind: str, dtype: str, seed: str, ending: str, where: str) -> None:
    """Raises UsageError for what `generate` would refuse."""
    try:
        number = parse_dtype(dtype, "dtype")
        generated(kind, (1, 1), number, parse_seed(seed, "seed"), "")
        known = format_of(f"A.{ending}").numbers
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", error.advice) from None
    if number not in known:
        holds = ", ".join(known) or "nothing that is written"
        raise UsageError(f"{where}: a .{ending} file cannot hold {dtype}; it holds {holds}")


def plain_name(output: str, where: str) -> str:
    """`output` itself; UsageError where it is no name in the work folder, where outputs are removed."""
    if os.sep in output or ":" in output or output.startswith("-"):
        raise UsageError(
            f"{where}: output must be the name of a file in the work folder, such as C.npy, not {output!r}",
            "--work DIR to choose the folder of the matrices",
        )
    return output


_identities: dict[tuple[str, int, int], str] = {}


def _file(name: str, path: str, part: str) -> PreparedInput:
    """The input that is the file or folder at `path`, or a `part` of it: `:/dataset`, `[3]`, or both."""
    try:
        status = os.stat(path)
        count = status.st_size
        if os.path.isdir(path):
            identity = f"folder {status.st_mtime_ns}"
            count = stamps.state_of(path)[0]
        elif not stat.S_ISREG(status.st_mode):
            raise UsageError(f"the input {name!r} at {path} is neither a file nor a folder")
        else:
            key = (path, status.st_size, status.st_mtime_ns)
            identity = _identities.get(key) or _identities.setdefault(key, _content(path, status))
    except OSError as error:
        raise UsageError(f"the input {name!r} cannot be read at {path}: {error.strerror or error}") from None
    return PreparedInput(name=name, word=path + part, identity=identity + part, bytes=count)


def _content(path: str, status: os.stat_result) -> str:
    """What a file holds: all of it up to 256 MiB; of a larger one size, time, beginning, middle and end."""
    made = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        if status.st_size <= _WHOLE:
            while piece := file.read(_SAMPLE):
                made.update(piece)
        else:
            made.update(f"{status.st_size} {status.st_mtime_ns}".encode())
            for offset in (0, status.st_size // 2, status.st_size - _SAMPLE):
                file.seek(offset)
                made.update(file.read(_SAMPLE))
    return made.hexdigest()


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
            stamps.remove(path)
            raise RunError(f"the input {made.name} could not be created: {ended.message()}")

    def _is_there(
        self, path: str, made: PreparedInput, run: Callable[[list[str], str, float | None], Ended]
    ) -> bool:
        """Whether the file at `path` is the input, so that it need not be made."""
        stamp = None if self._alone else stamps.read(path)
        ours = self._alone or (stamp is not None and stamp.owner == self._owner != "")
        if ours and stamp is not None and stamp.state is None:  # killed before it could be stamped
            stamps.remove(path)
            return False
        if self._alone or stamps.is_untouched(path, stamp):
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
            if not stamps.same(os.path.join(self.folder, again), other):
                raise UsageError(
                    f"{path} already exists and is not the matrix that the input {made.name} asks for",
                    "move it away, or use --work with another folder",
                )
        finally:
            for name in (again, old):
                stamps.remove(os.path.join(self.folder, name))

    def _stamp(self, path: str, made: bool) -> None:
        try:
            stamps.write(path, self._owner, made)
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
        sweeping.disown(self.folder)
        if self._keep:
            for path in self._made if not self._alone else ():
                with contextlib.suppress(OSError):  # from now on it is nobody's to remove
                    stamps.write(path, "", made=True)
            return
        for path in self._made:
            stamps.remove(path)
        if self._ours:
            with contextlib.suppress(OSError):
                os.rmdir(self.folder)
                if os.path.basename(os.path.dirname(self.folder)) == FOLDER:  # one of several parts
                    os.rmdir(os.path.dirname(self.folder))
