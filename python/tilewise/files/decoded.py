"""Makes a raw file of an input that cannot be read in place: compressed, chunked, or in colours."""

from __future__ import annotations

import os

from tilewise.base.claim import Claim
from tilewise.base.errors import RunError, UsageError
from tilewise.base.owner import part_path
from tilewise.base.staging import Staged
from tilewise.files.formats import FORMATS, format_module
from tilewise.files.guard import guarded
from tilewise.files.region import Region, Source
from tilewise.files.room import require_free

_ATTEMPTS = 100


def decoded(source: Source, folder: str, identity: str) -> Region:
    """The numbers of `source`, little-endian, in a new file `.{base}.{identity}.raw` in `folder`.

    The caller removes that file. Raises RunError when the disk is too full, UsageError when the input
    turns out to be broken; no file is left behind then.
    """
    require_free(folder, source.all_bytes, f"the decoded {source.name}")
    staged, descriptor = _new_file(folder, os.path.basename(source.path), identity, source.name)
    with (
        staged.or_none(),
        guarded(f"{source.name} is not a readable {_kind(source)} file"),
        os.fdopen(descriptor, "w+b") as out,
    ):
        format_module(source.path).decode(source, out)
        out.flush()
        size = os.fstat(out.fileno()).st_size
        if size != source.all_bytes:
            raise UsageError(
                f"{source.name} holds {size} bytes of numbers, but its header promises {source.all_bytes}"
            )
    return Region(
        path=staged.part,
        name=source.name,
        rows=source.rows,
        columns=source.columns,
        dtype=source.dtype,
        order=source.order,
        file_bytes=source.all_bytes,
        steps=source.steps,
    )


def _kind(source: Source) -> str:
    known = f".{source.format}"
    return known if known in FORMATS else source.format


def _new_file(folder: str, base: str, identity: str, name: str) -> tuple[Staged, int]:
    """A file that gets no other name, and its descriptor; numbered where one file has two of the inputs."""
    for attempt in range(_ATTEMPTS):
        ending = f"{attempt}.raw" if attempt else "raw"
        path = part_path(os.path.join(folder, base), identity, ending)
        try:
            staged = Staged(part=path, claim=Claim("", "", undo=[path]))
            return staged, staged.make(0o600)
        except FileExistsError:
            continue
        except OSError as error:
            raise RunError(
                f"no file can be created in {folder} for the decoded {name}: {error.strerror}"
            ) from None
    raise RunError(f"{folder} is full of files such as {path}; remove them")
