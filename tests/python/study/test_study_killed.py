"""A study killed at every stage of a launch, as a whole or in parts: what it counts, and what it leaves."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from conftest import Tilewise, wait_for
from studies import FLAGS, HERE, MACHINE, Runner, study
from test_study_run import REAL, write
from tilewise.engine.child import Ended
from tilewise.lab.study import results, store, work
from tilewise.lab.study import run as running
from tilewise.lab.study.points import expand
from tilewise.lab.study.store import Entry, Store
from tilewise.lab.study.work import Work

TEXT = "command = 'multiply'\naxes.ranks = [1, 2]\nlaunches = 3\nwarmup_launches = 0"
WHOLE = 6
STAGES = ("before", "running", "torn", "whole", "kept", "told")


class Killed(BaseException):
    """Stands for SIGKILL: nothing of ours heeds it."""


def part(folder: Path, name: str, stage: str = "", at: int = 0) -> tuple[int, list[str]]:
    """Runs a part until it is killed at that stage of launch `at`; launches, and what progress said."""
    made = study(TEXT)
    kept = Store(str(folder), name)
    kept.keep(made.text, "default", HERE)
    runner, said = Runner(), []
    append = kept.append

    def is_at(now: str) -> bool:
        return stage == now and len(runner.calls) - (now != "before") == at

    def tear(entry: Entry) -> None:
        append(entry)
        path = Path(kept.path)
        if is_at("torn") or is_at("whole"):
            content = path.read_bytes()
            path.write_bytes(content[: -20 if stage == "torn" else -1])
            raise Killed
        if is_at("kept"):
            raise Killed

    def run(words: list[str], where: str, timeout: float | None) -> Ended:
        if is_at("before"):
            raise Killed
        ended = runner(words, where, timeout)
        if is_at("running"):
            raise Killed
        return ended

    def told(entry: Entry) -> None:
        if is_at("told"):
            raise Killed

    kept.append = tear  # type: ignore[method-assign]
    work = Work(str(folder / "work" / name), keep=False)
    planned = expand(made, MACHINE, lambda command: FLAGS)
    try:
        running.run(
            made,
            planned,
            kept,
            work,
            HERE,
            runner=run,
            told=told,
            progress=lambda text, share: said.append(text.partition(",")[0]),
        )
    except Killed:
        pass
    finally:
        kept.close()  # as the system closes what a dead process had open
    return len(runner.calls), said


@pytest.mark.parametrize("at", [0, 2, 5])
@pytest.mark.parametrize("stage", STAGES)
def test_every_launch_counts_once(tmp_path: Path, stage: str, at: int) -> None:
    """Two parts are killed one after the other, the first goes on, and a last look finds nothing to do."""
    launched = [part(tmp_path, "a", stage, at)[0], part(tmp_path, "b", stage, at)[0]]
    launched.append(part(tmp_path, "a")[0])
    entries, _ = store.load_entries(str(tmp_path))
    assert Counter((entry.point, entry.launch) for entry in entries) == Counter(
        {(entry.point, entry.launch): 1 for entry in entries}
    )
    assert len(entries) == WHOLE
    assert sum(len(point.entries) for point in results.load(str(tmp_path)).points) == WHOLE
    lost = sum(launched) - WHOLE  # launches whose results the killed had not kept yet
    assert 0 <= lost <= (2 if stage in ("running", "torn") else 0)
    assert part(tmp_path, "c") == (0, [])


def test_progress_counts_what_other_parts_have_done(tmp_path: Path) -> None:
    """Of six launches another part does four while the first is at its own first."""
    made: list[str] = []

    class Slow(Runner):
        def __call__(self, words: list[str], folder: str, timeout: float | None) -> Ended:
            if not self.calls:
                self.calls.append(words)
                other = Store(str(tmp_path), "other")
                for line in list(plan)[1:]:
                    other.append(line)
                other.close()
            return super().__call__(words, folder, timeout)

    text = study(TEXT)
    planned = expand(text, MACHINE, lambda command: FLAGS)
    schedule = running._Schedule(text, [], HERE, False)
    plan = [schedule.entry(point, launch) for launch in (1, 2) for point in planned]
    kept = Store(str(tmp_path), "a")
    running.run(
        text,
        planned,
        kept,
        Work(str(tmp_path / "work"), keep=False),
        HERE,
        runner=Slow(),
        progress=lambda said, share: made.append(said.partition(",")[0]),
    )
    kept.close()
    first, *rest = made
    assert first == "1 of 6" and rest[0] == "2 of 3"
    assert all(int(each.split()[0]) <= int(each.split()[2]) for each in made)


def test_work_folders_of_dead_parts_are_swept(tmp_path: Path) -> None:
    """Those of the living stay, and those that nobody's name is in."""
    for name in ("dead", "lives", "kept"):
        (tmp_path / "work" / name).mkdir(parents=True)
        (tmp_path / "work" / name / "A.npy").touch()
    (tmp_path / "points.dead.jsonl").touch()
    lives = Store(str(tmp_path), "lives")
    for name in ("dead", "lives"):
        work.own(str(tmp_path / "work" / name), str(tmp_path / f"points.{name}.jsonl"))
    work.sweep(str(tmp_path / "work"))
    assert sorted(os.listdir(tmp_path / "work")) == ["kept", "lives"]
    lives.close()
    work.sweep(str(tmp_path / "work"))
    assert os.listdir(tmp_path / "work") == ["kept"]


def test_the_next_part_removes_what_a_killed_one_left(fake: Tilewise, processes) -> None:
    write(fake.folder, REAL)
    words = ("study", "run", "s.toml", "--into", "r", "--only", "ranks=1", "--part")
    dies = fake.start(*words, "dies", how="hang")
    wait_for(processes)
    dies.kill()
    dies.communicate()
    wait_for(lambda: not processes())
    assert (fake.folder / "r/work/dies").is_dir()
    done = fake(*words, "other")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (fake.folder / "r/work").exists()
