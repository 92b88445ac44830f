"""What `tilewise convert` may be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from tilewise.base.declare import WHAT, Parameter, Value
from tilewise.base.errors import UsageError
from tilewise.files.dtypes import ALL, is_integer, parse_dtype
from tilewise.files.formats import MATRIX
from tilewise.files.target import Target
from tilewise.machine.facts import Facts
from tilewise.operations.operation import BAND_AFTER_BAND, HEADER, ORDER, OfOneInput

if TYPE_CHECKING:
    from tilewise.launch.join import Join
    from tilewise.operations.operation import Inputs
    from tilewise.planning.plan import Plan


def parse_type(word: str) -> str:
    """The type called `word`; UsageError for none."""
    return parse_dtype(word, "--dtype")


class Convert(OfOneInput, frozen=True, kw_only=True):
    """Convert a matrix to another format, type or order. The output's extension sets the format.

    Examples:
        tilewise convert A.txt -o A.npy
            Text becomes a NumPy file.
        tilewise convert A.npy -o A.h5:/A --dtype float32
            A dataset of an HDF5 file, in single precision.
    """

    limits: ClassVar[str] = BAND_AFTER_BAND
    proofs: ClassVar[tuple[str, ...]] = ("auto", "off", "fast")

    b: Annotated[
        str | None,
        Parameter(name="B", value=MATRIX, group=WHAT, help="Output file, instead of -o B.", place=True),
    ] = None
    output: Annotated[
        str,
        Parameter(
            name=["--output", "-o"],
            stream=True,
            value=MATRIX,
            group=WHAT,
            help="Output file; its extension sets the format.",
        ),
    ] = ""
    dtype: Annotated[
        str | None,
        Parameter(
            name="--dtype",
            value=Value("TYPE"),
            group=WHAT,
            help="Data type of the output: float32, int16, …",
            choices=ALL,
            parse=parse_type,
        ),
    ] = None
    order: Annotated[str | None, ORDER] = None
    header: Annotated[bool, HEADER] = False

    def __post_init__(self) -> None:
        """Raises UsageError for two outputs, or none."""
        super().__post_init__()
        if (self.b is None) == (not self.output):
            what = "got two outputs" if self.output else "needs an output"
            raise UsageError(f"convert {what}", "tilewise convert A.txt -o A.npy")
        if self.b is not None:
            msgspec.structs.force_setattr(self, "output", self.b)
            msgspec.structs.force_setattr(self, "b", None)

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        from tilewise.operations.convert.variants import plan_convert

        assert target is not None
        plan = plan_convert(inputs[0], target, self, facts, joined)
        source = plan.job.inputs[0]  # as planned: of a text, wide integers are read as such
        if is_integer(source.dtype) or not is_integer(plan.dtype):
            return plan
        types = f"{source.name} is {source.dtype}, {target.name} gets {plan.dtype}"
        cut = f"float→integer truncates fractions: {types}"
        return msgspec.structs.replace(plan, warnings=[cut, *plan.warnings])
