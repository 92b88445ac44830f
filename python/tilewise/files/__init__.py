"""What lies in a file: a matrix is looked at by the module of its format, and found as a `Source`."""

from __future__ import annotations

import os
from types import ModuleType

import msgspec

from tilewise.base.errors import UsageError
from tilewise.files.formats import FORMATS, ending_of, extension, format_module, split_input
from tilewise.files.generated import parse_name
from tilewise.files.guard import guarded
from tilewise.files.region import Source
from tilewise.files.regular import open_regular, require_utf8


def inspect(
    name: str, most: int | None = None, planes: tuple[int, ...] = (1,), lists_are_rows: bool = False
) -> Source:
    """The matrix that the user calls `name`: a path, one with a member, or `random:64x64:float64`.

    With `most` a text may be taken for its first `most` rows only, which spares counting all of its lines.
    Of a coloured picture the grey value is taken, or as many `planes` of it as are of use. Of an array with
    more dimensions the name says which slice is meant, `A.npy[3]`; one with a single dimension is a column,
    or a row with `lists_are_rows`.

    Raises UsageError, in one sentence with what was expected, for everything that cannot be read as a matrix.
    """
    if not name:
        raise UsageError("an input has an empty name, but a path was expected")
    region = parse_name(name)
    if region is not None:
        fields = {field: getattr(region, field) for field in region.__struct_fields__}
        return Source(**fields, format="generated")
    require_utf8(name)
    base, member, part = split_input(name)
    path = os.path.abspath(base)
    if ending_of(base) not in FORMATS:
        # A missing file or a folder is worth saying before its extension is.
        open_regular(path, base)[0].close()
    module = format_module(base)
    kind = extension(base)
    if member:
        require_member(module, name, base, member)
    with guarded(f"{name} is not a readable {kind} file"):
        facts, more = module.FORMAT, dict[str, object]()
        if most is not None and facts.lines == "row":  # only counting its lines tells how many there are
            more["most"] = most
        if planes != (1,) and facts.picture:
            more["planes"] = planes
        if part is not None:
            if not facts.sliced:
                raise UsageError(f"{name} names a slice, but a {kind} file has two dimensions only")
            more["part"] = part
        found: Source = module.inspect(path, name, member, **more)
    if lists_are_rows and found.part is not None and found.part.is_list:
        notes = tuple(note.replace("column", "row") for note in found.notes)
        return msgspec.structs.replace(found, rows=1, columns=found.rows, notes=notes)
    return found


def require_member(module: ModuleType, name: str, base: str, member: str) -> None:
    """Raises UsageError where files of this format have no members at all."""
    if not module.FORMAT.member:
        raise UsageError(
            f"{name} names {member!r} in {base}, but a {extension(base)} file holds one matrix only"
        )
