"""The flags of any command, read from where it declares them, so that studies can check theirs."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from tilewise.cli import plain
from tilewise.cli.commands import COMMANDS, JOBS
from tilewise.cli.parse import parse
from tilewise.errors import UsageError
from tilewise.files import FORMATS

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


def check_words(words: list[str]) -> None:
    """Raises UsageError for a command line that its command refuses before it looks at any file."""
    module = importlib.import_module(f"tilewise.cli.{words[0]}")
    parse(words[0], module.request, list(_without_files(words[1:])))


def _without_files(words: list[str]) -> Iterator[str]:
    """`words` with a name instead of a file where the command would read it at once, from another folder."""
    before = ""
    for word in words:
        flag, equals, value = word.partition("=")
        if flag == "--weights" and equals and _is_file(value):
            yield "--weights=box3"
        else:
            yield "box3" if before == "--weights" and _is_file(word) else word
        before = word


def _is_file(word: str) -> bool:
    return any(ending in word.lower() for ending in FORMATS)
