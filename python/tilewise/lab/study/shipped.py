"""The studies that come with the package: TOML files in the folder beside this file."""

from __future__ import annotations

import os

from tilewise.base.errors import UsageError
from tilewise.base.units import nearest

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "studies")


def names() -> list[str]:
    """Names of all that are shipped."""
    return sorted(name.removesuffix(".toml") for name in os.listdir(FOLDER) if name.endswith(".toml"))


def path_of(name: str) -> str:
    """The file of a shipped study, or `name` itself where it is a file's; UsageError where it is neither."""
    if name.endswith(".toml") or os.sep in name:
        return name
    if name not in names():
        near = nearest(name, names())
        advice = f"tilewise study show {near}" if near else "tilewise study list"
        raise UsageError(
            f"there is no study {name!r}; choose from {', '.join(names())}, or name a file FILE.toml", advice
        )
    return os.path.join(FOLDER, f"{name}.toml")
