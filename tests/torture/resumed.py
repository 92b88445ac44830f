"""Kills jobs that keep a journal again and again, lets each go on, and compares it with an undisturbed one.

python tests/torture/resumed.py --count 200 --json resumed.json
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
from pathlib import Path

import numpy
from kills import find

TRIES = 12  # starts of a job, the last ones undisturbed
JOBS = {
    "multiply": ["multiply", "A.npy", "B.npy", "-o", "C.npy", "-t", "1", "--memory"],
    "transpose": ["transpose", "T.npy", "-o", "C.npy", "-t", "1", "--io", "positioned", "--memory"],
    "transpose uncached": ["transpose", "T.npy", "-o", "C.npy", "-t", "1", "--io", "uncached", "--memory"],
}
MEMORY = {"multiply": {1: 64, 2: 112, 3: 168}, "transpose": {1: 58, 2: 116, 3: 174}}
TARGETS = ["front", "launcher", "proxy", "rank"]


def inputs(folder: Path) -> None:
    pick = numpy.random.default_rng(1)
    numpy.save(folder / "A.npy", pick.random((2100, 1900)))
    numpy.save(folder / "B.npy", pick.random((1900, 2300)))
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


def one(tilewise: str, name: str, ranks: int, folder: Path, wanted: bytes, pick: random.Random) -> list[str]:
    """One job, killed until it has been lucky; what was wrong."""
    memory = MEMORY[name.split(maxsplit=1)[0]][ranks]
    words = [tilewise, *JOBS[name], f"{memory}MiB", "-n", str(ranks), "--resume", "-q"]
    wrong, output = [], folder / "C.npy"
    for number in range(TRIES):
        code, said, target = struck(words, folder, pick, pick.uniform(0, 1.2) if number < TRIES - 2 else None)
        settled(folder)
        if code == 0:
            break
        lines = said.splitlines()
        if code not in (1, -9) or sum(line.startswith("tilewise: ") for line in lines) > 1:
            wrong.append(f"{target}: exit {code}, {said!r}")
        if output.exists():
            if output.read_bytes() != wanted:
                wrong.append(f"{target}: a wrong file under the output's name after exit {code}")
            output.unlink()  # it was named before the front was killed
    else:
        wrong.append(f"it never came to an end: {said!r}")
    if output.exists() and output.read_bytes() != wanted:
        wrong.append("the result differs from that of an undisturbed run")
    output.unlink(missing_ok=True)
    left = sorted(each.name for each in folder.iterdir() if each.name.startswith("."))
    if left:
        wrong.append(f"left behind: {left}")
        for each in left:
            path = folder / each
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return wrong


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--tilewise", default=".venv/bin/tilewise")
    made.add_argument("--count", type=int, default=200, help="jobs of each kind (%(default)s)")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--json", type=Path)
    given = made.parse_args()
    tilewise, pick = str(Path(given.tilewise).absolute()), random.Random(given.seed)
    found = []
    with tempfile.TemporaryDirectory(prefix="tilewise-resumed-") as name:
        folder = Path(name)
        inputs(folder)
        for job, command in JOBS.items():
            wanted = {}
            for ranks in (1, 2, 3):
                memory = MEMORY[job.split()[0]][ranks]
                words = [tilewise, *command, f"{memory}MiB", "-n", str(ranks), "-q"]
                subprocess.run(words, cwd=folder, check=True, stderr=subprocess.DEVNULL)
                wanted[ranks] = (folder / "C.npy").read_bytes()
                (folder / "C.npy").unlink()
            for number in range(given.count):
                ranks = pick.choice([1, 2, 3])
                for what in one(tilewise, job, ranks, folder, wanted[ranks], pick):
                    found.append({"job": job, "number": number, "ranks": ranks, "wrong": what})
                    print(f"{job} {number} on {ranks}: {what}", flush=True)
            print(f"{job}: {given.count} jobs, {sum(each['job'] == job for each in found)} wrong", flush=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
