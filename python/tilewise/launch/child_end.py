"""The end of a child that waits for us to go first."""

from __future__ import annotations

import contextlib
import subprocess

from tilewise.launch.lines import Lines
from tilewise.launch.outcome import Outcome

_LEAVING = 3.0  # seconds for the child to end when the other ranks have
_DISMISSED = 8.0  # seconds for ranks to leave when they are asked to; after 10, the one that failed aborts
_BRIEFLY = 1.0  # seconds for that where a rank is lost, which leaves no more


def let_go(child: subprocess.Popen[bytes], lines: Lines, outcome: Outcome) -> None:
    """Ends a child that waits until we have said why the job failed, and all other ranks."""
    gone = outcome.lost is not None or outcome.hang is not None
    _dismiss(lines, outcome, _BRIEFLY if gone else _DISMISSED)
    lines.close()
    close(child)
    try:
        child.wait(0.0 if gone else _LEAVING)
    except subprocess.TimeoutExpired:
        child.kill()


def close(child: subprocess.Popen[bytes]) -> None:
    """Closes our ends of its streams."""
    for stream in (child.stdin, child.stdout, child.stderr):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()


def _dismiss(lines: Lines, outcome: Outcome, patience: float) -> None:
    """Has all ranks leave a job that has failed, the one that said so last: it aborts the job if need be."""
    said = outcome.failed or outcome.signalled
    if said is None:
        lines.dismiss(None, patience)
        return
    for rank in outcome.started.ranks if outcome.started is not None else ():
        if rank.rank == said.rank:
            lines.dismiss((rank.host, rank.pid), patience)
