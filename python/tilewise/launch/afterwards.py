"""What is left to do when the command has said how it ended: what might end the command itself."""

from __future__ import annotations

from collections.abc import Callable

_left: list[Callable[[], object]] = []


def later(action: Callable[[], object]) -> None:
    """Keeps `action` until the command's last words are out."""
    _left.append(action)


def do() -> None:
    """All that was kept, the last first."""
    while _left:
        _left.pop()()
