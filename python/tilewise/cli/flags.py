"""The flags of any command, read from where it declares them, so that studies can check theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewise.base.declare import Arguments
from tilewise.base.errors import UsageError
from tilewise.cli import jobs
from tilewise.cli.commands import JOBS
from tilewise.cli.pages import page_of
from tilewise.cli.parse import parse
from tilewise.files.formats import format_module, split_name
from tilewise.operations.operation import Operation

SWEPT = (*JOBS, "measure")
_FOLDERS = ("svd", "norm")  # what these write is no matrix, or several in a folder


def arguments_of_command(name: str) -> Arguments:
    """What a job, or `measure`, may be given."""
    return page_of(name).arguments


def flags_of(command: str) -> Mapping[str, Any]:
    """Every spelling of a flag of `command` and its value's type; UsageError for what no study runs."""
    name = command.split(maxsplit=1)[0] if command.split() else ""
    if name not in SWEPT:
        raise UsageError(f"a study cannot run {command!r}; it can run {', '.join(SWEPT)}")
    return {spelt: flag.kind for spelt, flag in arguments_of_command(name).flags.items()}


def _check_job(operation: Operation) -> None:
    """What a plan refuses whatever the inputs are: the algorithm on so many ranks, the output's format."""
    ranks, name = getattr(operation, "ranks", None), getattr(operation, "algorithm", None)
    algorithm = operation.algorithms.get(name or "")
    if algorithm is not None and ranks is not None and not algorithm.takes(ranks):
        raise UsageError(f"{name} takes {algorithm.takes_text}, not --ranks {ranks}")
    if operation.command not in _FOLDERS and operation.output and not operation.nowhere:
        format_module(split_name(operation.output)[0])


def check_words(words: list[str]) -> None:
    """Raises UsageError for a command line that its command refuses before it looks at any file."""
    if words[0] in JOBS:
        asked = jobs.asked_of(words[0], words[1:])
        if asked is not None:
            _check_job(asked.request.operation)
    else:
        from tilewise.cli.measure import request

        parse(words[0], request, words[1:])
