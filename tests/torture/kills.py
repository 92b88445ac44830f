"""Sends signals at moments, random or chosen, to a rank, launcher, proxy or front; judges the end."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path

import psutil
from asked import LIMIT, interruptible, listed, parser, undisturbed, with_own_shared_memory
from jobs import Job
from runs import GONE, Bench
from verdict import Tally, judge

TARGETS = ["front", "launcher", "proxy", "rank"]
SIGNALS = ["KILL", "TERM", "INT", "STOP"]
MOMENTS = {
    "any": "at any time of the run",
    "start": "up to --within seconds after the target has appeared",
    "part": "up to --within seconds after the first part file has appeared",
    "named": "up to --within seconds after an output has got its name",
}
DEADLINE = 4.0  # seconds; --timeout of a job of which something is stopped


def children(pid: int, name: str = "") -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            if Path(f"/proc/{child}/comm").read_text().startswith(name):
                found.append(child)
    return found


def find(target: str, front: int, pick: random.Random) -> int | None:
    """The process to strike. The launcher's child is called the proxy also before it is that program."""
    launchers = children(front, "mpiexec")
    proxies = [proxy for launcher in launchers for proxy in children(launcher)]
    ranks = [rank for parent in (front, *proxies) for rank in children(parent, "tilewise-worker")]
    found = {"front": [front], "launcher": launchers, "proxy": proxies, "rank": ranks}[target]
    return pick.choice(found) if found else None


class Strike:
    """One signal to one target of the job that runs in `folder`; called with the front once it is started."""

    def __init__(
        self, folder: Path, job: Job, target: str, name: str, moment: str, pick: random.Random
    ) -> None:
        self._paths, self._pick = [folder / name for name in job.outputs], pick
        self._folder, self._target, self._signal, self._moment = folder, target, name, moment
        self.after = 0.0  # seconds to wait when the moment has come

    def __call__(self, front: psutil.Popen) -> float | None:
        """Strikes in due time; when that was, or None where the job was faster."""
        before, patience = self._look(front.pid), time.monotonic() + LIMIT / 2
        while self._moment != "any" and self._look(front.pid) == before:
            if front.poll() is not None or time.monotonic() > patience:
                return None
        time.sleep(self.after)
        pid, patience = None, time.monotonic() + 0.3
        while pid is None and front.poll() is None and time.monotonic() < patience:
            pid = find(self._target, front.pid, self._pick)
        if pid is None or front.poll() is not None:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, getattr(signal, f"SIG{self._signal}"))
            struck = time.monotonic()
            if (self._signal, self._target) == (
                "STOP",
                "front",
            ):  # while it stands nothing can be asked of it
                time.sleep(1)
                os.kill(pid, signal.SIGCONT)
            return struck
        return None

    def _look(self, front: int) -> object:
        """What changes when the moment has come."""
        if self._moment == "start":
            return find(self._target, front, self._pick)
        if self._moment == "part":
            return any(".part" in name for name in os.listdir(self._folder))
        return [path.stat().st_ino if path.exists() else 0 for path in self._paths]


def main() -> int:
    asked = parser(__doc__ or "", size="large")
    add = asked.add_argument
    add("--targets", type=listed, default=TARGETS, help=f"of {','.join(TARGETS)} (all)")
    add("--signals", type=listed, default=SIGNALS, help=f"of {','.join(SIGNALS)} (all)")
    add(
        "--moment",
        choices=MOMENTS,
        default="any",
        help="; ".join(f"{key}: {text}" for key, text in MOMENTS.items()),
    )
    add("--within", type=float, default=0.02, metavar="SECONDS", help="of --moment (%(default)s)")
    add("--count", type=int, default=100, help="runs in all (%(default)s)")
    given = asked.parse_args()
    with_own_shared_memory()
    pick, bench, tally, late = random.Random(given.seed), Bench(given), Tally(given.count), 0
    with contextlib.closing(bench), interruptible():
        ready = [(job, run.seconds) for job, run in undisturbed(given, bench.run)]
        for i in range(given.count if ready else 0):
            job, seconds = ready[i % len(ready)]
            target, name = pick.choice(given.targets), pick.choice(given.signals)
            strike = Strike(bench.folder, job, target, name, given.moment, pick)
            strike.after = pick.uniform(0, 1.05 * seconds if given.moment == "any" else given.within)
            deadline = ["--timeout", str(DEADLINE)] if name == "STOP" else []
            run = bench.run(job, meddle=strike, more=deadline)
            late += not run.struck
            ends_front = target == "front" and name != "STOP"  # by the signal itself before it is caught
            silent = target == "front" and name == "KILL"
            wrong = judge(run, silent, [-getattr(signal, f"SIG{name}")] if ends_front else [])
            allowed = GONE + (DEADLINE if name == "STOP" else 0)
            if run.struck and run.code and not run.living and run.until_gone > allowed:
                wrong.append(f"LATE all was gone {run.until_gone:.1f} s after the signal, not {allowed:g}")
            what = f"{job.name} · SIG{name} to {target}, {given.moment} + {strike.after:.3f} s"
            tally.add(f"SIG{name} {target}", what + ("" if run.struck else ", too late"), job, run, wrong)
    status = tally.finish(given.json)
    if late:
        print(f"{late} signals came too late: the job had ended")
    return status


if __name__ == "__main__":
    sys.exit(main())
