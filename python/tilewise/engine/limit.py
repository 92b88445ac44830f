"""Ends a job in time: ranks are asked to stop when they have done what they are at, and ended if late.

Design: docs/design/publication.md.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Mapping
from types import FrameType

import msgspec

from tilewise.base import journal
from tilewise.base.errors import Stopped, TilewiseError, TimeLimitError
from tilewise.launch.job import Journal
from tilewise.launch.signals import Signals

_SHARE, _MOST = 0.1, 60.0  # of the time that is left, and at most so many seconds, for what ranks are at
# Of the time, after which a state is kept: one stays whatever happens, and shows what it takes.
_EARLY = 1 / 3
_WRITING = 3.0  # times what a state takes by the plan, to be left for it
_GRACE = 20.0  # seconds from a batch system's SIGTERM to its SIGKILL, less what is needed to say so


class Limit:
    """The time that the job whose journal is in `folder` has, from now on; None: there is no end to it.

    `writing` are the seconds that a state of it is predicted to take, 0 where it keeps finished pieces.
    Where a batch system may end the job, its SIGTERM asks the ranks to stop, and interrupts nothing.
    """

    def __init__(
        self, folder: str, seconds: float | None, caught: Signals, batch: bool, writing: float
    ) -> None:
        self._folder = folder
        self._seconds = seconds
        self._caught = caught
        self._asked = False
        self._timer: threading.Timer | None = None
        self.ends: float | None = None
        if seconds is not None:
            self.ends = time.monotonic() + seconds
            margin = min(max(min(_SHARE * seconds, _MOST), _WRITING * writing), seconds / 2)
            self._timer = threading.Timer(max(0.0, seconds - margin), self._ask)
            self._timer.daemon = True
            self._timer.start()
        if batch:
            caught.on_term = self._term

    def close(self) -> None:
        """Asks for nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._caught.on_term = None

    @property
    def passed(self) -> bool:
        """True if the ranks were asked to stop, and should have by now."""
        return self._asked and self.ends is not None and time.monotonic() > self.ends

    def told(self, journal: Journal, near: bool) -> Journal:
        """`journal` with a state in good time, and with the end where rank 0 is `near`: on this host."""
        if self.ends is None or self._seconds is None or not journal.slots:
            return journal
        early = _EARLY * self._seconds
        every = min(journal.every, early) if journal.every else early
        return msgspec.structs.replace(journal, every=every, ends=self.ends if near else 0.0)

    def reached(self, error: TilewiseError | None, kept: bool) -> TilewiseError:
        """Error to raise where the ranks have stopped with `error`, or have not: by what is `kept`."""
        if not kept:
            return TimeLimitError(
                "the job has reached its time limit before any piece or state was done; nothing is kept",
                "a longer --time-limit; tilewise plan … predicts how long the job takes",
            )
        return error or Stopped("the job has reached its time limit; what it was at is lost")

    def _ask(self) -> None:
        self._asked = True
        with contextlib.suppress(OSError):
            journal.ask_to_stop(self._folder)

    def _term(self, number: int, frame: FrameType | None) -> bool:
        if number != signal.SIGTERM or self._asked:
            return False
        self.ends = time.monotonic() + _GRACE
        self._ask()
        return True


def seconds_left(asked: float | None, environment: Mapping[str, str]) -> float | None:
    """Seconds by --time-limit, or to the end of the batch job; None where there is neither."""
    if asked is not None:
        return asked
    with contextlib.suppress(KeyError, ValueError):
        return max(1.0, float(environment["SLURM_JOB_END_TIME"]) - time.time())
    return None


def in_batch() -> bool:
    """True if a batch system has started us, and may end us."""
    return "SLURM_JOB_ID" in os.environ
