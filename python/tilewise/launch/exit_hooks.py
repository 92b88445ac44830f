"""What is left to do when the command has said how it ended: what might end the command itself."""

from __future__ import annotations

from collections.abc import Callable

from tilewise.launch.signals import NOTHING

_left: list[Callable[[], object]] = []
_written = [NOTHING]


def admit(written: str) -> None:
    """Keeps what was `written`, for an interrupt that comes when nobody catches it any more."""
    _written[0] = written


def written() -> str:
    """What was written, in half a sentence."""
    return _written[0]


def later(action: Callable[[], object]) -> None:
    """Keeps `action` until the command's last words are out."""
    _left.append(action)


def run() -> None:
    """All that was kept, the last first."""
    while _left:
        _left.pop()()
