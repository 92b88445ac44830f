"""Small file systems to fill up, and launchers that change something between the plan and the ranks."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Tilewise, mpiexec


def before_the_ranks(run: Tilewise, does: str, ranks: int) -> Path:
    """A launcher that does something when all has been planned and checked, and then starts the ranks."""
    script = run.folder / "launcher"
    script.write_text(f'#!/bin/sh\n{does}\nshift 2\nexec "{mpiexec()}" -launcher fork -n {ranks} "$@"\n')
    script.chmod(0o755)
    return script


def small_ext2(mount: Callable[..., Path], tmp_path: Path) -> Path:
    """Mounts 2 MiB of ext2, which cannot reserve room; skipped where that is not allowed."""
    image = tmp_path / "image"
    with open(image, "wb") as file:
        file.truncate(2 << 20)
    try:
        subprocess.run(["mkfs.ext2", "-q", str(image)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no mkfs.ext2")
    return mount("-t", "ext2", "-o", "loop", str(image))


def small_tmpfs(mount: Callable[..., Path]) -> Path:
    """Mounts 1.5 MiB of tmpfs, which refuses to reserve more than it has."""
    return mount("-t", "tmpfs", "-o", "size=1536k", "tmpfs")
