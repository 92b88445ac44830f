"""The package as it is installed: from a folder without a network, by a module file, beside another MPI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PREFIX = Path(sys.prefix)
MODULE = PREFIX / "share/modulefiles/tilewise"
MPI = "libmpi_abi.so.1"
OWN = (
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "PIP_",
    "SLURM_",
    "PMI",
    "MODULE",
    "LOADEDMODULES",
    "_LM",
    "TILEWISE_",
)


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    return {**kept, **more}


def run(*words: object, folder: Path, **more: str) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def installed() -> None:
    """Skips the test where the package was not installed by its own wheel beside this Python."""
    if not MODULE.is_dir():
        pytest.skip(f"tilewise is not installed in {PREFIX}")


def multiply(command: Path, folder: Path, *words: object, **more: str) -> None:
    """Makes two matrices and multiplies them on two ranks."""
    for name in ("A", "B"):
        run(command, "generate", "-o", f"{name}.npy", "--shape", "40x40", "--force", folder=folder, **more)
    words = ("A.npy", "B.npy", "-o", "C.npy", "-n", "2", "--verify", "serial", "--force", *words)
    run(command, "multiply", *words, folder=folder, **more)


def test_the_module_file_puts_the_command_on_path_and_nothing_else(tmp_path: Path) -> None:
    installed()
    modulecmd = shutil.which("modulecmd")
    if modulecmd is None:
        pytest.skip("Environment Modules are not installed")
    script = run(modulecmd, "bash", "load", "tilewise", folder=tmp_path, MODULEPATH=str(MODULE.parent))
    (tmp_path / "load.sh").write_text(script)
    added = PREFIX / "share/tilewise/bin"
    shown = run("bash", "-c", ". ./load.sh; command -v tilewise; tilewise --version", folder=tmp_path)
    assert shown.splitlines()[0] == str(added / "tilewise") and "0.1" in shown.splitlines()[1]
    assert os.listdir(added) == ["tilewise"]


@pytest.fixture
def other_mpi(tmp_path: Path) -> Iterator[Path]:
    """A second MPI of the standard ABI: the mpich package's files once more, elsewhere."""
    installed()
    if not (PREFIX / "lib" / MPI).exists():
        pytest.skip("the mpich package is not installed beside this Python")
    root = tmp_path / "mpi"
    (root / "bin").mkdir(parents=True)
    shutil.copytree(PREFIX / "lib", root / "lib", ignore=shutil.ignore_patterns("python*"))
    for name in ("mpiexec", "hydra_pmi_proxy"):
        shutil.copy2(PREFIX / "bin" / name, root / "bin")
    yield root
    shutil.rmtree(root)


def test_any_library_of_the_standard_abi_will_do(tmp_path: Path, other_mpi: Path) -> None:
    command = PREFIX / "bin/tilewise"
    there = {"LD_LIBRARY_PATH": str(other_mpi / "lib")}
    told = run(command, "doctor", folder=tmp_path, **there)
    assert str(other_mpi / "lib" / MPI) in told
    multiply(command, tmp_path, "--launcher", other_mpi / "bin/mpiexec", **there)
    assert str(other_mpi) not in run(command, "doctor", folder=tmp_path)


def test_installed_from_a_folder_without_a_network(tmp_path: Path) -> None:
    """What `pip wheel` gathers is all that pip needs; slow, since everything is installed once more."""
    installed()
    folder, venv = tmp_path / "wheels", tmp_path / "venv"
    pip = (sys.executable, "-m", "pip")
    quiet = ("--quiet", "--disable-pip-version-check")
    index = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    run(
        *pip,
        "wheel",
        *quiet,
        "--no-build-isolation",
        "--config-settings=build-dir=build/dev",  # as `make install` has built it
        "--config-settings=cmake.define.TILEWISE_TESTS=ON",
        "--no-deps",
        "-w",
        folder,
        ROOT,
        folder=tmp_path,
        **index,
    )
    (wheel,) = folder.glob("tilewise-*.whl")
    run(*pip, "download", *quiet, "--only-binary=:all:", "-d", folder, wheel, folder=tmp_path, **index)
    run(sys.executable, "-m", "venv", "--without-pip", venv, folder=tmp_path)
    offline = {"PIP_NO_INDEX": "1", "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    target = (*pip, "--python", venv / "bin/python", "install", *quiet, "--no-compile")
    run(*target, "--no-index", "--find-links", folder, "tilewise", folder=tmp_path, **offline)
    multiply(venv / "bin/tilewise", tmp_path)
    assert "two ranks" in run(venv / "bin/tilewise", "doctor", folder=tmp_path)
    shutil.rmtree(venv)
