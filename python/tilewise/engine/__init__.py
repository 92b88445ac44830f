"""The engine: a request goes in, a record comes out; nothing is printed, and errors are those of `errors`.

The command line, `tilewise.run`, studies and measurements call it; it knows none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewise.engine.request import Listener, Request
    from tilewise.launch.record import Record


def run(request: Request, listener: Listener | None = None) -> Record:
    """Does the job of `request` and returns its record; the result has its name then.

    Raises UsageError, RunError, VerificationError (with the record) or Interrupted; all ranks are gone then,
    and the message says what was written.
    """
    from tilewise.engine.session import session
    from tilewise.launch import signals

    try:
        with session() as opened:
            return opened.run(request, listener)
    finally:
        signals.run_kept()
