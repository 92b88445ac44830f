"""Removes the shared memory of ranks that were killed: MPI unlinks its segments only at a regular end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

_FOLDER = "/dev/shm"
_OURS = ("mpich_shm_", "mpich_shar_", "vader_segment.", "sm_segment.")  # as MPICH and Open MPI call them


def mapped(pids: Iterable[int], proc: str = "/proc") -> set[str]:
    """Paths of the segments that those processes have mapped now, and that still have a name."""
    found: list[str] = []
    for pid in pids:
        with (
            contextlib.suppress(OSError),
            open(f"{proc}/{pid}/maps", encoding="utf-8", errors="replace") as maps,
        ):
            found += [f"/{line.rstrip().partition('/')[2]}" for line in maps]
    return segments_of(found)


def segments_of(paths: Iterable[str]) -> set[str]:
    """Those of `paths` that are MPI's, and not somebody's matrix that lies in shared memory."""
    return {path for path in paths if _is_segment(path)}


def _is_segment(path: str) -> bool:
    folder, name = path.rsplit("/", 1)
    return folder == _FOLDER and name.startswith(_OURS) and not name.endswith(" (deleted)")


def remove(paths: Iterable[str]) -> None:
    """Unlinks what is still there; call it when all ranks have gone."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)
