"""Operation: one job's options as a value, from which its flags, its checks and its plan follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from tilewise import files
from tilewise.base.declare import HOW, TIME, WHAT, Parameter, Value, declared
from tilewise.base.errors import UsageError
from tilewise.files.formats import MATRIX
from tilewise.files.region import Region, Source
from tilewise.files.stacks import parse_axes
from tilewise.files.target import Target
from tilewise.machine.facts import Facts
from tilewise.planning.choices import Choices

if TYPE_CHECKING:
    from tilewise.launch.job import Job
    from tilewise.launch.join import Join
    from tilewise.planning.plan import Plan

    Inputs = list[Region]

# Flags that several operations have.
ORDER = Parameter(
    name="--order",
    group=WHAT,
    help="C: row by row; F: column by column.",
    choices=("C", "F"),
    default="the format's own",
)
HEADER = Parameter(name="--header", group=WHAT, help="Begin text output with a line: rows columns.")
NOWHERE = "none"  # the output of a simulation that has none
BAND_AFTER_BAND = "every rank works on its own, band after band"


class Operation(Choices, frozen=True, kw_only=True):
    """What a job computes, of which inputs, where the result goes, and how far it is said how.

    The result may be a picture with `colours`, or `several` files in a folder. An operation that `writes` no
    file has its result in the record; its `output` is empty, and no flag. Fields are flags of the command,
    whose help begins with the first paragraph of the class's docstring. `limits` says why some flags of other
    commands do not apply; `operands` are the fields that name its inputs, and `not_of_stacks` those that make
    no sense with --each, and why.
    """

    limits: ClassVar[str] = ""
    operands: ClassVar[tuple[str, ...]] = ()
    colours: ClassVar[bool] = False
    several: ClassVar[bool] = False
    not_of_stacks: ClassVar[dict[str, str]] = {}
    # Flags that prediction may choose, where the rule has no other reason.
    weighs: ClassVar[tuple[str, ...]] = ("ranks",)
    blind: ClassVar[bool] = False  # what is done does not depend on the numbers

    output: Annotated[
        str,
        Parameter(
            name=["--output", "-o"],
            stream=True,
            value=MATRIX,
            group=WHAT,
            help="Output file; its extension sets the format.",
            common=True,
        ),
    ]

    @property
    def nowhere(self) -> bool:
        """Whether this is a simulation without a result, and so without numbers."""
        return self.simulate is not None and self.output == NOWHERE

    def check(self) -> None:
        """Raises UsageError for what makes no sense, whatever the inputs are."""
        for each in declared(type(self)):
            value, flag = getattr(self, each.field), each.parameter.spellings[0]
            if value in (None, each.default, *each.choices):
                continue
            if each.hidden:
                word = "x".join(map(str, value)) if isinstance(value, tuple) else value
                if each.parameter.value is TIME:
                    word = f"{value:g}s"
                given = flag if value is True else f"{flag} {word}"
                raise UsageError(f"{given} makes no sense with {self.command}: {self.limits}")
            known = ", ".join(each.choices)
            if known and each.parameter.parse is None:
                raise UsageError(f"{flag} {value!r} is unknown; expected one of {known}")
            if callable(each.parameter.choices):  # known elsewhere
                raise UsageError(
                    f"{flag} {value} makes no sense with {self.command}: "
                    f"it takes {known.removeprefix('auto, ')}",
                    f"{flag} {each.choices[0]}",
                )
        if self.nowhere and not self.blind:
            raise UsageError(f"-o none: what {self.command} does depends on its numbers, so it has a result")
        if self.nowhere and self.simulate is not None and not self.simulate.counted:
            raise UsageError(
                "-o none simulates without numbers, and so needs to know how fast a core is",
                f"--simulate {self.simulate.name}:40GF/s:10GB/s",
            )
        if self.repeat < 1:
            raise UsageError(f"--repeat {self.repeat} makes no sense; it must be 1 or more")
        if self.warmup < 0:
            raise UsageError(f"--warmup {self.warmup} makes no sense; it must be 0 or more")

    def input(self, name: str, planes: tuple[int, ...] = (1,)) -> Source:
        """One of the inputs; UsageError for what is none."""
        raise NotImplementedError

    def inspect(self) -> Inputs:
        """The inputs; UsageError for what is no matrix."""
        raise NotImplementedError

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        """How it will be done; UsageError for what cannot be.

        `target` is None where nothing is written. `joined` tells of ranks that exist already.
        """
        raise NotImplementedError

    def plan_all(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        """The same for whatever the inputs are, be it stacks."""
        return self.plan(inputs, target, facts, joined)

    @classmethod
    def differs(cls, was: Job, job: Job) -> str:
        """Why `job` cannot go on with the states of `was`, beside what holds for every job; else empty."""
        return ""

    @classmethod
    def sweeps(cls, job: Job) -> int | None:
        """Number of sweeps in a `job` that keeps states; None where that depends on the numbers."""
        return None

    def what_fits(self, refused: Plan, joined: Join | None) -> str:
        """Flags with which a job fits in memory, where `refused` does not; empty where none are known."""
        return ""


class OfOneInput(Operation, frozen=True, kw_only=True):
    """An operation on one matrix."""

    operands: ClassVar[tuple[str, ...]] = ("a",)

    a: Annotated[
        str,
        Parameter(
            name="A",
            value=MATRIX,
            group=WHAT,
            help="The matrix: a path, FILE:MEMBER, or random:…",
            place=True,
        ),
    ]

    as_: Annotated[
        str,
        Parameter(
            name="--as",
            group=WHAT,
            help="What an array with one dimension is.",
            choices=("column", "row"),
        ),
    ] = "column"

    each: Annotated[
        tuple[int, ...],
        Parameter(
            name="--each",
            value=Value("AXIS"),
            group=WHAT,
            help="Do it for every slice along this axis of a stack of matrices; 0,1 along several.",
            parse=parse_axes,
            default="one matrix",
        ),
    ] = ()
    slices: Annotated[
        str,
        Parameter(
            name="--slices",
            group=HOW,
            help="With --each: apart, each rank does slices of its own; together, all ranks work on each.",
            choices=("auto", "apart", "together"),
        ),
    ] = "auto"

    def __post_init__(self) -> None:
        """Raises UsageError where something is said of slices, and there are none."""
        super().__post_init__()
        if self.slices != "auto" and not self.each:
            raise UsageError(f"--slices {self.slices} makes no sense without --each", "--each 0")

    def input(self, name: str, planes: tuple[int, ...] = (1,)) -> Source:
        """The matrix `name`, or the first slice of a stack; UsageError for what is neither."""
        as_rows = self.as_ == "row"
        return files.inspect(name, self.needed_rows, planes, as_rows, self.read_style, self.each)

    @property
    def needed_rows(self) -> int | None:
        """So many rows from the top are all that is needed; None where all are."""
        return None

    def inspect(self) -> Inputs:
        return [self.input(self.a)]

    def plan_all(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        if not self.each:
            return self.plan(inputs, target, facts, joined)
        from tilewise.operations.stacked import plan_slices

        return plan_slices(self, inputs, target, facts, joined)
