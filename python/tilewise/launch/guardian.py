"""Clears up when the front itself is killed: hydra, for one, kills all ranks at once.

front ──pipe──▶ guardian     the claims, anew whenever they change; a last word, or an end without one
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from tilewise.base import processes
from tilewise.base.claim import Claim, last_word, settle
from tilewise.launch import segments
from tilewise.launch.lines import RUN

_DONE = b"done\n"
_PIECE = 1 << 16
_DYING = 10.0  # seconds that ranks may take to follow the front
_LOOK = 0.02  # seconds between two looks for them


class Guardian:
    """A copy of this process, in a session of its own so that no killing of groups reaches it.

    When we end without a word it settles the claims: part files go, what has its name stays, and one line on
    standard error, which begins with `lead`, says which it is. Then it waits for the ranks to follow us, and
    removes the segments of MPI that they leave.
    """

    def __init__(self, claims: Sequence[Claim], lead: str) -> None:
        self._pid, self._pipe = 0, -1
        front, (reader, writer) = os.getpid(), os.pipe()
        try:
            pid = os.fork()
        except OSError:  # where there can be no more processes, there is no guardian
            os.close(reader)
            os.close(writer)
            return
        if pid == 0:
            _guard(front, reader, lead)
        os.close(reader)
        self._pid, self._pipe = pid, writer
        self.tell(claims)

    def tell(self, claims: Sequence[Claim]) -> None:
        """From here on these are the claims; they are known over there before anything else is done here."""
        self._say(msgspec.json.encode(list(claims)) + b"\n")

    def dismiss(self) -> None:
        """Nothing is left to guard; safe to call twice."""
        self._say(_DONE)
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if self._pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = 0

    def _say(self, words: bytes) -> None:
        rest = memoryview(words)
        with contextlib.suppress(OSError):  # somebody has killed it
            while rest and self._pipe >= 0:
                rest = rest[os.write(self._pipe, rest) :]


def _guard(front: int, reader: int, lead: str) -> NoReturn:
    """The guardian's whole life. Nothing of the copy that it is must run on: no handlers, no buffers."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        if reader != 3:
            os.dup2(reader, 3)
        os.dup2(3, 0)
        os.dup2(2, 1)  # whoever reads our output does not wait for the guardian
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        told = b""
        while piece := os.read(0, _PIECE):
            told += piece
            if told.endswith(b"\n"):
                told = told[told.rfind(b"\n", 0, -1) + 1 :]
        if told != _DONE:
            claims = msgspec.json.decode(told.rpartition(b"\n")[0].rpartition(b"\n")[2], type=list[Claim])
            words = [lead, last_word(claims)]
            if left := settle(claims):
                words.append(f"{', '.join(left)} could not be removed")
            os.write(2, f"tilewise: {'; '.join(filter(None, words))}\n".encode(errors="replace"))
            late = time.monotonic() + _DYING
            while processes.any_marked(RUN, f"{front}-") and time.monotonic() < late:
                time.sleep(_LOOK)
            segments.sweep()
    finally:
        os._exit(0)
