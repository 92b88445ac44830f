"""What a decomposition writes: a folder with a file for each of its factors."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from tilewise.base.claim import Claim
from tilewise.engine import journal
from tilewise.engine.job_output import FileOutput, JobOutput
from tilewise.files import folder
from tilewise.files.folder import Folder, Piece
from tilewise.files.region import Region
from tilewise.files.room import Want
from tilewise.files.stacks import dense_steps
from tilewise.files.target import Target
from tilewise.files.unchanged import Inputs
from tilewise.launch.job import Job
from tilewise.launch.record import Matrix
from tilewise.operations.operation import Operation
from tilewise.planning.plan import Plan


def output_of(operation: Operation, target: Target | None, plan: Plan) -> JobOutput[Any]:
    """The result of `plan`, at the `target` that `find_place` found for `operation`."""
    if target is None:
        import tempfile

        return JobOutput(tempfile.gettempdir(), plan)
    return FolderOutput(target, plan) if operation.several else FileOutput(target, plan, operation.colours)


class FolderOutput(JobOutput[Folder]):
    """A folder with a file for each of the plan's pieces: the factors of a decomposition."""

    target: Target

    def __init__(self, target: Target, plan: Plan) -> None:
        super().__init__(os.path.dirname(target.path), plan)
        self.target = target
        svd = plan.job.svd
        self._cut = svd is not None and svd.energy > 0  # how many components there are is known at the end
        self._state = plan.state if plan.checkpoint is not None else None
        self._pieces = list(plan.pieces)
        if plan.each is not None:  # as numpy.linalg has it, slices come first
            stack = plan.each.extents
            self._pieces = [
                msgspec.structs.replace(piece, shape=(*stack, *piece.shape)) for piece in plan.pieces
            ]

    def paths(self) -> list[str]:
        return [self.target.path]

    def check(self, force: bool) -> None:
        folder.require_replaceable(self.target, force, self.plan.job.inputs)

    def _wants(self) -> list[Want]:
        wants = []
        if not self._cut:
            size = sum(piece.bytes for piece in self._pieces)
            wants.append(Want(self.folder, size, self.target.name))
        if self._state is not None and self.begun is None:
            wants.append(Want(self.folder, 2 * self._state.bytes, f"the checkpoints of {self.target.name}"))
        return wants

    @property
    def claims(self) -> list[Claim]:
        if self._made is not None:
            return [self._made.claim]
        return [folder.claim_of(self.target, self._pieces, self.plan.job.id)]

    def make(self) -> None:
        job = self.plan.job
        if self.begun is None:
            journal.remove_old(self.target)
        self._made = folder.create(self.target, self._pieces, job.command, job.id, self._cut)

    def told(self, job: Job) -> Job:
        assert job.svd is not None
        pieces = zip(self.plan.pieces, self.made.regions, strict=True)
        regions = {
            os.path.splitext(piece.file)[0].lower(): self._told_region(piece, region)
            for piece, region in pieces
        }
        return msgspec.structs.replace(job, svd=msgspec.structs.replace(job.svd, **regions))

    def keep_journal(self, job: Job, inputs: Inputs, line: str) -> Job:
        if self._state is None:
            return job
        if self.begun is None:
            self.begun = journal.begin(self.target, line, job, inputs, self._state)
        return self._journaled(job, self.made.claim, line)

    def _told_region(self, piece: Piece, region: Region) -> Region:
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
        if self._cut:
            from tilewise.operations.svd.shape import with_components

            self.made.cut(with_components(self.made.listing.files, result["components"]))
        return []

    def matrices(self) -> list[Matrix]:
        return [
            Matrix(os.path.join(self.target.path, piece.file), "npy", piece.shape, piece.dtype, "C")
            for piece in self.made.listing.files
        ]
