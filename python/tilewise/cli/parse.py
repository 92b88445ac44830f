"""Reads a command's words: at once where they are plain, else with cyclopts, which knows all mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewise.cli import plain


def parse(name: str, function: Callable[..., Any], words: list[str]) -> Any:
    """What `function` returns for `words`, or None when they asked for help, which is printed then.

    Raises UsageError for words that `function` does not take.
    """
    arguments = plain.read(function, words)
    if arguments is not None:
        return function(*arguments.positions, **arguments.named)
    from tilewise.cli import careful

    return careful.parse(name, function, words)
