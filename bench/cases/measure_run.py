"""What the cases of `measure` share: the command on either MPI library, and lines by what they are of."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from harness import BIN, ROOT, NotRun, clean_environment

Measured = dict[str, Any]
MPIS = ("mpich", "openmpi")


def settings(mpi: str) -> dict[str, str]:
    """The variables that make the command use that library; NotRun where there is no worker on it."""
    if mpi == "mpich":
        return {}
    built = Path(os.environ.get("TILEWISE_OPENMPI_WORKER", ROOT / "build/openmpi/tilewise-worker"))
    if not built.exists() or shutil.which("mpiexec.openmpi") is None:
        raise NotRun("no worker on Open MPI: make test-cpp-openmpi")
    return {"TILEWISE_WORKER": str(built)}


def measure(result: Path, *words: Any, mpi: str = "mpich", **more: str) -> tuple[Measured, float]:
    """`tilewise measure words…`: what it wrote to `result`, and the seconds that the command took.

    It has a cache of its own beside `result`, so that no profile of this machine is replaced. `more` are
    variables.
    """
    command = [BIN / "tilewise", "measure", *words, "--json", result, "-q"]
    places = {"XDG_CACHE_HOME": str(result.parent / ".cache")}
    start = time.perf_counter()
    done = subprocess.run(
        [str(word) for word in command],
        env=clean_environment(**settings(mpi), **places, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise NotRun(f"tilewise measure {' '.join(map(str, words))}: {done.stderr.strip()[-200:]}")
    measurement: Measured = json.loads(result.read_text())
    return measurement, seconds


def lines(measurement: Measured, **wanted: Any) -> list[dict[str, Any]]:
    """The measured lines whose fields are as wanted."""
    return [
        line
        for line in measurement["lines"]
        if line["summary"] and all(line.get(field) == value for field, value in wanted.items())
    ]
