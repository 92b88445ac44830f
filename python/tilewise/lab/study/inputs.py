"""The matrices that points need: made once by `tilewise generate` and reused, or files of the user's."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable
from functools import lru_cache

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import parse_shape
from tilewise.files.dtypes import parse_dtype
from tilewise.files.formats import format_of, split_input
from tilewise.files.generated import generated, parse_seed
from tilewise.lab.study.schema import Input

_TEXT_BYTES = 25  # of a number with all its digits, in a text
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
    made = f"generate -o {word} --shape {rows}x{columns} --dtype {dtype} --kind {kind} --seed {seed}".split()
    return PreparedInput(name=name, word=word, identity=word, bytes=rows * columns * each, generate=made)


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
            count = state_of(path)[0]
        elif not stat.S_ISREG(status.st_mode):
            raise UsageError(f"the input {name!r} at {path} is neither a file nor a folder")
        else:
            key = (path, status.st_size, status.st_mtime_ns)
            identity = _identities.get(key) or _identities.setdefault(key, _content(path, status))
    except OSError as error:
        raise UsageError(f"the input {name!r} cannot be read at {path}: {error.strerror or error}") from None
    return PreparedInput(name=name, word=path + part, identity=identity + part, bytes=count)


def _content(path: str, status: os.stat_result) -> str:
    """Digest of a file: all of it up to 256 MiB; of a larger one size, time, beginning, middle and end."""
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


def state_of(path: str) -> tuple[int, int]:
    """Bytes and time of change in ns of a file, or of all files of a folder; they tell of other contents."""
    if not os.path.isdir(path):
        status = os.stat(path)
        return status.st_size, status.st_mtime_ns
    inside = [os.stat(os.path.join(at, name)) for at, _, names in os.walk(path) for name in names]
    return sum(each.st_size for each in inside), max((each.st_mtime_ns for each in inside), default=0)
