"""Removes what dead jobs have left beside their outputs: part files, decoded inputs, records without a name.

Each bears its owner in its name (`base/owner.py`). What may belong to a job that lives, here or on another
machine, stays; so does what another start can go on with, what has had a longer name than is known, and what
cannot be removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat

from tilewise.base import journal, safely
from tilewise.base.owner import hidden, part_path
from tilewise.base.staging import ASIDE

_ENDING = re.compile(r"part(\.raw|\.gz)?|(\d+\.)?raw|\d+\.state|slices|stream\.\w+")

_MADE = re.compile(r"manifest\.json|zarr\.json|c(\.\d+)+|.*\.npy")


def sweep(folder: str, own_disk: bool = False) -> None:
    """Looks through `folder`, once; raises nothing. No other machine writes to an `own_disk`."""
    try:
        entries = os.listdir(folder)
    except OSError:
        return
    for entry in entries:
        path, found = os.path.join(folder, entry), hidden(entry)
        with contextlib.suppress(OSError):
            if found is None or not found.owner.is_dead(path, own_disk):
                continue
            ending = found.ending
            own = path[: len(path) - len(ending) - 1]
            if journal.has_pieces(f"{own}.{journal.ENDING}") or (
                ending == journal.ENDING and journal.is_kept(path)
            ):
                continue
            if ending == f"part{ASIDE}":
                old = os.path.join(folder, found.base)
                if found.cut:
                    continue
                if os.path.lexists(old):
                    _remove(path)
                else:
                    os.rename(path, old)  # it was to be replaced, and was not
            elif ending == journal.ENDING:
                journal.remove(path)
            elif _ENDING.fullmatch(ending):
                _remove(path)


def foreign(path: str, own_disk: bool) -> list[str]:
    """Warnings of parts for `path` that are not swept, as their jobs may live elsewhere; raises nothing."""
    folder, said = os.path.dirname(path), []
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            part, found = os.path.join(folder, entry), hidden(entry)
            if found is None or part != part_path(path, found.owner.identity) or not found.owner.is_foreign:
                continue
            if not found.owner.is_dead(part, own_disk) and not journal.has_pieces(journal.folder_of(part)):
                said.append(
                    f"{part} is of {found.owner.text()}, in another boot or container: it is written to, or "
                    "was left; remove it if that job no longer runs"
                )
    return said


def _remove(path: str, at: int | None = None) -> None:
    """A file, or a folder with nothing in it but what we make, in the open folder `at`; OSError."""
    if not _is_folder(path, at):
        os.unlink(path, dir_fd=at)
        return
    with safely.opened(path, at) as inside:
        for entry in os.listdir(inside):
            if _MADE.fullmatch(entry) or _is_folder(entry, inside):
                _remove(entry, inside)
    os.rmdir(path, dir_fd=at)


def _is_folder(path: str, at: int | None) -> bool:
    return stat.S_ISDIR(os.stat(path, dir_fd=at, follow_symlinks=False).st_mode)
