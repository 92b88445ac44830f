"""tilewise: dense matrices that live in files, worked on in parallel over MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewise.api import load_study, run

__version__ = "0.1.0"
__all__ = ["__version__", "load_study", "run"]


def __getattr__(name: str) -> Any:
    """What notebooks use is imported when it is asked for: the command starts without it."""
    if name in ("load_study", "run"):
        from tilewise import api

        return getattr(api, name)
    raise AttributeError(f"module 'tilewise' has no attribute {name!r}")
