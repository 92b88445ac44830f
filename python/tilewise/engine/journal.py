"""Going on with a job after a death: what is left is found, compared with what is asked, and told on."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

import msgspec

from tilewise.base import journal, safely
from tilewise.base.errors import UsageError, disk_failure, one_line
from tilewise.base.owner import part_path
from tilewise.base.units import plural, share_text
from tilewise.engine.begun import Begun, Header, check_of, extension_of, header_of, place, plain
from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.files.unchanged import Inputs
from tilewise.launch.job import Job, Journal, Saved, Standing
from tilewise.operations.operation import Operation


def find(target: Target, operation: Operation, resume: bool, force: bool) -> Begun | None:
    """What is to be gone on with by `operation`, where `resume` asks for that.

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
            f"{safely.other_owner(newest)}, and only who began it goes on with it",
            "another name, or --force to start anew",
        )
    header = header_of(newest)
    if not resume:
        raise UsageError(
            f"{target.name}: an earlier run left {done_text(newest)} of it in {place(newest)}",
            "--resume to go on with it, or --force to start anew",
        )
    try:
        descriptor = journal.hold(newest)
    except OSError as error:
        raise UsageError(f"{newest}: {one_line(error)}", "--force to start anew") from None
    if descriptor is None:
        raise UsageError(f"{target.name}: another run is going on with it in {place(newest)}")
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
    header = Header(
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
    """What the ranks are told, who keep a `state` `every` so many seconds. Raises RunError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(begun.folder, journal.STOP))
    try:
        slots = [_slot(state, begun, number) for number in range(2)] if begun.states and state else []
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
        "done": _share(header, folder) if header.job.svd is None else None,
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


def _share(header: Header, folder: str) -> float:
    job = header.job
    if header.states:
        steps = job.stencil.steps if job.stencil else 0
        return min(1.0, _sweeps(folder) / steps) if steps > 0 else 0.0
    numbers = job.output.rows * job.output.columns if job.output is not None else 0
    return min(1.0, journal.covered(journal.pieces(folder)) / numbers) if numbers > 0 else 0.0


def _sweeps(folder: str) -> int:
    """Those after which there is a state."""
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


def _standing(pieces: list[journal.Piece]) -> list[Standing]:
    return [Standing(each.start, each.block, each.sum) for each in pieces]
