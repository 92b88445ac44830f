"""The most anonymous and shared memory that ranks hold while something runs: pages of files do not count."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType

_PAUSE = 0.004  # seconds between two looks


class MemoryWatch:
    """Looks at all workers among the descendants of this process; `most` is in bytes, of all together.

    Memory that several of them share counts once.
    """

    def __init__(self) -> None:
        self.most = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_PAUSE):
            self.most = max(self.most, sum(map(_held, _workers(os.getpid()))))


def _workers(pid: int) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        try:
            tasks = list(Path(f"/proc/{parent}/task").iterdir())
            for task in tasks:
                waiting += map(int, (task / "children").read_text().split())
            if Path(f"/proc/{parent}/comm").read_text().startswith("tilewise-worker"[:15]):
                found.append(parent)
        except OSError:
            continue  # it ended between two looks
    return found


def _held(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
