"""The example of a C++ program that uses the installed library builds and runs, as its how-to page says."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/dev"
BIN = Path(sys.executable).parent


def run(*words: object) -> str:
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    command = [str(word) for word in words]
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not (BUILD / "build.ninja").exists(), reason="the library is not built: make install")
def test_the_consumer_builds_against_the_installed_library_and_runs(tmp_path: Path) -> None:
    installed, build = tmp_path / "installed", tmp_path / "build"
    run("cmake", "--build", BUILD, "--target", "tilewise")
    run("cmake", "--install", BUILD, "--component", "library", "--prefix", installed)

    run(
        "cmake",
        "-S",
        ROOT / "examples/consumer",
        "-B",
        build,
        "-G",
        "Ninja",
        f"-DCMAKE_PREFIX_PATH={installed}",
    )
    run("cmake", "--build", build)

    for ranks in (1, 2, 3):
        assert "verified: yes" in run("mpiexec", "-n", ranks, build / "consumer", tmp_path / "C.npy")
        product = np.load(tmp_path / "C.npy")
        i, k = np.arange(300)[:, None], np.arange(200)[None, :]
        assert np.array_equal(product, ((i + 2 * k) % 7) @ np.arange(20000.0).reshape(200, 100))
    assert not (installed / "include/tilewise/multiply").exists()
