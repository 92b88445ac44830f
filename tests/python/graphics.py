"""Graphics processors that `tests/cuda/driver.cpp` plays: built once, found by the worker as a driver is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import Tilewise

ROOT = Path(__file__).parents[2]
_SOURCES = ROOT / "tests" / "cuda"


def built(folder: Path) -> Path:
    """The folder that has the libraries; skips where no C++ compiler is."""
    for name, source in (("libcuda.so.1", "driver.cpp"), ("libcufile.so.0", "storage.cpp")):
        words = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-I{ROOT / 'cpp'}", "-o", folder / name]
        try:
            done = subprocess.run(
                [*words, _SOURCES / source, "-ldl"], capture_output=True, text=True, check=False
            )
        except OSError as error:
            pytest.skip(f"no driver of the tests can be built: {error}")
        assert done.returncode == 0, done.stderr
    return folder


class Graphics:
    """The command on a machine with such devices. `told` are the driver's environment variables."""

    def __init__(self, run: Tilewise, folder: Path) -> None:
        self.run = run
        self._report = run.folder / "held.txt"
        before = run.environment.get("LD_LIBRARY_PATH", "")
        run.environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(folder), before]))
        run.environment["CUDA_TEST_REPORT"] = str(self._report)

    def __call__(self, *words: object, **told: object) -> subprocess.CompletedProcess[str]:
        """Runs it, and checks that every process that ended by itself gave everything back."""
        self._report.unlink(missing_ok=True)
        names = {f"CUDA_TEST_{name.upper()}": str(value) for name, value in told.items()}
        before = dict(self.run.environment)
        self.run.environment.update(names)
        try:
            ended = self.run(*words)
        finally:
            self.run.environment.clear()
            self.run.environment.update(before)
        assert set(self.held()) == {"held 0 misuses 0"}
        return ended

    def held(self) -> list[str]:
        """What each process had not given back when it ended."""
        return self._report.read_text().splitlines() if self._report.exists() else []
