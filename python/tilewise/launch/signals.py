"""Interrupts: Ctrl-C, SIGTERM and SIGHUP become one `Interrupted`, when nothing is half done.

What might end the command itself is kept until it has said how it ended.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tilewise.base.errors import Interrupted

NOTHING = "nothing was written"
_CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_kept: list[Callable[[], object]] = []
_written = [NOTHING]  # for an interrupt that comes when nobody catches it any more


def written() -> str:
    """Return what was written, in half a sentence."""
    return _written[0]


def keep(action: Callable[[], object]) -> None:
    """Keep `action` until the command's last words are out."""
    _kept.append(action)


def run_kept() -> None:
    """Run what was kept, the last first."""
    while _kept:
        _kept.pop()()


class Signals:
    """Raises Interrupted once, at the first signal; later ones must not cut the cleaning up short."""

    def __init__(self) -> None:
        self._held = False
        self._pending: signal.Signals | None = None
        self._seen = False
        self._interrupted: Interrupted | None = None
        self._written = NOTHING
        self.on_term: Callable[[int, FrameType | None], bool] | None = None  # may take a signal for itself

    @property
    def seen(self) -> bool:
        """Return whether a signal has been raised as Interrupted."""
        return self._seen

    def check(self) -> None:
        """Raises Interrupted once more if it was lost: Python drops what is raised inside a weak reference's
        callback, as its imports use them, or inside a finalizer."""
        if self._interrupted is not None:
            raise self._interrupted

    def disregard(self) -> None:
        """Forgets what was raised, and hears no more: it is not the user who interrupts us."""
        self._seen, self._interrupted = True, None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The handler proper."""
        if self._seen or (self.on_term is not None and self.on_term(number, frame)):
            return
        if self._held:
            self._pending = signal.Signals(number)
            return
        self._raise(signal.Signals(number))

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Signals that come inside wait until its end, for steps that must be whole."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._pending is not None and not self._seen:
            self._raise(self._pending)

    def _raise(self, which: signal.Signals) -> None:
        self._seen = True
        self._interrupted = Interrupted(f"interrupted by {which.name}; all ranks were ended; {self._written}")
        raise self._interrupted

    def admit(self, written: str) -> None:
        """Set what was `written`, for an interrupt to come, and for one that was raised already."""
        if self._interrupted is not None:
            self._interrupted.message = self._interrupted.message.replace(self._written, written)
        self._written = _written[0] = written


@contextmanager
def watched(ending: bool = True) -> Iterator[Signals]:
    """Signal handlers for the time of a job. A hang-up that was ignored (nohup) stays ignored.

    With `ending` the process only ends after an interrupt. In any other thread than the main one Python hears
    no signals, and nothing is changed.
    """
    signals = Signals()
    _written[0] = NOTHING
    old = {}
    for number in _CAUGHT if threading.current_thread() is threading.main_thread() else ():
        previous = signal.getsignal(number)
        if not (number == signal.SIGHUP and previous == signal.SIG_IGN):
            old[number] = signal.signal(number, signals.handle)
    report = sys.unraisablehook
    sys.unraisablehook = lambda lost: None if isinstance(lost.exc_value, Interrupted) else report(lost)
    try:
        yield signals
    finally:
        sys.unraisablehook = report
        for number, previous in old.items():
            # Another interrupt, even while Python shuts down, must not change the exit code.
            signal.signal(number, signal.SIG_IGN if signals.seen and ending else previous)
