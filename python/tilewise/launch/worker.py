"""Finds the worker program and the facts about its build, without importing anything heavy."""

from __future__ import annotations

import json
import os
import sys
import sysconfig

NAME = "tilewise-worker"


def candidates() -> list[str]:
    """Every place a worker may lie, best first: TILEWISE_WORKER, the package, the environment."""
    named = os.environ.get("TILEWISE_WORKER")
    if named:
        return [os.path.abspath(named)]
    import tilewise

    # An editable install keeps the sources and the built files in two folders.
    folders = [*tilewise.__path__, os.path.join(sysconfig.get_paths()["platlib"], "tilewise")]
    places = [os.path.join(folder, inner, NAME) for folder in folders for inner in ("bin", "", "libexec")]
    return [*places, os.path.join(sys.prefix, "bin", NAME)]


def find() -> str | None:
    """The worker's path, or None when there is none that can be started."""
    return next((path for path in candidates() if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def build_facts(worker: str) -> dict[str, str]:
    """What `build.json` beside the worker says; empty where it is missing or unreadable."""
    try:
        with open(os.path.join(os.path.dirname(worker), "build.json"), encoding="utf-8") as file:
            facts = json.load(file)
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in facts.items()} if isinstance(facts, dict) else {}
