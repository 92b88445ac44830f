"""Operation: one job's options as a value, from which its flags, its checks and its plan follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from tilewise import files
from tilewise.base.declare import WHAT, Parameter, Value, declared
from tilewise.base.errors import UsageError
from tilewise.files.formats import FORMATS
from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.machine.facts import Facts
from tilewise.planning.choices import Choices

if TYPE_CHECKING:
    from tilewise.launch.join import Join
    from tilewise.planning.plan import Plan

    Inputs = list[Region]

MATRIX = Value("FILE", tuple(FORMATS))
# Flags that several operations have.
ORDER = Parameter(
    name="--order",
    group=WHAT,
    help="C: row by row; F: column by column.",
    choices=("C", "F"),
    default="the format's own",
)
HEADER = Parameter(name="--header", group=WHAT, help="Begin a text with the line: rows columns.")


class Operation(Choices, frozen=True, kw_only=True):
    """What a job computes, of which inputs, where the result goes, and how far it is said how.

    The result may be a picture with `colours`, or `several` files in a folder. An operation that `writes` no
    file has its result in the record; its `output` is empty, and no flag. Fields are flags of the command,
    whose help begins with the first paragraph of the class's docstring.
    """

    colours: ClassVar[bool] = False
    several: ClassVar[bool] = False

    output: Annotated[
        str,
        Parameter(
            name=["--output", "-o"], value=MATRIX, group=WHAT, help="Where it goes; its ending says how."
        ),
    ]

    @property
    def command(self) -> str:
        """The word that asks for it."""
        return type(self).__name__.lower()

    def check(self) -> None:
        """Raises UsageError for what makes no sense, whatever the inputs are."""
        for each in declared(type(self)):
            value = getattr(self, each.field)
            if each.choices and each.parameter.parse is None and value not in (None, *each.choices):
                known = ", ".join(each.choices)
                raise UsageError(f"{each.parameter.spellings[0]} {value!r} is unknown; known are {known}")
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


class OfOneInput(Operation, frozen=True, kw_only=True):
    """An operation on one matrix."""

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

    def inspect(self) -> Inputs:
        return [files.inspect(self.a)]
