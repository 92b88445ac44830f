"""Running a study: every point kept once, also after a crash; failures go on; launches stop when sure."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import signal
from collections import Counter
from pathlib import Path

import msgspec
import numpy
import pytest
from conftest import Tilewise, one_message, wait_for
from stopwatch import within
from studies import HERE, Runner, run, study
from tilewise.base.errors import UsageError
from tilewise.lab.study import results, store
from tilewise.lab.study.evaluation import load
from tilewise.lab.study.store import Store

STUDY = 'command = "multiply"\naxes.ranks = [1, 2, 3]\naxes.io = ["root", "sieve"]\nlaunches = 2\n'
BESIDE = {"points.jsonl", "study.toml", "environment.json", "points.lock"}


def lines(folder: Path, name: str = "points.jsonl") -> list[dict]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_each_launch_of_each_point_is_kept_once(tmp_path: Path) -> None:
    runner = Runner()
    outcome = run(tmp_path, STUDY, runner)
    assert (outcome.launched, outcome.done, outcome.failed, outcome.not_run) == (12, 6, 0, 0)
    kept = lines(tmp_path)
    assert len({entry["hash"] for entry in kept}) == 12
    assert Counter((e["axes"]["ranks"], e["axes"]["io"]) for e in kept) == Counter(
        {(r, io): 2 for r in (1, 2, 3) for io in ("root", "sieve")}
    )
    assert all(e["status"] == "done" and e["record"]["seconds"]["total"]["max"] > 0 for e in kept)
    assert all(
        call[-2:] == ["--json", "-"] and call[:-2] == e["command"]
        for call, e in zip(runner.calls, kept, strict=True)
    )
    assert (tmp_path / "study.toml").read_text().endswith(STUDY)
    sessions = store.load_sessions(str(tmp_path))
    assert [s.environment for s in sessions] == [HERE] and sessions[0].id == kept[0]["environment"]


def test_rounds_are_whole_and_shuffled(tmp_path: Path) -> None:
    runner = Runner()
    run(tmp_path, STUDY, runner)
    rounds = [[tuple(words) for words in runner.calls[i : i + 6]] for i in (0, 6)]
    assert set(rounds[0]) == set(rounds[1]) and len(set(rounds[0])) == 6
    assert rounds[0] != rounds[1]
    again = Runner()
    run(tmp_path / "again", STUDY, again)
    assert again.calls == runner.calls  # the study's seed decides


def test_resume_runs_what_is_missing_and_nothing_twice(tmp_path: Path) -> None:
    run(tmp_path, STUDY, Runner())
    whole = (tmp_path / "points.jsonl").read_bytes().splitlines(keepends=True)
    random.Random(1).shuffle(whole)
    for left in range(len(whole) + 1):
        (tmp_path / "points.jsonl").write_bytes(b"".join(whole[:left]))
        runner = Runner()
        outcome = run(tmp_path, STUDY, runner)
        assert (len(runner.calls), outcome.reused, outcome.done) == (12 - left, left, 6)
        assert len({entry["hash"] for entry in lines(tmp_path)}) == 12 == len(lines(tmp_path))


def test_every_torn_end_is_mended(tmp_path: Path) -> None:
    run(tmp_path, STUDY, Runner())
    path = tmp_path / "points.jsonl"
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in [*range(last, len(whole), 97), len(whole) - 2, len(whole) - 1]:
        path.write_bytes(whole[:cut])
        opened = Store(str(tmp_path))
        opened.close()
        torn = last < cut < len(whole) - 1
        assert len(opened.entries) == (11 if cut < len(whole) - 1 else 12)
        assert any("torn" in note for note in opened.notes) == torn
        assert path.read_bytes() == (whole if cut == len(whole) - 1 else whole[:last])
        runner = Runner()
        run(tmp_path, STUDY, runner)
        assert len(lines(tmp_path)) == 12


def test_another_environment_runs_again_and_the_last_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, STUDY, Runner())
    monkeypatch.setattr("studies.HERE", msgspec.structs.replace(HERE, machine="there"))
    outcome = run(tmp_path, STUDY, Runner(factors=[10.0]))
    assert (outcome.launched, outcome.reused) == (12, 0)
    loaded = results.load(str(tmp_path))
    one = next(p for p in loaded.points if p.axes == {"ranks": 1, "io": "sieve"})
    assert [e.record["seconds"]["total"]["max"] for e in one.entries] == [120.0, 120.0]
    assert "several machines" in loaded.notes[0]


def test_failed_points_are_kept_and_the_rest_goes_on(tmp_path: Path) -> None:
    def fails(words: list[str]) -> bool:
        return "root" in words and "2" in words

    runner = Runner(fails)
    outcome = run(tmp_path, STUDY, runner)
    assert (outcome.launched, outcome.done, outcome.failed) == (11, 5, 1)  # not tried a second time
    (failed,) = [e for e in lines(tmp_path) if e["status"] == "failed"]
    assert (failed["exit_code"], failed["message"]) == (1, "the disk is full; try: another disk")
    assert "the disk is full" in outcome.first
    loaded = results.load(str(tmp_path))
    assert [p.reason for p in loaded.points if p.reason] == ["failed: the disk is full; try: another disk"]

    kept = Runner()
    assert run(tmp_path, STUDY, kept).failed == 1 and not kept.calls
    again = Runner()
    outcome = run(tmp_path, STUDY, again, retry=True)
    assert (outcome.failed, len(again.calls)) == (0, 2)


def test_records_that_are_none_are_failures(tmp_path: Path) -> None:
    from tilewise.engine.child import Ended

    for output, said in ((b"", "it wrote no record"), (b"{", "is not JSON")):
        folder = tmp_path / said
        run(folder, 'command = "multiply"', lambda *_, output=output: Ended(0, output, "", 1.0))  # type: ignore[arg-type]
        assert said in lines(folder)[0]["message"]


def test_not_run_is_kept_once_with_its_reason(tmp_path: Path) -> None:
    text = STUDY + 'limits = ["ranks <= cores"]'
    assert run(tmp_path, text, Runner()).not_run == 2
    assert run(tmp_path, text, Runner()).not_run == 2
    skipped = [e for e in lines(tmp_path) if e["status"] == "not run"]
    assert [e["message"] for e in skipped] == ["needs 3 cores; this machine has 2"] * 2
    assert sum(p.reason.startswith("not run: needs 3 cores") for p in results.load(str(tmp_path)).points) == 2
    assert run(tmp_path, text, Runner(), cores=4).launched == 4  # in reach now
    assert not any(p.reason for p in results.load(str(tmp_path)).points)


@pytest.mark.parametrize(
    ("factors", "launches"),
    [([1.0, 1.001, 1.002], 3), ([1.0, 2.0, 4.0, 0.5], 8), ([1.0, 1.05, 0.95, 1.0, 1.0, 1.0, 1.0, 1.0], 7)],
)
def test_launches_stop_when_the_interval_is_narrow(
    tmp_path: Path, factors: list[float], launches: int
) -> None:
    text = 'command = "multiply"\nstop = {relative = 0.03, least = 3, most = 8}\n'
    assert run(tmp_path, text, Runner(factors=factors)).launched == launches
    assert run(tmp_path, text, Runner(factors=factors)).launched == 0


def test_warm_up_launches_are_kept_but_not_counted(tmp_path: Path) -> None:
    text = 'command = "multiply"\nwarmup_launches = 1\nlaunches = 2\n'
    assert run(tmp_path, text, Runner(factors=[100.0, 1.0, 1.0])).launched == 3
    (point,) = results.load(str(tmp_path)).points
    assert [e.record["seconds"]["total"]["max"] for e in point.entries] == [12.0, 12.0]
    assert [e["warmup"] for e in lines(tmp_path)] == [True, False, False]


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    one = Store(str(tmp_path))
    with pytest.raises(UsageError, match="another study is writing to"):
        Store(str(tmp_path))
    other = Store(str(tmp_path), "part")  # a file of its own
    other.close()
    one.close()
    Store(str(tmp_path)).close()


def test_parts_are_read_together(tmp_path: Path) -> None:
    run(tmp_path, STUDY, Runner())
    half = (tmp_path / "points.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "points.jsonl").write_bytes(b"".join(half[:5]))
    (tmp_path / "points.more.jsonl").write_bytes(b"".join(half[5:]))
    runner = Runner()
    run(tmp_path, STUDY, runner)
    assert not runner.calls


REAL = """
title = "T"
command = "multiply"
words = ["A.npy", "B.npy"]
launches = 2
axes.ranks = [1, 2, 3, 4]
flags = { verify = "off" }
timeout = 100.0
inputs.A = { path = "A.npy" }
inputs.B = { path = "B.npy" }
output = "C.npy"
"""


def write(folder: Path, text: str) -> None:
    (folder / "s.toml").write_text(text.replace('words = ["A.npy", "B.npy"]\n', ""))


def test_killed_in_the_middle_and_resumed(fake: Tilewise, processes) -> None:
    """SIGKILL at many moments: what was on disk stays, the rest is run, nothing twice."""
    write(fake.folder, REAL.replace("launches = 2", "launches = 4"))  # a busy test must come in time
    into = fake.folder / "r"
    path = into / "points.jsonl"
    kills = 0
    for count in (1, 3, 4, 6):
        child = fake.start("study", "run", "s.toml", "--into", into)

        def enough(count: int = count) -> bool:
            return path.exists() and path.read_bytes().count(b"\n") >= count

        wait_for(enough)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        kills += child.returncode == -signal.SIGKILL
        wait_for(lambda: not processes())  # the point that was running has ended too
    assert kills == 4
    done = fake("study", "run", "s.toml", "--into", into)
    assert done.returncode == 0, done.stderr
    kept = lines(into)
    assert len(kept) == 16 == len({e["hash"] for e in kept})
    assert Counter(e["axes"]["ranks"] for e in kept) == {1: 4, 2: 4, 3: 4, 4: 4}
    assert fake.files() == {"A.npy", "B.npy", "s.toml", "r", "processes.log"}
    assert {p.name for p in into.iterdir()} == BESIDE


def test_ctrl_c_keeps_what_there_is_and_says_how_to_go_on(fake: Tilewise, processes) -> None:
    write(fake.folder, REAL)
    child = fake.start("study", "run", "s.toml", how="hang")
    wait_for(processes)
    with within(4):
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    assert said.startswith("tilewise: interrupted; 0 results of this run are kept in results/s/")
    assert "try: tilewise study run s.toml --scale default --into results/s/" in said
    assert not processes()


def test_exit_code_1_when_a_point_failed(fake: Tilewise) -> None:
    write(
        fake.folder,
        REAL.replace("axes.ranks", "flags.ranks = 2 #")
        .replace("launches = 2", "axes.overflow = ['refuse', 'wrap']")
        .replace("flags = { verify", "flags.verify = 'off' # {"),
    )
    done = fake("study", "run", "s.toml")
    assert done.returncode == 1
    assert "1 of 2 points failed; the first: tilewise multiply" in done.stderr
    assert "--overflow wrap is for products of integers, not of float64" in done.stderr
    assert "2 launches, 1 point done, 1 failed; results are in results/s/" in done.stdout


def test_a_time_limit_ends_a_point(fake: Tilewise, processes) -> None:
    write(fake.folder, REAL.replace("timeout = 100.0", "timeout = 1.0").replace("[1, 2, 3, 4]", "[2]"))
    done = fake("study", "run", "s.toml", "--into", "r", how="hang")
    assert done.returncode == 1 and re.search(r"after 1\.\d+ s, beyond its time limit", done.stderr)
    assert not processes()


def test_inputs_are_made_once_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewise.engine.child import Ended
    from tilewise.lab.study.work import Work

    made: list[str] = []

    def generate(words: list[str], folder: str, timeout: float | None) -> Ended:
        made.append(words[2])
        Path(folder, words[2]).write_bytes(b"x")
        return Ended(0, b"", "", 0.1)

    monkeypatch.setattr(Work.prepare, "__defaults__", (generate,))
    seen: list[set[str]] = []

    class Looks(Runner):
        def __call__(self, words: list[str], folder: str, timeout: float | None) -> Ended:
            seen.append(set(os.listdir(folder)))
            Path(folder, words[words.index("-o") + 1]).write_bytes(b"y")
            return super().__call__(words, folder, timeout)

    text = STUDY + 'output = "C.npy"\ninputs.A = {shape = "{ranks}x4"}\n'
    run(tmp_path, text, Looks())
    assert sorted(made) == [f"random-{r}x4-float64-0.npy" for r in (1, 2, 3)]
    assert all(not any(name.startswith("C-") for name in names) for names in seen)
    assert not (tmp_path / "work").exists()


def test_study_of_real_jobs(tilewise: Tilewise) -> None:
    """The shipped example, at its smallest scale."""
    done = tilewise("study", "run", "quick", "--scale", "tiny", timeout=250)
    assert done.returncode == 0, done.stderr
    assert "28 launches, 12 points done; results are in results/quick/" in done.stdout
    assert done.stderr == ""
    assert "Speedup over one rank\n" in done.stdout and "ranks = 1" in done.stdout
    assert "not testable here: needs 1024 nodes" in done.stdout
    again = tilewise("study", "run", "quick", "--scale", "tiny", "--resume", timeout=150)
    assert "0 launches, 28 reused, 12 points done" in again.stdout
    (folder,) = (tilewise.folder / "results/quick").iterdir()
    assert {p.name for p in folder.iterdir()} == BESIDE | {"traces", "claims.json"}
    traced = [entry for entry in lines(folder) if entry["trace"]]
    assert len(traced) == 4 and all(entry["warmup"] and entry["run"] == "multiply" for entry in traced)
    for entry in traced:
        timeline = json.loads(gzip.decompress((folder / entry["trace"]).read_bytes()))
        assert timeline["traceEvents"]


def test_points_that_are_all_out_of_reach(here) -> None:
    Path("s.toml").write_text(REAL.replace("words", "limits = ['ranks < 0']\n#"))
    said = one_message(here("study", "run", "s.toml"), 2)
    assert "no point can run here; needs ranks < 0; here ranks is 1" in said
    assert not Path("results").exists()


def test_the_study_that_is_kept_is_the_one_that_ran(tmp_path: Path) -> None:
    run(tmp_path, STUDY, Runner(), scale="tiny")
    loaded = results.load(str(tmp_path))
    assert loaded.study.scale == "tiny" and loaded.study.runs == study(STUDY, "tiny").runs
    assert [(p.axes["ranks"], p.axes["io"]) for p in loaded.points] == [
        (r, io) for r in (1, 2, 3) for io in ("root", "sieve")
    ]


def test_a_study_of_measurements(tilewise: Tilewise) -> None:
    """Commands of `measure` are points like any other; tables take lines out of them."""
    (tilewise.folder / "m.toml").write_text(
        """
title = "Memory"
command = "measure memory"
axes.threads = [1, 2]
flags = { bytes = "64KiB,1MiB", launches = 1, seconds = 0.05, no_store = true }
launches = 2

[[tables]]
name = "rates"
rows = "line.bytes"
columns = ["name", "threads"]
lines = { kind = "memory", series = "seconds" }
value = "rate / 1e9"
"""
    )
    done = tilewise("study", "run", "m.toml", "--into", "r", timeout=250)
    assert done.returncode == 0, done.stderr
    loaded = load(str(tilewise.folder / "r"))
    (table,) = loaded.tables
    assert table.rows == [[65536], [1048576]]
    assert ["triad", 1] in table.columns and ["triad", 2] in table.columns
    cells = [cell for row in table.cells for cell in row]
    assert all((cell.value or 0) > 0.1 and cell.n == 2 for cell in cells)
    assert not loaded.results.notes and not table.notes
    kept = tilewise("study", "compare", "r", "r")
    assert kept.returncode == 0 and "memory" in kept.stdout


def test_a_full_disk_stops_the_study_and_keeps_what_was_there(tilewise: Tilewise, mount) -> None:
    write(tilewise.folder, REAL.replace("[1, 2, 3, 4]", "[1]").replace("launches = 2", "launches = 40"))
    numpy.save(tilewise.folder / "A.npy", numpy.eye(4))
    numpy.save(tilewise.folder / "B.npy", numpy.eye(4))
    full = mount("-t", "tmpfs", "-o", "size=48k", "tmpfs")
    words = ("study", "run", "s.toml", "--work", tilewise.folder / "w", "--into")
    done = tilewise(*words, full / "r", timeout=250)
    assert done.returncode == 1 and "cannot be written: No space left on device" in done.stderr
    whole = tilewise.folder / "r"
    shutil.copytree(full / "r", whole)
    count = (whole / "points.jsonl").read_bytes().count(b"\n")
    assert 2 <= count < 40
    (tilewise.folder / "s.toml").write_text(
        (tilewise.folder / "s.toml").read_text().replace("40", str(count + 2))
    )
    done = tilewise(*words, whole)
    assert done.returncode == 0, done.stderr
    assert f"{count} reused" in done.stdout
