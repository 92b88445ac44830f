"""The flags of any command, read from where it declares them, so that studies can check theirs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from tilewise.cli import plain
from tilewise.cli.commands import COMMANDS, JOBS
from tilewise.errors import UsageError

SWEPT = (*JOBS, "measure")


def flags_of(command: str) -> Mapping[str, Any]:
    """Every spelling of a flag of `command` and its value's type; UsageError for what no study runs."""
    name = command.split(maxsplit=1)[0] if command.split() else ""
    if name not in SWEPT or name not in COMMANDS:
        raise UsageError(
            f"a study cannot run {command!r}; it can run {', '.join(n for n in SWEPT if n in COMMANDS)}"
        )
    module = importlib.import_module(f"tilewise.cli.{name}")
    return plain.flags(module.request)
