"""Formats: a module each, with its facts and how it is read and written; nobody else lists formats by name.

To add one, write its module beside this one, and a line in `FORMATS`. The module has

    FORMAT: Format
        the facts: what it can hold, in which orders, whether it is text, a picture, a folder
    inspect(path, name, member) -> Source
        looks at headers only; `name` is what the user wrote and goes into messages. Where a line is a row it
        takes `style`, how it is read, and `most`, and then says no more rows than that; of a picture
        `planes`, all numbers of planes that are of use (`colours.py`); where the format is `sliced`, a
        `selection`: what stands in brackets, and which axes make it a stack (`slices.py`)
    decode(source, out) -> None
        only where `inspect` says `encoded`: writes the numbers little-endian in `source.order`, in panels
    blocks(source, wanted) -> list[ndarray] | None
        only where `inspect` may give `chunks`: the numbers of each block, rows and columns [begin, end), by
        the library; None where it lacks what that takes
    others(source) -> list[str]
        only where other files may have numbers of it, too: their paths
    create(new) -> Region
        only where it can be written: gives the empty file at `new.path` its headers and its full size
    create_tiles, claim_of, replaced, sweep, check_folder
        in its place where a matrix is a folder; see `tiles.py`
    create_tiles, claim_of, complete, old_entries, check_folder, rectangles, place
        where a new folder gets its name as a whole; see `zarr_new.py`
    contents(path, name) -> list[Content]
        only where a file can hold several arrays: all of them, for `tilewise info`
    encode(raw, path, planes) -> None
        only where `create` sends the numbers to another, raw file: packs that file into `path`; where the
        format is `stacked` it takes `extents`, which a stack has
    check_member(path, name, member, force) -> None
        only where a matrix can be added to an old file: raises UsageError where it may not be
    written_warnings(name, shape, dtype, order) -> tuple[str, ...]
        only where the user should know something of a file that is written so
    order_of_member(member, name) -> str | None
        only where the name of a new file may ask for an order of storage

Whatever else than a TilewiseError these raise becomes one UsageError that names the file, so a module need
not guard its library. Libraries are imported inside functions, because a command must start fast.

Design: docs/design/formats.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Annotated, Literal

import msgspec

from tilewise.base.declare import Flag, Flags, Value
from tilewise.base.errors import UsageError
from tilewise.base.units import nearest
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.generated import parse_name

FORMATS = {  # the module of each extension
    ".npy": "npy",
    ".npz": "npz",
    ".raw": "raw",
    ".bin": "bin",
    ".txt": "text",
    ".csv": "text",
    ".tsv": "text",
    ".mtx": "mtx",
    ".h5": "h5",
    ".hdf5": "h5",
    ".nc": "nc",
    ".mat": "mat",
    ".parquet": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".safetensors": "safetensors",
    ".tif": "tiff",
    ".tiff": "tiff",
    ".pgm": "pgm",
    ".ppm": "ppm",
    ".pnm": "pgm",
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".petsc": "petsc",
    ".tiles": "tiles",
    ".zarr": "zarr",
}
_SLICE = re.compile(r"(?P<name>.+)\[(?P<slice>[^\[\]]*)\]", re.DOTALL)
MATRIX = Value("FILE", tuple(FORMATS))
_OF_FILES = tuple(ending[1:] for ending in FORMATS if ending not in (".tiles", ".zarr"))  # not of folders
_DECLARED: dict[str, str] = {}  # extensions that stand for those of files, by their paths


def parse_format(text: str, flag: str) -> str:
    """A format, perhaps with what stands after the colon of a file's name; UsageError for no format."""
    kind = text.partition(":")[0]
    if kind in _OF_FILES:
        return text
    near = nearest(kind, _OF_FILES)
    said = f"{flag} {text!r} is unknown; expected one of {', '.join(_OF_FILES)}"
    raise UsageError(said, f"{flag} {near}" if near else "")


KIND = Value("FORMAT", known=lambda: _OF_FILES)
FROM = Flag(
    "Format of an input of any name, or of standard input: npy, csv, raw:30x20:float32, …",
    value=KIND,
    parse=parse_format,
    default="by its extension; of -: npy",
)


class InputFlags(Flags, frozen=True, kw_only=True):
    """The format of inputs, for a command that reads matrices."""

    from_: Annotated[str | None, FROM] = None


_LEAST_TEXT = 2  # bytes of a number in a text: a digit and what parts it from the next


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a format; the defaults are what most formats are.

    `numbers`: the dtypes that a new file can hold; empty where it is only read. `member`: what a name behind
    the colon means ("dataset", "page"); empty where there is none. `orders`: the orders of storage that a new
    file can have, its natural one first. `byte_order`: that of the numbers which ranks write. `lines`: of a
    text, what stands on a line. `folder`: a tile of the matrix is a file of its own; `whole`: a new folder
    gets its name when all is in it, and is cut as the format likes. `headed`: the file itself says shape and
    order. `sliced`: a name may say in brackets which slice of an array is meant. `stacked`: a new file can
    hold an array of more dimensions. `table`: its members are columns, several of which make a matrix.
    `picture`: it may hold colours, and a new one as many `planes` as these. `reproducible`: the same matrix
    makes the same bytes.
    """

    numbers: tuple[str, ...] = ()
    member: str = ""
    orders: tuple[str, ...] = ("C",)
    byte_order: Literal["little", "big"] = "little"
    lines: Literal["", "row", "number"] = ""
    folder: bool = False
    whole: bool = False
    headed: bool = True
    sliced: bool = False
    stacked: bool = False
    table: bool = False
    picture: bool = False
    planes: tuple[int, ...] = (1,)
    reproducible: bool = True

    @property
    def text(self) -> bool:
        """True where numbers are written as text, so that their bytes are known when they are."""
        return bool(self.lines)

    @property
    def styled(self) -> bool:
        """True where lines are rows, whose separators and other marks may be chosen."""
        return self.lines == "row"

    @property
    def one_array(self) -> bool:
        """True where the numbers lie in one file, binary, at places that follow from rows and columns."""
        return not self.lines and not self.folder

    def byte_order_of(self, dtype: str) -> str:
        """Byte order of numbers of `dtype` in a new file; single bytes are little."""
        return self.byte_order if ITEMSIZE[dtype] > 1 else "little"

    def line_numbers(self, width: int) -> int:
        """Numbers on a line where the stored rows have `width`; 0 where it is no text."""
        return {"": 0, "row": width, "number": 1}[self.lines]

    def least_bytes(self, shape: tuple[int, int], dtype: str) -> int:
        """Bytes that the numbers of a matrix take on disk; of a text, no fewer than these."""
        return shape[0] * shape[1] * (_LEAST_TEXT if self.lines else ITEMSIZE[dtype])


def format_name(name: str) -> str:
    """The format of a matrix's name: `npy`, … or `generated`; UsageError when the extension is unknown."""
    if parse_name(name) is not None:
        return "generated"
    return extension(split_input(name)[0])[1:]


def format_module(path: str) -> ModuleType:
    """The module that reads and writes the format of `path`; UsageError when the extension is unknown."""
    import importlib

    return importlib.import_module(f"{__name__}.{FORMATS[extension(path)]}")


def format_of(name: str) -> Format:
    """The facts of the format of the file that a matrix's name begins with; UsageError for an unknown one."""
    facts: Format = format_module(split_input(name)[0]).FORMAT
    return facts


def split_name(name: str) -> tuple[str, str]:
    """The path and the member of a name such as `file.h5:/group/name`; no member is an empty one.

    What exists as a whole is a path, colons and all; else the first colon behind a known extension parts it.
    """
    if not os.path.lexists(name):
        colon = name.find(":")
        while colon >= 0:
            if ending_of(name[:colon]) in FORMATS:
                if colon == len(name) - 1:
                    raise UsageError(f"{name} has nothing after its last colon")
                return name[:colon], name[colon + 1 :]
            colon = name.find(":", colon + 1)
    return name, ""


def split_input(name: str) -> tuple[str, str, str | None]:
    """Path, member and slice of an input's name such as `file.h5:/x[3]`; no slice is None.

    A page number alone may stand in brackets, too.
    """
    found = _SLICE.fullmatch(name)
    if found is None or os.path.lexists(name):
        return *split_name(name), None
    base, member = split_name(found["name"])
    if member and re.search("[A-Za-z_]", found["slice"]):  # of the member's own name
        return *split_name(name), None
    paged = not member and found["slice"].strip("- ").isdecimal() and ending_of(base) in FORMATS
    if paged and format_module(base).FORMAT.member == "page":
        return base, found["slice"], None
    return base, member, found["slice"]


def read_as(names: Mapping[str, str], kind: str | None, any_name: bool = True) -> dict[str, str]:
    """The `names` of inputs, whose files are read as `kind` from here on, such as csv or raw:30x20:float32.

    These are files whose names tell no format, or else all, unless `any_name` is False.
    """
    _DECLARED.clear()
    if kind is None:
        return dict(names)
    ending, colon, member = kind.partition(":")
    bases = {key: _existing(name) for key, name in names.items()}
    unknown = {key: base for key, base in bases.items() if base and ending_of(base) not in FORMATS}
    chosen = unknown or (bases if any_name else {})
    found = dict(names)
    for key, base in chosen.items():
        if base:
            _DECLARED[os.path.abspath(base)] = f".{ending}"
            found[key] = f"{base}{colon}{member}{names[key][len(base) :]}"
    return found


def _existing(name: str) -> str:
    """The file that a matrix's name begins with, before a member or a slice; empty where there is none."""
    ends = [len(name), *(place.start() for place in re.finditer(r"[:\[]", name))]
    return next((name[:end] for end in ends if os.path.lexists(name[:end])), "")


def extension(path: str) -> str:
    """The known extension of `path`, in small letters and with its dot; UsageError for any other."""
    ending = ending_of(path)
    if ending in FORMATS:
        return ending
    if path.lower().endswith(".zarr.zip"):
        raise UsageError(
            f"{path} is a zipped Zarr store, but a folder was expected", f"unzip {path} -d {path[:-4]}"
        )
    known = ", ".join(FORMATS)
    what = f"the unknown extension {ending!r}" if ending else "no extension"
    store, inside, member = path.partition(".zarr/")
    raise UsageError(
        f"{path} has {what}; expected one of {known}", f"{store}.zarr:/{member}" if inside and member else ""
    )


def ending_of(path: str) -> str:
    """The extension of `path`, known or not, in small letters and with its dot; empty where it has none."""
    bare = path.rstrip("/")
    if _DECLARED and (ending := _DECLARED.get(os.path.abspath(bare))):
        return ending
    ending = os.path.splitext(bare)[1].lower()
    if bare != path and not (ending in FORMATS and format_module(bare).FORMAT.folder):
        return ""  # only a folder may be written with a slash behind it
    return ending
