"""Progress on a terminal or in a notebook: phase, share, rate, and time left; nothing at all in a pipe."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewise.engine.request import PROGRESS

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SURE = 0.5  # seconds of a phase after which its pace says something
_LEAST = 0.01  # share from which it does


class Pace:
    """How far the phase is that is on, how fast it goes, and what is left of it.

    A phase that comes back goes on where it was, with the time that it has had. `clock` gives seconds, of
    which all phases are expected to take `foreseen`; 0: nobody knows.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, foreseen: float = 0.0) -> None:
        self._clock, self._foreseen = clock, foreseen
        self._begin = self._since = clock()
        self._phase: str | None = None
        self._spent: dict[str | None, float] = {}
        self._share = 0.0
        self._heard = 0.0  # seconds into the phase when its share was told last

    def update(self, phase: str, share: float) -> None:
        """Hears that `phase` is done by `share`, from 0 to 1."""
        now = self._clock()
        if phase != self._phase:
            if self._phase is not None:
                self._spent[self._phase] = self._in_phase(now)
            self._phase, self._since = phase, now
            self._share = -1.0
        share = min(1.0, max(0.0, share))
        if share != self._share:
            self._share, self._heard = share, self._in_phase(now)

    def text(self) -> str:
        """`12 s`, which have passed, and once they can be told `3.1 %/s, 28 s left` of the phase.

        Until then, and of what nobody counts, `12 s of about 40 s` that were foreseen.
        """
        now = self._clock()
        passed = _seconds(now - self._begin)
        spent = self._in_phase(now)
        if not _LEAST <= self._share < 1 or self._heard < _SURE:
            within = now - self._begin < self._foreseen and self._foreseen >= 1
            return f"{passed} of about {_seconds(self._foreseen)}" if within else passed
        rate = self._share / self._heard
        left = max(0.0, 1 / rate - spent)
        return f"{passed}, {100 * rate:.2g} %/s, {_seconds(left)} left"

    def _in_phase(self, now: float) -> float:
        return self._spent.get(self._phase, 0.0) + now - self._since


class ProgressBar:
    """One line on standard error: the phase, its share, the time that has passed, its rate and what is left.

    It goes on counting where nobody reports, and vanishes at the end. With `whole` shares are of everything,
    and phases are only what it is at.
    """

    def __init__(
        self, wanted: bool, whole: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wanted = wanted and sys.stderr.isatty()
        self._whole = whole
        self._clock = clock
        self._foreseen = 0.0
        self._pace: Pace | None = None
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    @property
    def wanted(self) -> bool:
        """Tell whether anybody wants to see progress."""
        return self._wanted

    def foresee(self, seconds: float) -> None:
        """Shows from the next start on that all phases are expected to take so many `seconds`."""
        self._foreseen = seconds

    def update(self, phase: str, done: float) -> None:
        """Shows that `phase` is `done` (0 to 1)."""
        if not self._wanted:
            return
        if self._bar is None:
            self._start(phase)
        assert self._pace is not None and self._bar is not None and self._task is not None
        self._pace.update("" if self._whole else phase, done)
        self._bar.update(self._task, description=phase, completed=min(1.0, max(0.0, done)))

    def _start(self, phase: str) -> None:
        from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
        from rich.text import Text

        from tilewise.lab.report.terminal import errors

        pace = self._pace = Pace(self._clock, self._foreseen)

        class Told(ProgressColumn):
            def render(self, task: Task) -> Text:
                return Text(pace.text())

        self._bar = Progress(
            TextColumn("{task.description:>8}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            Told(),
            console=errors(),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task(phase, total=1.0)
        self._bar.start()

    def close(self) -> None:
        """Takes the bar away; safe to call at any time."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class ProgressPipe:
    """Progress as lines for the program that has started this one, and shows it in its own way."""

    wanted = True

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)  # its end is ours
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor

    def update(self, phase: str, done: float) -> None:
        """Tells that `phase` is `done` (0 to 1); what nobody reads is lost."""
        with contextlib.suppress(OSError):
            os.write(self._descriptor, f"{done:.4f} {phase}\n".encode())

    def foresee(self, seconds: float) -> None:
        """Tells nothing: the other program has its own way."""

    def close(self) -> None:
        """Nothing is left to be done."""


def progress(wanted: bool, whole: bool = False) -> ProgressBar | ProgressPipe:
    """Where this program's progress goes: to the program that asked for it, else to a terminal."""
    descriptor = os.environ.pop(PROGRESS, "")  # which is not for programs that this one starts
    try:
        return ProgressPipe(int(descriptor)) if descriptor else ProgressBar(wanted, whole)
    except (ValueError, OSError):
        return ProgressBar(wanted, whole)


class NotebookLine:
    """A line below the cell of a notebook that is running, gone when it has run.

    With `whole` shares are of everything, and phases are only what it is at.
    """

    def __init__(self, whole: bool = False) -> None:
        self._whole = whole
        self._pace = Pace()
        self._handle: Any = None

    def update(self, phase: str, done: float) -> None:
        """Shows that `phase` is `done` (0 to 1)."""
        self._pace.update("" if self._whole else phase, done)
        self._show({"text/plain": f"{phase}: {done:.0%}, {self._pace.text()}"})

    def close(self) -> None:
        """Takes the line away."""
        if self._handle is not None:
            self._show({})

    def _show(self, shown: dict[str, str]) -> None:
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]
        else:
            self._handle.update(shown, raw=True)


def notebook_line(whole: bool = False) -> NotebookLine | None:
    """A line in the notebook that this program is the kernel of; None where it is none."""
    ipython = sys.modules.get("IPython")  # a kernel has it already
    shell = ipython.get_ipython() if ipython is not None else None
    return NotebookLine(whole) if hasattr(shell, "kernel") else None


def _seconds(count: float) -> str:
    """`8 s`, `2 min 05 s`, `3 h 20 min`."""
    whole = round(count)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
