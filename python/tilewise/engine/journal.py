"""The journal of a job that can be resumed: begun, found after a death, compared with a request, and told on.

`JournalHeader` says which job a journal belongs to and `Begun` is one that this job goes on with; the files
of a journal are read and written by `tilewise.base.journal`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import time
from typing import Annotated, Any

import msgspec

from tilewise.base import journal, safely
from tilewise.base.errors import UsageError, disk_failure, one_line
from tilewise.base.owner import part_path
from tilewise.base.undecodable import UNDECODABLE
from tilewise.base.units import plural, share_text
from tilewise.files.formats import extension, split_input
from tilewise.files.region import Region, Source
from tilewise.files.target import Target, base_of
from tilewise.files.unchanged import Inputs, Look, is_touched
from tilewise.launch.job import Job, Journal, Saved
from tilewise.operations import OPERATIONS, options_of
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


class JournalHeader(msgspec.Struct, kw_only=True):
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
    """A job that an earlier start has left; no other process goes on with it while `descriptor` is open."""

    folder: str
    header: JournalHeader
    descriptor: int

    @property
    def part(self) -> str:
        """The part file."""
        return journal.part_of(self.folder)

    @property
    def states(self) -> bool:
        """True if the job goes on from states, and needs no part file."""
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
        if said := _operation_of(was).differs(was, job):
            raise self._other(said)
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
        """True if the output, of that shape, lies behind its head in the part file, and nowhere else."""
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
        more = f"--memory {-(-plan.need.node >> 20)}MiB to resume, or " if fits else ""
        raise UsageError(
            f"--resume: {plan.refusal.message}: the job resumes with the tiles that it began with",
            f"{more}--force to start over with other tiles",
        )

    def _other(self, why: str) -> UsageError:
        return UsageError(
            f"--resume: what is left in {place(self.folder)} is of another job: {why}",
            "--force to start over",
        )


def header_of(folder: str) -> JournalHeader:
    """Header of the journal in `folder`. Raises UsageError for what is no journal, or is damaged."""
    path = os.path.join(folder, journal.HEADER)
    try:
        text, _, check = journal.header(folder).partition(b"\n")
        if check != check_of(text):
            raise UsageError(
                f"{path} is damaged, or of another version of tilewise: its checksum is not that of its text",
                "--force to start over",
            )
        header = msgspec.json.decode(text, type=JournalHeader)
    except (OSError, *UNDECODABLE) as error:
        raise UsageError(
            f"{folder} is no journal of this version of tilewise: {error}", "--force to start over"
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
    """Extension of a file's name, as the user wrote it; a folder of several files has none."""
    try:
        return extension(base_of(target))
    except UsageError:
        return ""


def check_of(text: bytes) -> bytes:
    """The line behind a header: its checksum."""
    return hashlib.sha256(text).hexdigest().encode() + b"\n"


def _operation_of(job: Job) -> type[Operation]:
    """The operation of a `job`, which may come from a file; the base of all where there is none so called."""
    return options_of(job.command) if job.command in OPERATIONS else Operation


def plain(region: Region) -> Region:
    return region.region() if isinstance(region, Source) else region


def _form(region: Region) -> Region:
    """Where the numbers of an input are and how they lie, whatever its file was called."""
    return msgspec.structs.replace(plain(region), name=str(split_input(region.name)[1:]))


def find(target: Target, operation: Operation, resume: bool, force: bool) -> Begun | None:
    """Find what `operation` is to go on with, where `resume` asks for that.

    Without it, and without `force`, what lies there is refused; UsageError says what it is.
    """
    there = _left(target)
    if not there or (force and not resume):
        return None
    ours = [folder for folder in there if not safely.other_owner(folder)]
    newest = (ours or there)[-1]
    if not ours:
        raise UsageError(
            f"{target.name}: what an earlier run left in {place(newest)} belongs to "
            f"{safely.other_owner(newest)}, and only that user can resume it",
            "another name, or --force to start over",
        )
    header = header_of(newest)
    if not resume:
        raise UsageError(
            f"{target.name}: an earlier run left {done_text(newest)} of it in {place(newest)}",
            "--resume to resume it, or --force to start over",
        )
    try:
        descriptor = journal.hold(newest)
    except OSError as error:
        raise UsageError(f"{newest}: {one_line(error)}", "--force to start over") from None
    if descriptor is None:
        raise UsageError(f"{target.name}: another run has resumed it in {place(newest)}")
    begun = Begun(folder=newest, header=header, descriptor=descriptor)
    try:
        begun.require_like(target, operation)
    except BaseException:
        begun.let_go()
        raise
    return begun


def begin(target: Target, line: str, job: Job, inputs: Inputs, state: Region | None = None) -> Begun:
    """Makes the journal of `job`, which keeps pieces in its part file, or states. Raises RunError."""
    from tilewise import __version__

    part, name = part_path(target.path, job.id), target.name
    folder = journal.folder_of(part)
    header = JournalHeader(
        tilewise=__version__,
        line=line,
        name=name,
        base=os.path.basename(target.path),
        member=target.member,
        extension=extension_of(target),
        began=time.time(),
        job=msgspec.structs.replace(job, inputs=[plain(region) for region in job.inputs]),
        inputs=[each.look for each in inputs.files],
        head=b"" if state is not None else _head(part, job.output),
        states=state is not None,
    )
    try:
        os.mkdir(folder, 0o755)
        with open(os.path.join(folder, journal.HEADER), "xb") as file:
            text = msgspec.json.encode(header)
            file.write(text + b"\n" + check_of(text))
        descriptor = journal.hold(folder)
    except OSError as error:
        journal.remove(folder)
        raise disk_failure(f"the journal of {name} cannot be made", error) from None
    assert descriptor is not None, "no other process knows of it"
    return Begun(folder=folder, header=header, descriptor=descriptor)


def told(begun: Begun, state: Region | None = None, every: float = 0.0) -> Journal:
    """Journal as the ranks are told of it, who keep a `state` `every` so many seconds. Raises RunError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(begun.folder, journal.STOP))
    try:
        slots = [_slot(state, begun, number) for number in range(2)] if begun.states and state else []
        standing = [] if begun.states else journal.pieces(begun.folder)
        saved = [
            Saved(each.slot, each.version, each.facts, each.pieces)
            for each in (journal.saved(begun.folder) if begun.states else [])
        ]
        return Journal(
            folder=begun.folder,
            start=journal.starts(begun.folder),
            standing=standing,
            every=every,
            slots=slots,
            saved=saved,
        )
    except OSError as error:
        raise disk_failure(f"the journal {begun.folder} cannot be read", error) from None


def remove_old(target: Target) -> None:
    """Removes what earlier runs have left of `target`, unless a run is going on with it."""
    for folder in _left(target):
        with contextlib.suppress(OSError):  # that it is not ours, too
            descriptor = journal.hold(folder)
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.unlink(journal.part_of(folder))
                journal.remove(folder)
                os.close(descriptor)


def done_text(folder: str) -> str:
    """How much of the work is done: `37 %`."""
    with contextlib.suppress(OSError, UsageError):
        header = header_of(folder)
        share = _share(header, folder)
        return f"the state after {plural(_sweeps(folder), 'sweep')}" if share is None else share_text(share)
    return "a part"


def facts_of(path: str) -> dict[str, Any] | None:
    """Facts about a part file with a journal, or about a journal; None where `path` is neither."""
    folder = path if path.endswith(f".{journal.ENDING}") else journal.folder_of(path)
    folder = folder.rstrip("/")
    if not (path.endswith(f".{journal.ENDING}") or path.endswith(".part")):
        return None
    if not os.path.exists(os.path.join(folder, journal.HEADER)):
        return None
    from tilewise import __version__

    header = header_of(folder)
    owner = safely.other_owner(folder)
    descriptor = None if owner else journal.hold(folder)
    if descriptor is not None:
        os.close(descriptor)
    output = header.job.output
    return {
        "tilewise": __version__,
        "path": os.path.abspath(place(folder)),
        "format": "part",
        "of": header.name,
        "command": header.job.command,
        "shape": [output.rows, output.columns] if output is not None else None,
        "dtype": output.dtype if output is not None else header.job.dtype,
        "began": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(header.began)),
        "starts": journal.starts(folder),
        "pieces": None if header.states else len(journal.pieces(folder)),
        "sweeps": _sweeps(folder) if header.states else None,
        "done": _share(header, folder),
        "owner": owner or None,
        "running": None if owner else descriptor is None,
        "inputs": [region.name for region in header.job.inputs],
        "goes_on": "" if owner else header.goes_on,
    }


def _left(target: Target) -> list[str]:
    """The journals of earlier runs that wrote to `target`, the newest last; damaged ones may be others'."""
    return [folder for folder in journal.beside(target.path) if _is_of(folder, target)]


def _is_of(folder: str, target: Target) -> bool:
    try:
        header = header_of(folder)
    except UsageError:
        return True
    return (header.base, header.member) == (os.path.basename(target.path), target.member)


def _head(part: str, output: Region | None) -> bytes:
    with open(part, "rb", buffering=0) as file:
        return file.read(output.offset if output is not None else 0) or b""


def _share(header: JournalHeader, folder: str) -> float | None:
    """Share of the work that is done; None where nobody knows how many sweeps there will be."""
    job = header.job
    if header.states:
        sweeps = _operation_of(job).sweeps(job)
        return None if sweeps is None else min(1.0, _sweeps(folder) / max(1, sweeps))
    numbers = job.output.rows * job.output.columns if job.output is not None else 0
    return min(1.0, journal.covered(journal.pieces(folder)) / numbers) if numbers > 0 else 0.0


def _sweeps(folder: str) -> int:
    """Number of sweeps after which there is a state."""
    return max((each.version for each in journal.saved(folder)), default=0)


def _slot(state: Region, begun: Begun, number: int) -> Region:
    """The file for the states of this number, of full size, also what is left of it. Raises OSError."""
    path = journal.slot_of(begun.folder, number)
    descriptor = journal.open_file(begun.folder, os.path.basename(path), os.O_RDWR | os.O_CREAT)
    try:
        os.truncate(descriptor, state.bytes)
    finally:
        os.close(descriptor)
    return msgspec.structs.replace(state, path=path, name=f"a checkpoint of {begun.header.name}")
