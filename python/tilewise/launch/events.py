"""The seam's second half: what the worker says. Mirrors `docs/reference/seam.md` field by field."""

from __future__ import annotations

from typing import Any

import msgspec

from tilewise.base.undecodable import UNDECODABLE
from tilewise.base.units import share_text

MARK = b"\x1e"  # begins every line that is ours; all else is a library's chatter


class RankPlace(msgspec.Struct):
    """Place of one rank; `cpus` is what it is bound to, `node` numbers the hosts."""

    rank: int
    host: str
    pid: int
    cpus: Any = None
    node: int = 0


class RankDone(RankPlace):
    """One rank at the end of its job. `peak_rss_bytes` is the most memory it ever held."""

    peak_rss_bytes: int = 0
    working: bool = True
    elements: int = 0


class Started(msgspec.Struct, tag="started", tag_field="event"):
    """Event: all ranks are there and bound."""

    ranks: list[RankPlace]


class Progress(msgspec.Struct, tag="progress", tag_field="event"):
    """Event: how far a phase is, 0 to 1."""

    phase: str
    done: float


class JobRead(msgspec.Struct, tag="reading", tag_field="event"):
    """Event: the bytes of a long job that rank 0 has read; more of it may come."""

    bytes: int


class Snapshot(msgspec.Struct, tag="snapshot", tag_field="event"):
    """A snapshot is complete: the one with that place in the job's list."""

    index: int


class Survived(msgspec.Struct, tag="survived", tag_field="event"):
    """Event: all ranks that have died so far, by their first numbers; the `ranks` that live go on."""

    lost: list[int]
    ranks: int


class Failed(msgspec.Struct, tag="error", tag_field="event"):
    """Event: the job failed.

    `usage` and `memory` mean that the request was wrong, `verification` that the output is. `errno`: the
    system's number where that is the cause, else 0. `aborts`: other ranks do not know of it, and the rank is
    about to end the job. `advice` is what to do next, where whoever says this knows; else empty.
    """

    kind: str
    message: str
    rank: int = -1
    errno: int = 0
    aborts: bool = False
    advice: str = ""


class Signalled(msgspec.Struct, tag="signal", tag_field="event"):
    """A signal ends that rank, or (SIGUSR2) asked it where it is: in `phase`, empty outside of a job."""

    rank: int
    number: int
    phase: str = ""


class Beat(msgspec.Struct, tag="beat", tag_field="event"):
    """Event: the rank lives, and is in `phase`, empty outside of a job.

    `moved`: since the last beat it did something that a rank which waits for others does not do. `call` is
    the call of MPI that it is in, `waits` the system call and its file that it has waited in for seconds.
    """

    rank: int
    host: str
    pid: int
    phase: str = ""
    moved: bool = True
    call: str = ""
    waits: str = ""


class Verification(msgspec.Struct):
    """Verdict on `share` of the result: below 1, `passed` speaks of no more than that.

    `unchecked` says in words what the proof took for granted.
    """

    method: str
    passed: bool
    share: float = 1.0
    error: float | None = None
    tolerance: float | None = None
    unchecked: str = ""

    def verdict(self) -> str:
        """`passed`, `FAILED`, or the share of the result that passed."""
        if not self.passed:
            return "FAILED"
        return "passed" if self.share >= 1 else f"{share_text(self.share)} passed"


class Loss(msgspec.Struct):
    """Loss of precision in the text of an input; `line` and `column` of the first number.

    `kind`: integers beyond 2⁵³ were `rounded`, or numbers beyond the type became infinite (`overflow`).
    """

    input: int
    kind: str
    count: int
    line: int
    column: int


class SliceDone(msgspec.Struct):
    """Result of one slice of a stack."""

    result: dict[str, Any] = {}
    verification: Verification | None = None
    warnings: list[str] = []


class Done(msgspec.Struct, tag="record", tag_field="event"):
    """Event: the job is done; lists have one number a rank, in seconds. `exchange` is the one that was used.
    Of a stack, `slices` have what is said of each."""

    ranks: list[RankDone]
    seconds: dict[str, list[float]]
    samples: list[dict[str, float]] = []
    bytes: dict[str, list[int]] = {}
    messages: list[int] = []
    io_calls: list[int] = []
    flops: float = 0.0
    peak_flops: float | None = None
    verification: Verification | None = None
    result: dict[str, Any] = {}
    slices: list[SliceDone] = []
    exchange: str = ""
    warnings: list[str] = []
    losses: list[Loss] = []
    environment: dict[str, str] = {}
    oversubscribed: bool = False


Event = Started | Progress | JobRead | Snapshot | Survived | Failed | Signalled | Beat | Done
_decoder = msgspec.json.Decoder(Event, strict=False)


def split_line(line: bytes) -> tuple[bytes, Event | None]:
    """A line's chatter and its event. A library may have printed without a newline before our mark."""
    chatter, mark, ours = line.partition(MARK)
    if not mark:
        return line, None
    try:
        return chatter, _decoder.decode(ours)
    except UNDECODABLE:
        return line, None  # torn by somebody else's output: worth showing, not worth dying for
