"""Runs jobs in folders of their own, disturbed or not, and looks at what each run leaves behind."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from jobs import Job, matrix

GONE = 2.0  # seconds after which no process of a job that has ended may live
SHM = Path("/dev/shm")
OWN_SHM = "FAULTS_OWN_SHM"  # stands in the environment where nobody else uses that folder


@dataclass
class Run:
    """How a run ended, and what it left."""

    code: int | None  # None: it had not ended in time
    seconds: float
    said: str
    struck: bool  # whether a signal was sent to it
    until_gone: float  # seconds from that signal until no process was left
    living: list[str]
    segments: list[str]
    left: list[str] = field(default_factory=list)
    states: dict[str, str] = field(
        default_factory=dict
    )  # each output: old, absent, right, or what is wrong with it
    changed: list[str] = field(default_factory=list)  # inputs


def strays(path: Path) -> set[str]:
    """What lies in a folder of tiles, and its manifest does not name."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        tiles = json.loads((path / "manifest.json").read_text())["tiles"]
        return set(os.listdir(path)) - {"manifest.json", *(tile["file"] for tile in tiles)}
    return set()


def content(path: Path) -> object:
    """What a file, or every file that belongs to a folder, holds, to be compared; None: nothing is there."""
    if path.is_dir():
        return {each.name: content(each) for each in path.iterdir() if each.name not in strays(path)}
    return hashlib.sha256(path.read_bytes()).digest() if path.exists() else None


class Bench:
    """Runs job after job, each in a fresh `folder` with its inputs and (unless `new`) old outputs."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.tilewise, self.work = str(Path(given.tilewise).absolute()), Path(given.work).absolute()
        self.new, self.limit = given.new, given.limit
        self.root = self.work / f"case-{os.getpid()}"  # stands in the environment of all that a run starts
        self.folder = self.root / "folder"
        self.store = self.work / f"store-{os.getpid()}"  # inputs and old outputs, made once
        (self.store / "old").mkdir(parents=True)

    def close(self) -> None:
        self._end()
        for folder in (self.root, self.store):
            shutil.rmtree(folder, ignore_errors=True)

    def _start(
        self, words: Iterable[str], folder: Path, said: Path, environment: dict[str, str]
    ) -> psutil.Popen:
        inherited = {
            key: text for key, text in os.environ.items() if not key.startswith(("FAULT_", "OPENBLAS_"))
        }
        mine = {
            "TMPDIR": str(self.root / "tmp"),
            "XDG_CACHE_HOME": str(self.work / "cache"),
            "FAULT_": str(self.root),
        }
        (self.root / "tmp").mkdir(parents=True, exist_ok=True)
        with said.open("wb") as errors:
            return psutil.Popen(
                [self.tilewise, *words],
                cwd=folder,
                env={**inherited, **mine, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )

    def _made(self, name: str, old: bool) -> Path:
        path = self.store / ("old" if old else "") / name
        if path.exists():
            return path
        words: list[str] = []
        if old and path.suffix in (".csv", ".mtx"):
            path.write_text("old text, to be kept\n")
        elif path.suffix == ".npy":
            np.save(path, np.arange(12.0).reshape(3, 4) if old else matrix(path.stem))
        elif path.suffix == ".csv":
            np.savetxt(path, matrix(path.stem), delimiter=",", fmt="%.17g")
        elif path.suffix == ".tiles":
            source = self.store / "old.npy" if old else path.with_suffix(".npy")
            np.save(source, np.ones((9, 8)) if old else matrix(path.stem))
            words = ["convert", str(source), "-o", str(path), "-n", "2"]
        else:
            words = ["svd", "random:5x4", "-o", str(path), "-n", "1"]
        if words and self._start(words, self.store, self.store / "said", {}).wait():
            raise SystemExit((self.store / "said").read_text())
        return path

    def _prepare(self, job: Job) -> dict[str, object]:
        sources = [self._made(name, old=False) for name in job.inputs]
        sources += [] if self.new else [self._made(name, old=True) for name in job.outputs]
        shutil.rmtree(self.root, ignore_errors=True)
        self.folder.mkdir(parents=True)
        sources += job.begun.iterdir() if job.begun is not None else ()
        for source in sources:  # with their times, by which a job knows its inputs again
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, self.folder / source.name)
        return {each.name: content(each) for each in self.folder.iterdir()}

    def run(
        self,
        job: Job,
        environment: dict[str, str] | None = None,
        meddle: Callable[[psutil.Popen], float | None] | None = None,
        more: Iterable[str] = (),
    ) -> Run:
        """Runs `job`; `meddle` is called while it runs, and returns when it sent a signal, if it did."""
        before, segments = self._prepare(job), set(os.listdir(SHM))
        words = [*job.words, *more, *([] if self.new else ["--force"])]
        begin, struck, code = time.monotonic(), None, None
        try:
            front = self._start(words, self.folder, self.root / "said", environment or {})
            struck = meddle(front) if meddle else None
            with contextlib.suppress(subprocess.TimeoutExpired, psutil.TimeoutExpired):
                code = front.wait(max(0.1, begin + self.limit - time.monotonic()))
            ended = time.monotonic()
            while (living := self._processes()) and code is not None and time.monotonic() < ended + GONE:
                time.sleep(0.01)
            gone = time.monotonic()
        finally:
            self._end()
        said = (self.root / "said").read_text(errors="replace")
        names = [f"{name} ({pid})" for pid, name in living.items()]
        fresh = sorted(set(os.listdir(SHM)) - segments)
        run = Run(code, ended - begin, said, struck is not None, gone - (struck or gone), names, fresh)
        for name in fresh if OWN_SHM in os.environ else []:
            (SHM / name).unlink(missing_ok=True)
        self._look(job, run, before)
        return run

    def _look(self, job: Job, run: Run, before: dict[str, object]) -> None:
        after = {each.name: content(each) for each in self.folder.iterdir()}
        run.left = [name for name in after if name not in before and name not in job.outputs]
        if job.begun is not None and run.code == 0:
            run.left += [each.name for each in job.begun.iterdir() if each.name in after]
        run.left += [str(each.relative_to(self.root)) for each in (self.root / "tmp").rglob("*")]
        run.changed = [name for name in job.inputs if after.get(name) != before[name]]
        for name, check in job.outputs.items():
            path = self.folder / name
            run.left += [f"{name}/{each}" for each in sorted(strays(path))]
            if after.get(name) == before.get(name):
                run.states[name] = "old" if name in after else "absent"
                continue
            if name not in after:
                run.states[name] = "the old one is gone"
                continue
            try:
                run.states[name] = check(path) or "right"
            except Exception as error:  # whatever numpy says of a file that is not one
                run.states[name] = f"cannot be read: {type(error).__name__}: {error}"[:150]

    def _processes(self) -> dict[int, str]:
        """What lives of a run: its folder stands in the environment, the arguments or is worked in."""
        mark, found = str(self.root).encode(), {}
        for pid in psutil.pids():
            with contextlib.suppress(OSError):
                process = Path(f"/proc/{pid}")
                name, rest = (process / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
                texts = [(process / each).read_bytes() for each in ("environ", "cmdline")]
                if rest.split()[0] != "Z" and mark in b" ".join(
                    [*texts, os.fsencode(os.readlink(process / "cwd"))]
                ):
                    found[pid] = name
        return found

    def _end(self) -> None:
        for _ in range(100):
            if not (living := self._processes()):
                break
            for pid in living:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
