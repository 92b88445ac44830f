"""Removes what dead jobs have left beside their outputs: part files, decoded inputs, records without a name.

Each bears its owner in its name (`base/owner.py`). What may belong to a job that lives, here or on another
machine, stays; so does what cannot be removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat

from tilewise.base.owner import IDENTITY, owner_of
from tilewise.base.renaming import ASIDE

_ENDING = re.compile(r"part(\.raw|\.gz)?|(\d+\.)?raw|stream\.\w+")


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
        with contextlib.suppress(OSError):
            if ending == f"part{ASIDE}" and not os.path.lexists(os.path.join(folder, base)):
                os.rename(path, os.path.join(folder, base))  # it was to be replaced, and was not
            elif ending == f"part{ASIDE}" or _ENDING.fullmatch(ending):
                _remove(path)


def _remove(path: str) -> None:
    """A file, or a folder with nothing but files in it, as a decomposition makes it; OSError."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    for file in os.listdir(path):
        if file == "manifest.json" or file.endswith(".npy"):
            os.unlink(os.path.join(path, file))
    os.rmdir(path)
