"""Ranks on other hosts: the shell that says why a worker cannot start there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from stopwatch import within
from tilewise.launch.events import Failed, split_line
from tilewise.launch.launcher import Start

HERE = os.uname().nodename


def start(*words: str) -> Start:
    return Start(list(words), {}, ranks=4, remote=True)


def test_only_ranks_on_other_hosts_have_a_shell() -> None:
    near = Start(["mpiexec", "-launcher", "fork", "-n", "4", "worker"], {}, ranks=4)
    assert near.guarded("worker") is near
    far = start("mpiexec", "-hosts", "a,b", "-n", "4", "worker", "--expect", "4")
    words = far.guarded("worker").command
    assert words[:7] == ["mpiexec", "-hosts", "a,b", "-n", "4", "/bin/sh", "-c"]
    assert words[8:] == ["worker", "--expect", "4"]
    assert far.guarded("worker").shown() == far.shown() == far.command


def launched(program: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """What a launcher would start on another host."""
    words = start("srun", str(program), *arguments).guarded(str(program)).command[1:]
    return subprocess.run(words, input=given, capture_output=True, text=True, timeout=60, check=False)


def failure(program: Path) -> Failed:
    with within(5):
        done = launched(program, "--expect", "4")
    assert done.returncode == 2 and done.stdout.count("\n") == 1, done
    chatter, event = split_line(done.stdout.rstrip("\n").encode())
    assert not chatter and isinstance(event, Failed) and (event.kind, event.rank) == ("usage", -1)
    return event


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return path


def test_the_shell_becomes_a_worker_that_starts(tmp_path: Path) -> None:
    program = script(tmp_path / "worker", '[ "$1" = --version ] && exit; echo "$# $2 $$"; cat')
    done = launched(program, "--expect", "a b", given="the job")
    assert done.returncode == 0 and done.stdout.startswith("2 a b ") and done.stdout.endswith("\nthe job")


@pytest.mark.parametrize("name", ["worker", 'say "%s" \\n', "wörker\nhere"])
def test_a_worker_that_is_not_there(tmp_path: Path, name: str) -> None:
    said = failure(tmp_path / name)
    shown = str(tmp_path / name).replace("\n", " ").replace('"', "").replace("\\", "")
    assert said.message == f"the worker is missing on {HERE}: there is no {shown}"
    assert f"install tilewise on {HERE}" in said.advice


def test_a_worker_that_may_not_be_executed(tmp_path: Path) -> None:
    said = failure(script(tmp_path / "worker", "exit", 0o644))
    assert said.message == f"the worker may not be executed on {HERE}: {tmp_path / 'worker'}"


def test_a_worker_that_does_not_start(tmp_path: Path) -> None:
    program = script(
        tmp_path / "worker", r'printf "lib\"mpi\".so: no\tsuch \\\\file\n\001\033[31m" >&2; exit 127'
    )
    said = failure(program)
    assert said.message.startswith(f"the worker does not start on {HERE}: {program}: ")
    assert "libmpi.so: no such file" in said.message and "\x1b" not in said.message
