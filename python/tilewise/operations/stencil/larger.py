"""Sweeps over a field that does not fit in memory: when they go from file to file, and what that takes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tilewise.base.units import listing, plural, shape_text
from tilewise.files.formats import format_of
from tilewise.launch.job import Variant
from tilewise.machine.facts import Facts
from tilewise.operations.stencil.cut import Cut, pass_sweeps
from tilewise.operations.stencil.need import Files, stencil_need
from tilewise.operations.stencil.options import Stencil
from tilewise.operations.stencil.tiles import Field, Tiles, cheapest, smallest
from tilewise.operations.stencil.weights import parse_weights
from tilewise.planning.need import SHARE, with_unpacking
from tilewise.planning.plan import Plan


def what_fits(options: Stencil, refused: Plan) -> str:
    """The least memory to be advised for sweeps from file to file; empty where they cannot be done so."""
    job = refused.job
    source, stencil = job.inputs[0], job.stencil
    assert stencil is not None
    kind = format_of(options.output)
    if in_the_way := _in_the_way(options, job.verify):
        return in_the_way
    what = Cut(
        rows=source.rows // stencil.planes,
        columns=source.columns,
        radius=stencil.radius,
        by_rows=source.order == "C",
        periodic=stencil.boundary == "periodic",
    )
    least = smallest(_field(what, options), options.deep, kind.text)
    variant = _in_tiles(job.variant, what, least)
    need = stencil_need(
        what,
        job.dtype,
        variant,
        job.verify,
        stencil.steps,
        Files(source=source, kind=kind, order=refused.order),
        refused.spread.on_node,
        planes=stencil.planes,
        at_once=at_once(options, job.dtype),
    )
    need = with_unpacking(need, [source], variant, refused.spread.on_node)
    if need.node > refused.facts.memory_available:
        return ""
    return f"--memory {-(-need.node >> 20)}MiB, with which the field is swept part by part"


def at_once(options: Stencil, dtype: str) -> int:
    """Sweeps that the kernel does together with a part of the field."""
    return 1 if options.kernel == "plain" else pass_sweeps(parse_weights(options.weights), dtype)


def _in_the_way(options: Stencil, verify: str) -> str:
    """What must not be asked for, so that a field larger than memory can be swept; empty where nothing is."""
    given = {
        "--until-change": options.until_change,
        "--verify serial": verify == "serial",
        "--repeat and --warmup": options.again,
        "--each": options.each,
        "--decomposition": options.decomposition,
        "--grid": options.grid,
        "--exchange": options.exchange,
        "--halo": options.halo,
        "--io mapped": "mapped" in (options.io.read, options.io.write),
    }
    flags = [flag for flag, value in given.items() if value]
    return f"omit {listing(flags, 'and')}: a field larger than memory is swept without" if flags else ""


def _field(what: Cut, options: Stencil) -> Field:
    rows, columns = (what.rows, what.columns) if what.by_rows else (what.columns, what.rows)
    return Field(rows, columns, what.radius, options.steps, options.stretch)


def _in_tiles(variant: Variant, what: Cut, tiles: Tiles) -> Variant:
    """`variant` as it sweeps part by part: ranks share the stored rows, and exchange nothing."""
    rows = what.by_rows
    return msgspec.structs.replace(
        variant,
        exchange="none",
        between_nodes="",
        halo="packed",
        grid=(variant.ranks, 1) if rows else (1, variant.ranks),
        decomposition="rows" if rows else "columns",
        depth=tiles.depth,
        tile=(tiles.rows, tiles.columns) if rows else (tiles.columns, tiles.rows),
    )


def larger_than_memory(
    what: Cut,
    options: Stencil,
    variant: Variant,
    verify: str,
    facts: Facts,
    whole_rows: bool,
    over: Callable[[Variant, int], int],
    why: list[str],
) -> tuple[Variant, int] | None:
    """The variant and its passes where the field does not fit, but tiles of it do; None where all of it does.

    `over`: bytes that a variant needs beyond a limit. `whole_rows`: the output takes no parts of them. The
    page cache does not count as memory that there is.
    """
    limit = options.memory
    if limit is None and facts.memory_known:
        limit = int(facts.memory_available * SHARE)
    if limit is None or _in_the_way(options, verify) or what.rows * what.columns == 0:
        return None
    most = limit
    if over(variant, most) <= 0:
        return None
    field = _field(what, options)
    tiles = cheapest(
        field,
        options.deep,
        variant.ranks,
        whole_rows,
        lambda tiles: over(_in_tiles(variant, what, tiles), most),
    )
    if tiles is None:
        return None
    passes = field.passes(tiles.depth)
    chosen = _in_tiles(variant, what, tiles)
    why.append(
        f"{shape_text(*chosen.tile)} of the field are in memory at a time, for "
        f"{plural(tiles.depth, 'sweep')}: it is read and written {_times(passes)}"
    )
    return chosen, passes


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
