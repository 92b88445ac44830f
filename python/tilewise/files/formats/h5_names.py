"""Finds datasets in an HDF5 file by name, and never goes over a link into another file unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewise.base.errors import UsageError
from tilewise.files.checks import missing, pick, printable

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped,unused-ignore]

_LINKS_MAX = 32  # soft links that are followed for one name
_LISTED = 10_000  # objects that are looked at to find the matrices


def choose(book: h5py.File, name: str, path: str, member: str) -> h5py.Dataset:
    """The dataset called `member`; without one the only matrix of the file."""
    import h5py

    if not member:
        found = matrices(book)
        member = pick(name, path, "dataset", found if found else _all(book, 2))
    dataset = find(book, name, member)
    if not isinstance(dataset, h5py.Dataset):
        inside = matrices(book)
        raise missing(name, "dataset", member, inside)
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
                raise missing(name, "dataset", member, matrices(book))
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
