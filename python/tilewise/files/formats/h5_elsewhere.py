"""Refuses HDF5 datasets whose numbers lie in files of other folders: a file says what is read, not where."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tilewise.base.errors import UsageError
from tilewise.files.checks import printable
from tilewise.files.formats.h5_names import find

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped,unused-ignore]

_DEEPEST = 8  # virtual datasets that are made of virtual datasets


def require_inside(dataset: h5py.Dataset, path: str, name: str, depth: int = 0) -> None:
    """Raises UsageError where parts of `dataset`, in the file at `path`, are missing or in another folder.

    The library would fill what is missing with zeros, and read any file that is named.
    """
    folder = os.path.realpath(os.path.dirname(path))
    for file in _raw_files(dataset):
        _require_in(folder, os.path.abspath(file), file, name)  # as the library has it: from where we are
    for file, member in _sources(dataset):
        there = path if file == "." else os.path.join(os.path.dirname(path), file)
        _require_in(folder, there, file, name)
        if "%" in file + member:
            continue  # it stands for a number: a file for each, of which some may be missing
        if not os.path.isfile(there):
            raise UsageError(
                f"{name} is composed of parts of other files, and {printable(file)} does not exist"
            )
        if depth == _DEEPEST:
            raise UsageError(f"{name} nests virtual datasets more than {_DEEPEST} deep")
        _require_source(there, member, name, depth)


def _require_source(path: str, member: str, name: str, depth: int) -> None:
    import h5py

    with h5py.File(path, "r", locking="best-effort") as book:
        part = find(book, f"{name}, made of {printable(path)},", member)
        if isinstance(part, h5py.Dataset):
            require_inside(part, path, name, depth + 1)


def _raw_files(dataset: h5py.Dataset) -> list[str]:
    return [os.fsdecode(file) for file, _, _ in dataset.external or ()]


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
