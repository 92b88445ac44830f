"""Answers for programs: to the file that a flag names, or to standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from tilewise.base.errors import warning_line
from tilewise.base.staging import replace_or_fail


def write_file(path: str, content: bytes, flag: str = "") -> None:
    """Writes an answer to `path`, `-` is standard output; RunError, and nothing changed, where that fails.

    The error names `flag`, if there is one, before the path.
    """
    if path == "-":
        sys.stdout.write(content.decode())
        return
    replace_or_fail(path, content, f"{flag} {path}".strip())


def warn(warnings: Iterable[str]) -> None:
    """Prints each on standard error, as a line of its own also where an interrupt comes between."""
    for warning in warnings:
        sys.stderr.write(warning_line(warning))
    sys.stderr.flush()


def write_json(path: str, value: Any, flag: str = "", indent: int = 2) -> None:
    """The same for a value as indented JSON."""
    write_file(path, msgspec.json.format(msgspec.json.encode(value), indent=indent) + b"\n", flag)
