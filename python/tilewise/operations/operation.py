"""Operation: one job's options as a value, from which its flags, its checks and its plan follow.

Design: docs/design/front.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec.structs import replace

from tilewise import files
from tilewise.base.declare import HOW, Argument, Flag, Value, check, declared
from tilewise.base.errors import UsageError
from tilewise.files.formats import MATRIX
from tilewise.files.region import Region, Source
from tilewise.files.slices import parse_axes
from tilewise.files.target import Target
from tilewise.machine.facts import Facts
from tilewise.planning.choices import Choices
from tilewise.planning.names import Algorithm

if TYPE_CHECKING:
    from tilewise.files.folder import FolderFile
    from tilewise.launch.job import Job
    from tilewise.launch.join import Join
    from tilewise.planning.plan import Plan

    Inputs = list[Region]

# Flags that several operations have.
ORDER = Flag("C: row by row; F: column by column.", choices=("C", "F"), default="the format's own")
HEADER = Flag("Begin text output with the line: rows columns.")
NOWHERE = "none"  # the output of a simulation that has none
BAND_AFTER_BAND = "every rank works on its own, band after band"


class Operation(Choices, frozen=True, kw_only=True):
    """The options of a job: what it computes, of which inputs, where the result goes, and how.

    The result may be a picture with `colours`, or `several` files in a folder. An operation that `writes` no
    file has its result in the record; its `output` is empty, and no flag. Fields are flags of the command,
    whose help begins with the first paragraph of the class's docstring. `limits` says why some flags of other
    commands do not apply; `operands` are the fields that name its inputs. `algorithms_of`
    has the algorithms that take some flag of all jobs.
    """

    limits: ClassVar[str] = ""
    operands: ClassVar[tuple[str, ...]] = ()
    colours: ClassVar[bool] = False
    several: ClassVar[bool] = False
    algorithms_of: ClassVar[dict[str, tuple[str, ...]]] = {}
    # Flags that prediction may choose, where the rule has no other reason.
    weighs: ClassVar[tuple[str, ...]] = ("ranks",)
    blind: ClassVar[bool] = False  # what is done does not depend on the numbers

    output: Annotated[
        str,
        Flag(
            "Output file; its extension sets the format.", short="-o", stream=True, value=MATRIX, common=True
        ),
    ]

    @property
    def nowhere(self) -> bool:
        """Return whether this is a simulation without a result, and so without numbers."""
        return self.simulate is not None and self.output == NOWHERE

    def check(self) -> None:
        """Raise UsageError for options that no inputs could satisfy."""
        check(self, self.limits)
        if self.nowhere and not self.blind:
            raise UsageError(f"-o none: what {self.command} does depends on its numbers, so it has a result")
        if self.nowhere and self.simulate is not None and not self.simulate.counted:
            raise UsageError(
                "-o none simulates without numbers, and so needs to know how fast a core is",
                f"--simulate {self.simulate.name}:40GF/s:10GB/s",
            )

    def given_for(self, algorithm: str) -> list[str]:
        """Return the flags that were given and that only some algorithms have, `algorithm` among them."""
        return [flag.text(self) for flag in self._given_for_some() if algorithm in flag.only]

    def check_for(self, algorithm: Algorithm) -> None:
        """Raise UsageError for flags that were given and that `algorithm` does not have."""
        for flag in self._given_for_some():
            if algorithm.name not in flag.only:
                example = self.algorithms[flag.only[0]].example or flag.only[0]
                raise UsageError(
                    f"{flag.text(self)} makes no sense with {algorithm.name}", f"--algorithm {example}"
                )

    def _given_for_some(self) -> list[Argument]:
        return [flag for flag in declared(type(self)) if flag.only and flag.given(self)]

    def input(self, name: str, planes: tuple[int, ...] = (1,)) -> Source:
        """One of the inputs; UsageError for what is none."""
        raise NotImplementedError

    def inspect(self) -> Inputs:
        """The inputs; UsageError for what is no matrix."""
        raise NotImplementedError

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        """Plan the job; UsageError for what cannot be done.

        `target` is None where nothing is written. `joined` tells of ranks that exist already.
        """
        raise NotImplementedError

    def plan_all(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        """Plan the job for one matrix or for stacks."""
        return self.plan(inputs, target, facts, joined)

    @classmethod
    def differs(cls, was: Job, job: Job) -> str:
        """Why `job` cannot go on with the states of `was`, beside what holds for every job; else empty."""
        return ""

    @classmethod
    def sweeps(cls, job: Job) -> int | None:
        """Number of sweeps in a `job` that keeps states; None where that depends on the numbers."""
        return None

    @property
    def counts_late(self) -> bool:
        """True where the shapes of `several` files are known when the ranks have finished."""
        return False

    def with_output(self, job: Job, output: Region, snapshots: list[Region], states: list[Region]) -> Job:
        """Return `job` with where its numbers go; snapshots and files between passes, too."""
        return replace(job, output=output)

    def with_files(self, job: Job, regions: dict[str, Region]) -> Job:
        """Return `job` with where the numbers of `several` files go, by the names of these without `.npy`."""
        raise NotImplementedError

    def counted(self, pieces: list[FolderFile], result: dict[str, Any]) -> list[FolderFile]:
        """The files with the shapes that the `result` of the ranks says, where it `counts_late`."""
        raise NotImplementedError

    def what_fits(self, refused: Plan, joined: Join | None) -> str:
        """Flags with which a job fits in memory, where `refused` does not; empty where none are known."""
        return ""


class OfOneInput(Operation, frozen=True, kw_only=True):
    """An operation on one matrix."""

    operands: ClassVar[tuple[str, ...]] = ("a",)

    a: Annotated[
        str,
        Flag("The matrix: a path, FILE:MEMBER, or random:…", value=MATRIX, place=True),
    ]

    as_: Annotated[
        str, Flag("Read a one-dimensional array as a column or a row.", choices=("column", "row"))
    ] = "column"

    each: Annotated[
        tuple[int, ...],
        Flag(
            "Process every slice of a stack along this axis, or along several: 0,1.",
            value=Value("AXIS"),
            parse=parse_axes,
            default="one matrix",
        ),
    ] = ()
    slices: Annotated[
        str,
        Flag(
            "With --each: apart, each rank takes its own slices; together, all ranks share each slice.",
            HOW,
            choices=("auto", "apart", "together"),
            needs="--each 0",
        ),
    ] = "auto"

    def input(self, name: str, planes: tuple[int, ...] = (1,)) -> Source:
        """The matrix `name`, or the first slice of a stack; UsageError for what is neither."""
        as_rows = self.as_ == "row"
        return files.inspect(
            name, self.needed_rows, planes, as_rows, self.read_style, self.each, self.wanted_columns
        )

    @property
    def needed_rows(self) -> int | None:
        """So many rows from the top are all that is needed; None where all are."""
        return None

    @property
    def wanted_columns(self) -> str:
        """A range of the columns that are wanted."""
        return ":"

    def inspect(self) -> Inputs:
        return [self.input(self.a)]

    def plan_all(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        if not self.each:
            return self.plan(inputs, target, facts, joined)
        from tilewise.operations.stacked import plan_slices

        return plan_slices(self, inputs, target, facts, joined)
