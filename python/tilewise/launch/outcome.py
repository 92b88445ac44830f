"""What was seen of a run, for whoever judges it."""

from __future__ import annotations

import msgspec

from tilewise.launch.beats import Hang
from tilewise.launch.events import Done, Failed, Signalled, Started


class Outcome(msgspec.Struct):
    """All that was seen of a run. `returncode` is the child's, negative for a signal."""

    ranks: int = 1
    started: Started | None = None
    record: Done | None = None
    failed: Failed | None = None
    signalled: Signalled | None = None  # of the first rank that said that a signal ends it
    returncode: int = 0
    chatter: list[str] = []
    phase: str = ""  # the last that rank 0 told of
    timed_out: bool = False
    unstarted: float | None = None  # the seconds in which not all ranks had started
    where: dict[int, str] = {}  # the phase of each rank that said so when the job took too long
    states: dict[int, str] = {}  # and what each rank on this host did then: the kernel's letter
    hung: bool = False
    hang: Hang | None = None  # for which we have ended it
    stopped: list[int] = []  # processes between us and the ranks that were stopped when we ended it
    first_gone: int | None = None  # the rank that ended before all others, -1: one of several
    lost: str | None = None  # where (empty: not known) something ended and the launcher let the others wait
    first_host: str = (
        ""  # the host of the first that held a line; before all ranks have started it is all we know
    )
    over: bool = False  # all ranks have ended
    outlived: bool = False  # well, and the launcher lived on
    silent: list[str] = []  # hosts that do not answer any more
    called: list[str] = []  # other hosts of which a rank has called
    memory_kills: int = 0  # processes that the kernel of this host killed meanwhile for want of memory
    wall: float = 0.0
