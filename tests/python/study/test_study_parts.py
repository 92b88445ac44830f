"""Several parts at once share the work, whichever dies; what --resume goes by, and what Ctrl-C says of it."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from conftest import InProcess, Tilewise, one_message, wait_for
from studies import HERE, Runner, run
from test_study_run import REAL, STUDY, lines, write
from tilewise.base.errors import RunError, UsageError
from tilewise.engine.child import Ended
from tilewise.lab.study import export, results, store
from tilewise.lab.study.points import digest
from tilewise.lab.study.store import Locks, Store
from tilewise.machine import storage

HOLDS = """
import sys, time
from tilewise.lab.study.store import Locks
locks = Locks(sys.argv[1])
with locks.held(sys.argv[2]) as ours:
    print(ours, flush=True)
    time.sleep(60)
"""


def holder(folder: Path, name: str) -> subprocess.Popen[str]:
    """Another process that holds a lock, from when this returns until it is ended."""
    folder.mkdir(exist_ok=True)
    words = [sys.executable, "-c", HOLDS, str(folder), name]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "True\n"
    return child


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate()


def all_lines(folder: Path) -> list[dict]:
    return [line for path in sorted(folder.glob("points*.jsonl")) for line in lines(folder, path.name)]


def test_two_parts_at_once_run_each_launch_once(fake: Tilewise, processes, tmp_path: Path) -> None:
    """Neither is through with its first before the other has come so far."""
    fake.environment["FAKE_GATE"] = str(tmp_path / "gate")
    write(fake.folder, REAL)
    words = ("study", "run", "s.toml", "--into", "r", "--part")
    children = [fake.start(*words, part, how="gate") for part in ("a", "b")]
    log = fake.folder / "processes.log"
    wait_for(lambda: log.exists() and log.read_text().count('"rank": 0') == 2)
    (tmp_path / "gate").touch()
    said = [child.communicate(timeout=150) for child in children]
    assert said == [("", "")] * 2 and all(child.returncode == 0 for child in children)
    kept = all_lines(fake.folder / "r")
    assert len(kept) == 8 == len({line["hash"] for line in kept})
    assert all((fake.folder / "r" / f"points.{part}.jsonl").stat().st_size for part in ("a", "b"))


def test_what_a_killed_part_was_at_is_run_by_the_other(fake: Tilewise, processes) -> None:
    write(fake.folder, REAL)
    words = ("study", "run", "s.toml", "--into", "r", "--part")
    dies = fake.start(*words, "dies", how="hang")
    wait_for(processes)  # it holds the point that hangs
    other = fake.start(*words, "other")
    path = fake.folder / "r" / "points.other.jsonl"
    wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 3)
    dies.send_signal(signal.SIGKILL)
    dies.communicate()
    assert other.communicate(timeout=150) == ("", "")
    wait_for(lambda: not processes())
    assert Counter(line["axes"]["ranks"] for line in lines(fake.folder / "r", path.name)) == dict.fromkeys(
        (1, 2, 3, 4), 2
    )


def first_key(folder: Path) -> str:
    """The name of the lock of some point of STUDY."""
    run(folder, STUDY, Runner())
    return digest([lines(folder)[0]["point"], HERE.id()])


def test_a_point_that_another_part_is_at_is_left_to_it(tmp_path: Path) -> None:
    key = first_key(tmp_path / "once")
    child = holder(tmp_path / "r", key)
    try:
        outcome = run(tmp_path / "r", STUDY, Runner())
    finally:
        end(child)
    assert (outcome.launched, outcome.left, outcome.done, outcome.reused) == (10, 2, 5, 0)
    outcome = run(tmp_path / "r", STUDY, Runner())  # a dead process holds nothing
    assert (outcome.launched, outcome.left, outcome.done, outcome.reused) == (2, 0, 6, 10)


def test_a_point_whose_part_died_is_looked_at_again(tmp_path: Path) -> None:
    key = first_key(tmp_path / "once")
    child = holder(tmp_path / "r", key)

    class Kills(Runner):
        def __call__(self, words: list[str], folder: str, timeout: float | None) -> Ended:
            if len(self.calls) == 9:
                end(child)
            return super().__call__(words, folder, timeout)

    outcome = run(tmp_path / "r", STUDY, Kills())
    assert (outcome.launched, outcome.left, outcome.done) == (12, 0, 6)


def test_what_other_parts_have_done_meanwhile_counts(tmp_path: Path) -> None:
    """Also their failures: a point that has failed there is not tried here."""
    run(tmp_path / "once", STUDY, Runner(lambda words: "root" in words))
    there = (tmp_path / "once" / "points.jsonl").read_text()

    class Writes(Runner):
        def __call__(self, words: list[str], folder: str, timeout: float | None) -> Ended:
            (tmp_path / "r" / "points.other.jsonl").write_text(there)
            return super().__call__(words, folder, timeout)

    runner = Writes()
    outcome = run(tmp_path / "r", STUDY, runner)
    assert len(runner.calls) == 1 and outcome.failed == 3 and outcome.done == 3


def test_locks_of_two_points_do_not_touch(tmp_path: Path) -> None:
    one, two = digest("one"), digest("two")
    child = holder(tmp_path, one)
    locks = Locks(str(tmp_path))
    try:
        with locks.held(one) as first, locks.held(two) as second:
            assert (first, second) == (False, True)
    finally:
        end(child)
    with locks.held(one) as first:
        assert first
    locks.close()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_file_system_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(fcntl, "lockf", refuse)
    kept = Store(str(tmp_path))
    assert [note for note in kept.notes if "has no locks" in note]
    with kept.locked("point", HERE) as ours:
        assert ours
    kept.close()
    assert run(tmp_path, STUDY, Runner()).launched == 12


def test_a_lock_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "it is broken")

    kept = Store(str(tmp_path / "r"))
    monkeypatch.setattr(fcntl, "lockf", refuse)
    with pytest.raises(RunError, match="points.lock cannot be locked: it is broken"), kept.locked("p", HERE):
        pass
    kept.close()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(UsageError, match="results cannot be written to .*: it is broken"):
        Store(str(tmp_path / "r"))


def test_a_launch_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    """As parts leave it that run where no locks hold between machines."""
    run(tmp_path, STUDY + "limits = ['ranks <= cores']\n", Runner())
    (tmp_path / "points.other.jsonl").write_bytes((tmp_path / "points.jsonl").read_bytes())
    entries, notes = store.load_entries(str(tmp_path))
    assert len(entries) == 10
    assert notes == ["8 launches that two parts ran: the first is used"]
    assert len(export.rows(str(tmp_path))) == 10
    assert results.load(str(tmp_path)).notes == notes


def test_a_launch_that_failed_and_was_tried_again_is_there_with_both(tmp_path: Path) -> None:
    run(tmp_path, STUDY, Runner(lambda words: "root" in words))
    run(tmp_path, STUDY, Runner(), retry=True)
    assert Counter(entry.status for entry in store.load_entries(str(tmp_path))[0]) == {
        "failed": 3,
        "done": 12,
    }


@pytest.mark.parametrize("part", ["../../x", "..", "a/b", "-a"])
def test_a_part_has_a_plain_name(here: InProcess, part: str) -> None:
    Path("s.toml").write_text('title = "T"\ncommand = "generate"\nflags.shape = "2x2"\noutput = "C.npy"\n')
    for more in ([], ["--dry-run"], ["--submit", "slurm"]):
        said = one_message(here("study", "run", "s.toml", "--into", "r", f"--part={part}", *more), 2)
        assert "--part expects a name" in said
    assert not Path("r").exists()


def test_after_ctrl_c_the_same_goes_on(fake: Tilewise, processes) -> None:
    write(fake.folder, REAL)
    words = ["study", "run", "s.toml", "--scale", "tiny", "--into", "r x", "-v", "--only", "ranks=1,2"]
    words += ["--only", "run=main", "--machine", "m", "--part", "p", "--work", "w d", "--keep", "--retry"]
    child = fake.start(*words, how="hang")
    wait_for(processes)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    again = shlex.split(said.partition("try: ")[2])
    assert again[0] == "tilewise" and Counter(again[1:]) == Counter(words)
    assert [again[again.index(flag) + 1] for flag in ("--work", "--into")] == ["w d", "r x"]
    done = fake(*again[1:])
    assert done.returncode == 0, done.stderr
    assert Counter(line["axes"]["ranks"] for line in lines(fake.folder / "r x", "points.p.jsonl")) == {
        1: 2,
        2: 2,
    }


def test_another_file_system_is_measured_again(fake: Tilewise) -> None:
    memory = Path("/dev/shm")
    if storage.described(str(memory)) == storage.described(str(fake.folder)) or not os.access(
        memory, os.W_OK
    ):
        pytest.skip("there is one file system only")
    write(fake.folder, REAL.replace("[1, 2, 3, 4]", "[1]"))
    words = ("study", "run", "s.toml", "--into", "r")
    other = memory / f"tilewise-{os.getpid()}"
    try:
        assert "2 launches, 1 point done" in fake(*words).stdout
        done = fake(*words, "--work", other)
        assert "2 launches, 1 point done" in done.stdout
        assert "1 point measured on several machines or file systems" in done.stdout
        assert "0 launches, 2 reused" in fake(*words, "--work", other).stdout
        assert "0 launches, 2 reused" in fake(*words, "--work", "elsewhere").stdout
    finally:
        if other.exists():
            other.rmdir()
    first, second, *_ = store.load_sessions(str(fake.folder / "r"))
    assert first.environment.storage == storage.described(str(fake.folder))
    assert second.environment.storage == "tmpfs"


def test_points_of_several_environments_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, STUDY, Runner(lambda words: "root" in words))
    there = msgspec.structs.replace(HERE, storage="tmpfs")
    monkeypatch.setattr("studies.HERE", there)
    run(tmp_path, STUDY.replace('"root", "sieve"', '"root"'), Runner())
    notes = results.load(str(tmp_path)).notes
    assert "the points come from 2 environments, which differ in storage" in notes


def test_results_without_storage_keep_their_names(tmp_path: Path) -> None:
    """Digests that an older version has written are found again."""
    assert HERE.id() == "66e3f24ec8b1"
    assert "storage" not in msgspec.to_builtins(HERE)
    kept = Store(str(tmp_path))
    kept.keep('title = "T"', "default", HERE)
    kept.close()
    (session,) = json.loads((tmp_path / "environment.json").read_text())
    assert "storage" not in session["environment"]
    assert store.load_sessions(str(tmp_path))[0].environment == HERE


def test_file_systems_are_told_with_what_they_lie_on(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 0:9 / /home rw - nfs4 server:/home\\040of rw\n"
        "3 1 0:8 / /dev/shm rw - tmpfs shm rw\n"
        "4 1 0:7 / /over rw - overlay overlay rw\n"
        "5 1 0:7 / /none rw - fuse none rw\n"
    )
    said = {
        path: [storage.described(path, devices, str(mounts)) for devices in (True, False)]
        for path in ("/x", "/home/x", "/dev/shm", "/over/x", "/none")
    }
    assert said == {
        "/x": ["ext4 on /dev/sda1", "ext4"],
        "/home/x": ["nfs4 on server:/home of"] * 2,
        "/dev/shm": ["tmpfs"] * 2,
        "/over/x": ["overlay"] * 2,
        "/none": ["fuse"] * 2,
    }
    assert storage.described("/x", mounts=str(tmp_path / "no")) == "unknown"
