"""Hands a job to rank 0, no faster than it reads: a launcher between us may die of more than a pipe full."""

from __future__ import annotations

import contextlib
import os
import selectors
from typing import IO

from tilewise.launch import constants


class Feed:
    """The job on its way; `read_there` is how many bytes of it rank 0 has said to have read."""

    def __init__(self) -> None:
        self.read_there = 0
        self._ahead = constants.seam().job_window  # bytes that go out before rank 0 says what it has read
        self._stream: IO[bytes] | None = None
        self._job = memoryview(b"")
        self._sent = 0
        self._waits = False  # for rank 0 to read more

    def begin(self, selector: selectors.BaseSelector, stream: IO[bytes], job: memoryview) -> None:
        """Hands on `job` whenever `stream`, which does not block, takes more."""
        self._stream, self._job = stream, job
        selector.register(stream, selectors.EVENT_WRITE)

    def hand_on(self, selector: selectors.BaseSelector) -> None:
        """Writes what may go, as the stream takes it."""
        stream = self._stream
        assert stream is not None, "it has begun"
        may_go = self.read_there + self._ahead - self._sent
        if may_go <= 0:
            selector.unregister(stream)
            self._waits = True
            return
        try:
            written = os.write(stream.fileno(), self._job[:may_go])
        except BlockingIOError:
            return
        except OSError:
            written = len(self._job)  # the child has gone; its exit tells the rest
        self._sent += written
        self._job = self._job[written:]
        if not self._job:
            selector.unregister(stream)
            with contextlib.suppress(OSError):
                stream.close()

    def go_on(self, selector: selectors.BaseSelector) -> None:
        """Once rank 0 has read more."""
        if self._waits and self._sent < self.read_there + self._ahead:
            self._waits = False
            assert self._stream is not None, "it has begun"
            selector.register(self._stream, selectors.EVENT_WRITE)
