"""Kills jobs that keep a journal again and again, lets each go on, and compares it with an undisturbed one.

python tests/torture/resumed.py --kills 200 --json resumed.json
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
from kills import find

TRIES = 12  # starts of a job, the last ones undisturbed
SWEEPS = ["stencil", "A.npy", "-o", "C.npy", "-t", "1", "--checkpoint", "0.05s", "--steps"]
RING = ["svd", "S.npy", "-o", "C", "-t", "1", "--algorithm", "jacobi"]
JOBS = {
    "multiply": ["multiply", "A.npy", "B.npy", "-o", "C.npy", "-t", "1", "--memory"],
    "transpose": ["transpose", "T.npy", "-o", "C.npy", "-t", "1", "--io", "positioned", "--memory"],
    "transpose uncached": ["transpose", "T.npy", "-o", "C.npy", "-t", "1", "--io", "uncached", "--memory"],
    "stencil": [*SWEEPS, "400", "--kernel", "plain"],
    "stencil larger than memory": [*SWEEPS, "60", "--depth", "4", "--io", "positioned", "--memory"],
    "svd": [*RING, "--start", "none", "--inner", "rotations", "--checkpoint", "0.05s"],
}
MEMORY = {
    "multiply": {1: 45, 2: 78, 3: 114},
    "transpose": {1: 58, 2: 116, 3: 174},
    "transpose uncached": {1: 58, 2: 116, 3: 174},
    "stencil larger than memory": {1: 64, 2: 128, 3: 192},
}
TARGETS = ["front", "launcher", "proxy", "rank"]


Held = dict[str, bytes]


@dataclass
class Found:
    """How a job went."""

    kills: int = 0
    wrong: list[str] = field(default_factory=list)


def inputs(folder: Path) -> None:
    pick = numpy.random.default_rng(1)
    numpy.save(folder / "A.npy", pick.random((2100, 1900)))
    numpy.save(folder / "B.npy", pick.random((1900, 2300)))
    numpy.save(folder / "S.npy", pick.random((330, 300)))
    numpy.save(folder / "T.npy", pick.integers(0, 1 << 30, (3001, 5777), dtype=numpy.int32))


def struck(words: list[str], folder: Path, pick: random.Random, delay: float | None) -> tuple[int, str, str]:
    """Runs a job, and kills a process of it after a delay; the exit code, what it said, and the target."""
    front = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    target = ""
    if delay is not None:
        time.sleep(delay)
        target = pick.choice(TARGETS)
        pid = find(target, front.pid, pick) if front.poll() is None else None
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    try:
        _, said = front.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        front.kill()
        return -1, "no end within 60 s", target
    return front.returncode, said, target


def settled(folder: Path) -> None:
    """Waits until the guardian of a killed front has done its work."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        inside = [each for each in Path("/proc").glob("[0-9]*/cwd") if _is(each, folder)]
        if not inside:
            return
        time.sleep(0.02)


def _is(link: Path, folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.readlink(link) == str(folder)
    return False


def words_of(tilewise: str, name: str, ranks: int) -> list[str]:
    """The command."""
    limit = [f"{MEMORY[name][ranks]}MiB"] if name in MEMORY else []
    return [tilewise, *JOBS[name], *limit, "-n", str(ranks), "-q"]


def held(folder: Path) -> Held:
    """The numbers under the output's name, of which there may be none."""
    if (folder / "C").is_dir():
        return {path.name: path.read_bytes() for path in (folder / "C").glob("*.npy")}
    return {"C.npy": (folder / "C.npy").read_bytes()} if (folder / "C.npy").exists() else {}


def forget(folder: Path) -> None:
    """Removes the output."""
    shutil.rmtree(folder / "C", ignore_errors=True)
    (folder / "C.npy").unlink(missing_ok=True)


def one(
    words: list[str], longest: float, folder: Path, wanted: dict[str, bytes], pick: random.Random
) -> Found:
    """One job, killed until it has been lucky: how often, and what was wrong."""
    found = Found()
    for number in range(TRIES):
        delay = pick.uniform(0, longest) if number < TRIES - 2 else None
        code, said, target = struck([*words, "--resume"], folder, pick, delay)
        settled(folder)
        if code == 0:
            break
        found.kills += 1
        lines = said.splitlines()
        if code not in (1, -9) or sum(line.startswith("tilewise: ") for line in lines) > 1:
            found.wrong.append(f"{target}: exit {code}, {said!r}")
        if result := held(folder):
            if result != wanted:
                found.wrong.append(f"{target}: a wrong result under the output's name after exit {code}")
            forget(folder)  # it was named before the front was killed
    else:
        found.wrong.append(f"it never came to an end: {said!r}")
    if (result := held(folder)) and result != wanted:
        found.wrong.append("the result differs from that of an undisturbed run")
    forget(folder)
    left = sorted(each.name for each in folder.iterdir() if each.name.startswith("."))
    if left:
        found.wrong.append(f"left behind: {left}")
        for each in left:
            path = folder / each
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return found


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--tilewise", default=".venv/bin/tilewise")
    made.add_argument("--kills", type=int, default=200, help="of each kind of job (%(default)s)")
    made.add_argument("--only", help="one kind of job")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--json", type=Path)
    given = made.parse_args()
    tilewise, pick = str(Path(given.tilewise).absolute()), random.Random(given.seed)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="tilewise-resumed-") as name:
        folder = Path(name)
        inputs(folder)
        for job in [given.only] if given.only else JOBS:
            wanted, seconds = {}, {}
            for ranks in (1, 2, 3):
                begun = time.monotonic()
                words = words_of(tilewise, job, ranks)
                subprocess.run(words, cwd=folder, check=True, stderr=subprocess.DEVNULL)
                seconds[ranks] = time.monotonic() - begun
                wanted[ranks] = held(folder)
                forget(folder)
            jobs, kills, wrong = 0, 0, []
            while kills < given.kills:
                jobs += 1
                ranks = pick.choice([1, 2, 3])
                words = words_of(tilewise, job, ranks)
                seen = one(words, seconds[ranks], folder, wanted[ranks], pick)
                kills += seen.kills
                for what in seen.wrong:
                    wrong.append({"job": jobs, "ranks": ranks, "wrong": what})
                    print(f"{job} {jobs} on {ranks}: {what}", flush=True)
            print(f"{job}: {jobs} jobs, {kills} kills, {len(wrong)} wrong", flush=True)
            found[job] = {"jobs": jobs, "kills": kills, "wrong": wrong}
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return 1 if any(each["wrong"] for each in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
