"""The plan of a transposition: which numbers move at all, the algorithm, the ways of reading and writing.

The stated rule. Where both files store their numbers in the same sequence (one column by column, the other
its transpose row by row) nothing is turned and bytes are copied. Else `staged`: on one node out of mapped
pages, in whole rows of the result, while both files fit half of the memory that is available and the cap; in
tiles past the page cache beyond that. A text and packed chunks are read once, so they take `reread`
where their numbers fit in memory. An exchange or `--root-write` that is given leads to the algorithm that
has it. Design: docs/design/transposition.md.
"""

from __future__ import annotations

import os

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import bytes_text
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import Format
from tilewise.files.target import check_holds
from tilewise.launch.job import Variant
from tilewise.machine import machines, storage
from tilewise.operations.transpose.cost import (
    BAND,
    PAGE,
    TransposeFiles,
    in_memory,
    in_tiles,
    scattered,
    staged,
    strips,
)
from tilewise.operations.transpose.options import ALGORITHMS, Transpose
from tilewise.planning import grid, io, need, rule
from tilewise.planning.names import Algorithm
from tilewise.planning.plan import Plan, plan_of, variant_of
from tilewise.planning.task import Task

CACHED = 0.5  # of what is available: both files in the page cache, and room for others
TILE_FROM = 1 << 30  # bytes of a matrix that are turned in memory
_WORK = 10  # multiply-adds that one number is worth

Measured = tuple[int, int]  # bytes of an item, threads


def plan_transpose(task: Task[Transpose]) -> Plan:
    """The plan for writing the transpose of the input to the target; UsageError for what cannot be."""
    options, source, target, why = task.options, task.source, task.output, task.why
    check_holds(target, source.dtype)
    kind = target.format
    order = io.order_of(target, options.order)
    files = TransposeFiles(source=source, kind=kind, order=order)
    algorithm = _algorithm(task, files)
    all_cores = algorithm.name != "staged" and (options.algorithm is not None or bool(algorithm.exchanges))
    work = float(source.rows) * source.columns * _WORK
    spread = rule.spread(task, work, all_cores=all_cores)
    ranks = spread.ranks
    if algorithm.name == "staged" and options.grid is not None:
        raise UsageError("--grid makes no sense with staged: ranks take tiles in turn", "--algorithm swap")
    shape = (ranks, 1)
    if algorithm.name != "staged":
        shape, _ = grid.choose("transpose", ranks, options.grid, *files.stored)
    exchange, between = rule.exchange(task, algorithm, source.bytes, spread, "the matrix")
    variant = variant_of(
        options,
        spread,
        io.fitting(task),
        shape,
        algorithm.name,
        exchange=exchange,
        between_nodes=between,
        root_write=(options.root_write or "rows") if algorithm.name == "gather" else "",
    )
    if algorithm.name == "gather":
        variant = _written_by_root(variant, options, kind)
    variant, unmeasured = _tile(task, variant)
    if algorithm.name == "staged":
        if options.again:
            raise UsageError(
                "--repeat and --warmup make no sense with staged: no part of it runs in memory alone",
                "--algorithm swap",
            )
        if files.plain and spread.nodes == 1:
            variant = _touching(task, variant, files)
        room = task.room // spread.on_node - need.unpacking([source], variant)
        given = options.resumed.band_bytes if options.resumed else None
        stage, required = staged(files, variant, room, spread.on_node, options.verify, given)
    else:
        stage = BAND
        required = in_memory(files, variant, spread.on_node, options.verify)
    tiles = algorithm.name == "staged" and in_tiles(files, variant)
    if options.verify == "auto":
        why.append(
            "not verified: reading both files again takes more than 5 % of the time; --verify fast forces it"
        )
    flags = ("ranks", "threads", "algorithm", "io")
    return plan_of(
        task,
        spread,
        variant,
        required,
        compute_type=source.dtype,
        choosable=(*flags, "exchange", "grid") if algorithm.exchanges else flags,
        job={
            "verify": "off" if options.verify == "auto" else options.verify,
            "band_bytes": stage,
            "queue": options.tiles == "queue",
        },
        journaled=tiles and stage < source.bytes,
        shape=(source.columns, source.rows),
        order=order,
        header=options.header,
        measure_tile=unmeasured,
    )


def _tile(task: Task[Transpose], variant: Variant) -> tuple[Variant, Measured | None]:
    """The tile that was measured here, or what is to be measured when the job is done.

    Only where so much is turned in memory by the fast kernel that it is worth the second that it takes.
    """
    source, facts = task.source, task.facts
    if variant.algorithm == "staged" or variant.kernel != "fast" or facts.remote:
        return variant, None
    if source.bytes < TILE_FROM:
        return variant, None
    item, threads = ITEMSIZE[source.dtype], min(variant.ranks * variant.threads, facts.cores)
    tile = machines.stored_tile(item, threads, facts)
    if tile is None:
        return variant, (item, threads)
    task.why.append(f"tiles of {tile.rows}×{tile.columns} numbers: the fastest measured here")
    return msgspec.structs.replace(variant, tile=(tile.rows, tile.columns), streaming=tile.streaming), None


def _algorithm(task: Task[Transpose], files: TransposeFiles) -> Algorithm:
    """The algorithm that was asked for, or that what was asked for leads to."""
    options, source, why = task.options, task.source, task.why
    if options.resumed is not None:
        return ALGORITHMS[options.resumed.variant.algorithm]
    if options.algorithm is not None:
        chosen = ALGORITHMS[options.algorithm]
        options.check_for(chosen)
        if options.exchange is not None and not chosen.exchanges:
            raise UsageError(
                f"--exchange {options.exchange} makes no sense with {chosen.name}: "
                "every rank works on its own",
                "--algorithm swap",
            )
        return chosen
    if options.root_write is not None:
        return ALGORITHMS["gather"]
    if options.exchange is not None:
        why.append("swap: ranks exchange blocks, as --exchange asks")
        return ALGORITHMS["swap"]
    if not files.turned:
        why.append(
            f"no transposition needed: {source.name} stores its numbers in the order that the result wants, "
            "so the bytes are copied"
        )
        return ALGORITHMS["staged"]
    held = 3 * source.bytes + need.FIXED + need.STAGING + need.whole_lines(source)
    if options.again or (source.encoding != "binary" and held <= task.room):
        why.append("reread: the input is read once, and its numbers fit in memory")
        return ALGORITHMS["reread"]
    why.append("staged: memory is bounded, whatever the size")
    return ALGORITHMS["staged"]


def _written_by_root(variant: Variant, options: Transpose, kind: Format) -> Variant:
    """`gather` reads as was asked and writes from rank 0."""
    if not kind.one_array and variant.root_write != "whole":
        variant = msgspec.structs.replace(variant, root_write="whole")  # such files have no rows to write to
    if options.io.write in (None, "root", options.io.read):
        return msgspec.structs.replace(variant, write="per_rank" if kind.folder else "root")
    raise UsageError(
        f"--io {options.io.read}:{options.io.write} makes no sense with gather, whose rank 0 writes: "
        "--root-write says how",
        f"--io {options.io.read}",
    )


def _touching(task: Task[Transpose], variant: Variant, files: TransposeFiles) -> Variant:
    """How `staged` reads and writes plain files, where that was left open."""
    options, source, facts, why = task.options, task.source, task.facts, task.why
    if options.io.read is not None or options.io.write is not None:
        return variant
    if options.resumed is not None:  # its tiles go the same way
        was = options.resumed.variant
        return msgspec.structs.replace(variant, read=was.read, write=was.write)
    folder = os.path.dirname(os.path.realpath(task.output.path))
    here = storage.is_local(source.path) and storage.is_local(folder)
    cached = 2 * source.bytes <= CACHED * facts.memory_available
    # Mapped pages are the page cache's, but a reader of /proc sees them in the rank: a cap is kept for both.
    pages = source.bytes + strips(files, variant.threads) + need.FIXED
    capped = options.memory is not None and pages > options.memory
    if here and cached and not capped and not files.swapped:
        why.append("io mapped in, positioned out: the page cache holds both files")
        return msgspec.structs.replace(variant, read="mapped", write="positioned")
    if cached:
        why.append(
            "io positioned: mapped pages would need another byte order or machine, or more than --memory"
        )
        return variant
    read = "uncached" if storage.takes_direct(source.path) else "positioned"
    # The page cache makes long writes of short ones that share pages, if it holds them so long.
    room = task.room
    gathers = facts.memory_available - room >= 2 * scattered(files, room // variant.ranks)
    whole_pages = source.rows * ITEMSIZE[source.dtype] % PAGE == 0
    past = (whole_pages or not gathers) and storage.takes_direct(folder)
    write = "uncached" if past else "positioned"
    why.append(
        f"io {read} in, {write} out: both files, {bytes_text(2 * source.bytes)}, are too much for "
        "the page cache"
    )
    return msgspec.structs.replace(variant, read=read, write=write)
