"""Request: one job as a value, whoever asks for it, and the files that come of it beside its result."""

from __future__ import annotations

import math
import os
from typing import Annotated

from tilewise.base.declare import HOW, SHOW, TIME, Flag, Flags, Value
from tilewise.base.errors import RunError
from tilewise.base.units import parse_time
from tilewise.launch.liveness import parse_deadline
from tilewise.operations.operation import Operation

TIMELINE = Value("FILE", (".json", ".gz"))


class Request(Flags, frozen=True, kw_only=True):
    """One job.

    `record` and `trace` name files for the record and for the timeline; None where nobody wants one. With
    `force` what lies under these names, and that of the output, may be replaced. A run may take `timeout`
    seconds; `deadline` is what `tilewise.launch.liveness.Beats` takes. `line` is the command that a user
    would type for it, where one did. Some fields are flags of every job.
    """

    operation: Operation
    record: str | None = None
    trace: Annotated[
        str | None, Flag("File for the timeline (Perfetto format); may end in .gz.", SHOW, value=TIMELINE)
    ] = None
    force: Annotated[
        bool, Flag("Replace an existing output, and any file at --json or --trace.", HOW, common=True)
    ] = False
    timeout: Annotated[float | None, Flag("Stop the run after X seconds.", HOW, above=0, most=math.inf)] = (
        None
    )
    resume: Annotated[
        bool,
        Flag("Resume an interrupted run, or start from the beginning if there is none.", HOW),
    ] = False
    retries: Annotated[int, Flag("Retry automatically, up to N times.", HOW, least=0)] = 0
    survive: Annotated[bool, Flag("Continue without ranks that die, if the MPI library can.", HOW)] = False
    time_limit: Annotated[
        float | None,
        Flag(
            "Stop before this limit, with exit code 4 and a checkpoint for --resume: 90s, 30min, 2h.",
            HOW,
            value=TIME,
            default="that of a Slurm job",
            parse=parse_time,
            above=0,
        ),
    ] = None
    deadline: Annotated[
        float | None,
        Flag(
            "Stop if a rank sends no heartbeat, or all ranks are blocked, for this long: 30s, 5min; or off.",
            HOW,
            value=TIME,
            default="30s, for a silent rank",
            parse=parse_deadline,
        ),
    ] = None
    no_learn: Annotated[
        bool,
        Flag("Do not update this machine's profile.", HOW),
    ] = False
    line: str = ""

    @property
    def learns(self) -> bool:
        """Return whether this run may measure the machine and update its profile."""
        return not (self.no_learn or os.environ.get("TILEWISE_NO_LEARN"))

    def __post_init__(self) -> None:
        """Raise UsageError for requests that no files could satisfy."""
        self.operation.check()
        super().__post_init__()


PROGRESS = "TILEWISE_PROGRESS_FD"  # has an open descriptor, to which progress is written: `0.25 compute`


class Listener:
    """Hears how a job or a measurement goes, and says nothing: callers override what they want to know.

    With `progress` the ranks are asked to tell how far they are.
    """

    progress = False

    def starting(self, command: str) -> None:
        """The ranks are about to be started by `command`."""

    def foreseen(self, seconds: float) -> None:
        """All of it is expected to take so many `seconds`."""

    def running(self) -> None:
        """They have been started: time to import what the end needs."""

    def update(self, phase: str, done: float) -> None:
        """`phase` is `done`, from 0 to 1."""

    def retrying(self, error: RunError, left: int) -> None:
        """The job failed, and goes on by itself; `left` more times may follow."""

    def measured(self, seconds: float) -> None:
        """This machine was measured for the first time, which took so many `seconds`."""

    def warning(self, line: str) -> None:
        """Something is wrong, and the job goes on."""

    def chatter(self, line: str) -> None:
        """A launcher, or a library in a rank, has printed `line`."""
