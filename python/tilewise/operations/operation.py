"""Operation: one job's options as a value, from which its flags, its checks and its plan follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from tilewise import files
from tilewise.base.declare import WHAT, Parameter, declared
from tilewise.base.errors import UsageError
from tilewise.files.formats import MATRIX
from tilewise.files.region import Region, Source
from tilewise.files.target import Target
from tilewise.machine.facts import Facts
from tilewise.planning.choices import Choices

if TYPE_CHECKING:
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
BAND_AFTER_BAND = "every rank works on its own, band after band"


class Operation(Choices, frozen=True, kw_only=True):
    """What a job computes, of which inputs, where the result goes, and how far it is said how.

    The result may be a picture with `colours`, or `several` files in a folder. An operation that `writes` no
    file has its result in the record; its `output` is empty, and no flag. Fields are flags of the command,
    whose help begins with the first paragraph of the class's docstring. `limits` says why some flags of other
    commands do not apply; `operands` are the fields that name its inputs.
    """

    limits: ClassVar[str] = ""
    operands: ClassVar[tuple[str, ...]] = ()
    colours: ClassVar[bool] = False
    several: ClassVar[bool] = False

    output: Annotated[
        str,
        Parameter(
            name=["--output", "-o"],
            stream=True,
            value=MATRIX,
            group=WHAT,
            help="Output file; its extension sets the format.",
        ),
    ]

    def check(self) -> None:
        """Raises UsageError for what makes no sense, whatever the inputs are."""
        for each in declared(type(self)):
            value, flag = getattr(self, each.field), each.parameter.spellings[0]
            if value in (None, each.default, *each.choices):
                continue
            if each.hidden:
                word = "x".join(map(str, value)) if isinstance(value, tuple) else value
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
        if self.repeat < 1:
            raise UsageError(f"--repeat {self.repeat} makes no sense; it must be 1 or more")
        if self.warmup < 0:
            raise UsageError(f"--warmup {self.warmup} makes no sense; it must be 0 or more")

    def inspect(self) -> Inputs:
        """The inputs; UsageError for what is no matrix."""
        raise NotImplementedError

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        """How it will be done; UsageError for what cannot be.

        `target` is None where nothing is written. `joined` tells of ranks that exist already.
        """
        raise NotImplementedError

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

    def input(self, name: str, planes: tuple[int, ...] = (1,)) -> Source:
        """The matrix `name`; UsageError for what is none."""
        return files.inspect(name, planes=planes, lists_are_rows=self.as_ == "row")

    def inspect(self) -> Inputs:
        return [self.input(self.a)]
