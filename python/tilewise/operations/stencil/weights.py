"""The weights of a stencil, by name or out of a file, and its boundary: the values outside of the matrix."""

from __future__ import annotations

import math

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import shape_text
from tilewise.files.dtypes import ITEMSIZE, is_integer
from tilewise.launch.constants import constants

# Named weights: how many numbers they take (centre first, then by distance), and which they have unsaid.
# star9 is the same diffusion as star5, u + ∇²u/10, with the Laplacian to fourth order instead of second.
_STARS: dict[str, tuple[float, ...]] = {"star5": (0.6, 0.1), "star9": (0.5, 2 / 15, -1 / 120)}
NAMES = {
    "star5": "a cross of radius 1: centre 0.6, each neighbour 0.1; star5:CENTRE,NEIGHBOUR",
    "star9": "a cross of radius 2: 1/2, 2/15, −1/120; star9:CENTRE,NEAR,FAR",
    "box3": "the mean of 3×3",
}
_KNOWN = "star5, star5:CENTRE,NEIGHBOUR, star9, star9:CENTRE,NEAR,FAR, box3, or a file that holds a matrix"


class Limits(msgspec.Struct, frozen=True):
    """The worker's."""

    max_radius: int


class Weights(msgspec.Struct, frozen=True):
    """(2·radius + 1)² numbers, row by row: out[i,j] = Σ values[(a,b)] · in[i+a−radius, j+b−radius]."""

    name: str
    radius: int
    values: tuple[float, ...]

    @property
    def is_star(self) -> bool:
        """True if all weights off the cross are 0."""
        side, middle = 2 * self.radius + 1, self.radius
        return all(
            value == 0.0 or at // side == middle or at % side == middle
            for at, value in enumerate(self.values)
        )

    @property
    def taps(self) -> int:
        """Weights that are not 0, and at least one."""
        return max(1, sum(value != 0.0 for value in self.values))


def parse_weights(text: str) -> Weights:
    """The weights called `text`; a file is read. UsageError, with what is known, for everything else."""
    return named_weights(text) or _from_file(text)


def named_weights(text: str) -> Weights | None:
    """The weights called `text`; None where that is a file's name. UsageError for everything else."""
    name, _, rest = text.partition(":")
    if name in NAMES:
        return _named(text, name, rest)
    from tilewise.files.formats import FORMATS

    # Whether it has a format's ending shows whether a file can be meant.
    if not text or not any(ending in text.lower() for ending in FORMATS):
        raise UsageError(f"--weights {text!r} is unknown; expected one of {_KNOWN}")
    return None


def require_held(weights: Weights, dtype: str) -> None:
    """Raises UsageError where a weight is too large for the type that is computed in."""
    if dtype == "float32":
        for value in weights.values:
            if abs(value) > 3.4028235e38:
                raise UsageError(
                    f"--weights {weights.name} has the weight {value:g}, which float32 cannot hold",
                    "convert the input to float64",
                )


def _named(text: str, name: str, rest: str) -> Weights:
    if name == "box3":
        if ":" in text:
            raise UsageError(f"--weights {text} has numbers, but box3 takes none")
        return Weights(text, 1, (1 / 9,) * 9)
    usual = _STARS[name]
    numbers = usual
    if ":" in text:
        try:
            numbers = tuple(float(word) for word in rest.split(","))
        except ValueError:
            numbers = ()
        if len(numbers) != len(usual) or not all(map(math.isfinite, numbers)):
            example = ",".join(f"{value:g}" for value in usual)
            raise UsageError(
                f"--weights {text} needs {len(usual)} finite numbers after {name}",
                f"--weights {name}:{example}",
            )
    return Weights(text, len(numbers) - 1, _star(numbers))


def _star(numbers: tuple[float, ...]) -> tuple[float, ...]:
    """A cross: the centre, then the weight at each distance along rows and columns; 0 elsewhere."""
    radius = len(numbers) - 1
    span = range(-radius, radius + 1)
    return tuple(numbers[abs(i) + abs(j)] if i == 0 or j == 0 else 0.0 for i in span for j in span)


def _from_file(text: str) -> Weights:
    from tilewise import files
    from tilewise.files.reading import binary, rows_of

    source = files.inspect(text)
    rows, columns = source.rows, source.columns
    if source.dtype.startswith("complex"):
        raise UsageError(f"--weights {text} holds {source.dtype}, but weights must be real")
    if rows != columns or rows % 2 == 0:
        what = "a square" if rows != columns else "an odd number of rows"
        raise UsageError(
            f"--weights {text} is {shape_text(rows, columns)}, but weights have {what}: the middle "
            "one is for the number itself"
        )
    radius = constants("stencil", Limits).max_radius
    if rows > 2 * radius + 1:
        raise UsageError(
            f"--weights {text} is {shape_text(rows, columns)}, of radius {rows // 2}; the largest radius is "
            f"{radius}, {shape_text(2 * radius + 1, 2 * radius + 1)}"
        )
    values: list[float] = []
    with binary(source) as region:
        for line in rows_of(region, range(rows)):
            values += [float(value) for value in line]
    for at, value in enumerate(values):
        if not math.isfinite(value):
            raise UsageError(
                f"--weights {text} has {value} in row {at // rows}, column {at % rows}, but weights are "
                "finite"
            )
    if rows == 1:  # sweeps have neighbours, so they get a weight of nothing
        return Weights(text, 1, _star((values[0], 0.0)))
    return Weights(text, rows // 2, tuple(values))


CONSTANT = "constant"
BOUNDARIES = {
    "zero": "all 0",
    "fixed": "edge cells keep their value",
    "periodic": "the opposite edge",
    "reflect": "mirrored about the edge: d c b a | a b c d",
    "mirror": "about the outer cells: d c b | a b c d",
    "nearest": "the edge cell repeated",
    f"{CONSTANT}:V": "all V, any number or nan",
}
_FLOAT32_MAX = 3.4028235e38


def parse_boundary(text: str) -> int | float | None:
    """The value outside of `constant:V`, None for a name; UsageError, with what is known, for all else."""
    name, colon, number = text.partition(":")
    if name != CONSTANT:
        if text not in BOUNDARIES:
            raise UsageError(f"--boundary {text!r} is unknown; expected one of {', '.join(BOUNDARIES)}")
        return None
    for kind in (int, float):
        try:
            return kind(number)
        except ValueError:
            pass
    raise UsageError(
        f"--boundary {text} needs a number after {CONSTANT}{'' if colon else ' and a colon'}",
        f"--boundary {CONSTANT}:0",
    )


def for_worker(text: str, dtype: str) -> str:
    """Boundary as a worker reads it; UsageError where a matrix of type `dtype` cannot hold the value."""
    value = parse_boundary(text)
    if value is None:
        return text
    if is_integer(dtype):
        bits, signed = 8 * ITEMSIZE[dtype], not dtype.startswith("u")
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        if not (math.isfinite(value) and value == int(value) and least <= value <= most):
            raise UsageError(
                f"--boundary {text}: the matrix holds {dtype}, so the value outside must be a whole "
                f"number from {least} to {most}",
                "tilewise convert --dtype float64",
            )
    elif dtype == "float32" and _FLOAT32_MAX < abs(value) < math.inf:
        raise UsageError(
            f"--boundary {text} is a number that float32 cannot hold", "tilewise convert --dtype float64"
        )
    return f"{CONSTANT}:{_as_float(text, value)!r}"


def _as_float(text: str, value: int | float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number) and any(map(str.isdigit, text)):
        raise UsageError(
            f"--boundary {text} is a number that float64 cannot hold", f"--boundary {CONSTANT}:inf"
        )
    return number
