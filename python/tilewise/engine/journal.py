"""Going on with a job after a death: what is left is found, compared with what is asked, and told on."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from tilewise.base import journal
from tilewise.base.errors import UsageError, disk_failure
from tilewise.base.units import share_text
from tilewise.files.region import Region, Source
from tilewise.files.target import Target
from tilewise.files.unchanged import Inputs, Look
from tilewise.launch.job import Job, Journal, Standing

# What makes two jobs the same, and how a user says it.
_SAME = {
    "command": "the command",
    "dtype": "the type that is computed in",
    "overflow": "--overflow",
    "tolerance": "--tolerance",
    "stage": "what stays in memory",
    "band_bytes": "what stays in memory",
}


class Header(msgspec.Struct, kw_only=True):
    """Which job a journal belongs to. `line` is the command that began it; `inputs` as they were then."""

    tilewise: str
    line: str
    name: str
    began: float
    job: Job
    inputs: list[Look | None]
    head: bytes  # of the part file, before the numbers


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
    def output(self) -> Region:
        """Where the result goes."""
        assert self.header.job.output is not None, "a job without one keeps no journal"
        return self.header.job.output

    def let_go(self) -> None:
        """Lets others go on with it; safe to call twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def require_same(self, job: Job, inputs: Sequence[Region], order: str, dtype: str) -> None:
        """Raises UsageError unless `job`, with a result in that order and type, is the one that was begun."""
        was = self.header.job
        for field, said in _SAME.items():
            if getattr(was, field) != getattr(job, field):
                raise self._other(f"{said} was another")
        if (self.output.order, self.output.dtype) != (order, dtype):
            raise self._other("the result had another type or order")
        if [_form(region) for region in was.inputs] != [_form(region) for region in inputs]:
            raise self._other("the inputs were others")
        for now, then in zip(Inputs(inputs).files, self.header.inputs, strict=True):
            if then is None or now.look is None or _said(now.look) != _said(then):
                raise self._other(f"{now.region.name} has changed since")

    def _other(self, why: str) -> UsageError:
        return UsageError(
            f"--resume: what is left in {self.part} is of another job: {why}", "--force to start anew"
        )


def header_of(folder: str) -> Header:
    """What the journal in `folder` belongs to. Raises UsageError for what is none."""
    try:
        with open(os.path.join(folder, journal.HEADER), "rb") as file:
            return msgspec.json.decode(file.read(), type=Header)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"{folder} is no journal of this version of tilewise: {error}", "--force to start anew"
        ) from None


def find(target: Target, resume: bool, force: bool) -> Begun | None:
    """What is to be gone on with, where `resume` asks for that.

    Without it, and without `force`, what lies there is refused; UsageError says what it is.
    """
    there = journal.beside(target.path)
    if not there or (force and not resume):
        return None
    newest = there[-1]
    if not resume:
        raise UsageError(
            f"{target.name}: an earlier run left {done_text(newest)} of it in {journal.part_of(newest)}",
            "--resume to go on with it, or --force to start anew",
        )
    descriptor = journal.hold(newest)
    if descriptor is None:
        raise UsageError(f"{target.name}: another run is going on with it in {journal.part_of(newest)}")
    try:
        return Begun(folder=newest, header=header_of(newest), descriptor=descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def begin(part: str, name: str, line: str, job: Job, inputs: Inputs) -> Begun:
    """Makes the journal of `job`, which writes to `part`. Raises RunError."""
    from tilewise import __version__

    folder = journal.folder_of(part)
    header = Header(
        tilewise=__version__,
        line=line,
        name=name,
        began=time.time(),
        job=msgspec.structs.replace(job, inputs=[_plain(region) for region in job.inputs]),
        inputs=[each.look for each in inputs.files],
        head=_head(part, job.output),
    )
    try:
        os.mkdir(folder)
        with open(os.path.join(folder, journal.HEADER), "xb") as file:
            file.write(msgspec.json.encode(header))
        descriptor = journal.hold(folder)
    except OSError as error:
        journal.remove(folder)
        raise disk_failure(f"the journal of {name} cannot be made", error) from None
    assert descriptor is not None, "no other process knows of it"
    return Begun(folder=folder, header=header, descriptor=descriptor)


def told(begun: Begun) -> Journal:
    """What the ranks are told. Raises RunError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(begun.folder, journal.STOP))
    try:
        standing = [Standing(each.start, each.block, each.sum) for each in journal.pieces(begun.folder)]
        return Journal(folder=begun.folder, start=journal.starts(begun.folder), standing=standing)
    except OSError as error:
        raise disk_failure(f"the journal {begun.folder} cannot be read", error) from None


def remove_old(target: Target) -> None:
    """Removes what earlier runs have left of `target`, unless a run is going on with it."""
    for folder in journal.beside(target.path):
        with contextlib.suppress(OSError):
            descriptor = journal.hold(folder)
            if descriptor is not None:
                os.unlink(journal.part_of(folder))
                journal.remove(folder)
                os.close(descriptor)


def done_text(folder: str) -> str:
    """How much of the result stands there: `37 %`."""
    with contextlib.suppress(OSError, UsageError):
        return share_text(_share(header_of(folder), journal.pieces(folder)))
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
    assert output is not None, "a job without one keeps no journal"
    found = journal.pieces(folder)
    return {
        "tilewise": __version__,
        "path": os.path.abspath(journal.part_of(folder)),
        "format": "part",
        "of": header.name,
        "command": header.job.command,
        "shape": [output.rows, output.columns],
        "dtype": output.dtype,
        "began": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(header.began)),
        "starts": journal.starts(folder),
        "pieces": len(found),
        "done": _share(header, found),
        "running": descriptor is None,
        "inputs": [region.name for region in header.job.inputs],
        "goes_on": f"{header.line} --resume" if header.line else "",
    }


def _head(part: str, output: Region | None) -> bytes:
    with open(part, "rb", buffering=0) as file:
        return file.read(output.offset if output is not None else 0) or b""


def _share(header: Header, found: list[journal.Piece]) -> float:
    output = header.job.output
    numbers = output.rows * output.columns if output is not None else 0
    return min(1.0, journal.covered(found) / numbers) if numbers else 0.0


def _plain(region: Region) -> Region:
    return region.region() if isinstance(region, Source) else region


def _form(region: Region) -> Region:
    """Where the numbers of an input are and how they lie, whatever it was called."""
    return msgspec.structs.replace(_plain(region), name="")


def _said(look: Look) -> tuple[int, int, int]:
    return look.bytes, look.modified, look.digest
