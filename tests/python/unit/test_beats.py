"""Beats: which hang the front finds in them, by a clock of the test's own, and what it says of it."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from tilewise.base.errors import UsageError
from tilewise.base.units import parse_time
from tilewise.launch import diagnose, liveness
from tilewise.launch.events import Beat
from tilewise.launch.liveness import Beats, parse_deadline
from tilewise.launch.outcome import Hang, Outcome

Pass = Callable[..., Hang | None]


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Pass:
    """Lets seconds pass, in which the ranks given beat once a second; the first hang that is found then."""
    now = [1000.0]
    monkeypatch.setattr(liveness.time, "monotonic", lambda: now[0])

    def run(judge: Beats, seconds: float, *heard: Beat, looks: bool = True) -> Hang | None:
        end = now[0] + seconds
        while now[0] < end:
            now[0] = min(end, now[0] + 0.25)
            if now[0] == int(now[0]):
                for beat in heard:
                    judge.hear(beat)
            if looks and (hang := judge.look()) is not None:
                return hang
        return None

    return run


def rank(number: int, moved: bool = True, **more: str) -> Beat:
    """A beat of a rank on another host, so that nothing is asked of this one."""
    return Beat(rank=number, host="n2", pid=100 + number, moved=moved, **more)


@pytest.mark.parametrize(("deadline", "seconds"), [(None, liveness.SILENCE), (5, 5)])
def test_a_rank_that_is_silent(passing: Pass, deadline: float | None, seconds: float) -> None:
    judge = Beats(deadline)
    assert passing(judge, 100, rank(0), rank(1)) is None and passing(judge, seconds - 0.5, rank(0)) is None
    hang = passing(judge, 2, rank(0))
    assert hang is not None and hang.silent and [beat.rank for beat in hang.ranks] == [1]
    assert seconds < hang.seconds < seconds + 1.5 and judge.ends(hang)


def test_no_deadline_at_all(passing: Pass) -> None:
    judge = Beats(0)
    passing(judge, 1, rank(0), rank(1, moved=False))
    assert passing(judge, 5000) is None


def test_time_in_which_the_front_did_not_listen(passing: Pass) -> None:
    """Ranks could not do better: the front was stopped, and what they had sent is heard afterwards."""
    judge = Beats(5)
    passing(judge, 1, rank(0), rank(1))
    assert passing(judge, 3600, looks=False) is None and judge.look() is None
    assert passing(judge, 4) is None
    assert passing(judge, 2) is not None


def test_ranks_of_which_none_moves(passing: Pass) -> None:
    """Without a deadline it is told once, with one it ends the job; one rank that moves is enough."""
    still = [rank(number, moved=False, phase="exchange", call="MPI_Recv") for number in range(4)]
    told, ended = Beats(None), Beats(20)
    for judge in (told, ended):
        assert passing(judge, 200, rank(0), *still[1:]) is None
    hang = passing(told, 200, *still)
    assert hang is not None and not hang.silent and not told.ends(hang) and 60 < hang.seconds < 62
    assert passing(told, 200, *still) is None, "it was told"
    assert passing(told, 3, rank(0), *still[1:]) is None
    assert passing(told, 200, *still) is not None, "it had moved again"
    assert passing(ended, 1, rank(0), *still[1:]) is None
    hang = passing(ended, 30, *still)
    assert hang is not None and ended.ends(hang) and 20 < hang.seconds < 22


def test_a_rank_in_a_debugger_is_not_judged(passing: Pass, monkeypatch: pytest.MonkeyPatch) -> None:
    held = [True]
    monkeypatch.setattr(liveness.processes, "is_traced", lambda pid: held[0])
    judge = Beats(5)
    passing(judge, 1, Beat(rank=0, host=os.uname().nodename, pid=1), rank(1))
    assert passing(judge, 3600, rank(1)) is None
    held[0] = False
    assert passing(judge, 10, rank(1)) is not None


def test_what_others_wait_for(passing: Pass) -> None:
    """Who is in a file is the cause, not who waits in MPI for it."""
    judge = Beats(5)
    reads = rank(2, False, phase="input", call="MPI_File_read_all", waits="pread64 /nfs/A.npy")
    ranks = (*(rank(n, False, phase="input", call="MPI_Bcast") for n in (0, 1, 3)), reads)
    passing(judge, 1, *ranks)
    hang = passing(judge, 10, *ranks)
    assert hang is not None and [beat.rank for beat in hang.ranks] == [2]
    said = hang.error()
    assert "rank 2 (pid 102 on n2) in input (MPI_File_read_all, pread64 /nfs/A.npy)" in said.message
    assert "3 ranks wait for that" in said.message and "file server" in said.advice


WAITING = [
    rank(0, call="MPI_Recv", waits="clock_nanosleep", phase="exchange"),
    rank(1, call="MPI_Bcast", phase="input"),
    rank(2, call="MPI_Recv", phase="exchange"),
]


@pytest.mark.parametrize(
    ("hang", "expected"),
    [
        (
            Hang(True, [rank(1, phase="compute")], [rank(0)], 0.0, 31.0, {1: "T"}),
            "rank 1 (pid 101 on n2) was stopped by a signal in compute, for 31 s, since ",
        ),
        (
            Hang(True, [rank(1)], [], 0.0, 31.0),
            "rank 1 (pid 101 on n2) did not answer, last in start, for 31 s, since ",
        ),
        (
            Hang(True, [rank(n, phase="output") for n in range(9)], [], 0.0, 31.0),
            "9 ranks, such as rank 0 (pid 100 on n2), did not answer, last in output, for 31 s, since ",
        ),
        (
            Hang(False, WAITING, [], 0.0, 31.0),
            "rank 1 (pid 101 on n2) in input (MPI_Bcast), "
            "rank 0 (pid 100 on n2) and rank 2 (pid 102 on n2) in exchange (MPI_Recv); all",
        ),
    ],
)
def test_what_is_said(hang: Hang, expected: str) -> None:
    error = diagnose.error_of(Outcome(hang=hang), None)
    assert error is not None and expected in error.message and error.advice
    assert error.message.endswith("; all ranks were ended")


def test_deadlines_as_people_write_them() -> None:
    words = {"30s": 30, "2min": 120, "1.5h": 5400, "90": 90, "off": 0, "0": 0}
    assert {word: parse_deadline(word) for word in words} == words
    for word in ("soon", "-3s", "1s", "", "30 parsecs"):
        with pytest.raises(UsageError, match="--deadline"):
            parse_deadline(word)
    assert parse_time("1d", "--x") == 86400
