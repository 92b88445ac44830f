"""Outputs of a job: a file, with snapshots beside it, a folder of several files, or nothing.

paths, check       claims            make               with_outputs, settle, pack,     name, tidy
may it be there?   what make may     part files, under  ready: numbers come in, and     it stands under
                   leave behind      hidden names       all is done that may fail       its names
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from tilewise.base.claim import Claim
from tilewise.base.units import plural
from tilewise.engine import journal
from tilewise.engine.journal import Begun
from tilewise.files import folder, output, sweep
from tilewise.files.disk import DECODE_ELSEWHERE, OUTPUT_ELSEWHERE, DiskNeed, Want, disk_needs, require_free
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.folder import Folder, FolderFile
from tilewise.files.formats import format_name
from tilewise.files.output import Output, Outputs, Run, Temporary, needed_bytes
from tilewise.files.region import Region, Source, is_encoded, unplaced
from tilewise.files.slices import ArrayPart, Selection, dense_steps, part_of, put_slices
from tilewise.files.target import (
    Target,
    base_of,
    find_target,
    module_of,
    require_replaceable,
    snapshot_name,
)
from tilewise.files.unchanged import Inputs
from tilewise.launch.job import Job
from tilewise.launch.record import Matrix
from tilewise.machine.storage import is_own
from tilewise.operations.operation import Operation
from tilewise.planning import grid
from tilewise.planning.plan import Plan


def find_place(operation: Operation) -> Target | None:
    """Find where the result of `operation` goes, or None where nowhere; UsageError for an unfit place."""
    if not operation.writes:
        return None
    if operation.several:
        return folder.find_folder(operation.output)
    return find_target(operation.output, operation.colours)


def output_of(operation: Operation, target: Target | None, plan: Plan) -> JobOutput:
    """Make the output of `plan`, at the `target` that `find_place` found for `operation`."""
    if target is None:
        import tempfile

        return JobOutput(tempfile.gettempdir(), plan)
    if operation.several:
        return FolderOutput(target, plan, operation)
    return FileOutput(target, plan, operation)


class JobOutput:
    """The files of the result of `plan`: planned, made, then named. Of itself it has none.

    `folder` is where decoded inputs lie, and what has no name yet; `begun` is what an earlier start has left,
    or the journal of this one.
    """

    target: Target | None = None

    def __init__(self, folder: str, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self.made = Outputs()
        self.begun: Begun | None = None
        self._state = plan.state if plan.checkpoint is not None else None

    def paths(self) -> list[str]:
        """Every path that will get a name."""
        return []

    def check(self, force: bool) -> None:
        """Raises UsageError where something is there that may not be replaced."""

    def disk_needs(self) -> list[DiskNeed]:
        """Add up what the job needs of each file system; old outputs stay until the new are whole.

        Factors of a decomposition whose number its numbers decide are left out.
        """
        wants = self._wants()
        if self._state is not None and self.begun is None and self.target is not None:
            wants.append(Want(self.folder, 2 * self._state.bytes, f"the checkpoints of {self.target.name}"))
        for source in filter(is_encoded, self.plan.job.inputs):
            assert isinstance(source, Source)
            wants.append(Want(self.folder, source.uncut.all_bytes, f"the decoded {source.name}"))
        return disk_needs(wants, OUTPUT_ELSEWHERE if self.target is not None else DECODE_ELSEWHERE)

    def _wants(self) -> list[Want]:
        return []

    @property
    def claims(self) -> list[Claim]:
        """The names to be given, and all that would have to go without them; before `make`, too."""
        return self.made.claims

    def sweep(self) -> None:
        """Remove what jobs that have died left here."""
        sweep.sweep(self.folder, is_own(self.folder))

    def make(self) -> None:
        """Make the part files; nothing is left behind where that fails."""

    def with_outputs(self, job: Job) -> Job:
        """Return `job` with the regions that the ranks write to."""
        return job

    def staged(self) -> list[tuple[str, str]]:
        """Paths of the files that were made, of which one in each folder, and what they are called."""
        return []

    def keep_journal(self, job: Job, inputs: Inputs, line: str) -> Job:
        """Return `job`, which has its outputs, with a journal where it keeps one. Raises RunError.

        The journal stays where the result's name is not given; `line` is the command that goes on from it.
        """
        if self.target is None or not (self.begun or self._state or self._writes_pieces()):
            return job
        if self.begun is None:
            self.begun = journal.begin(self.target, line, job, inputs, self._state)
        claim = self.made.result.claim
        claim.journal = self.begun.folder
        claim.states = self.begun.states
        claim.goes_on = f"{line} --resume" if line else "the same call with resume=True resumes it"
        told = journal.told(self.begun, self.plan.state, self.plan.checkpoint or 0.0)
        return msgspec.structs.replace(job, journal=told)

    def _writes_pieces(self) -> bool:
        """True where what is done stands in the result piece by piece, so that it serves as a checkpoint."""
        return False

    def name_snapshot(self, index: int, force: bool) -> None:
        """Give a snapshot that is complete its name. Raises RunError."""
        self.made.name_early(index, self.plan.choices.sync, force)

    def settle(self, result: dict[str, Any]) -> list[str]:
        """Throw away what no numbers were written to, as the ranks' `result` says; warnings."""
        return []

    def pack(self, run: Run) -> bool:
        """Pack whatever format asks for that, by way of `run`; returns True if there was anything to do."""
        return self.made.pack(self.plan.choices.sync, run)

    def matrices(self) -> list[Matrix]:
        """The outputs as the record names them."""
        return []

    def ready(self) -> None:
        """Do all that may fail before names are given. Raises RunError and VerificationError."""
        self.made.ready(self.plan.choices.sync)

    def name(self, force: bool) -> None:
        """Give everything its name. Raises RunError; what has no name by then will get none."""
        self.made.name(force)

    def tidy(self) -> list[str]:
        """Do what is left to do under the new names; warnings."""
        return self.made.tidy(self.plan.choices.sync)

    def discard(self) -> list[str]:
        """Remove what has no name; returns the paths of what could not be removed."""
        return self.made.discard()


class FileOutput(JobOutput):
    """One file, or one folder of tiles; a stencil's snapshots lie beside it."""

    target: Target

    def __init__(self, target: Target, plan: Plan, operation: Operation) -> None:
        super().__init__(os.path.dirname(target.path), plan)
        self.target = target
        self._operation = operation
        last = max(plan.snapshots, default=0)
        names = [snapshot_name(target.name, steps, last) for steps in plan.snapshots]
        self._targets = [*(find_target(name, operation.colours) for name in names), target]
        shares = grid.rectangles(plan.shape, plan.job.variant.grid, plan.job.variant.remainder)
        self._cut = output.cut_of(target, plan.shape, plan.dtype, shares)
        self._shape = plan.shape
        self._part: ArrayPart | None = None  # of a stack, where its first slice lies
        self._slices: Temporary | None = None  # where slices lie that have gaps in the array
        between = plan.states if self._state is None else []  # else they lie in the files of the checkpoints
        self._states = [
            self._temporary(f"{number}.state", state, "the states between passes")
            for number, state in enumerate(between)
        ]
        if plan.each is not None:
            self._shape = (plan.each.count * plan.shape[0], plan.shape[1])
            whole = plan.each.shape(*plan.shape)
            self._part = part_of(whole, target.name, Selection(axes=plan.each.axes), plan.order == "F")
            if not self._part.in_one_piece:
                region = unplaced(self._shape, plan.dtype)
                self._slices = self._temporary("slices", region, "the slices")
        beside = [self._slices] if self._slices is not None else []
        self.made.temporary = [*beside, *self._states]

    def _temporary(self, ending: str, region: Region, what: str) -> Temporary:
        path, name = self.target.path, self.target.name
        return Temporary.of(path, self.plan.job.id, ending, region, f"{what} of {name}")

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
        if self._slices is not None:
            wants.append(Want(self.folder, self._slices.bytes, self._slices.what))
        if self._states:
            size = sum(each.bytes for each in self._states)
            wants.append(Want(self.folder, size, self._states[0].what))
        return wants

    @property
    def claims(self) -> list[Claim]:
        if self.made.named:
            return self.made.claims
        future = (output.claim_of(each, self.plan.job.id, self._cut) for each in self._targets)
        return [*future, *self.made.claims]

    def sweep(self) -> None:
        super().sweep()
        if self.target.format.folder and not self.target.format.whole:
            module_of(self.target).sweep(self.target.path, is_own(self.target.path))

    def make(self) -> None:
        if self.begun is None:
            journal.remove_old(self.target)
        self.made.again = self.begun is not None
        self.made.make(self._make())

    def _make(self) -> Iterator[Output]:
        plan, size = self.plan, needed_bytes(self.target, self._shape, self.plan.dtype)
        if self.begun is not None and not self.begun.states:
            yield output.reopen(self.target, self.begun.part, self.begun.output, self.begun.header.head)
            return
        if count := len(self._targets) - 1:
            what = f"{self.target.name} and {plural(count, 'snapshot')}"
            require_free(self.folder, size * (1 + count), what)
        for each in self._targets:
            yield output.create(
                each,
                self._shape,
                plan.dtype,
                plan.order,
                plan.job.id,
                header=plan.header,
                style=plan.choices.written_style,
                rectangles=self._cut,
                planes=plan.planes,
                extents=self._part.shape if self._part is not None else (),
                names=plan.names,
            )

    def with_outputs(self, job: Job) -> Job:
        snapshots, states = self._beside()
        return self._operation.with_output(job, self._first_slice(), snapshots, states)

    def staged(self) -> list[tuple[str, str]]:
        of_folder: dict[str, tuple[str, str]] = {}
        snapshots, states = self._beside()
        for region in (self._first_slice(), *snapshots, *states):
            for path in [tile.path for tile in region.tiles if tile.path] or [region.path]:
                of_folder.setdefault(os.path.dirname(path), (path, region.name))
        return list(of_folder.values())

    def _beside(self) -> tuple[list[Region], list[Region]]:
        """Where snapshots go, and raw files between passes."""
        return [each.region for each in self.made.named[:-1]], [each.region for each in self._states]

    def _writes_pieces(self) -> bool:
        made = self.made.result
        plain = made.region.encoding == "binary" and not made.packed and not made.region.tiles
        return self.plan.journaled and plain and self._part is None and not made.target.container

    def _first_slice(self) -> Region:
        """Where the result goes, or its first slice."""
        whole, part = self.made.result.region, self._part
        if part is None or part.slices is None:
            return whole
        name, slices, steps = part.slice_name(whole.name), part.slices, part.slices.steps
        if self._slices is not None:
            whole, steps = self._slices.region, dense_steps(slices.extents, part.rows * part.columns)
        bytes_ = [step * ITEMSIZE[whole.dtype] for step in steps]
        return msgspec.structs.replace(whole, name=name, rows=part.rows, columns=part.columns, steps=bytes_)

    def settle(self, result: dict[str, Any]) -> list[str]:
        for each in self._states:
            each.discard()
        kept = result.get("snapshots", [])
        return self.made.keep([sweeps in kept for sweeps in self.plan.snapshots])

    def pack(self, run: Run) -> bool:
        slices, part = self._slices, self._part
        if slices is not None and part is not None:
            run(lambda: put_slices(part, slices.part, self.made.result.region, self.plan.choices.sync))
            slices.discard()
        return super().pack(run) or slices is not None

    def matrices(self) -> list[Matrix]:
        plan = self.plan
        shape: tuple[int, ...] = (plan.shape[0] // plan.planes, plan.shape[1])
        if self._part is not None:
            shape = self._part.shape
        *snapshots, result = [each.target for each in self.made.named]
        return [
            Matrix(
                os.path.realpath(base_of(each)),
                format_name(each.name),
                shape,
                plan.dtype,
                plan.order,
                plan.planes,
            )
            for each in (result, *snapshots)
        ]


class FolderOutput(JobOutput):
    """A folder with a file for each of the plan's pieces: the factors of a decomposition."""

    target: Target

    def __init__(self, target: Target, plan: Plan, operation: Operation) -> None:
        super().__init__(os.path.dirname(target.path), plan)
        self.target = target
        self._operation = operation
        self._pieces = list(plan.pieces)
        if plan.each is not None:  # as numpy.linalg has it, slices come first
            stack = plan.each.extents
            self._pieces = [
                msgspec.structs.replace(piece, shape=(*stack, *piece.shape)) for piece in plan.pieces
            ]

    @property
    def _folder(self) -> Folder:
        made = self.made.result
        assert isinstance(made, Folder)
        return made

    def paths(self) -> list[str]:
        return [self.target.path]

    def check(self, force: bool) -> None:
        folder.require_replaceable(self.target, force, self.plan.job.inputs)

    def _wants(self) -> list[Want]:
        if self._operation.counts_late:
            return []
        return [Want(self.folder, sum(piece.bytes for piece in self._pieces), self.target.name)]

    @property
    def claims(self) -> list[Claim]:
        if self.made.named:
            return self.made.claims
        return [folder.claim_of(self.target, self._pieces, self.plan.job.id)]

    def make(self) -> None:
        job, late = self.plan.job, self._operation.counts_late
        if self.begun is None:
            journal.remove_old(self.target)
        self.made.make(iter([folder.create(self.target, self._pieces, job.command, job.id, late)]))

    def with_outputs(self, job: Job) -> Job:
        pieces = zip(self.plan.pieces, self._folder.regions, strict=True)
        regions = {
            os.path.splitext(piece.file)[0]: self._first_slice(piece, region) for piece, region in pieces
        }
        return self._operation.with_files(job, regions)

    def staged(self) -> list[tuple[str, str]]:
        first = self._folder.regions[0]  # in a hidden folder, which holds all files
        return [(os.path.dirname(first.path), os.path.dirname(first.name))]

    def _first_slice(self, piece: FolderFile, region: Region) -> Region:
        """Where the factor goes that is `piece` of one matrix: `region`, or its first slice in there."""
        each = self.plan.each
        if each is None:
            return region
        rows, columns = piece.rows_columns
        stars = ",".join("*" * len(each.extents))
        return msgspec.structs.replace(
            region,
            name=f"{region.name}[{stars}]",
            rows=rows,
            columns=columns,
            steps=list(dense_steps(each.extents, piece.bytes)),
        )

    def settle(self, result: dict[str, Any]) -> list[str]:
        if self._operation.counts_late:
            self._folder.cut(self._operation.counted(self._folder.listing.files, result))
        return []

    def matrices(self) -> list[Matrix]:
        return [
            Matrix(os.path.join(self.target.path, piece.file), "npy", piece.shape, piece.dtype, "C")
            for piece in self._folder.listing.files
        ]
