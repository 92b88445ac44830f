"""What runs that is not tilewise is said before it does; what others own is neither trusted nor changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STUDY = """
title = "T"

[[runs]]
name = "a"
command = "norm"
words = ["random:9x9:float64"]
flags = { ranks = 1, launcher = "./theirs.sh" }

[slurm]
setup = ["touch theirs"]
"""


def command(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "tilewise", *words],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "TILEWISE_NO_LEARN": "1", **more},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_study_says_once_what_it_runs(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(STUDY)
    (tmp_path / "theirs.sh").write_text("#!/bin/sh\necho they run >&2\nexit 1\n")
    (tmp_path / "theirs.sh").chmod(0o700)
    said = command(tmp_path, "study", "run", "s.toml").stderr
    assert said.count("s.toml runs ./theirs.sh") == 1
    said = command(tmp_path, "study", "run", "s.toml", "--submit", "slurm").stderr
    assert said.count("s.toml runs touch theirs") == 1
    assert not list(tmp_path.rglob("theirs"))


def test_the_token_is_in_no_file_and_no_message(tmp_path: Path) -> None:
    """Cores have it, as the environment that they are of; they are their user's, and come after the job."""
    words = ("multiply", "random:99x99:float64", "random:99x99:float64:2", "-o", "C.npy", "-n", "2")
    more = ("--launcher", "mpiexec", "--json", "r.json", "--trace", "t.json", "-v")
    path = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))
    seen = tmp_path / "seen"
    worker = tmp_path / "tilewise-worker"
    real = subprocess.run(
        [sys.executable, "-P", "-c", "from tilewise.launch import worker; print(worker.find())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    worker.write_text(
        f'#!/bin/sh\n[ -z "$TILEWISE_FRONT" ] || echo "$TILEWISE_FRONT" >>{seen}\nexec {real} "$@"\n'
    )
    worker.chmod(0o700)
    done = command(tmp_path, *words, *more, PATH=path, TILEWISE_WORKER=str(worker))
    if not seen.exists():
        pytest.skip(f"no ranks under a launcher here: {done.stderr}")
    token = seen.read_text().split()[0]
    seen.unlink()
    assert len(token) == 32 and token not in done.stdout + done.stderr
    for path_ in tmp_path.rglob("*"):
        assert not path_.is_file() or token.encode() not in path_.read_bytes(), path_


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
@pytest.mark.parametrize("name", ["profile.json", "profile.lock"])
def test_a_cache_of_others_is_left_alone(tmp_path: Path, name: str) -> None:
    """Also where what lies there leads to a file of ours."""
    victim, theirs = tmp_path / "victim", tmp_path / "theirs"
    victim.write_text("ours")
    (theirs / "tilewise").mkdir(parents=True)
    (theirs / "tilewise" / name).symlink_to(victim)
    os.chown(theirs / "tilewise", 65534, 65534)
    words = ("generate", "-o", "A.npy", "--shape", "9x9", "-n", "1")
    done = command(tmp_path, *words, XDG_CACHE_HOME=str(theirs), TILEWISE_NO_LEARN="")
    assert done.returncode == 0 and victim.read_text() == "ours"
    assert [path.name for path in (theirs / "tilewise").iterdir()] == [name]


def test_temporary_files_are_ours_alone_in_a_folder_of_others(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o777)
    code = "import os, sys; from tilewise import files; from tilewise.files.reading import binary\n"
    code += "with binary(files.inspect('a.csv')) as region:\n"
    code += "    there = os.path.dirname(region.path); print(oct(os.stat(there).st_mode), there)"
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    said = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(theirs)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith("0o40700 ") and str(theirs) in said and not list(theirs.iterdir())
