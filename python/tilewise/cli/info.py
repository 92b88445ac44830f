"""`tilewise info A`: what a matrix file is, without reading its numbers unless `--stats` asks for them."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from tilewise import files
from tilewise.cli.parse import SHOW, WHAT, parse
from tilewise.files.region import Region
from tilewise.launch.join import Join
from tilewise.machine import storage
from tilewise.units import bytes_text, shape_text


def request(
    a: Annotated[str, Parameter(name="A", group=WHAT, help="A matrix: a path or a generator's name.")],
    /,
    *,
    stats: Annotated[
        bool, Parameter(name="--stats", group=SHOW, help="Read it all: min, max, mean, non-finite.")
    ] = False,
    json: Annotated[
        str | None,
        Parameter(
            name="--json",
            group=SHOW,
            allow_leading_hyphen=True,
            help="FILE for the same as JSON; - for standard output.",
        ),
    ] = None,
) -> tuple[Region, bool, str | None]:
    """Say what a matrix file is."""
    from tilewise.cli import side_files

    region = files.inspect(a)
    side_files.check("--json", json, [region.path])
    return region, stats, json


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    asked = parse("info", request, words)
    if asked is None:
        return 0
    region, stats, json = asked
    facts = facts_of(region, stats)
    if json is not None:
        _write(facts, json)
    if json != "-":
        print(_text(facts))
    return 0


def facts_of(region: Region, stats: bool) -> dict[str, Any]:
    """What is known of `region`, as `--json` shows it."""
    facts: dict[str, Any] = {
        "path": region.path or region.name,
        "format": files.format_name(region.name),
        "shape": [region.rows, region.columns],
        "dtype": region.dtype,
        "byte_order": region.byte_order,
        "order": region.order,
        "offset": region.offset,
        "bytes": region.bytes,
        "file_bytes": None if region.generator else region.file_bytes,
        "contiguous": True,
        "generator": region.generator or None,
    }
    if region.path:
        facts["file_system"] = storage.file_system(region.path)
        facts["cache"] = storage.cache_state(region.path)
    if stats:
        from tilewise.files.statistics import statistics

        facts["statistics"] = msgspec.to_builtins(statistics(region))
    return facts


def _text(facts: dict[str, Any]) -> str:
    rows = [
        ("path", facts["path"]),
        ("format", facts["format"]),
        ("shape", f"{shape_text(*facts['shape'])} (rows × columns)"),
        ("numbers", f"{facts['dtype']}, {facts['byte_order']} endian"),
        ("size", bytes_text(facts["bytes"])),
    ]
    if facts["generator"] is None:
        order = "C: row by row" if facts["order"] == "C" else "F: column by column"
        rows.append(("order", f"{order}, contiguous, from byte {facts['offset']}"))
        rows.append(("lies on", f"{facts['file_system']}, page cache: {facts['cache']}"))
    for key, value in facts.get("statistics", {}).items():
        rows.append((key.replace("_", "-"), "none" if value is None else _number(value)))
    return "\n".join(f"{label:<11}{text}" for label, text in rows)


def _number(value: Any) -> str:
    return (
        f"{complex(*value):g}"
        if isinstance(value, list)
        else f"{value:.10g}"
        if isinstance(value, float)
        else str(value)
    )


def _write(facts: dict[str, Any], path: str) -> None:
    text = msgspec.json.format(msgspec.json.encode(facts), indent=2).decode() + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    from tilewise.errors import RunError

    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}") from None
