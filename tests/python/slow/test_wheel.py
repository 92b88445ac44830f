"""The wheel in a bare environment without a compiler, under every Python here; `make wheel` builds it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import graphics
import numpy
import pytest

ROOT = Path(__file__).resolve().parents[3]
OLDEST, NEWEST = 11, 15  # minor versions of Python 3
OWN = ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "SLURM_", "PMI", "TILEWISE_", "CC", "CXX")


def interpreter(minor: int) -> str:
    """A working Python 3.`minor` of this machine; skips the test where there is none."""
    kept = Path.home() / ".pyenv/versions"
    named = [shutil.which(f"python3.{minor}"), *sorted(kept.glob(f"3.{minor}.*/bin/python3"))]
    for candidate in [sys.executable, *filter(None, named)]:
        asked = [str(candidate), "-c", "import sys, venv; print(sys.version_info[1])"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == str(minor):
            return str(candidate)
    pytest.skip(f"Python 3.{minor} is not installed")


def wheel() -> Path:
    """The newest wheel that was built; skips the test where there is none."""
    built = sorted(
        (ROOT / "dist").glob(f"tilewise-*-manylinux*_{platform.machine()}.whl"), key=os.path.getmtime
    )
    if not built:
        pytest.skip("no wheel was built. Try: make wheel")
    return built[-1]


def run(*words: object, folder: Path, environment: dict[str, str]) -> str:
    """Standard output of a command that has to succeed."""
    command = [str(word) for word in words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("minor", range(OLDEST, NEWEST + 1))
def test_the_wheel_makes_a_product_without_a_compiler(minor: int, tmp_path: Path) -> None:
    package, python, venv = wheel(), interpreter(minor), tmp_path / "venv"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    run(python, "-m", "venv", "--without-pip", venv, folder=tmp_path, environment=clean)
    pip = (sys.executable, "-m", "pip", "--python", venv / "bin/python", "install", "--quiet", "--no-compile")
    run(*pip, "--only-binary=:all:", package, folder=tmp_path, environment=clean)
    bare = {**clean, "PATH": str(venv / "bin"), "HOME": str(tmp_path)}
    a, b = (numpy.random.default_rng(seed).random((37, 37)) for seed in (1, 2))
    numpy.save(tmp_path / "A.npy", a)
    numpy.save(tmp_path / "B.npy", b)

    words = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", "2", "--verify", "serial", "-q")
    run(venv / "bin/tilewise", *words, folder=tmp_path, environment=bare)

    if minor == OLDEST:
        words = ("measure", "file", "-n", 1, "--buffer", "device", "--io", "positioned", "--launches", 1)
        command = [str(word) for word in (venv / "bin/tilewise", *words, "--block", "64KiB", "--runs", 1)]
        ended = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True, check=False)
        assert ended.returncode == 2 and "no graphics processor (no driver: libcuda.so.1" in ended.stderr
        played = {**bare, "LD_LIBRARY_PATH": str(graphics.built(tmp_path))}
        run(*command, folder=tmp_path, environment=played)

    assert shutil.which("c++", path=bare["PATH"]) is None
    numpy.testing.assert_allclose(numpy.load(tmp_path / "C.npy"), a @ b, rtol=1e-12)
    shutil.rmtree(venv)
