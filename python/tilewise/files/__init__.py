"""Looks into files by the modules of their formats: a matrix is a `Source`, an array a `Content`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.files.checks import number_type
from tilewise.files.formats import FORMATS, ending_of, extension, format_module, format_of, split_input
from tilewise.files.generated import parse_name
from tilewise.files.region import Source
from tilewise.files.regular import guarded, open_regular, refuse_url, require_utf8
from tilewise.files.slices import NoStackError, Selection, Wanted, part_of, rows_needed, taken
from tilewise.files.style import PLAIN, Style

if TYPE_CHECKING:
    import numpy


def inspect(
    name: str,
    most: int | None = None,
    planes: tuple[int, ...] = (1,),
    lists_are_rows: bool = False,
    style: Style = PLAIN,
    each: tuple[int, ...] = (),
    columns: str = ":",
) -> Source:
    """The matrix that the user calls `name`: a path, one with a member, or `random:64x64:float64`.

    With `most` a text may be taken for its first `most` rows only, which spares counting all of its lines.
    Of a coloured picture the grey value is taken, or as many `planes` of it as are of use, unless the name
    says which rows and columns are meant, `A.npy[5:9, :3]`. Of an array with more dimensions it says which
    slice, `A.npy[3]`; one with a single dimension is a column, or a row with `lists_are_rows`. `style` says
    how a text is read, of which only a range of `columns` is taken: others may hold words. With `each` it is
    a stack along these axes, of which the first slice is returned; NoStackError where it has too few
    dimensions.

    Raises UsageError, in one sentence with what was expected, for everything that cannot be read as a matrix.
    """
    if not name:
        raise UsageError("an input has an empty name, but a path was expected")
    region = parse_name(name)
    if region is not None:
        if each:
            raise NoStackError(f"{name} is no stack: numbers that are made by rule have two dimensions")
        fields = {field: getattr(region, field) for field in region.__struct_fields__}
        return _ranges_of(Source(**fields, format="generated"), split_input(name)[2])
    require_utf8(name)
    refuse_url(name)
    base, member, part = split_input(name)
    path = os.path.abspath(base)
    module = _module_of_file(base)
    kind = extension(base)
    if member:
        require_member(module, name, base, member)
    with guarded(f"{name} is not a readable {kind} file"):
        facts, more = module.FORMAT, dict[str, object]()
        if facts.styled:
            more["style"] = style
            if part is not None:
                rows, _, across = part.partition(",")
                most = rows_needed(rows)
                if ":" in across and "," not in across:
                    more["columns"], part = Wanted(across.strip(), f"[{part}]"), rows
            if columns != ":" and "columns" not in more:
                more["columns"], columns = Wanted(columns, f"--columns {columns}"), ":"
            if most is not None:  # only counting its lines tells how many there are
                more["most"] = most
        if planes != (1,) and facts.picture and part is None:
            more["planes"] = planes
        if each and not facts.sliced:
            raise NoStackError(
                f"--each makes no sense: {name} is no stack, as a {kind} file has two dimensions only",
                "omit --each",
            )
        if facts.sliced and (part is not None or each):
            more["selection"] = Selection(part, each)
        found: Source = module.inspect(path, name, member, **more)
    found = _ranges_of(found, part)
    if facts.styled and columns != ":":
        found = cut(found, ":", columns, [f"--columns {columns}"], name)
    if lists_are_rows and found.part is not None and found.part.is_list:
        return found.turned
    return found


def cut(source: Source, rows: str, columns: str, said: Sequence[str], name: str) -> Source:
    """The part of `source` with the `rows` and `columns` that are `said` so; UsageError where it has none."""
    high, fewer = taken(rows, source.rows, "row", said[0], name)
    wide, narrower = taken(columns, source.columns, "column", said[-1], name)
    part = source.cut(high, wide)
    note = f"takes rows {high.start}:{high.stop} and columns {wide.start}:{wide.stop}"
    return msgspec.structs.replace(
        part,
        notes=source.notes if part is source else (*source.notes, note),
        names=source.names[wide],
        warnings=(*source.warnings, *filter(None, (fewer, narrower))),
    )


def _ranges_of(source: Source, brackets: str | None) -> Source:
    """The part of `source` that ranges in `brackets` mean; UsageError for numbers where there is no array."""
    if brackets is None:
        return source
    part = source.part or part_of((source.rows, source.columns), source.name, Selection(brackets))
    if source.part is None and part.index != (None, None):
        raise UsageError(f"{source.name} names a slice by its number, but a matrix has rows FROM:TO")
    rows, columns = (*part.ranges, ":")[:2]
    said = f"[{brackets}]"
    return cut(source, rows, columns, [said], source.name.removesuffix(said))


def _module_of_file(base: str) -> ModuleType:
    """The module of a file's format; UsageError for what is missing or a folder, then for its extension."""
    if ending_of(base) not in FORMATS and ".zarr/" not in base:
        open_regular(os.path.abspath(base), base)[0].close()
    try:
        return format_module(base)
    except UsageError as error:
        error.advice = error.advice or "--from FORMAT, such as --from csv, for a file of any name"
        raise


def require_text(name: str, style: Style) -> None:
    """Raises UsageError where flags say how `name` is read, and it is not a text that has a style."""
    if style != PLAIN and (parse_name(name) is not None or not format_of(name).styled):
        flags = {
            "--header-rows": style.header_rows is not None,
            "--separator": style.separator,
            "--decimal": style.decimal,
            "--missing": style.missing,
            "--index": style.index,
        }
        flag = next(flag for flag, given in flags.items() if given)
        raise UsageError(f"{flag} makes no sense: {name} is no .csv, .tsv or .txt file")


def require_member(module: ModuleType, name: str, base: str, member: str) -> None:
    """Raises UsageError where files of this format have no members at all."""
    if not module.FORMAT.member:
        raise UsageError(
            f"{name} names {member!r} in {base}, but a {extension(base)} file holds one matrix only"
        )


class Content(msgspec.Struct, frozen=True):
    """An array of a file: `dtype` says what it holds, numbers or not; `layout`, how it is stored."""

    member: str
    shape: tuple[int, ...]
    dtype: str
    layout: str
    matrix: bool


def contents(name: str, style: Style = PLAIN) -> list[Content]:
    """List all arrays of the file `name`; none where the format holds one only, or `name` says which one.

    `style` says how a text is read.
    """
    if parse_name(name) is not None:
        return []
    base, member, part = split_input(name)
    module = _module_of_file(base)
    if member or part is not None or not hasattr(module, "contents"):
        return []
    path = os.path.abspath(base)
    if not module.FORMAT.folder:
        open_regular(path, name)[0].close()
    with guarded(f"{name} is not a readable {ending_of(base)} file"):
        found: list[Content] = module.contents(
            path, name, **({"style": style} if module.FORMAT.styled else {})
        )
    return found


def content(
    member: str, shape: tuple[int, ...], dtype: numpy.dtype[Any], layout: str, kind: str = ""
) -> Content:
    """The array `member`; `kind` is what it holds where its dtype does not tell, such as strings."""
    try:
        return Content(
            member, shape, kind or number_type(dtype, member), layout, not kind and len(shape) == 2
        )
    except UsageError:
        return Content(member, shape, _what(dtype), layout, matrix=False)


def _what(dtype: numpy.dtype[Any]) -> str:
    if dtype.fields is not None:
        return "records"
    return {"S": "strings", "U": "strings", "V": "raw bytes", "O": "objects"}.get(dtype.kind, str(dtype))
