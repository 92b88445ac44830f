"""Finds the programs that are built with the package, and says how its command is started."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence


def command(words: Sequence[str]) -> list[str]:
    """`tilewise words…` by this Python, which takes no module from the folder that it is started in."""
    return [sys.executable, "-P", "-m", "tilewise", *words]


def places(name: str) -> list[str]:
    """Every place where the installed package's program `name` may lie, best first."""
    import tilewise

    # An editable install keeps the sources and the built files in two folders.
    folders = [*tilewise.__path__, os.path.join(sysconfig.get_paths()["platlib"], "tilewise")]
    places = [os.path.join(folder, inner, name) for folder in folders for inner in ("bin", "", "libexec")]
    return [*places, os.path.join(sys.prefix, "bin", name)]


def first(paths: list[str]) -> str | None:
    """The first of `paths` that can be executed, or None."""
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)
