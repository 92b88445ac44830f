"""What lies in a file, and where a new one goes: a table from extension to format, a module each."""

from __future__ import annotations

import os
from types import ModuleType

from tilewise.errors import UsageError
from tilewise.files.generated import parse_name
from tilewise.files.region import Region
from tilewise.files.regular import open_regular, require_utf8

# Adding a format is one module with `inspect` and `header`, and one line here.
FORMATS = {
    ".npy": "tilewise.files.npy",
}


def format_name(name: str) -> str:
    """The format of a matrix's name: `npy`, … or `generated`; UsageError when the extension is unknown."""
    if parse_name(name) is not None:
        return "generated"
    return _extension(name)[1:]


def format_module(path: str) -> ModuleType:
    """The module that reads and writes the format of `path`; UsageError when the extension is unknown."""
    import importlib

    return importlib.import_module(FORMATS[_extension(path)])


def inspect(name: str) -> Region:
    """The matrix that the user calls `name`: a path, or a generator such as `random:64x64:float64`.

    Raises UsageError, in one sentence with what was expected, for everything that cannot be read as a matrix.
    """
    if not name:
        raise UsageError("an input has an empty name, but a path was expected")
    region = parse_name(name)
    if region is not None:
        return region
    require_utf8(name)
    path = os.path.abspath(name)
    if os.path.splitext(name)[1].lower() not in FORMATS:
        open_regular(path, name)[
            0
        ].close()  # a missing file or a folder is worth saying before its extension is
    found: Region = format_module(path).inspect(path, name)
    return found


def _extension(path: str) -> str:
    extension = os.path.splitext(path)[1].lower()
    if extension in FORMATS:
        return extension
    known = ", ".join(FORMATS)
    what = f"the unknown extension {extension!r}" if extension else "no extension"
    raise UsageError(f"{path} has {what}; known are {known}")
