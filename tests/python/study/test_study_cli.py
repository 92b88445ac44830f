"""`tilewise study` as a command: what it shows, dry runs, batch scripts, exports, comparison."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import InProcess, one_message, path_without
from studies import Runner, run
from tilewise.lab.study import export, shipped

STUDY = """
title = "Two ways"
command = "multiply"
flags = { verify = "off", threads = 2 }
axes.ranks = [1, 2, 4]
axes.io = ["root", "positioned"]
limits = ["ranks < 4"]
output = "C.npy"
inputs.A = { shape = "{16 * ranks}x4" }
inputs.B = { path = "B.npy" }
slurm = { account = "abc", modules = ["mpi/5", "gcc"], options = ["--exclusive", "--comment=two words"] }
"""


@pytest.fixture
def written(here: InProcess) -> InProcess:
    Path("s.toml").write_text(STUDY)
    return here


def test_list_and_show(written: InProcess) -> None:
    listed = written("study", "list")
    assert (
        listed.returncode == 0 and [line.split()[0] for line in listed.stdout.splitlines()] == shipped.names()
    )
    shown = written("study", "show", "s.toml").stdout
    assert shown.startswith("s: Two ways") and "4 points to run here, 2 out of reach" in shown
    assert "ranks: 1, 2, 4; io: root, positioned" in shown


def test_dry_run_shows_every_command_line(written: InProcess) -> None:
    shown = written("study", "run", "s.toml", "--dry-run").stdout.splitlines()
    jobs = [line for line in shown if line.startswith("tilewise multiply random-")]
    assert len(jobs) == 4 and len(set(jobs)) == 4
    assert "--ranks 2 --io root --verify off --threads 2" in "\n".join(jobs)
    made = [line for line in shown if line.startswith("tilewise generate")]
    assert made == [
        f"tilewise generate -o random-{n}x4-float64-0.npy --shape {n}x4 --dtype float64 --kind random"
        " --seed 0"
        for n in (16, 32)
    ]
    assert (
        sum(line.startswith("# not run: needs ranks < 4; here ranks is 4: tilewise") for line in shown) == 2
    )
    assert not Path("results").exists()


def test_only(written: InProcess) -> None:
    def lines(*words: str) -> int:
        shown = written("study", "run", "s.toml", "--dry-run", *words).stdout.splitlines()
        return sum(line.startswith("tilewise multiply") for line in shown)

    assert lines("--only", "ranks=2") == 2
    assert lines("--only", "ranks=1,2", "--only", "io=root") == 2
    assert lines("--only", "run=main") == 4
    assert "axes are run, ranks, io" in one_message(written("study", "run", "s.toml", "--only", "rank=2"), 2)
    for only, lacks in (("ranks=7", "'7'"), ("ranks=2,io=root", "'io=root'"), ("ranks=1,7", "'7'")):
        said = one_message(written("study", "run", "s.toml", "--only", only), 2)
        assert f"--only {only}: ranks has no value {lacks}" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "study has no subcommand 'nonsense'; choose from list, show, run, compare, export"),
        (["run"], "study run needs NAME"),
        (["run", "quik"], "try: tilewise study show quick"),
        (["run", "s.toml", "--sclae", "tiny"], "study run has no flag --sclae"),
        (["run", "nope.toml"], "No such file"),
        (["export", "nope", "--csv", "x.csv"], "nope: No such file"),
        (["export", "."], "export needs a file"),
        (["compare", ".", "."], "holds no results of a study"),
    ],
)
def test_mistakes(written: InProcess, words: list[str], said: str) -> None:
    assert said in one_message(written("study", *words), 2)


def test_one_script_for_all(written: InProcess) -> None:
    done = written("study", "run", "s.toml", "--submit", "slurm", "--time", "00:10:00", "--into", "r")
    assert done.returncode == 0, done.stderr
    (path,) = done.stdout.split()
    text = Path(path).read_text()
    for line in (
        "#SBATCH --job-name=s", "#SBATCH --ntasks=2", "#SBATCH --cpus-per-task=2", "#SBATCH --account=abc",
        "#SBATCH --time=00:10:00", "#SBATCH --exclusive", '#SBATCH "--comment=two words"',
        "module load mpi/5",
    ):  # fmt: skip
        assert line in text.splitlines()
    assert subprocess.run(["bash", "-n", path], check=False).returncode == 0
    assert f"exec {sys.executable} -P -m tilewise study run" in text
    assert not Path("r/points.jsonl").exists()


def test_a_script_for_each_point_runs_it_and_no_other(written: InProcess) -> None:
    done = written(
        "study", "run", "s.toml", "--submit", "slurm", "--per-point", "--into", "r", "--machine", "m"
    )
    paths = done.stdout.split()
    assert len(paths) == 4
    assert sorted(Path(path).read_text().count("--ntasks=2") for path in paths) == [0, 0, 1, 1]
    environment = {**os.environ, "BASH_FUNC_module%%": "() { :; }"}
    for path in paths:  # as Slurm would
        ran = subprocess.run(["bash", path], capture_output=True, text=True, check=False, env=environment)
        assert ran.returncode == 0, ran.stderr
    entries = [
        json.loads(line)
        for file in Path("r").glob("points.*.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert len(list(Path("r").glob("points.*.jsonl"))) == 4
    assert sorted((e["axes"]["ranks"], e["axes"]["io"]) for e in entries) == [
        (1, "positioned"), (1, "root"), (2, "positioned"), (2, "root"),
    ]  # fmt: skip
    again = written("study", "run", "s.toml", "--into", "r", "--machine", "m")
    assert "0 launches, 4 reused, 4 points done, 2 not run" in again.stdout


def test_go_needs_sbatch_and_says_what_it_said(
    written: InProcess, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("PATH", path_without("sbatch", tmp_path_factory.mktemp("path")))
    words = ("study", "run", "s.toml", "--submit", "slurm", "--go", "--into", "r")
    assert "--go needs sbatch" in one_message(written(*words), 2)
    assert not Path("r").exists()
    sbatch = Path("bin/sbatch")
    sbatch.parent.mkdir()
    sbatch.write_text("#!/bin/sh\necho Submitted batch job 17 $1\n")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sbatch.parent.absolute()}:{os.environ['PATH']}")
    assert written(*words).stdout.startswith("Submitted batch job 17 /")
    sbatch.write_text("#!/bin/sh\necho no such account >&2\nexit 1\n")
    assert "refused" in one_message(written(*words), 1)


TEXT = 'command = "multiply"\naxes.ranks = [1, 2]\naxes.io = ["a,\\"b", "root"]\nlaunches = 2\n'


def test_csv_round_trip(here: InProcess, tmp_path: Path) -> None:
    run(tmp_path / "r", TEXT, Runner(factors=[1.0, 1 / 3]))
    assert here("study", "export", "r", "--csv", "x.csv").returncode == 0
    with open("x.csv", newline="") as file:
        back = list(csv.DictReader(file))
    rows = export.rows("r")
    assert len(back) == len(rows) == 8
    for one, two in zip(back, rows, strict=True):
        assert float(one["seconds.total.max"]) == two["seconds.total.max"]
        assert one["io"] == two["io"] and int(one["launch"]) == two["launch"]
        assert (
            one["command_seconds"] == "2.0" and one["record.command"] == ""
            if "record.command" in one
            else True
        )
        assert one["verification"] == "" and two["verification"] is None
    text = Path("x.csv").read_bytes()
    assert b"\r" not in text and here("study", "export", "r", "--csv", "-").stdout.encode() == text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "r", "--csv", "r/points.jsonl"), "--csv r/points.jsonl is also an input"),
        (("export", "r", "--csv", "x", "--parquet", "./x"), "--parquet ./x is also an input"),
        (("export", "r", "--parquet", "r"), "--parquet r is a folder"),
        (("export", "r", "--csv", "nope/x.csv"), "--csv nope/x.csv"),
        (("export", "r", "--parquet", "-"), "--parquet"),
        (("compare", "r", "r", "--json", "r/study.toml"), "--json r/study.toml is also an input"),
    ],
)
def test_answers_replace_nothing_that_they_are_made_of(
    here: InProcess, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    run(tmp_path / "r", TEXT, Runner())
    before = {path.name: path.read_bytes() for path in Path("r").iterdir()}
    assert said in one_message(here("study", *words), 2)
    assert {path.name: path.read_bytes() for path in Path("r").iterdir()} == before
    assert not Path("x").exists()


def test_parquet_needs_pyarrow(here: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "r", TEXT, Runner())
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    assert "'tilewise[arrow]'" in one_message(here("study", "export", "r", "--parquet", "x"), 2)


def test_parquet_has_the_rows(here: InProcess, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    run(tmp_path / "r", TEXT, Runner())
    assert here("study", "export", "r", "--parquet", "x.parquet").returncode == 0
    assert parquet.read_table("x.parquet").to_pylist() == export.rows("r")


def test_lines_of_measurements_are_rows() -> None:
    from tilewise.lab.study.store import Entry

    record = {
        "command": "measure",
        "lines": [{"bytes": 1, "summary": {"median": 2.0}}, {"bytes": 4, "run": "x"}],
    }
    entry = Entry(hash="h", point="p", run="r", axes={"bytes": "1,4"}, status="done", record=record)
    one, two = export._rows(entry)
    assert (one["bytes"], one["record.bytes"], one["summary.median"], one["command"]) == (
        "1,4",
        1,
        2.0,
        "measure",
    )
    assert (two["record.bytes"], two["record.run"], two["run"]) == (4, "x", "r")


def test_show_results(here: InProcess, tmp_path: Path) -> None:
    tables = "[[tables]]\nname = 't'\ntitle = 'A [b]title[/b]'\nrows = 'io'\ncolumns = 'ranks'\nunit = 's'\n"
    text = TEXT.replace("root", "[red]x[/red]") + 'limits = ["ranks < 2"]\n' + tables
    run(tmp_path / "r", text, Runner())
    shown = here("study", "show", "r").stdout.splitlines()
    assert shown[0] == "A [b]title[/b]"
    assert [line.split() for line in shown[1:3]] == [["ranks", "1", "ranks", "2"], ["io", "s", "s"]]
    assert any(line.split() == ["[red]x[/red]", "12.00", "not", "run"] for line in shown)
    assert shown.count("  not run: needs ranks < 2; here ranks is 2") == 1


def test_compare_command(here: InProcess, tmp_path: Path) -> None:
    text = TEXT.replace("launches = 2", "launches = 3")
    run(tmp_path / "a", text, Runner(factors=[1.0, 1.01, 0.99]))
    run(tmp_path / "b", text, Runner(factors=[2.0, 2.02, 1.98]))
    shown = here("study", "compare", "a", "b").stdout
    assert shown.count("slower") == 4 and "main  ranks = 1, io = root" in shown
    made = json.loads(here("study", "compare", "b", "a", "--json", "-").stdout)
    assert {each["verdict"] for each in made["changes"]} == {"faster"}


def test_results_that_cannot_be_written(written: InProcess) -> None:
    Path("file").write_text("")
    assert "no folder can be created at file/r/work: Not a directory" in one_message(
        written("study", "run", "s.toml", "--into", "file/r"), 2
    )
