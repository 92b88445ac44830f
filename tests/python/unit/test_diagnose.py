"""What is said of a run that failed: who died, of what, what to do next; and starts that come to nothing."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from stopwatch import within
from tilewise.base.errors import RunError, StartError, UsageError, VerificationError
from tilewise.launch import diagnose, launcher
from tilewise.launch.events import Done, Failed, RankPlace, Signalled, Started
from tilewise.launch.outcome import Outcome
from tilewise.launch.signals import Signals, run_kept, watched
from tilewise.launch.supervise import Supervisor

OTHER = "=   PID 999 RUNNING AT node8"
STATES = {0: "R", 1: "R", 2: "T", 3: "D"}
BANNER = ["=   PID 102 RUNNING AT node7", "=   EXIT CODE: 9"]
STARTED = Started([RankPlace(rank, "node7", 100 + rank) for rank in range(4)])


@pytest.mark.parametrize(
    ("remote", "started", "number", "again"),
    [
        (True, None, signal.SIGSEGV, True),
        (True, None, signal.SIGABRT, True),
        (True, None, signal.SIGKILL, False),  # somebody's, or the kernel's for want of memory
        (True, STARTED, signal.SIGSEGV, False),
        (False, None, signal.SIGSEGV, False),
    ],
)
def test_what_may_be_started_once_more(
    remote: bool, started: Started | None, number: signal.Signals, again: bool
) -> None:
    outcome = Outcome(ranks=4, started=started, signalled=Signalled(0, number, ""))
    error = diagnose.error_of(outcome, None, launcher.Start(["srun"], {}, ranks=4, remote=remote))
    assert isinstance(error, RunError) and isinstance(error, StartError) == again


@pytest.mark.parametrize(
    ("code", "chatter", "said"),
    [
        (9, BANNER, r"rank 2 \(pid 102 on node7\) was killed .* 9"),
        (11, [OTHER, "=   KILLED BY SIGNAL: 11"], r"a rank \(pid 999 on node8\) .*SIGSEGV"),
        (
            137,
            ["mpirun noticed that process rank 3 with PID 0 on node node7 exited on signal 9 (Killed)."],
            r"rank 3 \(pid 103 on node7\) .*9 \(SIGKILL\)",
        ),
        (137, ["srun: error: node7: task 1: Killed"], r"rank 1 \(pid 101 on node7\) was killed by signal 9"),
        (-15, [], r"signal 15 \(SIGTERM\)"),
        (137, [], "signal 9"),
        (3, [], "exit code 3"),
        (16, [BANNER[0], "=   EXIT CODE: 16"], "rank 2 .* exit code 16"),
        (9, [BANNER[0], "=   EXIT CODE: 11", "EXIT STRING: … (signal 11)"], "rank 2 .*SIGSEGV"),
    ],
)
def test_who_died(code: int, chatter: list[str], said: str) -> None:
    error = diagnose.error_of(Outcome(started=STARTED, returncode=code, chatter=chatter), None)
    assert isinstance(error, RunError)
    assert re.search(said, error.message)


@pytest.mark.parametrize(
    ("outcome", "said", "advised"),
    [
        (
            {"failed": Failed("io", "C.npy at byte 9: full", 2, 28)},
            "rank 2 on node7: C.npy at byte 9",
            "space",
        ),
        (
            {"failed": Failed("io", "rank 2: C.npy: broken", 2, 5)},
            "tilewise: rank 2 on node7: C.npy",
            "dmesg",
        ),
        ({"failed": Failed("io", "C of rank 2 is short", 2)}, "tilewise: C of rank 2 is short", "complete"),
        ({"failed": Failed("usage", "m", 0)}, "tilewise: m", ""),
        ({"failed": Failed("memory", "m", 1)}, "rank 1 on node7: m", "fewer ranks"),
        ({"failed": Failed("mpi", "m", 0)}, "rank 0 on node7: m", "-v"),
        ({"signalled": Signalled(1, 11, "compute")}, r"rank 1 \(pid 101 .*SIGSEGV\) in compute", "report"),
        ({"signalled": Signalled(1, 15), "timed_out": True}, "--timeout 3", "--timeout"),
        (
            {"returncode": 9, "first_gone": 3, "memory_kills": 1, "chatter": BANNER},
            "rank 3 .* ran out of memory",
            "--memory",
        ),
        (
            {"returncode": 9, "first_gone": -1, "chatter": BANNER},
            "tilewise: a rank on node7 was killed",
            "what killed",
        ),
        (
            {"timed_out": True, "where": dict.fromkeys(range(4), "output")},
            "ended, in output$",
            "tilewise plan",
        ),
        (
            {"timed_out": True, "where": dict.fromkeys((0, 1), "exchange"), "states": STATES},
            r"rank 2 \(pid 102 on node7\) was stopped .*rank 3 .* disk.*; 2 ranks in exchange",
            "stopped it",
        ),
        ({"unstarted": 120.0, "started": None}, "not all ranks had started after 120 s", "doctor"),
        ({"lost": "", "started": None}, "before it had started the ranks", "doctor"),
    ],
)
def test_what_is_said_and_advised(outcome: dict[str, Any], said: str, advised: str) -> None:
    error = diagnose.error_of(Outcome(**{"ranks": 4, "started": STARTED, **outcome}), 3.0)
    assert error is not None and re.search(said, error.text().partition("\n")[0]), error
    assert advised in error.advice and "\n" not in error.advice


def test_every_failure_has_its_advice() -> None:
    for kind in ("io", "mpi", "launcher", "internal", "memory"):
        for number in (0, *errno.errorcode):
            assert diagnose.advice_of_failure(kind, number)
    assert all(diagnose.advice_of_signal(number) for number in range(1, 32))


def supervised(words: list[str], **more: Any) -> Outcome:
    """What is seen of a launcher that never starts a rank."""
    start = launcher.Start(words, dict(os.environ), **more)
    return Supervisor(start, "/no/worker", Signals(), timeout=20).run(b"{}")


@pytest.mark.parametrize("ends", ["kill -9 $!;", "(exit 127) &"])
def test_a_launcher_whose_proxy_is_gone_is_ended(ends: str) -> None:
    with within(4):
        outcome = supervised(["sh", "-c", f"sleep 100 & {ends} sleep 100 & wait $!"], proxies=True)
    assert outcome.lost == "" and not outcome.timed_out
    error = diagnose.error_of(outcome, 20)
    assert isinstance(error, RunError) and "mpiexec waited on" in error.message


def test_ranks_that_never_start_are_not_waited_for() -> None:
    with within(4):
        assert supervised(["sleep", "100"], patience=0.3).unstarted == 0.3


def test_the_launcher_that_ends_us_has_not_the_last_word() -> None:
    said = '\\036{"event": "signal", "rank": 5, "number": 9, "phase": "exchange"}\\n'
    with watched(ending=False) as signals:
        start = launcher.Start(["sh", "-c", f"printf '{said}'"], os.environ.copy(), launcher.JOINED, ranks=6)
        outcome = Supervisor(start, "/no/worker", signals, timeout=20).run(b"{}")
        os.kill(os.getpid(), signal.SIGTERM)  # as srun -K does, when it hears of the rank later than we
        signals.check()
    run_kept()
    error = diagnose.error_of(outcome, None)
    assert error is not None and "rank 5 was killed by signal 9" in error.message


@pytest.mark.parametrize("dies", ["pass", "os.kill(os.getpid(), 9)"])
def test_a_launcher_that_ends_the_others_is_not_the_cause(dies: str) -> None:
    # Rank 1 dies, srun -K ends rank 0, and what that one says comes first.
    rank = """
import json, os, socket, sys, time
from tilewise.launch.worker import RUN
own, child = os.getpid(), os.fork()
held = socket.socket(socket.AF_UNIX)
held.connect("\\0tilewise-" + os.environ[RUN])
if child:
    held.send(b"\\n")
    ranks = [{"rank": rank, "host": os.uname().nodename, "pid": pid} for rank, pid in enumerate((own, child))]
    for event in ({"event": "started", "ranks": ranks}, {"event": "signal", "rank": 0, "number": 15}):
        print("\\x1e" + json.dumps(event), flush=True)
    held.recv(1)
else:
    time.sleep(0.2)
    DIES
""".replace("DIES", dies)
    with watched(ending=False) as signals:
        start = launcher.Start([sys.executable, "-c", rank], os.environ.copy(), launcher.JOINED, ranks=2)
        outcome = Supervisor(start, "/no/worker", signals, timeout=20).run(b"{}")
    run_kept()
    error = diagnose.error_of(outcome, None)
    assert error is not None and re.search(r"rank 1 \(pid \d+ on \S+\) ended before", error.message)


def test_what_a_killed_launcher_leaves_is_ended(tmp_path: Path) -> None:
    words = ["sh", "-c", f"setsid sleep 100 & echo $! > {tmp_path}/pid; kill -9 $$"]
    assert supervised(words).returncode == -signal.SIGKILL
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}/exe")


def test_kinds_of_errors() -> None:
    def said(kind: str) -> type:
        return type(diagnose.error_of(Outcome(failed=Failed(kind, "m", 2)), None))

    assert [said(kind) for kind in ("usage", "memory", "launcher")] == [UsageError] * 3
    assert [said(kind) for kind in ("io", "mpi", "internal")] == [RunError] * 3
    assert said("verification") is VerificationError
    done = Done(ranks=[], seconds={})
    assert diagnose.error_of(Outcome(record=done), None) is None
    assert diagnose.error_of(Outcome(record=done, hung=True), None) is not None
