"""Where a job's result goes: a file, with snapshots beside it, or a folder of several files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from tilewise.files import folder, format_name, output, sweep, tiles
from tilewise.files.claim import Claim
from tilewise.files.folder import Folder, find_folder
from tilewise.files.output import Run
from tilewise.files.outputs import Form, Outputs, create_all, snapshot_name
from tilewise.files.target import Target, find_target, require_replaceable, written_warnings
from tilewise.launch.job import Job
from tilewise.launch.record import Matrix
from tilewise.plan import grid
from tilewise.plan.plan import Plan
from tilewise.plan.svd_shape import with_components


class Made(Protocol):
    """What was made for one job and waits for its numbers; `claims` are the names that it is to get."""

    @property
    def claims(self) -> list[Claim]: ...

    def told(self, job: Job) -> Job:
        """`job` with the regions that the ranks write to."""

    def name_snapshot(self, index: int, sync: bool, force: bool) -> None:
        """Gives a snapshot that is complete its name. Raises RunError."""

    def settle(self, result: dict[str, Any]) -> list[str]:
        """Throws away what no numbers were written to; warnings."""

    def pack(self, sync: bool, run: Run) -> bool:
        """Packs whatever format asks for that, by way of `run`; whether there was anything to do."""

    def matrices(self, plan: Plan) -> list[Matrix]:
        """The outputs as the record names them."""

    def ready(self, sync: bool) -> None:
        """Does all that may fail before names are given. Raises RunError and VerificationError."""

    def name(self, force: bool) -> None:
        """Gives everything its name. Raises RunError; what has no name by then will get none."""

    def tidy(self, sync: bool) -> list[str]:
        """What is left to do under the new names; warnings."""

    def discard(self) -> list[str]:
        """Removes what has no name; returns the paths of what could not be removed."""


class Place(Protocol):
    """A place that was found fit to be written. `target` is what messages and the disk are asked about."""

    @property
    def target(self) -> Target: ...

    def paths(self, plan: Plan) -> list[str]:
        """Every path that will get a name."""

    def check(self, plan: Plan, force: bool) -> None:
        """Raises UsageError where something is there that may not be replaced."""

    def warnings(self, plan: Plan) -> tuple[str, ...]:
        """What the user should know of files that are written so."""

    def claims(self, plan: Plan) -> list[Claim]:
        """The names to be given, and all that `make` may leave if we die in the midst of it."""

    def sweep(self) -> None:
        """Removes what jobs that have died left here."""

    def make(self, plan: Plan) -> Made:
        """Makes the part files; nothing is left behind where that fails."""


@dataclass(frozen=True)
class FilePlace:
    """One file, or one folder of tiles; a stencil's snapshots lie beside it."""

    target: Target
    colours: bool = False
    _beside: list[Target] = field(default_factory=list)  # snapshots, as they were when first looked at

    def paths(self, plan: Plan) -> list[str]:
        return [each.path for each in (self.target, *self._snapshots(plan))]

    def check(self, plan: Plan, force: bool) -> None:
        for each in (*self._snapshots(plan), self.target):
            require_replaceable(each, force)

    def warnings(self, plan: Plan) -> tuple[str, ...]:
        return written_warnings(self.target, plan.shape, plan.dtype, plan.order)

    def claims(self, plan: Plan) -> list[Claim]:
        cut = self._cut(plan)
        return [output.claim_of(each, plan.job.id, cut) for each in (*self._snapshots(plan), self.target)]

    def sweep(self) -> None:
        sweep.sweep(os.path.dirname(self.target.path))
        if os.path.isdir(self.target.path):
            tiles.sweep(self.target.path)

    def make(self, plan: Plan) -> Made:
        form = Form(
            shape=plan.shape,
            dtype=plan.dtype,
            order=plan.order,
            header=plan.header,
            rectangles=self._cut(plan),
            planes=plan.planes,
        )
        snapshots = self._snapshots(plan)
        return MadeFiles(create_all(self.target, snapshots, form, plan.job.id), [self.target, *snapshots])

    @staticmethod
    def _cut(plan: Plan) -> list[tiles.Rectangle]:
        """A folder of tiles is cut as the ranks share the result."""
        return grid.rectangles(plan.shape, plan.job.variant.grid, plan.job.variant.remainder)

    def _snapshots(self, plan: Plan) -> list[Target]:
        if not self._beside:
            last = max(plan.snapshots, default=0)
            names = [snapshot_name(self.target.name, sweep, last) for sweep in plan.snapshots]
            self._beside.extend(find_target(name, self.colours) for name in names)
        return self._beside


@dataclass(frozen=True)
class MadeFiles:
    """Part files of an output and its snapshots."""

    outputs: Outputs
    targets: list[Target]

    @property
    def claims(self) -> list[Claim]:
        return self.outputs.claims

    def told(self, job: Job) -> Job:
        stencil = job.stencil
        if stencil is not None:
            stencil = msgspec.structs.replace(stencil, snapshots=self.outputs.snapshot_regions)
        return msgspec.structs.replace(job, output=self.outputs.output.region, stencil=stencil)

    def name_snapshot(self, index: int, sync: bool, force: bool) -> None:
        self.outputs.name_snapshot(index, sync, force)

    def settle(self, result: dict[str, Any]) -> list[str]:
        return self.outputs.keep(len(result.get("snapshots", [])))

    def pack(self, sync: bool, run: Run) -> bool:
        return self.outputs.pack(sync, run)

    def matrices(self, plan: Plan) -> list[Matrix]:
        shape = (plan.shape[0] // plan.planes, plan.shape[1])
        return [
            Matrix(target.path, format_name(target.name), shape, plan.dtype, plan.order, plan.planes)
            for target in self.targets[: 1 + len(self.outputs.snapshots)]
        ]

    def ready(self, sync: bool) -> None:
        self.outputs.ready(sync)

    def name(self, force: bool) -> None:
        self.outputs.name(force)

    def tidy(self, sync: bool) -> list[str]:
        return self.outputs.tidy(sync)

    def discard(self) -> list[str]:
        return self.outputs.discard()


@dataclass(frozen=True)
class FolderPlace:
    """A folder with a file for each of the plan's pieces."""

    target: Target

    def paths(self, plan: Plan) -> list[str]:
        return [self.target.path]

    def check(self, plan: Plan, force: bool) -> None:
        folder.require_replaceable(self.target, force, plan.job.inputs)

    def warnings(self, plan: Plan) -> tuple[str, ...]:
        return ()

    def claims(self, plan: Plan) -> list[Claim]:
        return [folder.claim_of(self.target, list(plan.pieces), plan.job.id)]

    def sweep(self) -> None:
        sweep.sweep(os.path.dirname(self.target.path))

    def make(self, plan: Plan) -> Made:
        svd = plan.job.svd
        cut = svd is not None and svd.energy > 0
        return MadeFolder(
            folder.create(self.target, list(plan.pieces), plan.job.command, plan.job.id, cut), cut
        )


@dataclass(frozen=True)
class MadeFolder:
    """A hidden folder that waits for the factors of a decomposition."""

    folder: Folder
    cut: bool  # how many components there are is known at the end

    @property
    def claims(self) -> list[Claim]:
        return [self.folder.claim]

    def name_snapshot(self, index: int, sync: bool, force: bool) -> None:
        raise AssertionError("a decomposition has no snapshots")

    def told(self, job: Job) -> Job:
        assert job.svd is not None
        pieces = zip(self.folder.listing.files, self.folder.regions, strict=True)
        regions = {os.path.splitext(piece.file)[0].lower(): region for piece, region in pieces}
        return msgspec.structs.replace(job, svd=msgspec.structs.replace(job.svd, **regions))

    def settle(self, result: dict[str, Any]) -> list[str]:
        if self.cut:
            self.folder.cut(with_components(self.folder.listing.files, result["components"]))
        return []

    def pack(self, sync: bool, run: Run) -> bool:
        return False

    def matrices(self, plan: Plan) -> list[Matrix]:
        at = self.folder.target.path
        return [
            Matrix(os.path.join(at, piece.file), "npy", piece.shape, piece.dtype, "C")
            for piece in self.folder.listing.files
        ]

    def ready(self, sync: bool) -> None:
        self.folder.ready(sync)

    def name(self, force: bool) -> None:
        self.folder.name(force)

    def tidy(self, sync: bool) -> list[str]:
        return self.folder.tidy(sync)

    def discard(self) -> list[str]:
        return self.folder.discard()


def find(name: str, colours: bool = False, several: bool = False) -> Place:
    """The place called `name`, for one file or for `several` in a folder; UsageError where there is none."""
    return FolderPlace(find_folder(name)) if several else FilePlace(find_target(name, colours), colours)
