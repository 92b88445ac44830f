"""A host that gets a stated share of a processor and no more: a control group, version 1 or 2."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PERIOD = 20_000  # microseconds; short, so that a rank waits often and briefly


class Slow:
    """A control group; `enter` is the file that takes in the process which writes its number."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.enter = folder / "cgroup.procs"

    @property
    def held_back(self) -> int:
        """How often its processes had to wait for their next share."""
        facts = dict(line.split() for line in (self.folder / "cpu.stat").read_text().splitlines())
        return int(facts["nr_throttled"])


@contextmanager
def slow(name: str, processors: float) -> Iterator[Slow]:
    """A group whose processes have that many processors' time together. Raises OSError where it cannot be."""
    second = (_ROOT / "cgroup.controllers").exists()
    group = Slow((_ROOT if second else _ROOT / "cpu") / name)
    quota = max(1000, int(_PERIOD * processors))
    group.folder.mkdir()
    try:
        if second:
            (group.folder / "cpu.max").write_text(f"{quota} {_PERIOD}")
        else:
            (group.folder / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (group.folder / "cpu.cfs_quota_us").write_text(str(quota))
        yield group
    finally:
        deadline = time.monotonic() + 10
        while group.folder.exists() and time.monotonic() < deadline:  # the last process may still be going
            with suppress(OSError):
                os.rmdir(group.folder)
            time.sleep(0.01)
