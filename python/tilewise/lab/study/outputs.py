"""Files that are to be made of a study's results: none of them may replace these."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from tilewise.base.errors import UsageError
from tilewise.engine import side_files
from tilewise.lab.study import store


def check(folders: Iterable[str], files: Mapping[str, str | None]) -> None:
    """Raises UsageError where a file cannot be, or would replace results in `folders` or another answer.

    `files` has a path by flag; `-` is standard output, which one of them may have.
    """
    taken = [path for folder in folders for path in files_of(folder)]
    piped = [flag for flag, path in files.items() if path == "-"]
    if len(piped) > 1:
        raise UsageError(f"{' and '.join(piped)} cannot both go to standard output", "a file for one of them")
    for flag, path in files.items():
        side_files.check(flag, path, taken)
        taken += [path] if path and path != "-" else []


def files_of(folder: str) -> list[str]:
    """The files of the results in `folder`, or of the newest below it; nothing made of them replaces one."""
    folder = store.newest(folder)
    names = [*store.points_in(folder), store.STUDY, "environment.json"]
    return [os.path.join(folder, name) for name in names]
