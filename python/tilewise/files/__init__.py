"""What lies in a file, and where a new one goes: a table from extension to format, a module each.

To add a format, write one module beside this one, and one line in `FORMATS`. The module has

    MEMBER: str                  what a name behind the colon means ("dataset", "page"); empty: there is none
    NUMBERS: tuple[str, ...]     dtypes that a file can hold when written; empty: it cannot be written
    PLANES: tuple[int, ...]      only of pictures: how many planes a file can be written with (`colours.py`);
                                 `inspect` takes `planes`, all that are of use, `create` and `encode`
                                 the number of them
    inspect(path, name, member) -> Source
        looks at headers only; `name` is what the user wrote and goes into messages. Where lines must be
        counted it may take `most`, and then say no more rows than that
    decode(source, out) -> None
        only where `inspect` says `encoded`: writes the numbers little-endian in `source.order`, in panels
    create(path, name, member, shape, dtype, order, header=False) -> Region
        only where it can be written: `path` is an existing, empty part file; gives it headers and full size
    encode(raw, path, name, member) -> None
        only where `create` sends the numbers to another, raw file: packs that file into `path`
    written_warnings(name, shape, dtype, order) -> tuple[str, ...]
        only where the user should know something of a file that is written so

Whatever else than a TilewiseError these raise becomes one UsageError that names the file, so a module need
not guard its library. Libraries are imported inside functions, because a command must start fast.
"""

from __future__ import annotations

import os
from types import ModuleType

from tilewise.errors import UsageError
from tilewise.files.generated import parse_name
from tilewise.files.guard import guarded
from tilewise.files.region import Source
from tilewise.files.regular import open_regular, require_utf8

FORMATS = {
    ".npy": "tilewise.files.npy",
    ".npz": "tilewise.files.npz",
    ".raw": "tilewise.files.raw",
    ".bin": "tilewise.files.bin",
    ".txt": "tilewise.files.text",
    ".csv": "tilewise.files.text",
    ".tsv": "tilewise.files.text",
    ".mtx": "tilewise.files.mtx",
    ".h5": "tilewise.files.h5",
    ".hdf5": "tilewise.files.h5",
    ".nc": "tilewise.files.nc",
    ".safetensors": "tilewise.files.safetensors",
    ".tif": "tilewise.files.tiff",
    ".tiff": "tilewise.files.tiff",
    ".pgm": "tilewise.files.pgm",
    ".ppm": "tilewise.files.ppm",
    ".pnm": "tilewise.files.pgm",
    ".png": "tilewise.files.png",
    ".jpg": "tilewise.files.jpeg",
    ".jpeg": "tilewise.files.jpeg",
    ".petsc": "tilewise.files.petsc",
    ".tiles": "tilewise.files.tiles",
}
_FOLDER = ".tiles"
_COUNTED = (".txt", ".csv", ".tsv")  # only counting their lines tells how many rows there are
TEXTS = ("txt", "csv", "tsv", "mtx")  # formats whose numbers are text


def format_name(name: str) -> str:
    """The format of a matrix's name: `npy`, … or `generated`; UsageError when the extension is unknown."""
    if parse_name(name) is not None:
        return "generated"
    return extension(split_name(name)[0])[1:]


def format_module(path: str) -> ModuleType:
    """The module that reads and writes the format of `path`; UsageError when the extension is unknown."""
    import importlib

    return importlib.import_module(FORMATS[extension(path)])


def split_name(name: str) -> tuple[str, str]:
    """The path and the member of a name such as `file.h5:/group/name`; no member is an empty one.

    What exists as a whole is a path, colons and all; else the first colon behind a known extension parts it.
    """
    if not os.path.lexists(name):
        colon = name.find(":")
        while colon >= 0:
            if _extension(name[:colon]) in FORMATS:
                if colon == len(name) - 1:
                    raise UsageError(f"{name} names nothing behind its last colon")
                return name[:colon], name[colon + 1 :]
            colon = name.find(":", colon + 1)
    return name, ""


def inspect(
    name: str, most: int | None = None, planes: tuple[int, ...] = (1,), lists: bool = False
) -> Source:
    """The matrix that the user calls `name`: a path, one with a member, or `random:64x64:float64`.

    With `most` a text may be taken for its first `most` rows only, which spares counting all of its lines.
    Of a coloured picture the grey value is taken, or as many `planes` of it as are of use. With `lists` a
    .npy file may have one dimension, as those of singular values have: to look at, it is one row.

    Raises UsageError, in one sentence with what was expected, for everything that cannot be read as a matrix.
    """
    if not name:
        raise UsageError("an input has an empty name, but a path was expected")
    region = parse_name(name)
    if region is not None:
        fields = {field: getattr(region, field) for field in region.__struct_fields__}
        return Source(**fields, format="generated")
    require_utf8(name)
    base, member = split_name(name)
    path = os.path.abspath(base)
    if _extension(base) not in FORMATS:
        # A missing file or a folder is worth saying before its extension is.
        open_regular(path, base)[0].close()
    module = format_module(base)
    kind = extension(base)
    if member:
        require_member(module, name, base, member)
    with guarded(f"{name} is no readable {kind} file"):
        more: dict[str, object] = {} if most is None or kind not in _COUNTED else {"most": most}
        if planes != (1,) and hasattr(module, "PLANES"):
            more["planes"] = planes
        if lists and kind == ".npy":
            more["lists"] = True
        found: Source = module.inspect(path, name, member, **more)
    return found


def require_member(module: ModuleType, name: str, base: str, member: str) -> None:
    """Raises UsageError where files of this format have no members at all."""
    if not module.MEMBER:
        raise UsageError(
            f"{name} names {member!r} in {base}, but a {extension(base)} file holds one matrix only"
        )


def extension(path: str) -> str:
    """The known extension of `path`, in small letters and with its dot; UsageError for any other."""
    found = _extension(path)
    if found in FORMATS:
        return found
    known = ", ".join(FORMATS)
    what = f"the unknown extension {found!r}" if found else "no extension"
    raise UsageError(f"{path} has {what}; known are {known}")


def _extension(path: str) -> str:
    bare = path.rstrip("/")
    if bare != path and not bare.lower().endswith(_FOLDER):
        return ""  # only a folder may be written with a slash behind it
    return os.path.splitext(bare)[1].lower()


def written_planes(name: str) -> tuple[int, ...]:
    """How many planes a file of this name can be written with; one where it is no picture."""
    planes: tuple[int, ...] = getattr(format_module(split_name(name)[0]), "PLANES", (1,))
    return planes


def natural_order(name: str) -> str:
    """The order of storage that a new file of this name has unless another is asked for: `C` or `F`."""
    base, member = split_name(name)
    kind = extension(base)
    if kind == ".raw" and member:
        from tilewise.files import raw

        return raw.parse_member(member, name).order or "C"
    return "F" if kind == ".mtx" else "C"
