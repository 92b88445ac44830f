"""Answers for programs: to the file that a flag names, or to standard output."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from tilewise.base.staging import replace_or_fail


def write_file(path: str, content: bytes, flag: str = "") -> None:
    """Writes an answer to `path`, `-` is standard output; RunError, and nothing changed, where that fails.

    The error names `flag`, if there is one, before the path.
    """
    if path == "-":
        sys.stdout.write(content.decode())
        return
    replace_or_fail(path, content, f"{flag} {path}".strip())


def write_json(path: str, value: Any, flag: str = "", indent: int = 2) -> None:
    """The same for a value as indented JSON."""
    write_file(path, msgspec.json.format(msgspec.json.encode(value), indent=indent) + b"\n", flag)
