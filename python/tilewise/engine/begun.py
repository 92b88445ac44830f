"""What an earlier start of a job has left, and whether another one is the same job."""

from __future__ import annotations

import hashlib
import os
import shlex
from typing import Annotated, Any

import msgspec

from tilewise.base import journal
from tilewise.base.errors import UsageError
from tilewise.base.undecodable import UNDECODABLE
from tilewise.files.formats import extension
from tilewise.files.region import Region, Source
from tilewise.files.target import Target, base_of
from tilewise.files.unchanged import Inputs, Look, is_touched
from tilewise.launch.job import Job, Stencil
from tilewise.operations.operation import Operation
from tilewise.planning.plan import Plan

_TAIL = 1 << 20  # bytes; what a format writes behind the numbers is far shorter

# What makes two jobs the same, and how a user says it.
_SAME = {
    "repeat": "--repeat",
    "warmup": "--warmup",
    "stack": "--each",
    "dtype": "the type that is computed in",
    "overflow": "--overflow",
    "tolerance": "--tolerance",
    "stage": "what stays in memory",
    "band_bytes": "what stays in memory",
}


class Header(msgspec.Struct, kw_only=True):
    """Which job a journal belongs to. `line` is the command that began it; `inputs` as they were then.

    Its output is what the user called `name`: the file or folder `base`, of it perhaps a `member`, in the
    format of that `extension`. With `states` the job goes on from these, else from what is in its part file.
    It names no file that is opened: what there is lies where the journal is now.
    """

    tilewise: str
    line: str
    name: str
    base: str
    member: str
    extension: str
    began: Annotated[float, msgspec.Meta(ge=0, le=1e11)]
    job: Job
    inputs: list[Look | None]
    head: bytes  # of the part file, before the numbers
    states: bool = False

    @property
    def goes_on(self) -> str:
        """The command that goes on with it, for a shell; empty where there was none."""
        try:
            words = shlex.split(self.line)
        except ValueError:
            return ""
        return shlex.join(["tilewise", *words[1:], "--resume"]) if words else ""


class Begun(msgspec.Struct, kw_only=True):
    """What an earlier start has left; no other process goes on with it while `descriptor` is open."""

    folder: str
    header: Header
    descriptor: int

    @property
    def part(self) -> str:
        """The part file."""
        return journal.part_of(self.folder)

    @property
    def states(self) -> bool:
        """Whether the job goes on from states, and needs no part file."""
        return self.header.states

    @property
    def output(self) -> Region:
        """Where the result goes."""
        assert self.header.job.output is not None, "a job without one keeps no journal"
        return self.header.job.output

    def let_go(self) -> None:
        """Lets others go on with it; safe to call twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def require_like(self, target: Target, operation: Operation) -> None:
        """Raises UsageError unless the job that was begun is one of `operation`, for such a `target`."""
        if self.header.job.command != operation.command:
            raise self._other(f"the command was {self.header.job.command}")
        if self.header.job.variant.algorithm not in operation.algorithms:
            raise self._other("there is no such algorithm")
        other = self.header.job.output is None or self.header.extension != extension_of(target)
        if not self.states and other:
            raise self._other("the result had another format")

    def require_same(self, plan: Plan) -> None:
        """Raises UsageError unless the job of `plan` is the one that was begun."""
        job, inputs, was = plan.job, plan.job.inputs, self.header.job
        for field, said in _SAME.items():
            if getattr(was, field) != getattr(job, field):
                raise self._other(f"{said} was another")
        if not self.states and (self.output.order, self.output.dtype) != (plan.order, plan.dtype):
            raise self._other("the result had another type or order")
        if plan.state is None if self.states else not self._lies_as_made(plan.shape):
            raise self._other("the result was made otherwise")
        if _swept(was.stencil) != _swept(job.stencil):
            raise self._other("the sweeps were others")
        if _decomposed(was) != _decomposed(job):
            raise self._other("the decomposition was another")
        if [_form(region) for region in was.inputs] != [_form(region) for region in inputs]:
            raise self._other("the inputs were others")
        files = Inputs(inputs).files
        if len(files) != len(self.header.inputs):
            raise self._other("an input has more or fewer files")
        for now, then in zip(files, self.header.inputs, strict=True):
            if not is_touched(now.look, then):
                raise self._other(f"{now.region.name} has changed since")
            if now.look is None or then is None or now.look.changed != then.changed:
                raise self._other(f"{now.path} was touched since, and may have changed (its ctime has)")

    def _lies_as_made(self, shape: tuple[int, int]) -> bool:
        """Whether the output, of that shape, lies behind its head in the part file, and nowhere else."""
        was = self.output
        made = Region(
            path=self.part,
            name=was.name,
            offset=len(self.header.head),
            rows=shape[0],
            columns=shape[1],
            dtype=was.dtype,
            byte_order=was.byte_order,
            order=was.order,
            file_bytes=was.file_bytes,
        )
        behind = was.file_bytes - was.offset - was.bytes
        return was == made and (was.file_bytes == -1 or 0 <= behind <= _TAIL)

    def require_room(self, plan: Plan) -> None:
        """Raises UsageError where the tiles that the job began with do not fit in memory."""
        if self.states or plan.refusal is None or plan.refusal.advice:
            return
        fits = plan.need.node <= plan.facts.memory_available
        more = f"--memory {-(-plan.need.node >> 20)}MiB to go on, or " if fits else ""
        raise UsageError(
            f"--resume: {plan.refusal.message}: the job goes on with the tiles that it began with",
            f"{more}--force to start anew with other tiles",
        )

    def _other(self, why: str) -> UsageError:
        return UsageError(
            f"--resume: what is left in {place(self.folder)} is of another job: {why}",
            "--force to start anew",
        )


def header_of(folder: str) -> Header:
    """What the journal in `folder` belongs to. Raises UsageError for what is none, or is damaged."""
    path = os.path.join(folder, journal.HEADER)
    try:
        text, _, check = journal.header(folder).partition(b"\n")
        if check != check_of(text):
            raise UsageError(
                f"{path} is damaged, or of another version of tilewise: its checksum is not that of its text",
                "--force to start anew",
            )
        header = msgspec.json.decode(text, type=Header)
    except (OSError, *UNDECODABLE) as error:
        raise UsageError(
            f"{folder} is no journal of this version of tilewise: {error}", "--force to start anew"
        ) from None
    job = header.job
    if job.output is not None:
        output = msgspec.structs.replace(job.output, path=journal.part_of(folder))
        job = msgspec.structs.replace(job, output=output)
    return msgspec.structs.replace(header, job=job)


def place(folder: str) -> str:
    """Where what can be gone on with lies."""
    part = journal.part_of(folder)
    return part if os.path.exists(part) else folder


def extension_of(target: Target) -> str:
    """Of a file's name, as the user wrote it; a folder of several files has none."""
    try:
        return extension(base_of(target))
    except UsageError:
        return ""


def check_of(text: bytes) -> bytes:
    """The line behind a header: its checksum."""
    return hashlib.sha256(text).hexdigest().encode() + b"\n"


def _decomposed(job: Job) -> tuple[Any, ...] | None:
    """What decides the numbers of a decomposition, but for ranks and threads."""
    if job.svd is None:
        return None
    asked = msgspec.structs.replace(job.svd, u=None, s=None, vt=None, us=None)
    return job.variant.algorithm, job.variant.start, job.variant.inner, asked


def _swept(stencil: Stencil | None) -> tuple[Any, ...] | None:
    """What decides the numbers of every state."""
    if stencil is None:
        return None
    weights = (stencil.radius, stencil.weights, stencil.boundary)
    return stencil.steps, stencil.planes, stencil.until_change, stencil.check_every, *weights


def plain(region: Region) -> Region:
    return region.region() if isinstance(region, Source) else region


def _form(region: Region) -> Region:
    """Where the numbers of an input are and how they lie, whatever it was called."""
    return msgspec.structs.replace(plain(region), name="")
