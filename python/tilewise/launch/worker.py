"""Finds the worker and what starts it, and the facts about the build, without importing anything heavy."""

from __future__ import annotations

import json
import os

from tilewise.base import programs

NAME = "tilewise-worker"
FACTS = "build.json"
_STARTER = "tilewise-start"


def candidates() -> list[str]:
    """Every place a worker may lie, best first: TILEWISE_WORKER, the package, the environment."""
    named = os.environ.get("TILEWISE_WORKER")
    return [os.path.abspath(named)] if named else places()


def find() -> str | None:
    """The worker's path, or None when there is none that can be started."""
    return programs.first(candidates())


def without_mpi() -> dict[str, str]:
    """The environment for a worker that does not start MPI, which takes 40 ms less: UCX prepares nothing."""
    return {**os.environ, "UCX_MEM_MMAP_HOOK_MODE": "none", "UCX_VFS_ENABLE": "n"}


def trouble(path: str | None) -> str:
    """Why the worker at `path` cannot start on this host, in words; empty where it can."""
    host = os.uname().nodename
    if path is None:
        return f"the worker is missing on {host}, expected at {candidates()[0]}"
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    try:
        child = os.posix_spawn(path, [path, "--version"], without_mpi(), file_actions=quiet)
    except OSError as error:
        return f"the worker does not start on {host}: {path}: {error.strerror}"
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return f"the worker does not start on {host}: {path} ended with exit code {code}" if code else ""


def tied(command: list[str]) -> list[str]:
    """`command` for a child that is asked to end when this process dies, and that this process's terminal
    does not interrupt. Where the installation lacks the program for that, `command` itself.
    """
    starter = programs.first(programs.places(_STARTER))
    return [starter, str(os.getpid()), *command] if starter is not None else command


def places() -> list[str]:
    """Every place where the installed package's worker may lie, best first."""
    return programs.places(NAME)


def build_facts(worker: str) -> dict[str, str]:
    """The words that `build.json` beside the worker says; empty where it is missing or unreadable."""
    try:
        with open(os.path.join(os.path.dirname(worker), FACTS), encoding="utf-8") as file:
            facts = json.load(file)
    except (OSError, ValueError):
        return {}
    if not isinstance(facts, dict):
        return {}
    return {key: value for key, value in facts.items() if isinstance(value, str)}
