"""tilewise: dense matrices that live in files, worked on in parallel over MPI."""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__"]
