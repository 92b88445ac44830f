"""`tilewise info A`: what a file is and holds, without reading its numbers unless `--stats` asks for them."""

from __future__ import annotations

import math
import os
from typing import Annotated, Any

import msgspec

from tilewise import __version__, files
from tilewise.base.declare import JSON, SHOW, Flag
from tilewise.base.errors import UsageError
from tilewise.base.units import bytes_text, listing, plural, shape_text, share_text
from tilewise.cli.parse import parse
from tilewise.cli.streams import warn, write_json
from tilewise.files import Content, contents
from tilewise.files.checks import NoChoiceError
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import FROM, MATRIX, extension, format_of, read_as, split_input
from tilewise.files.region import Source
from tilewise.files.slices import ManyDimensionsError
from tilewise.files.style import PLAIN, Style, TextFlags
from tilewise.lab.report.table import Cell, Table, text_columns
from tilewise.lab.report.terminal import Screen, show
from tilewise.launch.join import Join
from tilewise.machine import storage

_SHOWN = 100  # arrays of a file on the terminal


class InfoFlags(TextFlags, frozen=True, kw_only=True):
    """Describe a matrix file, or list the arrays of a file that has several.

    Examples:
        tilewise info A.npy
            Show shape, type and order from the header.
        tilewise info A.npy --stats
            Read all numbers, and show minimum, maximum and mean, too.
        tilewise info results.h5
            List all datasets of a file.
    """

    a: Annotated[str, Flag("A matrix file, or random:ROWSxCOLUMNS:TYPE.", value=MATRIX, place=True)]
    from_: Annotated[str | None, FROM] = None
    stats: Annotated[
        bool, Flag("Read all elements; show minimum, maximum, mean and the non-finite count.", SHOW)
    ] = False
    json: Annotated[
        str | None,
        Flag("File for the description as JSON; - for standard output.", SHOW, value=JSON, stream=True),
    ] = None


def main(words: list[str], joined: Join | None) -> int:
    """Run the command; return its exit code."""
    flags = parse("info", InfoFlags, words)
    from tilewise.engine import journal, side_files

    name = read_as({"a": flags.a}, flags.from_)["a"]
    side_files.check("--json", flags.json, [os.path.abspath(split_input(name)[0])], force=False)
    left = journal.facts_of(name)
    facts, inside = (left, []) if left else facts_of(name, flags.stats, flags.read_style)
    if flags.json is not None:
        write_json(flags.json, facts)
        if flags.json == "-":
            warn(f"{name}: {warning}" for warning in facts.get("warnings", ()))
    if flags.json != "-":
        screen = Screen()
        screen.pairs(_rows(facts))
        if inside:
            screen.line()
            screen.table(_table(facts["path"], inside))
        show(screen)
    return 0


def facts_of(name: str, stats: bool, style: Style = PLAIN) -> tuple[dict[str, Any], list[Content]]:
    """Facts of the matrix `name`, as `--json` shows them, and all arrays of its file if it has several.

    Where none of these, or more than one, is a matrix, only what is true of the whole file is known.
    """
    files.require_text(name, style)
    inside = contents(name, style)
    if len(inside) <= 1:
        return _inspected(name, stats, style), []
    try:
        facts = _facts(files.inspect(name, style=style), stats)
    except UsageError as error:
        one = sum(each.matrix for each in inside) == 1
        if stats or (one and not isinstance(error, NoChoiceError)):
            raise
        facts = _whole(name) | ({"notes": [error.message]} if format_of(name).table else {})
    facts["members"] = msgspec.to_builtins(inside)
    return facts, inside


def _inspected(name: str, stats: bool, style: Style) -> dict[str, Any]:
    """Facts of a matrix, or of an array with more dimensions as far as these need no numbers."""
    try:
        return _facts(files.inspect(name, style=style), stats)
    except ManyDimensionsError as error:
        if stats:
            raise
        axes = tuple(range(len(error.shape) - 2))
        facts = _facts(files.inspect(name, each=axes), stats)
        every = ",".join(map(str, axes))
        facts["shape"] = list(error.shape)
        facts["bytes"] *= math.prod(error.shape[:-2])
        facts["notes"].insert(
            0, f"a job takes a slice, such as {error.first_slice}, or all with --each {every}"
        )
        return facts


def _whole(name: str) -> dict[str, Any]:
    """Facts of a file as a whole."""
    path = os.path.abspath(split_input(name)[0])
    return {
        "tilewise": __version__,
        "path": path,
        "format": extension(path)[1:],
        "member": None,
        "file_bytes": None if os.path.isdir(path) else os.path.getsize(path),
        "notes": [],
        **_place(path),
    }


def _facts(source: Source, stats: bool) -> dict[str, Any]:
    in_place = not source.encoded and not source.tiles and not source.narrow and source.encoding == "binary"
    facts: dict[str, Any] = {
        "tilewise": __version__,
        "path": source.path or source.name,
        "format": source.format,
        "member": source.member or None,
        "shape": [source.rows, source.columns],
        "dtype": source.dtype,
        "byte_order": source.byte_order,
        "order": source.order,
        "encoding": "encoded" if source.encoded else source.encoding,
        "separator": source.separator or None,
        "decimal": source.decimal if source.encoding == "text" else None,
        "offset": None if source.packed or source.tiles else source.offset,
        "bytes": source.bytes,
        "file_bytes": source.file_bytes if source.file_bytes >= 0 and not source.tiles else None,
        "contiguous": in_place,
        "tiles": len(source.tiles) or None,
        "chunks": len(source.chunks.offsets) if source.chunks else None,
        "generator": source.generator or None,
        "notes": list(source.notes),
        "warnings": list(source.warnings),
    }
    if source.path:
        # A folder says nothing about the files in it.
        facts |= _place(next((tile.path for tile in source.tiles if tile.path), source.path))
    if stats:
        from tilewise.files.reading import binary, statistics

        if source.packed or source.whole is not None:
            with binary(source, warn=facts["warnings"].append) as region:
                counted = statistics(region, fills=source.fills)
        else:
            counted = statistics(source, facts["warnings"].append, source.fills)
        facts["statistics"] = msgspec.to_builtins(counted)
    return facts


def _place(path: str) -> dict[str, Any]:
    return {"file_system": storage.file_system(path), "cache": storage.cache_state(path)}


def _table(path: str, inside: list[Content]) -> Table:
    """All arrays of a file, with the name of one for a job."""
    table = Table("members", "what it holds", text_columns("name", "shape", "type", "stored"))
    for each in inside[:_SHOWN]:
        shape = "×".join(map(str, each.shape)) or "–"
        tone = "" if each.matrix else "faint"
        table.add(*(Cell(text, tone=tone) for text in (each.member, shape, each.dtype, each.layout)))
    if len(inside) > _SHOWN:
        table.notes.append(f"and {len(inside) - _SHOWN} more, which --json lists")
    if format_of(path).table and (some := _numbers_in(inside)[:2]):
        table.notes.append(f"a job takes columns by their names, such as {path}:{','.join(some)}")
    if matrices := [each for each in inside if each.matrix]:
        table.notes.append(f"a job takes a matrix by its name, such as {path}:{matrices[-1].member}")
    return table


def _numbers_in(inside: list[Content]) -> list[str]:
    names = [each.member for each in inside if each.dtype in ITEMSIZE]
    return [name for name in names if name and "," not in name]


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    if facts["format"] == "part":
        return _rows_of_part(facts)
    rows = [("path", facts["path"]), ("format", facts["format"])]
    if "shape" not in facts:
        lies_on = f"{facts['file_system']}, page cache: {facts['cache']}"
        if facts["file_bytes"] is not None:
            rows.append(("size", bytes_text(facts["file_bytes"])))
        rows.append(("lies on", lies_on))
        return rows + [("note", note) for note in facts["notes"]]
    if facts["member"]:
        rows.append(("member", facts["member"]))
    meaning = " (rows × columns)" if len(facts["shape"]) == 2 else ""
    rows += [
        ("shape", f"{shape_text(*facts['shape'])}{meaning}"),
        ("numbers", _numbers(facts)),
        ("size", bytes_text(facts["bytes"])),
    ]
    if facts["generator"] is None:
        rows.append(("order", _order(facts)))
        rows.append(("lies on", f"{facts['file_system']}, page cache: {facts['cache']}"))
    rows += [("note", note) for note in facts["notes"]]
    rows += [("warning", warning) for warning in facts["warnings"]]
    for key, value in facts.get("statistics", {}).items():
        rows.append((key.replace("_", "-"), "none" if value is None else _number(value)))
    return rows


def _rows_of_part(facts: dict[str, Any]) -> list[tuple[str, str]]:
    state = "a run is writing to it now" if facts["running"] else "no run is writing to it"
    goes_on = facts["goes_on"] or "the call that began it, with resume=True"
    if facts["owner"] is not None:
        state, goes_on = f"it belongs to {facts['owner']}", "nothing but a command of its owner"
    done = f"in {plural(facts['pieces'], 'piece')}" if facts["pieces"] is not None else ""
    if facts["sweeps"] is not None:
        done = f"up to sweep {facts['sweeps']}"
    return [
        ("path", facts["path"]),
        ("what", f"a part of {facts['of']}, by {facts['command']} of {listing(facts['inputs'])}"),
        *([("shape", f"{shape_text(*facts['shape'])} (rows × columns)")] if facts["shape"] else []),
        ("numbers", facts["dtype"]),
        ("began", f"{facts['began']}, {plural(facts['starts'], 'start')}"),
        ("done", f"{share_text(facts['done'])}, {done}" if facts["done"] is not None else done),
        ("state", state),
        ("resume with", goes_on),
    ]


def _numbers(facts: dict[str, Any]) -> str:
    if facts["encoding"] == "text":
        between = {" ": "blanks", "\t": "tabs"}.get(facts["separator"], repr(facts["separator"]))
        comma = ", with decimal commas" if facts["decimal"] == "," else ""
        return f"{facts['dtype']}, as text between {between}{comma}"
    if facts["encoding"] == "encoded":
        return f"{facts['dtype']}, decoded into a temporary file before they are read"
    return f"{facts['dtype']}, {facts['byte_order']} endian"


def _order(facts: dict[str, Any]) -> str:
    order = "C: row by row" if facts["order"] == "C" else "F: column by column"
    if facts["tiles"] is not None:
        return f"{order}, in {plural(facts['tiles'], 'tile')}"
    if facts["encoding"] == "encoded":
        return f"{order}, after decoding"
    if facts["chunks"] is not None:
        return f"{order}, in {plural(facts['chunks'], 'chunk')} that all ranks unpack in parallel"
    contiguous = "contiguous, " if facts["contiguous"] else ""
    return f"{order}, {contiguous}from byte {facts['offset']}"


def _number(value: Any) -> str:
    return (
        f"{complex(*value):g}"
        if isinstance(value, list)
        else f"{value:.10g}"
        if isinstance(value, float)
        else str(value)
    )
