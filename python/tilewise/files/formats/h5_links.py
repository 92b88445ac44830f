"""Other files with numbers of an HDF5 dataset: found, and refused where they are missing or out of place."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tilewise.base.errors import UsageError
from tilewise.files.checks import missing, pick, printable
from tilewise.files.formats.h5_chunks import require_filters
from tilewise.files.region import Source

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped,unused-ignore]

_DEEPEST = 8  # virtual datasets that are made of virtual datasets
SIGNATURE = b"\x89HDF\r\n\x1a\n"
_NUMBER = re.compile("%%|%[0-9]*b")
_HEAD = 4096  # bytes; a MATLAB file has 512 before the signature
_LINKS_MAX = 32  # soft links that are followed for one name
_LISTED = 10_000  # objects that are looked at to find the matrices


def require_readable(dataset: h5py.Dataset, path: str, name: str, depth: int = 0) -> None:
    """Raises UsageError where numbers of `dataset`, in the file at `path`, are missing or in another folder.

    The library would fill what is missing with zeros, and read any file that is named. A filter that it lacks
    is said by name.
    """
    folder = os.path.realpath(os.path.dirname(path))
    require_filters(dataset, name)
    _require_raw_files(dataset, path, folder, name)
    for file, member in _sources(dataset):
        for there in _files(path, file):
            _require_in(folder, there, file, name)
            if not os.path.isfile(there):
                raise UsageError(
                    f"{name} is composed of parts of other files, and {printable(file)} does not exist"
                )
            if depth == _DEEPEST:
                raise UsageError(f"{name} nests virtual datasets more than {_DEEPEST} deep")
            _require_source(there, member, name, depth)


def others(source: Source) -> list[str]:
    """Paths of raw files, and of files that a virtual dataset is composed of; none where it is no HDF5."""
    with open(source.path, "rb") as file:
        if SIGNATURE not in file.read(_HEAD):
            return []
    return sorted(_others(source.path, source.member, 0))


def _others(path: str, member: str, depth: int) -> set[str]:
    import h5py

    found: set[str] = set()
    with (
        contextlib.suppress(OSError, KeyError, ValueError, RuntimeError),
        h5py.File(path, "r", locking="best-effort") as book,
    ):
        dataset = book[member]
        found.update(os.path.abspath(os.fsdecode(raw)) for raw, _, _ in dataset.external or ())
        for file, inner in _sources(dataset):
            for there in _files(path, file):
                found.add(there)
                found |= _others(there, inner, depth + 1) if depth < _DEEPEST else set()
    return found


def _files(path: str, file: str) -> list[str]:
    """Paths of a source's `file`. One with `%b` stands for a number: those that are there."""
    there = os.path.join(os.path.dirname(path), file)
    if "%" not in file:
        return [path if file == "." else there]
    return glob.glob(_NUMBER.sub(lambda found: _numbered(found, "*"), glob.escape(there)))


def _members(book: h5py.File, member: str) -> list[str]:
    """Names of a source's datasets. One with `%b` stands for a number: those that are there."""
    if "%" not in member:
        return [member]
    above, _, last = member.rpartition("/")
    wanted = _NUMBER.sub(lambda found: _numbered(found, "-?[0-9]+"), re.escape(last))
    return [f"{above}/{each}" for each in book[above or "/"] if re.fullmatch(wanted, each)]


def _numbered(found: re.Match[str], number: str) -> str:
    return "%" if found[0] == "%%" else number


def _require_source(path: str, member: str, name: str, depth: int) -> None:
    import h5py

    with h5py.File(path, "r", locking="best-effort") as book:
        for each in _members(book, member):
            part = find(book, f"{name}, made of {printable(path)},", each)
            if isinstance(part, h5py.Dataset):
                require_readable(part, path, name, depth + 1)


def _require_raw_files(dataset: h5py.Dataset, path: str, folder: str, name: str) -> None:
    """Raises UsageError unless each raw file of an external dataset has as many numbers as it should."""
    # The library looks for them from where we are, unless this variable says otherwise.
    prefix = os.environ.get("HDF5_EXTFILE_PREFIX", "").replace("${ORIGIN}", os.path.dirname(path), 1)
    left = (dataset.size or 0) * dataset.id.get_type().get_size()
    for each, offset, most in dataset.external or ():
        if not left:
            break
        file, here = os.fsdecode(each), min(left, most)
        there = os.path.abspath(os.path.join(prefix, file))
        left -= here
        if not os.path.exists(there):
            beside = os.path.exists(os.path.join(folder, file))
            raise UsageError(
                f"{name} has its numbers in {printable(file)}, which does not exist "
                f"in {os.path.dirname(there)}",
                f"cd {folder}, since HDF5 looks for it from the working directory" if beside else "",
            )
        _require_in(folder, there, file, name)
        size = os.path.getsize(there) if os.path.isfile(there) else 0
        if size < offset + here:
            raise UsageError(
                f"{name} has its numbers in {printable(file)}, which has {size} bytes, but {here} from byte "
                f"{offset} on were expected: it is truncated"
            )


def _sources(dataset: h5py.Dataset) -> Iterator[tuple[str, str]]:
    """Each file and dataset that a virtual one is made of, once."""
    if dataset.is_virtual:
        parts: list[Any] = dataset.virtual_sources()
        yield from dict.fromkeys((part.file_name, part.dset_name) for part in parts)


def _require_in(folder: str, path: str, file: str, name: str) -> None:
    """`path` is in `folder`, or below it, wherever links lead."""
    if os.path.commonpath([folder, os.path.realpath(path)]) != folder:
        raise UsageError(
            f"{name} has its numbers in {printable(file)}, which is in another folder",
            "h5repack, or a copy made with h5py, if you trust that file",
        )


def choose(
    book: h5py.File, name: str, path: str, member: str, variables: list[str] | None = None
) -> h5py.Dataset:
    """The dataset called `member`; without one the file's only matrix, or the only one of `variables`."""
    import h5py

    if not member:
        found = matrices(book) if variables is None else variables
        member = pick(name, path, "dataset", found or _all(book, 2))
    dataset = find(book, name, member, must_exist=False)
    if not isinstance(dataset, h5py.Dataset):
        raise missing(name, "dataset", member, variables or datasets(book))
    return dataset


def matrices(book: h5py.File) -> list[str]:
    """Names of all datasets with two dimensions of numbers."""
    import h5py

    def is_matrix(item: Any) -> bool:
        return isinstance(item, h5py.Dataset) and len(item.shape or ()) == 2 and item.dtype.kind in "biufc"

    return _visit(book, is_matrix, _LISTED)


def datasets(book: h5py.File) -> list[str]:
    """Names of all datasets, matrices or not; links are not followed."""
    import h5py

    return _visit(book, lambda item: isinstance(item, h5py.Dataset), _LISTED)


def find(book: h5py.File, name: str, member: str, must_exist: bool = True) -> Any:
    """The object called `member`; UsageError when there is none, or when a link leads into another file."""
    import h5py

    left = [part for part in member.split("/") if part]
    here: Any = book
    links = 0
    while left:
        part = left.pop(0)
        link = here.get(part, getlink=True) if isinstance(here, h5py.Group) else None
        if link is None:
            if must_exist or not isinstance(here, h5py.Group):
                raise missing(name, "dataset", member, datasets(book))
            return None
        if isinstance(link, h5py.ExternalLink):
            raise UsageError(
                f"{name} follows the link {printable(part)} into another file, {printable(link.filename)}",
                f"name the dataset in that file: {printable(link.filename)}:{printable(link.path)}",
            )
        if isinstance(link, h5py.SoftLink):
            links += 1
            if links > _LINKS_MAX:
                raise UsageError(f"{name} follows more than {_LINKS_MAX} links")
            left = [step for step in link.path.split("/") if step] + left
            here = book if link.path.startswith("/") else here
            continue
        here = here[part]
    return here


def _all(book: h5py.File, most: int) -> list[str]:
    """Names of datasets of any kind, where there is exactly one: so that the message says what is wrong."""
    import h5py

    found = _visit(book, lambda item: isinstance(item, h5py.Dataset), most)
    return found if len(found) == 1 else []


def _visit(book: h5py.File, wanted: Any, most: int) -> list[str]:
    found: list[str] = []
    seen = 0

    def visit(path: str, item: Any) -> bool | None:
        nonlocal seen
        seen += 1
        if wanted(item):
            found.append("/" + path)
        return True if len(found) >= most or seen >= _LISTED else None  # anything but None ends the visit

    book.visititems(visit)
    return found
