"""Modules of somebody else, in each folder that a child of ours starts in: none of them is run."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Tilewise

STANDARD = ("__future__", "json", "shlex", "typing", "sitecustomize", "usercustomize")
STUDY = """
title = "One point"
command = "multiply"
flags = { verify = "off", ranks = 1 }
inputs.A = { shape = "4x4" }
inputs.B = { shape = "4x4" }
output = "C.npy"
"""
CALL = "import tilewise; tilewise.multiply('A.npy', 'B.npy', out='C.npy', ranks=1)"
RUN = ("-m", "tilewise", "study", "run", "s.toml", "-q")


def modules() -> list[str]:
    """All that is imported of each of our dependencies, and modules that every command needs."""
    found = {"tilewise", *STANDARD}
    needed = [re.split(r"[^\w.-]", each)[0].lower() for each in importlib.metadata.requires("tilewise") or []]
    for module, distributions in importlib.metadata.packages_distributions().items():
        if any(each.lower() in needed for each in distributions) and module.isidentifier():
            found.add(module)
    assert {"msgspec", "numpy", "PIL", "h5py", "zarr"} <= found
    return sorted(found)


def plant(folder: Path, ran: Path) -> None:
    """A module in `folder` for each of these names, which writes its own into `ran`."""
    folder.mkdir(exist_ok=True)
    for name in modules():
        (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write({str(folder / name)!r} + '\\n')\n")


def python(fake: Tilewise, *words: object, **more: str) -> None:
    """Runs this Python to its end, with modules in the current folder, and none of them is run."""
    ran = fake.folder.parent / "ran"
    for folder in (fake.folder, fake.folder / "work", fake.folder / "results"):
        plant(folder, ran)
    (fake.folder / "s.toml").write_text(STUDY)
    told = {**fake.environment, "FAKE": "", **more}
    line = [sys.executable, "-P", *map(str, words)]
    done = subprocess.run(line, cwd=fake.folder, env=told, capture_output=True, text=True, check=False)
    assert not ran.exists(), ran.read_text()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("where", ["in the folder", "elsewhere"])
def test_a_script(fake: Tilewise, where: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    script = (fake.folder if where == "in the folder" else tmp_path_factory.mktemp("own")) / "script.py"
    script.write_text(CALL)
    python(fake, script)


def test_a_study(fake: Tilewise) -> None:
    python(fake, *RUN, "--work", "work", "--into", "results")


def test_a_batch_script(fake: Tilewise) -> None:
    python(fake, *RUN, "--work", "work", "--into", "results", "--submit", "slurm")
    (script,) = (fake.folder / "results").glob("*.sbatch")
    python(fake, "-c", f"import subprocess; subprocess.run(['bash', {str(script)!r}], check=True)")


def test_paths_for_modules_mean_the_same_in_every_folder(fake: Tilewise) -> None:
    (fake.folder / "work").mkdir()
    plant(fake.folder / "work/lib", fake.folder.parent / "ran")
    python(fake, *RUN, "--work", "work", PYTHONPATH=f"lib:{fake.environment['PYTHONPATH']}")
