"""Removes what dead jobs have left beside their outputs: part files, decoded inputs, records without a name.

Each bears its owner in its name (`base/owner.py`). What may belong to a job that lives, here or on another
machine, stays; so does what another start can go on with, and what cannot be removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat

from tilewise.base import journal
from tilewise.base.owner import IDENTITY, owner_of
from tilewise.base.renaming import ASIDE

_ENDING = re.compile(r"part(\.raw|\.gz)?|(\d+\.)?raw|\d+\.state|slices|stream\.\w+")

_MADE = re.compile(r"manifest\.json|zarr\.json|c(\.\d+)+|.*\.npy")


def sweep(folder: str) -> None:
    """Looks through `folder`, once; raises nothing."""
    try:
        entries = os.listdir(folder)
    except OSError:
        return
    for entry in entries:
        match = IDENTITY.search(entry) if entry.startswith(".") else None
        owner = owner_of(match[0]) if match else None
        if match is None or owner is None or not owner.dead:
            continue
        base, ending = entry[1 : match.start() - 1], entry[match.end() + 1 :]
        path = os.path.join(folder, entry)
        own = path[: len(path) - len(ending) - 1]
        if journal.has_pieces(f"{own}.{journal.ENDING}") or (
            ending == journal.ENDING and journal.is_kept(path)
        ):
            continue
        with contextlib.suppress(OSError):
            if ending == f"part{ASIDE}" and not os.path.lexists(os.path.join(folder, base)):
                os.rename(path, os.path.join(folder, base))  # it was to be replaced, and was not
            elif ending == journal.ENDING:
                journal.remove(path)
            elif ending == f"part{ASIDE}" or _ENDING.fullmatch(ending):
                _remove(path)


def _remove(path: str) -> None:
    """A file, or a folder with nothing in it but what we make; OSError."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    for entry in os.listdir(path):
        inner = os.path.join(path, entry)
        if _MADE.fullmatch(entry) or stat.S_ISDIR(os.lstat(inner).st_mode):
            _remove(inner)
    os.rmdir(path)
