"""Request: one job as a value, whoever asks for it, and the files that come of it beside its result."""

from __future__ import annotations

import os
from typing import Annotated

import msgspec

from tilewise.base.declare import HOW, SHOW, TIME, Parameter, Value
from tilewise.base.errors import RunError, UsageError
from tilewise.base.units import parse_time
from tilewise.launch.beats import parse_deadline
from tilewise.operations.operation import Operation

TIMELINE = Value("FILE", (".json", ".gz"))


def _parse_time_limit(text: str) -> float:
    return parse_time(text, "--time-limit")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One job.

    `record` and `trace` name files for the record and for the timeline; None where nobody wants one. With
    `force` what lies under these names, and that of the output, may be replaced. A run may take `timeout`
    seconds; `deadline` is what `tilewise.launch.beats.Beats` takes. `line` is the command that a user would
    type for it, where one did. Some fields are flags of every job.
    """

    operation: Operation
    record: str | None = None
    trace: Annotated[
        str | None,
        Parameter(
            name="--trace",
            value=TIMELINE,
            group=SHOW,
            help="File for the timeline (Perfetto format); may end in .gz.",
        ),
    ] = None
    force: Annotated[
        bool,
        Parameter(
            name="--force",
            group=HOW,
            help="Replace an existing output, and any file at --json or --trace.",
            common=True,
        ),
    ] = False
    timeout: Annotated[
        float | None, Parameter(name="--timeout", group=HOW, help="Stop the run after X seconds.")
    ] = None
    resume: Annotated[
        bool,
        Parameter(
            name="--resume",
            group=HOW,
            help="Go on with what an earlier run of this job left; if nothing, start from the beginning.",
        ),
    ] = False
    retries: Annotated[
        int,
        Parameter(
            name="--retries",
            group=HOW,
            help="After a failure, go on by itself, at most N times.",
        ),
    ] = 0
    survive: Annotated[
        bool,
        Parameter(
            name="--survive",
            group=HOW,
            help="If a rank dies, the others go on without it, where the MPI library can.",
        ),
    ] = False
    time_limit: Annotated[
        float | None,
        Parameter(
            name="--time-limit",
            value=TIME,
            group=HOW,
            help="End in time, with exit code 4, and keep what is done for --resume: 90s, 30min, 2h.",
            default="that of a Slurm job",
            parse=_parse_time_limit,
        ),
    ] = None
    deadline: Annotated[
        float | None,
        Parameter(
            name="--deadline",
            value=TIME,
            group=HOW,
            help="Stop a job of which a rank is silent, or all ranks wait, for so long: 30s, 5min; or off.",
            default="30s, for a silent rank",
            parse=parse_deadline,
        ),
    ] = None
    no_learn: Annotated[
        bool,
        Parameter(
            name="--no-learn",
            group=HOW,
            help="Do not let this run correct what is known of this machine, by which jobs are planned.",
        ),
    ] = False
    line: str = ""

    @property
    def learns(self) -> bool:
        """Whether this run may measure the machine, and correct what is known of it."""
        return not (self.no_learn or os.environ.get("TILEWISE_NO_LEARN"))

    def __post_init__(self) -> None:
        """Raises UsageError for what makes no sense, whatever the files are."""
        self.operation.check()
        if self.timeout is not None and not self.timeout > 0:
            raise UsageError(f"--timeout {self.timeout:g} makes no sense; it must be more than 0 seconds")
        if self.time_limit is not None and not self.time_limit > 0:
            raise UsageError(f"--time-limit {self.time_limit:g} makes no sense; it must be more than 0")
        if self.retries < 0:
            raise UsageError(f"--retries {self.retries} makes no sense; it must be 0 or more")


PROGRESS = "TILEWISE_PROGRESS_FD"  # has an open descriptor, to which progress is written: `0.25 compute`


class Listener:
    """Hears how a job or a measurement goes, and says nothing: callers override what they want to know.

    With `progress` the ranks are asked to tell how far they are.
    """

    progress = False

    def starting(self, command: str) -> None:
        """The ranks are about to be started by `command`."""

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
