"""Makes each I/O call of a job fail in turn, and judges the end: it may fail, but not lie, hang or litter."""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from asked import interruptible, listed, parser, undisturbed, with_own_shared_memory
from jobs import Job
from runs import Bench, Run
from verdict import Tally, judge

# What each kind of call can come to. Besides: zero, torn, delay:MILLISECONDS, signals such as SIGKILL.
EFFECTS = {
    "open": "EIO EINTR EMFILE ESTALE",
    "read": "EIO EINTR short zero",
    "pread": "EIO EINTR short zero",
    "submit": "EIO short zero",
    "write": "EIO ENOSPC EINTR short",
    "pwrite": "EIO ENOSPC EINTR short",
    "close": "EIO lost",
    "fsync": "EIO ENOSPC",
    "ftruncate": "EIO ENOSPC",
    "fallocate": "ENOSPC EOPNOTSUPP EINTR",
    "rename": "EIO EACCES EXDEV",
    "link": "EPERM EIO",
    "unlink": "EIO EACCES",
    "mkdir": "EIO ENOSPC",
    "rmdir": "EIO",
    "mmap": "ENOMEM",
    "msync": "EIO",
}

Calls = dict[tuple[str, str], list[int]]  # bytes of each call, by who made it and its kind


def compile_shim(library: Path) -> None:
    """Compiles the library to preload; raises OSError or CalledProcessError where that is not possible."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    source = Path(__file__).with_name("shim.c")
    words = [*compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(words, check=True, capture_output=True)


class Sweep:
    """Runs of jobs under the shim."""

    def __init__(self, bench: Bench, pattern: str) -> None:
        self._bench, self._pattern = bench, f"{bench.folder}/{pattern}"
        self._library, self._log = bench.work / "shim.so", bench.root / "log"
        compile_shim(self._library)

    def run(self, job: Job, **told: str) -> Run:
        where = {"FAULT_PATH": self._pattern, "FAULT_LOG": str(self._log), "LD_PRELOAD": str(self._library)}
        return self._bench.run(job, where | told)

    def log(self, what: str) -> list[list[str]]:
        """Of the last run: who, pid, kind, n, bytes, offset and path of each `call` or `hit`."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return [rest.split(" ", 6) for first, rest in (line.split(" ", 1) for line in lines) if first == what]

    def begin(self, job: Job, place: Path) -> bool:
        """Kills rank 0 of `job` half-way through its writes; whether that left a journal, now in `place`."""
        writes = len(self.calls().get(("rank:0", "pwrite"), []))
        struck = {"FAULT_WHO": "rank:0", "FAULT_KIND": "pwrite", "FAULT_NTH": str(writes // 2 + 1)}
        self.run(job, **struck, FAULT_EFFECT="SIGKILL")
        left = [each for each in self._bench.folder.iterdir() if each.name.startswith(".")]
        for each in left:
            (shutil.copytree if each.is_dir() else shutil.copy2)(each, place / each.name)
        return any(each.suffix == ".journal" for each in left)

    def calls(self) -> Calls:
        found: Calls = {}
        for who, _, kind, _, size, *_ in self.log("call"):
            found.setdefault((who, kind), []).append(int(size))
        return found

    def hit(self) -> str:
        """The path that was hit by the fault."""
        return next((path.replace(f"{self._bench.folder}/", "") for *_, path in self.log("hit")), "")


def wanted(faults: list[str]) -> dict[str, list[str]]:
    """The effects asked for, by kind of call."""
    table: dict[str, list[str]] = {}
    for fault in faults:
        kind, _, effect = fault.partition(":")
        for each in EFFECTS if kind == "all" else [kind]:
            if each not in EFFECTS:
                raise SystemExit(f"there is no kind of call {each}; there are all, {', '.join(EFFECTS)}")
            table.setdefault(each, []).extend([effect] if effect else EFFECTS[each].split())
    return table


def plan(
    calls: Calls, faults: dict[str, list[str]], who: str, nth: str
) -> Iterator[tuple[str, str, str, str]]:
    """Who is struck, in which call of which kind, by what; `lost` only where something was written."""
    for (maker, kind), sizes in calls.items():
        for n, size in enumerate(sizes, 1):
            if who in ("any", maker, maker.split(":")[0]) and nth.rstrip("+") in ("", str(n)):
                for effect in faults.get(kind, []):
                    if effect != "lost" or size > 0:
                        yield maker, kind, nth or str(n), effect


def main() -> int:
    asked = parser(__doc__ or "", size="small")
    add = asked.add_argument
    add(
        "--faults",
        type=listed,
        default=["all"],
        help="of KIND and KIND:EFFECT, as in close:lost,rename,all:SIGINT (all)",
    )
    add("--who", default="any", help="front, rank, rank:K or any (any)")
    add("--nth", default="", help="only this call of each kind; 3+: that and all later ones")
    add(
        "--path",
        default="*",
        metavar="PATTERN",
        help="only calls on paths in the job's folder such as '*.part*' (*)",
    )
    add("--resumed", action="store_true", help="jobs that go on where a kill has left them")
    add("--every", type=int, default=1, metavar="K", help="a random sample: one fault of K")
    add("--times", type=int, default=1, help="each fault so many times")
    given = asked.parse_args()
    with_own_shared_memory()
    faults, bench, tally, missed = wanted(given.faults), Bench(given), Tally(), 0
    with contextlib.closing(bench), interruptible():
        sweep = Sweep(bench, given.path)
        cases: list[tuple[Job, str, str, str, str]] = []
        for number, (whole, _) in enumerate(undisturbed(given, lambda job: sweep.run(job, FAULT_LIST="1"))):
            job = whole
            if given.resumed:
                (place := bench.store / f"begun-{number}").mkdir()
                if not sweep.begin(whole, place):
                    print(f"{whole.name}: left out, as it keeps nothing to go on from")
                    continue
                job = whole.going_on(place)
                sweep.run(job, FAULT_LIST="1")
            cases += [
                (job, *fault) for fault in plan(sweep.calls(), faults, given.who, given.nth)
            ] * given.times
        if given.every > 1:
            cases = random.Random(given.seed).sample(cases, -(-len(cases) // given.every))
        tally.total = len(cases)
        for job, who, kind, nth, effect in cases:
            run = sweep.run(job, FAULT_WHO=who, FAULT_KIND=kind, FAULT_NTH=nth, FAULT_EFFECT=effect)
            path = sweep.hit()
            missed += not path
            killed = who == "front" and effect in ("SIGKILL", "torn")
            signalled = who == "front" and effect.startswith("SIG")  # which may end it before it is caught
            wrong = judge(run, killed, (-9, -15, -2) if killed or signalled else ())
            command = f"{job.name.rsplit(' ', 2)[0]} {kind}:{effect}"
            tally.add(
                command,
                f"{job.name} · {who} {kind} {nth} {effect} · {path or 'not reached'}",
                job,
                run,
                wrong,
            )
    status = tally.finish(given.json)
    if missed:
        print(f"{missed} faults were not reached: the job made fewer calls than undisturbed")
    return status


if __name__ == "__main__":
    sys.exit(main())
