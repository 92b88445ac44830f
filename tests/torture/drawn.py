"""Generators of files share this: options drawn at random and kept in words, numbers, slices of arrays."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[Any]
Option = TypeVar("Option")
WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
REAL = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
ALL = (*WHOLE, *REAL, *COMPLEX)
TABLE = (*WHOLE, "float32", "float64")
ORDERS: tuple[Literal["<", ">"], ...] = ("<", ">")  # of bytes
EXTENTS = (1, 2, 3, 5, 8, 17, 30, 64, 130)
MOST = 40_000  # numbers of a file


class Draw:
    """Random options; `drawn` says which."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.drawn: list[str] = []

    def pick(self, what: str, options: Sequence[Option]) -> Option:
        """One of the options, kept as `what`."""
        chosen = self.dice.choice(options)
        self.drawn.append(f"{what}={chosen!r}")
        return chosen

    def maybe(self, what: str, chance: float = 0.5) -> bool:
        """Whether to do `what`."""
        found = self.dice.random() < chance
        self.drawn += [what] * found
        return found

    def some(self, options: Sequence[Option], most: int) -> list[Option]:
        """Up to `most` of the options, in any order."""
        return self.dice.sample(options, self.dice.randint(0, min(most, len(options))))

    def shape(self, dimensions: int, extents: Sequence[int] = EXTENTS) -> tuple[int, ...]:
        """Extents of an array that is small enough."""
        while True:
            shape = tuple(self.dice.choice(extents) for _ in range(dimensions))
            if np.prod(shape) <= MOST:
                return tuple(self.pick("shape", [shape]))

    def numbers(self, shape: tuple[int, ...], dtype: str | np.dtype[Any], most: int | None = None) -> Matrix:
        """Random numbers, sometimes with those that are special; up to `most` where they are whole."""
        number, source = np.dtype(dtype), np.random.default_rng(self.dice.getrandbits(32))
        if number.kind == "b":
            return source.random(shape) < 0.5
        if number.kind in "iu":
            info = np.iinfo(number)
            low, high = (info.min, info.max) if most is None else (0, most)
            if self.dice.random() < 0.3:
                low, high = max(low, -3), min(high, 9)
            found = source.integers(low, high, shape, number.newbyteorder("="), endpoint=True)
        elif number.kind == "c":
            found = source.standard_normal(shape) + 1j * source.standard_normal(shape)
        else:
            found = source.standard_normal(shape) * 10.0 ** self.dice.randrange(-3, 3)
            if found.size and self.dice.random() < 0.2:
                special = (np.nan, np.inf, -np.inf, -0.0, 0.0, np.finfo(number).max, np.finfo(number).tiny)
                found.flat[source.integers(0, found.size, 5)] = source.choice(special, 5)
        return found.astype(number)


@dataclass
class Made:
    """A file: its name for the command, and what its library reads, which raises where it reads nothing.

    `warned` is a pattern of words that the command warns with, unless it refuses the file.
    """

    name: str
    read: Callable[[], Matrix]
    flags: list[str] = field(default_factory=list)
    warned: str = ""


@dataclass(frozen=True)
class Kind:
    """A way of storing matrices, which is drawn `weight` times as often as others.

    `summed`: the library verifies checksums that tilewise does not, where numbers are read in place.
    `by_hand`: no library reads the file as the command does; the numbers are those that were written.
    """

    name: str
    ending: str
    make: Callable[[Path, Draw], Made]
    weight: int = 2
    summed: bool = False
    by_hand: bool = False


@dataclass(frozen=True)
class Back:
    """How a library reads what tilewise has written, and the types that tilewise writes."""

    read: Callable[[Path, Matrix], Matrix]
    types: tuple[str, ...]


def refused() -> Matrix:
    """What is read where no library knows what a file means."""
    raise ValueError("not to be read without a word")


def sliced(shape: tuple[int, ...], draw: Draw) -> tuple[str, tuple[Any, ...]]:
    """A slice of an array with two dimensions: how the command names it, and the library; else all of it."""
    if len(shape) <= 2:
        return "", ()
    free = draw.dice.sample(range(len(shape)), 2)
    index = [slice(None) if axis in free else draw.dice.randrange(each) for axis, each in enumerate(shape)]
    words = ",".join(":" if isinstance(each, slice) else str(each) for each in index)
    return draw.pick("slice", [f"[{words}]"]), tuple(index)


def standard(numbers: Any) -> Matrix:
    """A matrix as the command has it: a list is a column, and what is true is 1."""
    found = np.asarray(numbers)
    found = found.astype("uint8") if found.dtype.kind == "b" else found
    found = found.astype(found.dtype.newbyteorder("<"))
    return found.reshape(-1, 1) if found.ndim == 1 else found


def same(a: Matrix, b: Matrix) -> bool:
    """Whether all numbers are equal to the bit, but for the bits of NaN, and have the same type."""
    if a.shape != b.shape or a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        return False
    a, b = (np.ascontiguousarray(each, each.dtype.newbyteorder("<")) for each in (a, b))
    if a.dtype.kind in "fc":
        a, b = (each.view(f"<f{each.dtype.itemsize // (1 + (each.dtype.kind == 'c'))}") for each in (a, b))
        if not np.array_equal(nan := np.isnan(a), np.isnan(b)):
            return False
        a, b = np.where(nan, 0, a), np.where(nan, 0, b)
    return a.tobytes() == b.tobytes()


def other_order(numbers: Matrix, draw: Draw) -> Matrix:
    """The same numbers, perhaps column by column, perhaps in the other byte order."""
    swapped = numbers.astype(numbers.dtype.newbyteorder(draw.pick("bytes", ORDERS)))
    return np.asfortranarray(swapped) if draw.maybe("by columns") else swapped
