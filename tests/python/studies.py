"""Small studies for tests, and a runner that answers at once with records whose figures are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewise.engine.child import Ended
from tilewise.lab.study import evaluation
from tilewise.lab.study import run as running
from tilewise.lab.study.points import StudyPoint, expand
from tilewise.lab.study.store import Store, StudyEnvironment
from tilewise.lab.study.study import Study, parse
from tilewise.lab.study.work import Work

MACHINE = {"cores": 2, "cpus": 4, "memory": 8 << 30, "disk": 1 << 40}
HERE = StudyEnvironment(tilewise="0.1.0", machine="here", cpu="a cpu", cores=2, mpi={"mpi": "wheel"})
FLAGS = {
    "--ranks": int,
    "--threads": int,
    "--algorithm": str,
    "--io": str,
    "--verify": str,
    "--sync": bool,
    "--hint": tuple,
    "--tolerance": float,
    "--launcher": str,
    "--hosts": str,
    "--json": str,
    "--output": str,
}


def study(text: str, scale: str = "default", path: str = "s.toml") -> Study:
    """A study with a title and `text`."""
    return parse(f'title = "T"\n{text}', path, "s", scale)


def points(text: str, scale: str = "default", **machine: int) -> list[StudyPoint]:
    return expand(study(text, scale), {**MACHINE, **machine}, lambda command: FLAGS)


def checked(text: str) -> Study:
    """The study, with tables, plots and claims checked as before a run."""
    found = study(text)
    evaluation.check(found, points(text))
    return found


def flag(words: list[str], name: str, default: str = "1") -> str:
    return words[words.index(name) + 1] if name in words else default


def seconds(words: list[str]) -> float:
    """Of a pretended job: 12 s over its ranks, and 1 s more through the root."""
    return 12.0 / int(flag(words, "--ranks")) + (1.0 if flag(words, "--io") == "root" else 0.0)


def record(words: list[str], factor: float = 1.0) -> dict[str, Any]:
    total = seconds(words) * factor
    return {
        "seconds": {"total": {"max": total}, "input": {"max": total / 4}, "wall": total + 1},
        "samples": [{"compute": total}, {"compute": total * 3}],
        "command": words[0],
        "environment": {"virtual": False},
        "verification": None,
    }


class Runner:
    """Answers with `record`, keeps the command lines; `fails` says which of them end with exit code 1."""

    def __init__(
        self, fails: Callable[[list[str]], bool] = lambda words: False, factors: Any = (1.0,)
    ) -> None:
        self.calls: list[list[str]] = []
        self._fails = fails
        self._factors = list(factors)

    def __call__(self, words: list[str], folder: str, timeout: float | None) -> Ended:
        factor = self._factors[len(self.calls) % len(self._factors)]
        self.calls.append(words)
        if self._fails(words):
            return Ended(1, b"", "tilewise: the disk is full\n  try: another disk\n", 0.5)
        return Ended(0, json.dumps(record(words, factor)).encode(), "", 2.0)


def run(
    folder: Path, text: str, runner: Runner, *, scale: str = "default", retry: bool = False, **machine: int
) -> running.StudyOutcome:
    """Runs a study into `folder` as the command does."""
    made = study(text, scale)
    store = Store(str(folder))
    store.keep(made.text, scale, HERE)
    work = Work(str(folder / "work"), keep=False)
    try:
        planned = expand(made, {**MACHINE, **machine}, lambda command: FLAGS)
        return running.run(made, planned, store, work, HERE, runner=runner, retry=retry)
    finally:
        work.close()
        store.close()
