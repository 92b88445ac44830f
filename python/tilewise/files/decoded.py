"""Makes a raw file of an input that cannot be read in place: compressed, chunked, or in colours."""

from __future__ import annotations

import contextlib
import os

from tilewise.errors import RunError, UsageError
from tilewise.files import FORMATS, format_module
from tilewise.files.guard import guarded
from tilewise.files.owner import part_path
from tilewise.files.region import Region, Source
from tilewise.files.room import require_free

_ATTEMPTS = 100


def decoded(source: Source, folder: str, identity: str) -> Region:
    """The numbers of `source`, little-endian, in a new file `.{base}.{identity}.raw` in `folder`.

    The caller removes that file. Raises RunError when the disk has too little room, UsageError when the input
    turns out to be broken; no file is left behind then.
    """
    require_free(folder, source.bytes, f"the decoded {source.name}")
    path, descriptor = _new_file(folder, os.path.basename(source.path), identity, source.name)
    try:
        with (
            guarded(f"{source.name} is no readable {_kind(source)} file"),
            os.fdopen(descriptor, "w+b") as out,
        ):
            format_module(source.path).decode(source, out)
            out.flush()
            size = os.fstat(out.fileno()).st_size
            if size != source.bytes:
                raise UsageError(
                    f"{source.name} holds {size} bytes of numbers, but its header promises {source.bytes}"
                )
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    return Region(
        path=path,
        name=source.name,
        rows=source.rows,
        columns=source.columns,
        dtype=source.dtype,
        order=source.order,
        file_bytes=source.bytes,
    )


def _kind(source: Source) -> str:
    known = f".{source.format}"
    return known if known in FORMATS else source.format


def _new_file(folder: str, base: str, identity: str, name: str) -> tuple[str, int]:
    """A path and a descriptor; numbered where two inputs are members of one file."""
    for attempt in range(_ATTEMPTS):
        ending = f"{attempt}.raw" if attempt else "raw"
        path = part_path(os.path.join(folder, base), identity, ending)
        try:
            return path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        except OSError as error:
            raise RunError(
                f"no file can be made in {folder} for the decoded {name}: {error.strerror}"
            ) from None
    raise RunError(f"{folder} is full of files such as {path}; remove them")
