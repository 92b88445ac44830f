"""What a job writes: a file, with snapshots beside it, a folder of several files, or nothing.

paths, check       claims            make               told, settle, pack, ready      name, tidy
may it be there?   what make may     part files, under  numbers come in, and all is    it stands under
                   leave behind      hidden names       done that may still fail       its names
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from tilewise.base.claim import Claim
from tilewise.base.units import plural
from tilewise.engine import journal
from tilewise.engine.journal import Begun
from tilewise.files import folder, output, sweep
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.folder import Folder
from tilewise.files.formats import format_name
from tilewise.files.output import Run, needed_bytes
from tilewise.files.outputs import Form, Outputs, create_all, snapshot_name
from tilewise.files.region import Region, Source, is_encoded
from tilewise.files.room import DECODE_ELSEWHERE, OUTPUT_ELSEWHERE, Room, Want, rooms
from tilewise.files.slices import Part, part_of
from tilewise.files.stacks import Selection
from tilewise.files.states import States
from tilewise.files.target import Target, base_of, find_target, module_of, require_replaceable
from tilewise.files.unchanged import Inputs
from tilewise.launch.job import Job
from tilewise.launch.record import Matrix
from tilewise.machine.storage import is_own
from tilewise.operations.operation import Operation
from tilewise.planning import grid
from tilewise.planning.plan import Plan

if TYPE_CHECKING:
    from tilewise.files.gaps import Gaps

Made = TypeVar("Made", Outputs, Folder)


def find_place(operation: Operation) -> Target | None:
    """Where the result of `operation` goes, None where it writes nothing; UsageError for no fit place."""
    if not operation.writes:
        return None
    if operation.several:
        return folder.find_folder(operation.output)
    return find_target(operation.output, operation.colours)


class JobOutput(Generic[Made]):
    """The files of the result of `plan`: planned, made, then named. Of itself it has none.

    `folder` is where decoded inputs lie, and what has no name yet; `begun` is what an earlier start has left,
    or the journal of this one.
    """

    target: Target | None = None

    def __init__(self, folder: str, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self._made: Made | None = None
        self.begun: Begun | None = None

    @property
    def made(self) -> Made:
        """The part files, once they are made."""
        assert self._made is not None
        return self._made

    def paths(self) -> list[str]:
        """Every path that will get a name."""
        return []

    def check(self, force: bool) -> None:
        """Raises UsageError where something is there that may not be replaced."""

    def rooms(self) -> list[Room]:
        """What the job needs of each file system; old outputs stay until the new are whole.

        Factors of a decomposition whose number its numbers decide are left out.
        """
        wants = self._wants()
        for source in filter(is_encoded, self.plan.job.inputs):
            assert isinstance(source, Source)
            wants.append(Want(self.folder, source.all_bytes, f"the decoded {source.name}"))
        return rooms(wants, OUTPUT_ELSEWHERE if self.target is not None else DECODE_ELSEWHERE)

    def _wants(self) -> list[Want]:
        return []

    @property
    def claims(self) -> list[Claim]:
        """The names to be given, and all that would have to go without them; before `make`, too."""
        return []

    def sweep(self) -> None:
        """Removes what jobs that have died left here."""
        sweep.sweep(self.folder, is_own(self.folder))

    def make(self) -> None:
        """Makes the part files; nothing is left behind where that fails."""

    def told(self, job: Job) -> Job:
        """`job` with the regions that the ranks write to."""
        return job

    def keep_journal(self, job: Job, inputs: Inputs, line: str) -> Job:
        """`job`, as it is `told`, with a journal where it keeps one. Raises RunError."""
        return job

    def _journaled(self, job: Job, claim: Claim, line: str) -> Job:
        """`job` with the journal that has begun, which stays where the name of `claim` is not given."""
        assert self.begun is not None
        claim.journal = self.begun.folder
        claim.states = self.begun.states
        claim.goes_on = f"{line} --resume" if line else "the same call with resume=True goes on"
        told = journal.told(self.begun, self.plan.state, self.plan.checkpoint or 0.0)
        return msgspec.structs.replace(job, journal=told)

    def name_snapshot(self, index: int, force: bool) -> None:
        """Gives a snapshot that is complete its name. Raises RunError."""
        raise AssertionError("this result has no snapshots")

    def settle(self, result: dict[str, Any]) -> list[str]:
        """Throws away what no numbers were written to, as the ranks' `result` says; warnings."""
        return []

    def pack(self, run: Run) -> bool:
        """Packs whatever format asks for that, by way of `run`; whether there was anything to do."""
        return False

    def matrices(self) -> list[Matrix]:
        """The outputs as the record names them."""
        return []

    def ready(self) -> None:
        """Does all that may fail before names are given. Raises RunError and VerificationError."""
        if self._made is not None:
            self._made.ready(self.plan.choices.sync)

    def name(self, force: bool) -> None:
        """Gives everything its name. Raises RunError; what has no name by then will get none."""
        if self._made is not None:
            self._made.name(force)

    def tidy(self) -> list[str]:
        """What is left to do under the new names; warnings."""
        return self._made.tidy(self.plan.choices.sync) if self._made is not None else []

    def discard(self) -> list[str]:
        """Removes what has no name; returns the paths of what could not be removed."""
        return self._made.discard() if self._made is not None else []


class FileOutput(JobOutput[Outputs]):
    """One file, or one folder of tiles; a stencil's snapshots lie beside it."""

    target: Target

    def __init__(self, target: Target, plan: Plan, colours: bool) -> None:
        super().__init__(os.path.dirname(target.path), plan)
        self.target = target
        last = max(plan.snapshots, default=0)
        names = [snapshot_name(target.name, steps, last) for steps in plan.snapshots]
        self._targets = [*(find_target(name, colours) for name in names), target]
        shares = grid.rectangles(plan.shape, plan.job.variant.grid, plan.job.variant.remainder)
        self._cut = output.cut_of(target, plan.shape, plan.dtype, shares)
        self._shape = plan.shape
        self._part: Part | None = None  # of a stack, where its first slice lies
        self._gaps: Gaps | None = None
        self._state = plan.state if plan.checkpoint is not None else None
        between = plan.states if self._state is None else []  # else they lie in the files of the checkpoints
        self._states = States(target.path, target.name, plan.job.id, between)
        if plan.each is not None:
            self._shape = (plan.each.count * plan.shape[0], plan.shape[1])
            whole = plan.each.shape(*plan.shape)
            self._part = part_of(whole, target.name, Selection(axes=plan.each.axes), plan.order == "F")
            if not self._part.in_one_piece:
                from tilewise.files.gaps import Gaps

                self._gaps = Gaps(target.path, target.name, plan.job.id, self._part, plan.dtype)

    def paths(self) -> list[str]:
        return [each.path for each in self._targets]

    def check(self, force: bool) -> None:
        for each in self._targets:
            require_replaceable(each, force or (self.begun is not None and each is not self.target))

    def _wants(self) -> list[Want]:
        target, plan, count = self.target, self.plan, len(self._targets)
        name = f"{target.name} and {plural(count - 1, 'snapshot')}" if count > 1 else target.name
        size = count * needed_bytes(target, self._shape, plan.dtype)
        wants = [Want(self.folder, size, name, target.format.text)]
        if self._gaps is not None:
            wants.append(Want(self.folder, self._gaps.bytes, f"the slices of {target.name}"))
        if self._state is not None and self.begun is None:
            wants.append(Want(self.folder, 2 * self._state.bytes, f"the checkpoints of {target.name}"))
        elif self._states.regions:
            wants.append(Want(self.folder, self._states.bytes, f"the states between passes of {target.name}"))
        return wants

    @property
    def claims(self) -> list[Claim]:
        beside = [*([self._gaps.claim] if self._gaps is not None else []), *self._states.claims]
        if self._made is not None:
            return [*self._made.claims, *beside]
        return [*(output.claim_of(each, self.plan.job.id, self._cut) for each in self._targets), *beside]

    def sweep(self) -> None:
        super().sweep()
        if self.target.format.folder and not self.target.format.whole:
            module_of(self.target).sweep(self.target.path, is_own(self.target.path))

    def make(self) -> None:
        plan = self.plan
        if self.begun is not None and not self.begun.states:
            head, region = self.begun.header.head, self.begun.output
            self._made = Outputs(output.reopen(self.target, self.begun.part, region, head), [])
            return
        if self.begun is None:
            journal.remove_old(self.target)
        form = Form(
            shape=self._shape,
            extents=self._part.shape if self._part is not None else (),
            dtype=plan.dtype,
            order=plan.order,
            header=plan.header,
            style=plan.choices.written_style,
            rectangles=self._cut,
            planes=plan.planes,
        )
        self._made = create_all(self.target, self._targets[:-1], form, plan.job.id)
        self._made.again = self.begun is not None
        if self._gaps is not None:
            self._gaps.make()
        self._states.make()

    def told(self, job: Job) -> Job:
        stencil = job.stencil
        if stencil is not None:
            stencil = msgspec.structs.replace(
                stencil, snapshots=self.made.snapshot_regions, states=self._states.regions
            )
        return msgspec.structs.replace(job, output=self._told_region(), stencil=stencil)

    def keep_journal(self, job: Job, inputs: Inputs, line: str) -> Job:
        made = self.made.output
        region = made.region
        if self.begun is None:
            plain = region.path == made.part and region.encoding == "binary" and not region.tiles
            pieces = self.plan.journaled and plain and self._part is None and not made.target.container
            if self._state is None and not pieces:
                return job
            self.begun = journal.begin(self.target, line, job, inputs, self._state)
        return self._journaled(job, made.claim, line)

    def _told_region(self) -> Region:
        """Where the result goes, or its first slice."""
        whole, part = self.made.output.region, self._part
        if part is None or part.slices is None:
            return whole
        name = part.slice_name(whole.name)
        if self._gaps is not None:
            return msgspec.structs.replace(self._gaps.region(), name=name)
        steps = [step * ITEMSIZE[whole.dtype] for step in part.slices.steps]
        return msgspec.structs.replace(whole, name=name, rows=part.rows, columns=part.columns, steps=steps)

    def name_snapshot(self, index: int, force: bool) -> None:
        self.made.name_snapshot(index, self.plan.choices.sync, force)

    def settle(self, result: dict[str, Any]) -> list[str]:
        self._states.discard()
        kept = result.get("snapshots", [])
        return self.made.keep([sweeps in kept for sweeps in self.plan.snapshots])

    def pack(self, run: Run) -> bool:
        sync, gaps = self.plan.choices.sync, self._gaps
        if gaps is not None:
            run(lambda: gaps.fill(self.made.output.region, sync))
            gaps.discard()
        return self.made.pack(sync, run) or gaps is not None

    def discard(self) -> list[str]:
        left = self._gaps.discard() if self._gaps is not None else []
        return [*left, *self._states.discard(), *super().discard()]

    def matrices(self) -> list[Matrix]:
        plan = self.plan
        shape: tuple[int, ...] = (plan.shape[0] // plan.planes, plan.shape[1])
        if self._part is not None:
            shape = self._part.shape
        return [
            Matrix(
                os.path.realpath(base_of(each)),
                format_name(each.name),
                shape,
                plan.dtype,
                plan.order,
                plan.planes,
            )
            for each in (self.target, *(snapshot.target for snapshot in self.made.snapshots))
        ]
