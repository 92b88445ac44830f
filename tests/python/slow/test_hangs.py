"""Ranks that hang without a --timeout: stopped, asleep, waiting for each other; what only looks like it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Tilewise, mpiexec, one_message, wait_for
from oracle import nothing_left
from ranks import LONG, at_work, interrupt, named, segments, workers
from stopwatch import within

WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "--force")
DEADLINE = 4  # seconds
MORE = 2  # that the message may come after it


@contextmanager
def reported(seconds: float = DEADLINE + MORE) -> Iterator[None]:
    """Checks that what is done inside takes a deadline, and no more than `MORE` besides."""
    begin = time.monotonic()
    with within(seconds):
        yield
    assert time.monotonic() - begin > DEADLINE - 1.1, "a beat a second: it cannot know it earlier"


@pytest.mark.parametrize("phase", ["input", "compute", "exchange", "output"])
def test_a_rank_that_is_stopped(inputs: Tilewise, phase: str) -> None:
    """It stops itself as it enters the phase, so that the message must have that one."""
    inputs.environment["TILEWISE_FAULT"] = f"signal-{signal.SIGSTOP.value}:1:{phase}"
    with nothing_left(inputs, 30):
        child = inputs.start(*WORDS, "-n", 3, "--algorithm", "summa", "--deadline", f"{DEADLINE}s")
        wait_for(lambda: any(state(pid) == "T" for pid in workers(inputs)))
        with reported():
            _, said = child.communicate(timeout=60)
    assert child.returncode == 1 and said.count("\n") == 2 and "\n  try: " in said
    assert "rank 1 (pid " in said and f"was stopped by a signal in {phase}, for {DEADLINE} s, since " in said


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_rank_that_is_stopped_from_outside(tilewise: Tilewise, ranks: int, starts: bool) -> None:
    """While it works, or while MPI starts."""
    before = segments()
    with nothing_left(tilewise, 60):
        child = tilewise.start(*LONG, "-n", ranks, "--deadline", f"{DEADLINE}s")
        if not starts:
            wait_for(lambda: len(workers(tilewise)) == ranks)
            time.sleep(2)
        os.kill(wait_for(lambda: workers(tilewise))[-1], signal.SIGSTOP)
        with reported():
            _, said = child.communicate(timeout=60)
    assert child.returncode == 1 and said.count("\n") == 2 and "was stopped by a signal in " in said
    wait_for(lambda: segments() <= before)


@pytest.mark.parametrize(
    ("ranks", "fault"), [(1, "hang:0:compute"), (2, "hang:1:input"), (3, "hang:0:output")]
)
def test_a_rank_that_sleeps(inputs: Tilewise, ranks: int, fault: str) -> None:
    inputs.environment["TILEWISE_FAULT"] = fault
    with nothing_left(inputs, 5 + DEADLINE + MORE):
        said = one_message(inputs(*WORDS, "-n", ranks, "--deadline", f"{DEADLINE}s"), 1)
    rank, phase = fault.split(":")[1:]
    assert f"no rank made progress for {DEADLINE} s" in said and f"rank {rank} (pid " in said
    assert f" in {phase} (clock_nanosleep)" in said or f" in {phase} (nanosleep)" in said
    assert ("wait" in said.partition(";")[2]) == (ranks > 1)


@pytest.mark.parametrize("phase", ["compute", "exchange"])
def test_ranks_that_wait_for_each_other(inputs: Tilewise, phase: str) -> None:
    """All of them spin inside MPI, and are as busy as ranks that compute."""
    inputs.environment["TILEWISE_FAULT"] = f"wait:1:{phase}"
    with nothing_left(inputs, 5 + DEADLINE + MORE):
        said = one_message(inputs(*WORDS, "-n", 3, "--algorithm", "summa", "--deadline", f"{DEADLINE}s"), 1)
    assert "no rank made progress" in said and "MPI_Recv" in said and "rank 1 (pid " in said and "gdb" in said


def test_without_a_deadline_ranks_that_wait_are_left_alone(inputs: Tilewise) -> None:
    inputs.environment["TILEWISE_FAULT"] = "wait:1:exchange"
    for given in ((), ("--deadline", "off")):
        said = one_message(inputs(*WORDS, "-n", 3, "--algorithm", "summa", "--timeout", 8, *given), 1)
        assert "longer than --timeout 8 seconds" in said


@pytest.mark.parametrize("group", [False, True])
def test_a_front_that_was_stopped_itself_raises_no_alarm(inputs: Tilewise, group: bool) -> None:
    """Nor does it take what ranks did meanwhile, or could not do because nobody read it, for a hang.

    A batch system suspends the whole group of a job: the front goes on first, ranks a moment later.
    """
    child = at_work(inputs, 2, "--deadline", f"{DEADLINE}s")
    time.sleep(2)
    stopped = [child.pid, *(workers(inputs) if group else [])]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(2 * DEADLINE)
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
        time.sleep(1)
    time.sleep(DEADLINE)
    assert child.poll() is None, child.communicate()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode == 130


def test_many_ranks_on_few_cores_raise_no_alarm(inputs: Tilewise) -> None:
    for words in (WORDS, ("transpose", "random:3000x3000", "-o", "T.npy", "--force")):
        result = inputs(*words, "-n", 64, "-q", "--deadline", "5s")
        assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("stopped", ["tilewise-worker", "hydra_pmi_proxy", "mpiexec"])
def test_an_interrupt_ends_what_is_stopped(tilewise: Tilewise, stopped: str) -> None:
    with nothing_left(tilewise, 30):
        child = at_work(tilewise, 3)
        time.sleep(0.5)
        os.kill(named(tilewise, stopped)[0], signal.SIGSTOP)
        interrupt(tilewise, child)


@pytest.mark.parametrize("wait", [0.0, 3.0])
def test_an_interrupt_ends_many_ranks(tilewise: Tilewise, wait: float) -> None:
    """Some of them still start, or all of them spin."""
    with nothing_left(tilewise, 60):
        child = tilewise.start(*LONG, "-n", 64)
        wait_for(lambda: len(workers(tilewise)) > 32)
        time.sleep(wait)
        interrupt(tilewise, child)


@pytest.mark.parametrize("fault", ["kill:40:compute", "throw:63:exchange", "fail:17", "signal-11:5:output"])
def test_one_of_many_ranks_that_fails(inputs: Tilewise, fault: str) -> None:
    inputs.environment["TILEWISE_FAULT"] = fault
    with nothing_left(inputs, 60, settle=2):
        said = one_message(inputs(*WORDS, "-n", 64, "--algorithm", "summa"), 1)
    assert f"rank {fault.split(':')[1]}" in said


@pytest.mark.parametrize("place", [0, 2])
def test_a_rank_of_somebody_elses_launcher(inputs: Tilewise, place: int) -> None:
    """Rank 0's front says it, and the launcher ends what it has started."""
    how = (mpiexec(), "-launcher", "fork", "-n", 3)
    inputs.environment["TILEWISE_FAULT"] = f"signal-{signal.SIGSTOP.value}:{place}:compute"
    with nothing_left(inputs, 5 + DEADLINE + MORE, settle=2):
        done = inputs(*WORDS, "--algorithm", "summa", "--deadline", f"{DEADLINE}s", before=how)
    ours = [line for line in done.stderr.splitlines() if line.startswith("tilewise: ")]
    assert done.returncode != 0 and len(ours) == 1
    assert f"rank {place} (pid " in ours[0] and "was stopped by a signal in compute" in ours[0]
