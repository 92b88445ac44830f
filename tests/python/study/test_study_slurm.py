"""Batch scripts as the real `sbatch` reads them, and what is handed to it: each case was seen with Slurm."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import InProcess, one_message
from studies import HERE, Runner, points, run, study
from tilewise.lab.study import run as running
from tilewise.lab.study import store
from tilewise.lab.study.store import NOT_RUN

STUDY = """
title = "Small"
command = "multiply"
flags = { verify = "off" }
axes.ranks = [1]
axes.io = ["root", "positioned"]
output = "C.npy"
inputs.A = { shape = "4x4" }
inputs.B = { shape = "4x4", seed = 1 }
"""
SUBMIT = ("study", "run", "s.toml", "--submit", "slurm", "--into")


@pytest.fixture
def written(here: InProcess) -> InProcess:
    Path("s.toml").write_text(STUDY)
    return here


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Those of the first script that was written."""
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[0]).read_text().splitlines()


def pretend(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """An sbatch of that text."""
    sbatch = Path("bin/sbatch")
    sbatch.parent.mkdir(exist_ok=True)
    sbatch.write_text(text)
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sbatch.parent.absolute()}:{os.environ['PATH']}")


def test_folders_that_sbatch_would_read_as_patterns(written: InProcess) -> None:
    output = f'#SBATCH "--output={Path.cwd()}/100%%j it\'s/s-%j.out"'
    assert output in lines(written(*SUBMIT, "100%j it's"))
    assert "backslash" in one_message(written(*SUBMIT, "a\\b"), 2)
    assert not Path("a\\b").exists()


def test_an_option_and_its_value_may_stand_apart(written: InProcess) -> None:
    Path("s.toml").write_text(
        STUDY + 'slurm.options = ["--mem 1G", "--comment=a b", "-C big", "--exclusive"]\n'
    )
    script = lines(written(*SUBMIT, "r"))
    for line in ("--mem=1G", '"--comment=a b"', '"-C big"', "--exclusive"):
        assert f"#SBATCH {line}" in script


@pytest.mark.parametrize(("module", "code"), [("echo $NOT_SET", 7), ("return 3", 3)])
def test_modules_may_use_what_is_not_set_but_must_load(written: InProcess, module: str, code: int) -> None:
    Path("s.toml").write_text(STUDY + 'slurm = { modules = ["mpi"], setup = ["exit 7"] }\n')
    path = written(*SUBMIT, "r").stdout.strip()
    told = {**os.environ, "BASH_FUNC_module%%": f"() {{ {module}; }}"}
    assert subprocess.run(["bash", path], env=told, capture_output=True, check=False).returncode == code
    script = Path(path).read_text()
    assert script.index("|| . /etc/profile\n") < script.index("set -e\n") < script.index("module load mpi\n")


@pytest.mark.parametrize(("axes", "ranks"), [("pairs = [1, 3]", 6), ("ranks = [4]\naxes.pairs = [1]", 4)])
def test_pairs_of_a_ping_are_two_ranks_each(written: InProcess, axes: str, ranks: int) -> None:
    Path("s.toml").write_text(f'title = "P"\ncommand = "measure ping"\naxes.{axes}\n')
    assert f"#SBATCH --ntasks={ranks}" in lines(written(*SUBMIT, "r"))


BUFFERS = """
title = "B"
command = "measure file"
axes.ranks = [2]
axes.buffer = ["malloc", "managed"]
limits = ["buffer == 'malloc' or gpus >= 1"]
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", ["--gpus-per-node=1"]),
        ("flags = { gpus = 6 }", ["--gpus-per-node=6"]),
        ('slurm.options = ["--gres=gpu:v100:6"]', ["--gres=gpu:v100:6"]),
    ],
)
def test_buffers_on_a_graphics_processor_ask_for_one(
    written: InProcess, more: str, expected: list[str]
) -> None:
    Path("s.toml").write_text(f"{BUFFERS}{more}\n")
    script = lines(written(*SUBMIT, "r"))
    assert [line[8:] for line in script if "gpu" in line and line.startswith("#SBATCH ")] == expected
    paths = written(*SUBMIT, "p", "--per-point").stdout.splitlines()
    assert len(paths) == 2
    own = more.startswith("slurm")  # asks for all scripts alike
    assert sum("#SBATCH --g" in Path(path).read_text() for path in paths) == (2 if own else 1)


def test_jobs_before_a_refusal_are_told(written: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(
        monkeypatch,
        "#!/bin/sh\n[ ! -e once ] || { echo 'error: too many' >&2; exit 1; }\ntouch once; echo job 17\n",
    )
    done = written(*SUBMIT, "a folder", "--per-point", "--go")
    assert done.stdout == "job 17\n"
    said = one_message(done, 1)
    assert "after 1 of 2 scripts: error: too many" in said and f"--into '{Path.cwd()}/a folder'" in said


def test_an_sbatch_that_cannot_be_started(written: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "no program\n")
    assert "cannot be started: Exec format error" in one_message(written(*SUBMIT, "r", "--go"), 1)


def test_what_a_named_machine_has_done_gets_no_script(written: InProcess) -> None:
    ran = written(
        "study", "run", "s.toml", "--into", "r", "--machine", "m", "--only", "io=root", "--part", "p"
    )
    assert ran.returncode == 0, ran.stderr
    asked = (*SUBMIT, "r", "--per-point", "--machine")
    assert len(written(*asked, "m").stdout.splitlines()) == 1
    assert len(written(*asked, "another").stdout.splitlines()) == 2
    assert len(written(*SUBMIT, "r", "--per-point").stdout.splitlines()) == 2  # nobody knows where it runs
    assert written("study", "run", "s.toml", "--into", "r", "--machine", "m").returncode == 0
    for more in ((), ("--per-point",)):
        done = written(*SUBMIT, "r", "--machine", "m", *more)
        assert done.returncode == 0 and "every point of m was measured already" in done.stdout


def test_a_failed_point_gets_a_script_with_retry(written: InProcess) -> None:
    sizes = STUDY.replace('axes.io = ["root", "positioned"]', "axes.size = [4, 5]")
    Path("s.toml").write_text(
        sizes.replace('inputs.A = { shape = "4x4" }', 'inputs.A = { shape = "4x{size}" }')
    )
    one_message(written("study", "run", "s.toml", "--into", "r", "--machine", "m", "-q"), 1)
    asked = (*SUBMIT, "r", "--per-point", "--machine", "m")
    assert "was measured already" in written(*asked).stdout
    (path,) = written(*asked, "--retry").stdout.splitlines()
    assert "--retry" in Path(path).read_text()


def test_a_point_out_of_reach_where_its_script_runs_is_kept_as_not_run(written: InProcess) -> None:
    Path("s.toml").write_text(STUDY + 'limits = ["cores > 1000000"]\n')
    assert "no point can run here" in one_message(written(*SUBMIT, "r"), 2)
    part = ("study", "run", "s.toml", "--into", "r", "--part", "p", "--only", "io=root", "-q")
    assert written(*part).returncode == 0
    entries, _ = store.load_entries("r")
    assert [(each.status, each.axes["io"]) for each in entries] == [(NOT_RUN, "root")]
    assert "needs 1000001 cores" in entries[0].message


def test_a_point_whose_interval_is_wide_is_not_finished(tmp_path: Path) -> None:
    text = 'command = "multiply"\naxes.ranks = [1, 2]\nstop = { least = 3, most = 6 }\n'
    run(tmp_path, text, Runner(factors=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0]))
    there = points(text)
    assert running.unfinished(study(text), there, str(tmp_path), HERE, retry=False) == []
    path = tmp_path / "points.jsonl"
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in kept:
        if entry["axes"]["ranks"] == 2:
            entry["record"]["seconds"]["total"]["max"] *= 1 + entry["launch"]
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in kept))
    assert running.unfinished(study(text), there, str(tmp_path), HERE, retry=False) == [there[1]]
