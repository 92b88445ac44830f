"""The progress bar on a terminal; nothing at all in a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class ProgressBar:
    """One line on standard error that says which phase is on; it vanishes at the end.

    With `remaining` it says the time that is left instead of the time that has passed.
    """

    def __init__(self, wanted: bool, remaining: bool = False) -> None:
        self._wanted = wanted and sys.stderr.isatty()
        self._remaining = remaining
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    @property
    def wanted(self) -> bool:
        """Whether progress is worth being told."""
        return self._wanted

    def update(self, phase: str, done: float) -> None:
        """Shows that `phase` is `done` (0 to 1)."""
        if not self._wanted:
            return
        if self._bar is None:
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            from tilewise.report.terminal import errors

            self._bar = Progress(
                TextColumn("{task.description:>8}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %"),
                TimeRemainingColumn() if self._remaining else TimeElapsedColumn(),
                console=errors(),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._bar.add_task(phase, total=1.0)
            self._bar.start()
        assert self._task is not None
        self._bar.update(self._task, description=phase, completed=min(1.0, max(0.0, done)))

    def close(self) -> None:
        """Takes the bar away; safe to call at any time."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
