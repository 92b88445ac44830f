"""Where text goes: consoles that colour and wrap on a terminal only."""

from __future__ import annotations

import sys

from rich.console import Console, RenderableType

_PIPED = 400  # columns: a pipe has no width, and a table that does not fill it is not stretched


def show(content: RenderableType, plain: bool = False) -> None:
    """Prints on standard output, without colour or wrapping when that is no terminal or `plain` is set."""
    terminal = sys.stdout.isatty() and not plain
    console = _console(terminal, stderr=False)
    if terminal:
        console.print(content)
        return
    with console.capture() as captured:
        console.print(content)
    sys.stdout.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))
    sys.stdout.flush()


def errors() -> Console:
    """Standard error, the same way."""
    return _console(sys.stderr.isatty(), stderr=True)


def _console(terminal: bool, stderr: bool) -> Console:
    # highlight would colour every number, emoji would turn a path with :x: in it into a picture.
    width = None if terminal else _PIPED
    return Console(stderr=stderr, force_terminal=terminal, width=width, highlight=False, emoji=False)
