"""The front's side of the line that ranks hold, for tests that are their own ranks, or strangers."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Sequence

from tilewise.launch.connections import Connections
from tilewise.launch.worker import FRONT


class ListeningFront:
    """Its doors, and what it has heard; `hosts` are where ranks are, empty where nobody knows."""

    def __init__(self, hosts: Sequence[str] = ()) -> None:
        self.heard: list[bytes] = []
        self.selector = selectors.DefaultSelector()
        self.run = f"test-{os.getpid()}-{time.monotonic_ns()}"
        self.connections = Connections(self.run, 4, True, self.heard.append, hosts)
        self.connections.listen(self.selector)
        self.token, self.port, *self.addresses = self.connections.environment[FRONT].split()

    def close(self) -> None:
        """Ends all connections."""
        self.connections.close()
        self.selector.close()
