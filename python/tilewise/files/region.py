"""Region: where a matrix's numbers lie in files, or how they are made without one."""

from __future__ import annotations

from typing import Any

import msgspec

from tilewise.files.slices import Part

Rectangle = tuple[tuple[int, int], tuple[int, int]]  # rows and columns [begin, end)


class Tile(msgspec.Struct, frozen=True, kw_only=True):
    """One rectangle of a matrix in a file of its own, row by row: rows and columns [begin, end)."""

    path: str
    offset: int
    rows: tuple[int, int]
    columns: tuple[int, int]


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """One matrix, as the worker is told about it (`docs/reference/seam.md`).

    `rows` and `columns` are the file's own; `transposed` says that the operation wants the transpose.
    `file_bytes` is the size the file must have (-1: do not check). With a `generator` there is no file and
    `path` is empty; with `tiles` there is a file for each and `path` is their folder. In a `text` a line
    holds `line_numbers` numbers between `separator`s (a blank stands for any run of blanks); with `pairs` a
    complex number is two of these.
    """

    path: str
    name: str
    offset: int = 0
    rows: int
    columns: int
    dtype: str
    byte_order: str = "little"
    order: str = "C"
    encoding: str = "binary"
    separator: str = ""
    line_numbers: int = 0
    pairs: bool = False
    tiles: list[Tile] = []
    file_bytes: int = -1
    transposed: bool = False
    generator: str = ""
    seed: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns as the operation sees them: swapped when `transposed`."""
        return (self.columns, self.rows) if self.transposed else (self.rows, self.columns)

    @property
    def bytes(self) -> int:
        """Bytes of the numbers alone, as binary numbers without any header."""
        from tilewise.files.dtypes import ITEMSIZE

        return self.rows * self.columns * ITEMSIZE[self.dtype]


class New(msgspec.Struct, frozen=True, kw_only=True):
    """A matrix that a new file will hold: the file at `path` is there, and empty but for a container's copy.

    `name` is what the user wrote, `member` what stands in it behind the colon. `header` asks a text for a
    first line with its shape. A picture has `planes`, one above the other in the rows of `shape`.
    """

    path: str
    name: str
    member: str = ""
    shape: tuple[int, int]
    dtype: str
    order: str = "C"
    header: bool = False
    planes: int = 1

    @property
    def bytes(self) -> int:
        """Bytes of the numbers alone."""
        from tilewise.files.dtypes import ITEMSIZE

        return self.shape[0] * self.shape[1] * ITEMSIZE[self.dtype]

    def region(self, **facts: Any) -> Region:
        """Where its numbers go: row by row into `path` unless `facts` say otherwise."""
        where = {"path": self.path, "name": self.name, "dtype": self.dtype}
        return Region(rows=self.shape[0], columns=self.shape[1], **where | facts)


class Source(Region, frozen=True, kw_only=True):
    """A Region that was found in an input, with what only the front needs.

    `member` is the dataset or variable inside the file. What is `encoded` (a compressed image, a chunked
    dataset) must be decoded into a raw file before anybody can read it in parallel. Of a picture whose
    colours are taken, `planes` lie one above the other, and `rows` counts those of all. `part` says which
    matrix of an array it is.

    What the user should know comes as sentences of two kinds. `warnings`: the numbers that are taken may not
    be those that are meant, because something is dropped, is not applied, or can be read in another way.
    Every job prints them. `notes`: all else, such as how the numbers are stored, however unusual. They stand
    in `info` and among the reasons of a plan and of a record.
    """

    format: str
    member: str = ""
    encoded: bool = False
    planes: int = 1
    part: Part | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def region(self) -> Region:
        """What the worker is told."""
        return Region(**{name: getattr(self, name) for name in Region.__struct_fields__})


def is_encoded(region: Region) -> bool:
    """Whether its numbers must be decoded before ranks can read them."""
    return isinstance(region, Source) and region.encoded
