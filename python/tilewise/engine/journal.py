"""Going on with a job after a death: what is left is found, compared with what is asked, and told on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from tilewise.base import journal
from tilewise.base.errors import UsageError, disk_failure
from tilewise.base.owner import part_path
from tilewise.base.units import plural, share_text
from tilewise.files.formats import extension
from tilewise.files.region import Region, Source
from tilewise.files.target import Target, base_of
from tilewise.files.unchanged import Inputs, Look, is_touched
from tilewise.launch.job import Job, Journal, Saved, Standing, Stencil
from tilewise.planning.plan import Plan

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
    format of that `extension`. With `slots` the job goes on from states in these files, else from what is in
    its part file. All of these lie where the journal is now.
    """

    tilewise: str
    line: str
    name: str
    base: str
    member: str
    extension: str
    began: float
    job: Job
    inputs: list[Look | None]
    head: bytes  # of the part file, before the numbers
    slots: list[Region] = []


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
        return bool(self.header.slots)

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

    def require_like(self, target: Target, command: str) -> None:
        """Raises UsageError unless the job that was begun is such a command, and writes what `target` is."""
        if self.header.job.command != command:
            raise self._other(f"the command was {self.header.job.command}")
        if not self.states and self.header.extension != _extension(target):
            raise self._other("the result had another format")

    def require_same(self, job: Job, inputs: Sequence[Region], order: str, dtype: str) -> None:
        """Raises UsageError unless `job`, with a result in that order and type, is the one that was begun."""
        was = self.header.job
        for field, said in _SAME.items():
            if getattr(was, field) != getattr(job, field):
                raise self._other(f"{said} was another")
        if not self.states and (self.output.order, self.output.dtype) != (order, dtype):
            raise self._other("the result had another type or order")
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
            f"--resume: what is left in {_place(self.folder)} is of another job: {why}",
            "--force to start anew",
        )


def header_of(folder: str) -> Header:
    """What the journal in `folder` belongs to. Raises UsageError for what is none, or is damaged."""
    path = os.path.join(folder, journal.HEADER)
    try:
        with open(path, "rb") as file:
            text, _, check = file.read().partition(b"\n")
        if check != _check(text):
            raise UsageError(
                f"{path} is damaged, or of another version of tilewise: its checksum is not that of its text",
                "--force to start anew",
            )
        header = msgspec.json.decode(text, type=Header)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"{folder} is no journal of this version of tilewise: {error}", "--force to start anew"
        ) from None
    slots = [
        msgspec.structs.replace(slot, path=journal.slot_of(folder, number))
        for number, slot in enumerate(header.slots)
    ]
    job = header.job
    if not slots and job.output is not None:
        output = msgspec.structs.replace(job.output, path=journal.part_of(folder))
        job = msgspec.structs.replace(job, output=output)
    return msgspec.structs.replace(header, job=job, slots=slots)


def find(target: Target, command: str, resume: bool, force: bool) -> Begun | None:
    """What is to be gone on with by `command`, where `resume` asks for that.

    Without it, and without `force`, what lies there is refused; UsageError says what it is.
    """
    there = _left(target)
    if not there or (force and not resume):
        return None
    newest = there[-1]
    header = header_of(newest)
    if not resume:
        raise UsageError(
            f"{target.name}: an earlier run left {done_text(newest)} of it in {_place(newest)}",
            "--resume to go on with it, or --force to start anew",
        )
    descriptor = journal.hold(newest)
    if descriptor is None:
        raise UsageError(f"{target.name}: another run is going on with it in {_place(newest)}")
    begun = Begun(folder=newest, header=header, descriptor=descriptor)
    try:
        begun.require_like(target, command)
    except BaseException:
        begun.let_go()
        raise
    return begun


def begin(target: Target, line: str, job: Job, inputs: Inputs, state: Region | None = None) -> Begun:
    """Makes the journal of `job`, which keeps pieces in its part file, or states. Raises RunError."""
    from tilewise import __version__

    part, name = part_path(target.path, job.id), target.name
    folder = journal.folder_of(part)
    slots = [_slot(state, folder, name, number) for number in range(2)] if state is not None else []
    header = Header(
        tilewise=__version__,
        line=line,
        name=name,
        base=os.path.basename(target.path),
        member=target.member,
        extension=_extension(target),
        began=time.time(),
        job=msgspec.structs.replace(job, inputs=[_plain(region) for region in job.inputs]),
        inputs=[each.look for each in inputs.files],
        head=b"" if slots else _head(part, job.output),
        slots=slots,
    )
    try:
        os.mkdir(folder)
        with open(os.path.join(folder, journal.HEADER), "xb") as file:
            text = msgspec.json.encode(header)
            file.write(text + b"\n" + _check(text))
        _make(slots)
        descriptor = journal.hold(folder)
    except OSError as error:
        journal.remove(folder)
        raise disk_failure(f"the journal of {name} cannot be made", error) from None
    assert descriptor is not None, "no other process knows of it"
    return Begun(folder=folder, header=header, descriptor=descriptor)


def told(begun: Begun, every: float = 0.0) -> Journal:
    """What the ranks are told, who keep a state `every` so many seconds. Raises RunError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(begun.folder, journal.STOP))
    try:
        _make(begun.header.slots)
        standing = [] if begun.states else _standing(journal.pieces(begun.folder))
        saved = [
            Saved(each.slot, each.version, each.facts, _standing(each.pieces))
            for each in (journal.saved(begun.folder) if begun.states else [])
        ]
        return Journal(
            folder=begun.folder,
            start=journal.starts(begun.folder),
            standing=standing,
            every=every,
            slots=begun.header.slots,
            saved=saved,
        )
    except OSError as error:
        raise disk_failure(f"the journal {begun.folder} cannot be read", error) from None


def remove_old(target: Target) -> None:
    """Removes what earlier runs have left of `target`, unless a run is going on with it."""
    for folder in _left(target):
        with contextlib.suppress(OSError):
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
        if header.job.svd is not None:  # how many sweeps there will be, nobody knows
            return f"the state after {plural(_sweeps(folder), 'sweep')}"
        return share_text(_share(header, folder))
    return "a part"


def facts_of(path: str) -> dict[str, Any] | None:
    """What `path` is, where it is a part file with a journal, or the journal; None where it is neither."""
    folder = path if path.endswith(f".{journal.ENDING}") else journal.folder_of(path)
    folder = folder.rstrip("/")
    if not (path.endswith(f".{journal.ENDING}") or path.endswith(".part")):
        return None
    if not os.path.exists(os.path.join(folder, journal.HEADER)):
        return None
    from tilewise import __version__

    header = header_of(folder)
    descriptor = journal.hold(folder)
    if descriptor is not None:
        os.close(descriptor)
    output = header.job.output
    return {
        "tilewise": __version__,
        "path": os.path.abspath(_place(folder)),
        "format": "part",
        "of": header.name,
        "command": header.job.command,
        "shape": [output.rows, output.columns] if output is not None else None,
        "dtype": output.dtype if output is not None else header.job.dtype,
        "began": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(header.began)),
        "starts": journal.starts(folder),
        "pieces": None if header.slots else len(journal.pieces(folder)),
        "sweeps": _sweeps(folder) if header.slots else None,
        "done": _share(header, folder) if header.job.svd is None else None,
        "running": descriptor is None,
        "inputs": [region.name for region in header.job.inputs],
        "goes_on": f"{header.line} --resume" if header.line else "",
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


def _extension(target: Target) -> str:
    """Of a file's name, as the user wrote it; a folder of several files has none."""
    try:
        return extension(base_of(target))
    except UsageError:
        return ""


def _check(text: bytes) -> bytes:
    """The line behind a header: its checksum."""
    return hashlib.sha256(text).hexdigest().encode() + b"\n"


def _make(slots: Sequence[Region]) -> None:
    """Makes files of states of their full size, also of what is left of them. Raises OSError."""
    for slot in slots:
        with open(slot.path, "ab") as file:
            file.truncate(slot.bytes)


def _head(part: str, output: Region | None) -> bytes:
    with open(part, "rb", buffering=0) as file:
        return file.read(output.offset if output is not None else 0) or b""


def _share(header: Header, folder: str) -> float:
    job = header.job
    if header.slots:
        return _sweeps(folder) / job.stencil.steps if job.stencil and job.stencil.steps else 0.0
    numbers = job.output.rows * job.output.columns if job.output is not None else 0
    return min(1.0, journal.covered(journal.pieces(folder)) / numbers) if numbers else 0.0


def _sweeps(folder: str) -> int:
    """Those after which there is a state."""
    return max((each.version for each in journal.saved(folder)), default=0)


def _place(folder: str) -> str:
    """Where what can be gone on with lies."""
    part = journal.part_of(folder)
    return part if os.path.exists(part) else folder


def _slot(state: Region, folder: str, name: str, number: int) -> Region:
    """The file for the states of this number."""
    path = journal.slot_of(folder, number)
    return msgspec.structs.replace(state, path=path, name=f"a checkpoint of {name}")


def _standing(pieces: list[journal.Piece]) -> list[Standing]:
    return [Standing(each.start, each.block, each.sum) for each in pieces]


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


def _plain(region: Region) -> Region:
    return region.region() if isinstance(region, Source) else region


def _form(region: Region) -> Region:
    """Where the numbers of an input are and how they lie, whatever it was called."""
    return msgspec.structs.replace(_plain(region), name="")
