"""Ending a tree of processes: what is slow to go, and what is only just being started, is gone on return."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from conftest import wait_for
from tilewise.base import processes
from tilewise.launch.child import close_streams, spawn
from tilewise.launch.launcher import Start

# Half a gibibyte takes the kernel some time to free.
HOARD = """import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
held = bytes(range(256)) * (1 << 21)
pathlib.Path(sys.argv[1]).touch()
time.sleep(100)
"""


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for longer than that for what was asked to end."""
    monkeypatch.setattr(processes, "GRACE", 0.05)


def started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    return spawn(Start([*words], {**os.environ, "HERE": str(folder)}))


def pids_in(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir() if path.name.isdigit()]


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def test_what_is_slow_to_go_is_gone(hurry: None, tmp_path: Path) -> None:
    child = started(tmp_path, sys.executable, "-c", HOARD, str(tmp_path / "held"))
    wait_for((tmp_path / "held").exists)
    processes.end_tree(child, (), "nothing")
    assert not lives(child.pid) and child.returncode == -9
    close_streams(child)


def test_a_rank_that_outlives_its_launcher_is_gone(tmp_path: Path) -> None:
    program = tmp_path / "worker"
    program.symlink_to(sys.executable)
    child = subprocess.Popen([program, "-c", HOARD, str(tmp_path / "held")])
    wait_for((tmp_path / "held").exists)
    assert processes.outliving([child.pid], "/elsewhere/other", 0) == []
    left = processes.outliving([child.pid], str(program), 0)
    assert [process.pid for process in left] == [child.pid]
    processes.kill(left)
    assert not lives(child.pid)
    child.wait()


def test_what_a_launcher_starts_while_it_is_ended_is_gone(hurry: None, tmp_path: Path) -> None:
    """As one does that was just about to start its ranks, each in a session of its own."""
    script = """start() { setsid sleep 100 & touch "$HERE/$!"; }
trap 'start; start; exit 0' TERM
start
while :; do sleep 0.01; done
"""
    child = started(tmp_path, "sh", "-c", script)
    wait_for(lambda: len(pids_in(tmp_path)) == 1)
    beside = subprocess.Popen(["sleep", "100"])
    processes.end_tree(child, (), "nothing")
    assert len(pids_in(tmp_path)) == 3
    assert not any(lives(pid) for pid in pids_in(tmp_path))
    assert beside.poll() is None  # what was there before and is not the child's is spared
    beside.kill()
    beside.wait()
    close_streams(child)
