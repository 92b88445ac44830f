"""The end of a child that waits for us to go first."""

from __future__ import annotations

import contextlib
import subprocess


def let_go(child: subprocess.Popen[bytes], patience: float) -> None:
    """Ends a child that waits until we have said why the job failed."""
    close(child)
    try:
        child.wait(patience)
    except subprocess.TimeoutExpired:
        child.kill()


def close(child: subprocess.Popen[bytes]) -> None:
    """Closes our ends of its streams."""
    for stream in (child.stdin, child.stdout, child.stderr):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()
