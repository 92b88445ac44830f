"""Calls of a job that fail on purpose: `tests/torture/shim.c`, preloaded and told what to do."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Tilewise

_SOURCE = Path(__file__).parents[1] / "torture" / "shim.c"


def built(folder: Path) -> Path:
    """The library to preload; skips where no C compiler is, or this system's C library is another one."""
    library = folder / "shim.so"
    try:
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", "-o", library, _SOURCE, "-ldl"], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no library to preload can be built: {error}")
    return library


@dataclass
class Call:
    """One call that a process made: `who` is front or rank:K, `nth` of its kind."""

    who: str
    kind: str
    nth: int
    bytes: int
    path: str


@dataclass
class Faults:
    """Runs a command with or without one failing call among those on paths that match `pattern`."""

    run: Tilewise
    library: Path
    pattern: str = "*"

    def __call__(self, *words: object, **told: object) -> subprocess.CompletedProcess[str]:
        """`told`: who, kind, nth, effect, list."""
        shim = {
            "LD_PRELOAD": str(self.library),
            "FAULT_PATH": f"{self.run.folder}/{self.pattern}",
            "FAULT_LOG": str(self._log),
        }
        shim |= {f"FAULT_{name.upper()}": str(value) for name, value in told.items()}
        self._log.unlink(missing_ok=True)
        before = dict(self.run.environment)
        self.run.environment.update(shim)
        try:
            return self.run(*words)
        finally:
            self.run.environment.clear()
            self.run.environment.update(before)

    def calls(self, *words: object) -> list[Call]:
        """Those of an undisturbed run of ranks."""
        ended = self(*words, list=1)
        assert ended.returncode == 0, ended.stderr
        found = [line.split(" ", 7) for line in self._log.read_text().splitlines()]
        return [
            Call(who, kind, int(nth), int(size), path)
            for _, who, _, kind, nth, size, _, path in found
            if who != "front"
        ]

    @property
    def _log(self) -> Path:
        return self.library.parent / "log"
