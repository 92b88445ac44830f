"""Region: where a matrix's numbers lie in files, or how they are made without one."""

from __future__ import annotations

import math
import os
from typing import Any, Self

import msgspec

from tilewise.files.slices import ArrayPart
from tilewise.files.style import LineRule, Style

Rectangle = tuple[tuple[int, int], tuple[int, int]]  # rows and columns [begin, end)
_ASIDE = ("path", "name", "transposed", "format", "notes", "warnings")  # what may differ, or is looked at


class Tile(msgspec.Struct, frozen=True, kw_only=True):
    """A rectangle of a matrix, in a file of its own: rows and columns [begin, end).

    `strides` are the numbers in the file from one row to the next, and from one column to the next; (0, 0) is
    without gaps, in the region's order. Without a `path` each number is the region's `fill`.
    """

    path: str
    offset: int
    rows: tuple[int, int]
    columns: tuple[int, int]
    strides: tuple[int, int] = (0, 0)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns that it has."""
        return self.rows[1] - self.rows[0], self.columns[1] - self.columns[0]

    def steps(self, order: str) -> tuple[int, int]:
        """The strides in a region of that order of storage, gaps or not."""
        if self.strides != (0, 0):
            return self.strides
        return (self.shape[1], 1) if order == "C" else (1, self.shape[0])

    def extent(self, order: str) -> int:
        """Numbers from `offset` to behind the last one."""
        (rows, columns), (down, across) = self.shape, self.steps(order)
        return (rows - 1) * down + (columns - 1) * across + 1 if rows and columns else 0


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """A step that undoes packing, by name; `item` is the bytes of the numbers that it works on."""

    name: str
    item: int = 1
    byte_order: str = "little"


class Chunks(msgspec.Struct, frozen=True, kw_only=True):
    """A matrix in packed pieces of one `shape`, in the order of a grid over its stored rows and columns.

    A piece unpacks to `numbers` numbers by `filters`, in the order in which they are undone. The part of it
    that is the matrix's begins with number `start`, with `steps` from row to row and from column to column.
    Those at the edges are as large as all others; where `clipped`, the lowest lack the rows beyond the end.
    `offsets` and `bytes` say where each lies in its file: the region's, or that of `paths`. 0 bytes: nowhere,
    and all its numbers are `fill` (the file's bytes of one, in hexadecimal digits); -1: up to the file's end.
    Bit i in `skipped`: filter i is not to be undone in that piece; empty: all are in all.
    """

    shape: tuple[int, int]
    steps: tuple[int, int]
    start: int = 0
    numbers: int
    clipped: bool = False
    filters: list[Filter] = []
    paths: list[str] = []
    offsets: list[int]
    bytes: list[int]
    skipped: list[int] = []
    fill: str

    @property
    def turned(self) -> Chunks:
        """A column seen as the row that it also is."""
        return msgspec.structs.replace(self, shape=self.shape[::-1], steps=self.steps[::-1])


class Whole(msgspec.Struct, frozen=True):
    """The `rows` × `columns` matrix of a file, of which a region is the part from `row` and `column` on."""

    rows: int
    columns: int
    row: int
    column: int


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """A matrix, as the worker is told about it (`docs/reference/seam.md`).

    `rows` and `columns` are those of the file's matrix, or of the part of it that is taken, if there is a
    `whole`: all else tells of the whole. `transposed` says that the operation wants the transpose.
    `file_bytes` is the size the file must have (-1: do not check). With a `generator` there is no file and
    `path` is empty. With `tiles` there is a file for each, `path` is their folder, and `file_bytes` the size
    of each (-1: it ends with its last number); `fill` is the bytes, in hexadecimal digits, of each number of
    tiles without a file. The `encoding` is `binary`, `text`, or `chunks`. In a `text` a line holds
    `line_numbers` numbers between `separator`s (a blank stands for any run of blanks); with `pairs` a complex
    number is two of these. With words for `missing` numbers an empty field is one too. Where its lines end
    before the file does, `text_end` is that byte. With `hash_comments` a `#` that begins a line, or follows a
    blank, begins a comment. The fields of a line that are `taken`, from 0, are the matrix's columns; without
    any all are. Where some are not, these may hold anything, and nothing begins a comment. Of a stack it is
    the first slice, and `steps` are the bytes from one to the next along each axis of the stack.
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
    decimal: str = "."
    missing: list[str] = []
    text_end: int = -1
    hash_comments: bool = True
    taken: list[int] = []
    tiles: list[Tile] = []
    fill: str = ""
    chunks: Chunks | None = None
    file_bytes: int = -1
    transposed: bool = False
    generator: str = ""
    seed: int = 0
    steps: list[int] = []
    whole: Whole | None = None

    @property
    def window(self) -> tuple[slice, slice]:
        """Its rows and columns among those of the file's matrix."""
        row, column = (self.whole.row, self.whole.column) if self.whole else (0, 0)
        return slice(row, row + self.rows), slice(column, column + self.columns)

    @property
    def uncut(self) -> Self:
        """The file's matrix, with all rows and columns."""
        if self.whole is None:
            return self
        return msgspec.structs.replace(self, rows=self.whole.rows, columns=self.whole.columns, whole=None)

    def cut(self, rows: slice, columns: slice) -> Self:
        """The part with these of its rows and columns."""
        high, wide = rows.stop - rows.start, columns.stop - columns.start
        if (high, wide) == (self.rows, self.columns):
            return self
        all_, (down, across) = self.uncut, self.window
        whole = Whole(all_.rows, all_.columns, down.start + rows.start, across.start + columns.start)
        return msgspec.structs.replace(self, rows=high, columns=wide, whole=whole)

    @property
    def narrow(self) -> bool:
        """True if only parts of the stored rows are taken."""
        return self.columns < self.uncut.columns if self.order == "C" else self.rows < self.uncut.rows

    @property
    def in_one_piece(self) -> bool:
        """True if the numbers lie in one file, binary and without gaps, or will do so when decoded."""
        apart = self.generator or self.tiles or self.chunks or self.narrow
        return not apart and self.encoding == "binary"

    @property
    def line_rule(self) -> LineRule:
        """The rule for lines without numbers; tabs alone are fields where all of these may be missing."""
        return LineRule(self.separator == "\t" and bool(self.missing), not self.taken)

    @property
    def line_taken(self) -> int:
        """Numbers that are taken of a line of a text."""
        return len(self.taken) or self.line_numbers

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns as the operation sees them: swapped when `transposed`."""
        return (self.columns, self.rows) if self.transposed else (self.rows, self.columns)

    @property
    def bytes(self) -> int:
        """Bytes of the numbers alone, as binary numbers without any header."""
        from tilewise.files.dtypes import ITEMSIZE

        return self.rows * self.columns * ITEMSIZE[self.dtype]


def unplaced(shape: tuple[int, int], dtype: str, order: str = "C") -> Region:
    """A raw file for a `shape` matrix that has no path yet."""
    region = Region(path="", name="", rows=shape[0], columns=shape[1], dtype=dtype, order=order)
    return msgspec.structs.replace(region, file_bytes=region.bytes)


class New(msgspec.Struct, frozen=True, kw_only=True):
    """A matrix that a new file will hold: the file at `path` is there, and empty but for a container's copy.

    `name` is what the user wrote, `member` what stands in it behind the colon. `header` asks a text for a
    first line with its shape, and `style` says how else it is written. `names` are those of columns, where
    they are known. A picture has `planes`, one above the
    other in the rows of `shape`. A stack has `extents`, all of its dimensions; `shape` has no more than as
    many numbers.
    """

    path: str
    name: str
    member: str = ""
    shape: tuple[int, int]
    extents: tuple[int, ...] = ()
    dtype: str
    order: str = "C"
    header: bool = False
    style: Style = Style()
    names: tuple[str, ...] = ()
    planes: int = 1

    @property
    def bytes(self) -> int:
        """Bytes of the numbers alone."""
        from tilewise.files.dtypes import ITEMSIZE

        return self.shape[0] * self.shape[1] * ITEMSIZE[self.dtype]

    @property
    def array_shape(self) -> tuple[int, ...]:
        """Shape of the array in the file."""
        return self.extents or self.shape

    def region(self, **facts: Any) -> Region:
        """Place the numbers row by row in `path`, unless `facts` say otherwise."""
        where = {"path": self.path, "name": self.name, "dtype": self.dtype}
        return Region(rows=self.shape[0], columns=self.shape[1], **where | facts)


class Source(Region, frozen=True, kw_only=True):
    """A Region that was found in an input, with what only the front needs.

    `member` is the dataset or variable inside the file. What is `encoded` (a picture, a dataset whose packing
    ranks do not know) must be decoded into a raw file before ranks can read it. Of a picture whose
    colours are taken, `planes` lie one above the other, and `rows` counts those of all. `part` says which
    matrix of an array it is; of a stack it is the first slice, and there are so many as `stack` says.
    `compared` counts the chunks that were found to be unpacked as the format's library does it. `names` are
    those of its columns, where a table has some, and `fills` numbers that stand for none.

    What the user should know comes as sentences of two kinds. `warnings`: the numbers that are taken may not
    be those that are meant, because something is dropped, is not applied, or can be read in another way.
    Every job prints them. `notes`: all else, such as how the numbers are stored, however unusual. They stand
    in `info` and among the reasons of a plan and of a record.
    """

    format: str
    member: str = ""
    encoded: bool = False
    planes: int = 1
    names: tuple[str, ...] = ()
    part: ArrayPart | None = None
    stack: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    compared: int = 0
    fills: tuple[float, ...] = ()

    @property
    def all_bytes(self) -> int:
        """Bytes of the numbers of all slices."""
        return self.bytes * math.prod(self.stack)

    @property
    def span(self) -> int:
        """Bytes in the file from the first number to the last of all slices."""
        last = sum((extent - 1) * step for extent, step in zip(self.stack, self.steps, strict=True))
        return self.bytes + last if self.all_bytes else 0

    @property
    def turned(self) -> Source:
        """A column seen as the row that it also is."""
        tiles = [
            msgspec.structs.replace(tile, rows=tile.columns, columns=tile.rows, strides=tile.strides[::-1])
            for tile in self.tiles
        ]
        return msgspec.structs.replace(
            self,
            rows=self.columns,
            columns=self.rows,
            tiles=tiles,
            whole=self.whole
            and Whole(self.whole.columns, self.whole.rows, self.whole.column, self.whole.row),
            chunks=self.chunks and self.chunks.turned,
            notes=tuple(note.replace("as a column", "as a row") for note in self.notes),
        )

    @property
    def packed(self) -> bool:
        """True where its numbers lie in no file as they are, binary or as text."""
        return self.encoded or self.chunks is not None

    def region(self) -> Region:
        """The Region that the worker is told."""
        return Region(**{name: getattr(self, name) for name in Region.__struct_fields__})


def is_encoded(region: Region) -> bool:
    """True where the numbers must be decoded before ranks can read them."""
    return isinstance(region, Source) and region.encoded


def are_transposes(left: Region, right: Region) -> bool:
    """True where both are the same numbers of one file, or of one generator, and just one is transposed.

    Numbers that lie column by column are those of the transpose row by row: a row-order and a column-order
    matrix at one place of one file are the same too.
    """
    first, second = _by_rows(left), _by_rows(right)
    return first.transposed != second.transposed and _lies(first) == _lies(second)


def _by_rows(region: Region) -> Region:
    """View a matrix that lies column by column, whole in one file, as its transpose row by row."""
    if region.order == "C" or not region.in_one_piece or region.whole is not None:
        return region
    turned = {"order": "C", "transposed": not region.transposed}
    return msgspec.structs.replace(region, rows=region.columns, columns=region.rows, **turned)


def _lies(region: Region) -> list[Any]:
    """Everything that says which numbers these are."""
    facts = [getattr(region, name, None) for name in type(region).__struct_fields__ if name not in _ASIDE]
    return [_file(region.path), *facts]


def _file(path: str) -> Any:
    """A file by itself, whatever it is called; by its name where it cannot be asked."""
    try:
        found = os.stat(path)
    except OSError:
        return path
    return found.st_dev, found.st_ino
