"""What `tilewise convert` may be asked for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from tilewise.base.declare import WHAT, Parameter, Value
from tilewise.base.errors import UsageError
from tilewise.files.dtypes import ALL, is_integer, parse_dtype
from tilewise.files.formats import MATRIX
from tilewise.files.ranges import needed, parse_range
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


def _parse_rows(word: str) -> str:
    return parse_range(word, "--rows")


def _parse_columns(word: str) -> str:
    return parse_range(word, "--columns")


def parse_scale(word: str) -> float:
    """The number, or quotient of two, that `word` is; UsageError for anything else, infinity among it."""
    above, bar, below = word.partition("/")
    try:
        scale = float(above) / (float(below) if bar else 1.0)
    except (ValueError, ZeroDivisionError):
        scale = math.inf
    if not math.isfinite(scale):
        raise UsageError(f"--scale expects a number such as 0.5 or 1/255, not {word!r}")
    return scale


class Convert(OfOneInput, frozen=True, kw_only=True):
    """Convert a matrix to another format, type or order. The output's extension sets the format.

    Examples:
        tilewise convert A.txt -o A.npy
            Text becomes a NumPy file.
        tilewise convert A.npy -o A.h5:/A --dtype float32
            A dataset of an HDF5 file, in single precision.
        tilewise convert photo.png -o A.npy --rows 10:20 --columns :5 --scale 1/255
            Rows 10 to 19 of the first five columns, from 0 to 1.
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
            common=True,
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
            common=True,
        ),
    ] = None
    rows: Annotated[
        str | None,
        Parameter(
            name="--rows",
            value=Value("FROM:TO"),
            group=WHAT,
            help="Only these rows, counted from 0: 100:200, :50, -10: or 7.",
            default="all",
            parse=_parse_rows,
            common=True,
        ),
    ] = None
    columns: Annotated[
        str | None,
        Parameter(
            name="--columns",
            value=Value("FROM:TO"),
            group=WHAT,
            help="Only these columns, likewise.",
            default="all",
            parse=_parse_columns,
            common=True,
        ),
    ] = None
    scale: Annotated[
        float | None,
        Parameter(
            name="--scale",
            value=Value("X"),
            group=WHAT,
            help="Multiply each number by X, which may be a fraction: 1/255.",
            default="none",
            parse=parse_scale,
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

    @property
    def needed_rows(self) -> int | None:
        return needed(self.rows)

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        from tilewise.files.ranges import taken
        from tilewise.operations.convert.variants import Cut, plan_convert

        assert target is not None
        a = inputs[0]
        first_row, end_row, *fewer = taken(self.rows, a.rows, "row", a.name)
        first_column, end_column, narrower = taken(self.columns, a.columns, "column", a.name)
        cut = Cut((first_row, end_row), (first_column, end_column))
        plan = plan_convert(a, target, self, facts, joined, cut, self.scale)
        source = plan.job.inputs[0]  # as planned: of a text, wide integers are read as such
        warnings = [warning for warning in (*fewer, narrower) if warning]
        if is_integer(plan.dtype) and (self.scale is not None or not is_integer(source.dtype)):
            how = "float→integer" if self.scale is None else f"--scale {self.scale:g}"
            warnings.append(
                f"{how} truncates fractions: {source.name} is {source.dtype}, {target.name} gets {plan.dtype}"
            )
        return msgspec.structs.replace(plan, warnings=[*warnings, *plan.warnings])
