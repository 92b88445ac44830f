"""Limits of time that a busy machine keeps, too: seconds count for less while more processes want its cores.

    processes that want to run    ──── cores ────    what a second counts
    2 of ours                      2                 1
    2 of ours, 6 of others         2                 1/4
    2 of ours, 1 waits for a disk  2                 1/2

What a promise of "within two seconds" means is what a machine takes that has nothing else to do. Beside
another test run, or a disk that is being filled, everything takes longer, and nothing is wrong with that.
Nor does it count when a virtual machine's cores are taken away: then we, too, are late to look.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

TICK = 0.02  # seconds from one look at the machine to the next
LATE = 0.25  # seconds without a look that count; what was before, nobody has seen
TRIES = 8

Result = TypeVar("Result")


def stat() -> str:
    """/proc/stat, or nothing where there is none: then seconds are seconds."""
    try:
        return Path("/proc/stat").read_text()
    except OSError:
        return ""


def crowding(text: str, cores: int | None = None) -> float:
    """How many times longer all takes now than on a quiet machine, from /proc/stat; 1 or more."""
    lines = text.splitlines()
    counts = {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith("procs_")}
    ready = counts.get("procs_running", 1) - 1  # one is this process, which just looks
    return max(1.0, ready / (cores or os.cpu_count() or 1)) + counts.get("procs_blocked", 0)


def stolen(before: str, after: str) -> float:
    """The share of the cores' time that the hypervisor gave to others between two texts of /proc/stat."""
    first, last = ([int(word) for word in text.partition("\n")[0].split()[1:9]] for text in (before, after))
    whole = sum(last) - sum(first)
    return (last[7] - first[7]) / whole if whole > 0 and len(first) == len(last) == 8 else 0.0


class Stopwatch:
    """Runs from when it is made until `stop`; looks at the machine from a thread of its own."""

    def __init__(self, looked: Callable[[], str] = stat) -> None:
        self.wall = self.seconds = 0.0
        self._looked = looked
        self._first = looked()
        self._before = crowding(self._first)
        self._computed = time.process_time()
        self._at = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        """The seconds that count; those of the clock are in `wall`."""
        self._ended.set()
        self._thread.join()
        last = self._look()
        self.seconds *= 1 - stolen(self._first, last)
        # Our own computing counts in any case; it may have kept the thread from looking.
        self.seconds = max(self.seconds, time.process_time() - self._computed)
        return self.seconds

    def _watch(self) -> None:
        while not self._ended.wait(TICK):
            self._look()

    def _look(self) -> str:
        text, now = self._looked(), time.monotonic()
        passed, crowded = now - self._at, crowding(text)
        self.wall += passed
        self.seconds += min(passed, LATE) / ((self._before + crowded) / 2)
        self._at, self._before = now, crowded
        return text


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Checks that what is done inside takes less than `seconds` that count."""
    watch = Stopwatch()
    try:
        yield
    finally:
        watch.stop()
    assert watch.seconds < seconds, f"took {watch.seconds:.2f} s ({watch.wall:.2f} s on the clock)"


def soon(seconds: float, action: Callable[[], Result]) -> Result:
    """What `action` gives, which may be done again and must once take less than `seconds` that count.

    For short limits: the first time, a program may have to come from the disk.
    """
    for _ in range(TRIES - 1):
        watch = Stopwatch()
        result = action()
        if watch.stop() < seconds:
            return result
    with within(seconds):
        return action()
