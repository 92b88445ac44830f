"""Programs that pretend to be launchers, and a job of two ranks for them."""

from __future__ import annotations

from pathlib import Path

from tilewise.launch.job import Variant

VARIANT = Variant(
    algorithm="summa", exchange="overlap", read="root", write="root", grid=(1, 2), ranks=2, threads=1
)


def program(folder: Path, name: str, script: str) -> Path:
    """A shell script of that name."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
