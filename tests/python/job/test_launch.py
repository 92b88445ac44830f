"""Launching and watching: a worker that dies, hangs, chatters or fails, under our launcher and others."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from conftest import FAKE, Tilewise, mpiexec, one_message, wait_for
from stopwatch import within
from tilewise.base.errors import Interrupted, UsageError
from tilewise.launch import launcher
from tilewise.launch.events import Failed, Progress, split_line
from tilewise.launch.job import Variant
from tilewise.launch.join import Join, detect
from tilewise.launch.signals import watched

WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy")


def test_a_run_gives_the_output_its_name(fake: Tilewise) -> None:
    result = fake(*WORDS)
    assert result.returncode == 0 and result.stderr == ""
    assert fake.files() == {"A.npy", "B.npy", "C.npy"}
    assert numpy.load(fake.folder / "C.npy").shape == (6, 3)


@pytest.mark.parametrize("ranks", [1, 2])
def test_chatter_is_shown_after_success(fake: Tilewise, ranks: int) -> None:
    result = fake(*WORDS, "-n", ranks, how="chatter")
    assert result.returncode == 0
    for line in ("a library says hello", "and complains", "a word without an end"):
        assert line in result.stderr
        assert line not in result.stdout
    assert "\x1e" not in result.stdout + result.stderr


def test_quiet_is_quiet(fake: Tilewise) -> None:
    result = fake(*WORDS, "-q", how="chatter")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("usage", 2, "shrank while it was read"),
        ("io", 1, "writing C.npy at byte 4096"),
        ("io-then-hang", 1, "the disk is full"),
        ("die", 1, "killed by signal 9 (SIGKILL)"),
        ("exit-7", 1, "exit code 7"),
        ("silent", 1, "without a result"),
        ("record-then-die", 1, "SIGSEGV"),
        ("wrong", 3, "failed its fast verification"),
        ("vanish", 1, "was removed by another program"),
    ],
)
@pytest.mark.parametrize("ranks", [1, 2])
def test_failures_leave_the_old_output_and_one_message(
    fake: Tilewise, processes: Callable[[], list[int]], how: str, code: int, said: str, ranks: int
) -> None:
    numpy.save(fake.folder / "C.npy", numpy.ones((2, 2)))
    with within(6):
        result = fake(*WORDS, "--force", "-n", ranks, "--trace", "t.json", how=how)
    assert said in one_message(result, code)
    assert result.stdout == ""
    assert numpy.load(fake.folder / "C.npy").shape == (2, 2)
    assert fake.files() == {"A.npy", "B.npy", "C.npy", "processes.log"}
    assert processes() == []


def test_what_ranks_printed_is_shown_on_failure_with_v(fake: Tilewise) -> None:
    assert "last words" not in fake(*WORDS, how="die").stderr
    assert "last words" in fake(*WORDS, "-v", how="die").stderr


@pytest.mark.parametrize("joined", [False, True])
def test_a_killed_rank_ends_all(fake: Tilewise, processes: Callable[[], list[int]], joined: bool) -> None:
    with within(5):
        if joined:
            result = fake(*WORDS, how="die-1", before=[mpiexec(), "-n", 3])
            assert result.returncode != 0
            assert result.stderr.count("tilewise:") == 1 and "C.npy was not written" in result.stderr
        else:
            assert "SIGKILL" in one_message(fake(*WORDS, "-n", 3, how="die-1"), 1)
    with within(2):
        wait_for(lambda: not processes())
        wait_for(lambda: fake.files() == {"A.npy", "B.npy", "processes.log"})


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("how", ["hang", "stubborn"])
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_nothing_behind(
    fake: Tilewise, processes: Callable[[], list[int]], which: signal.Signals, how: str, ranks: int
) -> None:
    child = fake.start(*WORDS, "-n", ranks, how=how)
    wait_for(lambda: len(processes()) >= ranks + (how == "stubborn"))
    with within(2):
        child.send_signal(which)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "")
    assert err.startswith(f"tilewise: interrupted by {which.name}") and len(err.splitlines()) == 1
    assert processes() == []
    assert fake.files() == {"A.npy", "B.npy", "processes.log"}


def test_a_killed_front_takes_ranks_and_part_file_along(
    fake: Tilewise, processes: Callable[[], list[int]]
) -> None:
    child = fake.start(*WORDS, how="hang")
    wait_for(processes)
    child.kill()
    with within(2):
        child.communicate(timeout=60)
        wait_for(lambda: not processes())
        wait_for(lambda: fake.files() == {"A.npy", "B.npy", "processes.log"})


def test_a_timeout_ends_the_run(fake: Tilewise, processes: Callable[[], list[int]]) -> None:
    assert "--timeout 0.5" in one_message(fake(*WORDS, "--timeout", "0.5", how="hang"), 1)
    assert processes() == []


def test_a_timeout_holds_for_ranks_that_do_not_leave(
    fake: Tilewise, processes: Callable[[], list[int]]
) -> None:
    with within(6):
        result = fake(*WORDS, "--timeout", "1", how="record-then-hang")
    assert "did not end in time" in one_message(result, 1)
    assert processes() == [] and "C.npy" not in fake.files()


def test_the_trace_gets_its_name(fake: Tilewise) -> None:
    assert fake(*WORDS, "--trace", "t.json").returncode == 0
    assert (fake.folder / "t.json").read_text() == "[]"
    assert fake(*WORDS, "--force", "--trace", "t.json.gz").returncode == 0
    import gzip

    with gzip.open(fake.folder / "t.json.gz") as file:
        assert file.read() == b"[]"
    assert fake.files() == {"A.npy", "B.npy", "C.npy", "t.json", "t.json.gz"}


def arguments(fake: Tilewise) -> list[dict[str, object]]:
    return [json.loads(line) for line in (fake.folder / "processes.log").read_text().splitlines()]


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_that_exist_are_joined(fake: Tilewise, processes: Callable[[], list[int]], ranks: int) -> None:
    result = fake(*WORDS, "--json", "r.json", before=[mpiexec(), "-n", ranks])
    assert result.returncode == 0, result.stderr
    assert json.loads((fake.folder / "r.json").read_text())["variant"]["ranks"] == ranks
    started = arguments(fake)
    assert sorted(int(str(entry["rank"])) for entry in started) == list(range(ranks))
    assert all(entry["arguments"] == ["--expect", str(ranks), "--joined"] for entry in started)
    assert result.stdout.count("total") == 1
    assert processes() == []


def test_another_librarys_mpiexec_is_recognised(fake: Tilewise) -> None:
    for rank in ("0", "1"):
        fake.environment.update(OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE="2")
        result = fake(*WORDS)
        assert result.returncode == (2 if rank == "0" else 0)  # which would make the launcher kill rank 0
        assert ("another MPI library" in result.stderr) == (rank == "0")
        assert fake.files() == {"A.npy", "B.npy"}


def test_one_rank_of_a_launcher_is_no_joined_job(fake: Tilewise, processes: Callable[[], list[int]]) -> None:
    result = fake(*WORDS, "-n", 2, before=[mpiexec(), "-n", 1])
    assert result.returncode == 0, result.stderr
    assert len(arguments(fake)) == 2


def test_a_launcher_of_the_users_own(fake: Tilewise, processes: Callable[[], list[int]]) -> None:
    result = fake(*WORDS, "-n", 2, "--launcher", f"{mpiexec()} -launcher fork", "--json", "r.json")
    assert result.returncode == 0, result.stderr
    assert len(arguments(fake)) == 2
    line = json.loads((fake.folder / "r.json").read_text())["environment"]["launcher"]
    assert line.endswith(f"-launcher fork -n 2 {FAKE} --expect 2")


def test_no_threads_of_blas_beyond_the_plans(fake: Tilewise) -> None:
    result = fake(*WORDS, "-n", 2, "-t", 1, "--json", "-")
    variables = json.loads(result.stdout)["environment"]["variables"]
    assert variables["OPENBLAS_NUM_THREADS"] == "1"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, None),
        ({"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALNRANKS": "2"}, Join(2, 4, "pmi", 2)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, Join(1, 2, "openmpi", 0)),
        ({"PMIX_RANK": "1", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "8"}, Join(1, 8, "pmix", 0)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_STEP_ID": "3"}, Join(1, 2, "slurm", 0)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, None),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_STEP_ID": "4294967291"}, None),
        ({"PMIX_RANK": "1"}, None),
    ],
)
def test_who_started_us(environment: dict[str, str], expected: Join | None) -> None:
    assert detect(environment) == expected


def test_lines_are_taken_apart() -> None:
    assert split_line(b'\x1e{"event":"progress","phase":"output","done":1}') == (b"", Progress("output", 1.0))
    chatter, event = split_line(b'words \x1e{"event":"error","kind":"io","message":"m"}')
    assert (chatter, event) == (b"words ", Failed("io", "m", -1))
    for torn in (b'\x1e{"event":"progress","ph', b"plain", b"", b'\x1e{"event":"unheard"}'):
        assert split_line(torn) == (torn, None)


VARIANT = Variant(
    algorithm="summa", exchange="blocking", read="root", write="root", grid=(1, 2), ranks=2, threads=3
)


def site(tmp_path: Path, name: str) -> launcher.Worker:
    path = tmp_path / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return launcher.Worker("/w", {"mpi": "site", "mpiexec": str(path)})


def test_the_sites_launchers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    found = site(tmp_path, "orterun")
    start = launcher.own_start(found, VARIANT, (), "", True)
    assert start.command[1:] == ["--bind-to", "none", "--oversubscribe", "-n", "2", "/w"]
    if os.geteuid() == 0:
        assert start.environment["OMPI_ALLOW_RUN_AS_ROOT"] == "1"
    start = launcher.own_start(site(tmp_path, "mpiexec.hydra"), VARIANT, ["a", "b"], "", False)
    assert start.command[1:] == ["-hosts", "a:1,b:1", "-n", "2", "/w"]
    site(tmp_path, "srun")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("PATH", str(tmp_path))
    start = launcher.own_start(found, VARIANT, (), "", False)
    assert start.command[1:] == ["--cpu-bind=none", "--cpus-per-task=3", "-n", "2", "/w"]
    crowded = launcher.own_start(found, VARIANT, ["a", "a"], "", True).command
    assert "--overcommit" in crowded and "--nodelist=a" in crowded


def test_open_mpi_takes_as_many_ranks_as_were_dealt(tmp_path: Path) -> None:
    """Slurm may have told it of fewer slots."""
    found = site(tmp_path, "orterun")
    for chosen in ("", str(tmp_path / "orterun")):
        words = launcher.own_start(found, VARIANT, ["a", "a"], chosen, False).command
        assert "--oversubscribe" in words and words[words.index("--host") + 1] == "a:2"
    assert "--oversubscribe" not in launcher.own_start(found, VARIANT, (), chosen, False).command


def test_a_launcher_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    gone = launcher.Worker("/w", {"mpi": "site", "mpiexec": str(tmp_path / "mpiexec.gone")})
    with pytest.raises(UsageError, match="mpiexec is missing"):
        launcher.own_start(gone, VARIANT, (), "", False)


def test_a_terminal_gets_colours_and_a_pipe_does_not(fake: Tilewise) -> None:
    piped = fake(*WORDS)
    assert "\x1b" not in piped.stdout + piped.stderr
    import pty

    master, slave = pty.openpty()
    fake.environment.update(TERM="xterm-256color", COLUMNS="120")
    child = fake.start(*WORDS, "--force", stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    while True:
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(master)
    assert child.wait() == 0
    assert b"\x1b[" in seen and "█".encode() in seen


def test_an_interrupt_that_python_drops_is_raised_again(capsys: pytest.CaptureFixture[str]) -> None:
    """What is raised in a finalizer or a weak reference's callback is only reported, never propagated."""

    class Dropping:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with watched() as caught:
            caught.check()
            Dropping()
            assert caught.seen
            with pytest.raises(Interrupted, match="SIGINT"):
                caught.check()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert capsys.readouterr().err == ""
