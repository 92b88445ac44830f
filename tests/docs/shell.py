"""Runs commands of a page as a reader would, with the `tilewise` of this environment."""

import os
import subprocess
import sys
from pathlib import Path


def run(commands: str, folder: Path) -> None:
    """Fails with what they said where one of the commands ends with another code than 0."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", commands],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
