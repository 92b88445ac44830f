"""What studies, reports and `tilewise.run` do not do: take files of users, mix studies, say untrue things."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import numpy
import pytest
import tilewise as package
import tilewise.api.run
from conftest import InProcess, one_message
from reports import results
from studies import HERE, Runner, points, run, study
from tilewise.base.errors import RunError, UsageError
from tilewise.cli import COMMANDS, JOBS
from tilewise.engine.child import Ended
from tilewise.lab.report.timeline import read_timeline
from tilewise.lab.study import store
from tilewise.lab.study.compare import compare
from tilewise.lab.study.inputs import PreparedInput
from tilewise.lab.study.results import load
from tilewise.lab.study.work import Work
from timelines import made_up

STUDY = 'command = "multiply"\naxes.ranks = [1, 2]\nlaunches = 3\n'
MADE = PreparedInput(name="A", word="a.npy", identity="a", bytes=1, generate=["generate"])


def test_files_that_the_study_did_not_make_stay(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_text("precious")
    work = Work(str(tmp_path), keep=False, ours=False)

    def generate(words: list[str], folder: str, timeout: float | None) -> Ended:
        (tmp_path / "check-a.npy").write_text("precious")
        return Ended(0, b"", "", 0.0)

    work.prepare(MADE, generate)
    work.close()
    assert os.listdir(tmp_path) == ["a.npy"] and (tmp_path / "a.npy").read_text() == "precious"
    work = Work(str(tmp_path), keep=False, ours=False)
    failing = PreparedInput(name="B", word="b.npy", identity="b", bytes=1, generate=["generate"])
    with pytest.raises(RunError, match="could not be created"):
        work.prepare(failing, lambda words, folder, timeout: Ended(1, b"", "tilewise: no", 0.0))
    (tmp_path / "b.npy").write_text("of another process")
    work.close()
    assert (tmp_path / "b.npy").exists()


def test_what_a_killed_run_left_in_the_results_goes(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.npy").write_text("of the run before")
    work = Work(str(folder), keep=False)
    work.prepare(MADE)
    work.close()
    assert not folder.exists()


def test_a_work_folder_that_went_away_comes_back(tmp_path: Path) -> None:
    class Removes(Runner):
        def __call__(self, words: list[str], folder: str, timeout: float | None) -> Ended:
            assert os.path.isdir(folder)
            ended = super().__call__(words, folder, timeout)
            shutil.rmtree(folder)
            return ended

    assert run(tmp_path, STUDY + 'output = "C.npy"', Removes()).launched == 6


@pytest.mark.parametrize("moved", [False, True])
def test_results_that_go_away_end_the_run_and_not_the_results(tmp_path: Path, moved: bool) -> None:
    folder, away = tmp_path / "r", tmp_path / "away"

    class Removes(Runner):
        def __call__(self, words: list[str], folder_of_work: str, timeout: float | None) -> Ended:
            if len(self.calls) == 2:
                shutil.move(folder, away) if moved else shutil.rmtree(folder)
                Path(folder_of_work).mkdir(parents=True)
            return super().__call__(words, folder_of_work, timeout)

    runner = Removes()
    with pytest.raises(RunError, match=r"points\.jsonl was moved or removed during the run"):
        run(folder, STUDY, runner)
    assert len(runner.calls) == 3  # not the other three, whose results nobody would find
    if moved:
        assert run(away, STUDY, Runner()).launched == 3


def test_results_that_cannot_be_read_are_a_wrong_request(here: InProcess, tmp_path: Path) -> None:
    run(tmp_path / "r", STUDY, Runner())
    (tmp_path / "r" / "points.b.jsonl").symlink_to("/proc/self/mem")
    for words in (
        ("study", "show", "r"),
        ("study", "export", "r", "--csv", "-"),
        ("study", "compare", "r", "r"),
        ("report", "r", "-o", "o.html"),
    ):
        done = here(*words)
        assert "r: Input/output error" in one_message(done, 2)


def test_a_work_folder_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(tmp_path / "w"))
    with pytest.raises(UsageError, match="matrices of the points cannot be written: no permission"):
        Work(str(tmp_path / "w"), keep=False)


def test_results_without_their_study_say_how_to_get_it_back(here: InProcess, tmp_path: Path) -> None:
    run(tmp_path / "r", STUDY, Runner())
    (tmp_path / "r" / "study.toml").unlink()
    done = here("study", "show", "r")
    assert "--into r, which stores the study's file there again" in one_message(done, 2)


@pytest.mark.parametrize("output", ["C.h5:A", "/tmp/C.npy", "../C.npy", "-C.npy"])
def test_an_output_is_a_name_in_the_work_folder(output: str) -> None:
    with pytest.raises(UsageError, match="output must be the name of a file in the work folder"):
        points(STUDY + f'output = "{output}"')


def test_a_folder_holds_one_study(tmp_path: Path) -> None:
    run(tmp_path, STUDY, Runner())
    text = (tmp_path / "study.toml").read_text()
    kept = store.Store(str(tmp_path))
    try:
        kept.keep(text, "default", HERE, "s")
        for other, name in ((text.replace('"T"', '"U"'), "s"), (text, "other")):
            with pytest.raises(UsageError, match="holds the results of another study"):
                kept.keep(other, "default", HERE, name)
        kept.keep(text + "seed = 1\n", "default", HERE, "s")
    finally:
        kept.close()
    assert (tmp_path / "study.toml").read_text() == text + "seed = 1\n"
    assert load(str(tmp_path)).study.name == "s"


def test_sessions_that_cannot_be_read_are_told_and_set_aside(tmp_path: Path) -> None:
    run(tmp_path, STUDY, Runner())
    path = tmp_path / "environment.json"
    torn = path.read_text()[:-20]
    path.write_text(torn)
    assert any("environment.json cannot be read" in note for note in load(str(tmp_path)).notes)
    kept = store.Store(str(tmp_path))
    kept.keep((tmp_path / "study.toml").read_text(), "default", HERE)
    kept.close()
    assert any("it was renamed" in note for note in kept.notes)
    assert (tmp_path / "environment.json.torn").read_text() == torn and len(json.loads(path.read_text())) == 1


def test_results_of_parts_only_are_results(here: InProcess, tmp_path: Path) -> None:
    run(tmp_path / "results/s/one", STUDY, Runner())
    os.rename("results/s/one/points.jsonl", "results/s/one/points.x.jsonl")
    os.mkdir("results/s/one/points.folder.jsonl")
    assert load("results/s").folder == "results/s/one"
    assert store.folder_for("results", "s", resume=True) == "results/s/one"
    said = one_message(here("report", "results", "-o", "r.html"), 2)
    assert "try: one of the studies below it, such as results/s" in said


def test_a_shipped_study_is_shown_beside_a_folder_of_its_name(here: InProcess) -> None:
    os.mkdir("quick")
    assert here("study", "show", "quick").stdout.startswith("quick: ")
    assert "need a folder name" in one_message(here("study", "run", "quick", "--into", ""), 2)


def test_only_says_and_knows_what_was_asked(here: InProcess) -> None:
    Path("s.toml").write_text(
        'title = "T"\ncommand = "generate"\naxes.sync = [true, false]\naxes.io = ["root"]\n'
        'output = "C.npy"\nflags.shape = "2x2"\n'
    )
    asked = ("study", "run", "s.toml", "--dry-run", "--only")
    for spelling in ("sync=true", "sync=True"):
        assert here(*asked, spelling).stdout.count("tilewise generate") == 1
    assert "--only io=sand: io has no value 'sand'" in one_message(here(*asked, "io=sand"), 2)


def test_a_metric_that_no_launch_has(here: InProcess, tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(tmp_path / name, STUDY, Runner(factors=[1.0, 1.01]))
    said = one_message(here("study", "compare", "a", "b", "--metric", "nonsense"), 2)
    assert "a: 6 launches, none with a figure at 'nonsense'" in said
    assert "--metric: '1 +' is not an expression" in one_message(
        here("study", "compare", "a", "b", "--metric", "1 +"), 2
    )
    assert len(compare(load("a"), load("b")).changes) == 2


def test_scripts_for_some_points_run_those(here: InProcess) -> None:
    text = f'{STUDY}words = ["A.npy", "B.npy"]\noutput = "C.npy"\n'
    Path("s.toml").write_text(f'title = "T"\n{text}')
    key = points(text)[0].key[:6]
    words = ("study", "run", "s.toml", "--submit", "slurm")
    done = here(*words, "--point", "", "--only", "ranks=2", "--keep", "--retry", "--part", "p", "--into", "r")
    text = Path(done.stdout.split()[0]).read_text()
    assert all(word in text for word in ("--only ranks=2", "--keep", "--retry", "--part p"))
    text = Path(here(*words, "--point", key, "--into", "q").stdout.split()[0]).read_text()
    assert f"--point {key}" in text
    assert "quotation mark" in one_message(here(*words, "--into", 'a"b'), 2)


def test_a_full_disk_is_told_with_the_file_and_leaves_none(
    here: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = results(tmp_path / "s" / "d", sizes=1, launches=1)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tilewise.base.staging.os.replace", full)
    said = one_message(here("report", str(folder), "--tables", "t"), 1)
    assert "No space left" in said and "tilewise: t/" in said and os.listdir("t") == []
    assert "x.csv cannot be written" in one_message(here("study", "export", str(folder), "--csv", "x.csv"), 1)
    assert not [name for name in os.listdir() if name.startswith(("x.csv", ".tilewise"))]


@pytest.mark.parametrize(("key", "value"), [("tag", "x"), ("bytes", "many"), ("sort_index", "x")])
def test_texts_where_a_timeline_has_numbers(tmp_path: Path, key: str, value: str) -> None:
    path = made_up(tmp_path / "t.json", ranks=2)
    whole = json.loads(path.read_text())
    for event in whole["traceEvents"]:
        if event["ph"] == ("M" if key == "sort_index" else "s"):
            event.setdefault("args", {})[key] = value
            event["name"] = "process_sort_index" if key == "sort_index" else event["name"]
    path.write_text(json.dumps(whole))
    with pytest.raises(UsageError, match="no timeline of --trace"):
        read_timeline(path)


@pytest.mark.parametrize(
    "wrong",
    [
        'plots = [{ name = "p", x = "ranks", '
        'references = [{ label = "l", source = "s", x = [1], y = [] }] }]',
        'tables = [{ name = "t", rows = "ranks", reference = '
        '{ source = "s", rows = [1, 2], columns = [1], values = [[1.0]] } }]',
    ],
)
def test_references_are_whole(wrong: str) -> None:
    with pytest.raises(UsageError, match="reference"):
        study(wrong + "\n" + STUDY)


@pytest.mark.parametrize(
    ("words", "flags", "said"),
    [
        (("plan", "multiply"), {}, "runs jobs and measure, .* not 'plan'"),
        (("info", "A.npy"), {}, "not 'info'"),
        (("multiply", "--help"), {}, "'--help' is not a file"),
        (("multiply", "A.npy", "B.npy"), {"help": True}, "takes no 'help'"),
        (("multiply", "A.npy", "B.npy"), {"timeout": "5"}, "number of seconds, not '5'"),
        (("multiply", "a\0b", "B.npy"), {}, "null character"),
        (("multiply", numpy.eye(2), "B.npy"), {}, "position 1 must be a file name.*not ndarray"),
        (("multiply", "A.npy", "B.npy"), {"verify": False}, "verify cannot be False"),
    ],
)
def test_run_from_python_refuses(words: tuple, flags: dict, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        package.run(*words, **flags)


def test_commands_without_a_record_are_known() -> None:
    assert {*tilewise.api.run._TALKS} == {*COMMANDS} - {*JOBS, "measure"}


def test_an_output_may_begin_with_a_hyphen(here: InProcess) -> None:
    record = package.run("multiply", "A.npy", "B.npy", out="-p.npy", ranks=1, verify="off", sync=False)
    assert record.command == "multiply" and Path("-p.npy").exists()
