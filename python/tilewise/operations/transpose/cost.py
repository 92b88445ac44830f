"""The cost of a transposition: its memory, and numbers that are read, turned, sent and written, each once.

gather    all that others have read goes to rank 0, which writes
swap      block (i, j) of the input goes to the ranks that write its transpose: on a square grid to one
reread    each rank reads what it writes, in short rows
staged    tile after tile: read in, turned, written out, on as many threads as there are
"""

from __future__ import annotations

import math

import msgspec

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import Format
from tilewise.files.target import Target
from tilewise.launch.constants import constants
from tilewise.launch.job import Variant
from tilewise.planning import grid, need
from tilewise.planning.cost import (
    DEALT,
    Cost,
    Longest,
    Part,
    Traffic,
    Use,
    reading,
    touching,
    verifying,
    writing,
)
from tilewise.planning.grid import cuts, part
from tilewise.planning.need import Files
from tilewise.planning.plan import Plan

LINE = 64
TILE = 384 << 20  # bytes of one of a rank's three tiles
BAND = 32 << 20
LEAST_STAGE = 1 << 20
PAGE = 4096
PROOF = 16 << 20  # bytes that a proof reads into; its blocks are smaller than rows may be
WEIGHT = 8  # bytes for each number of a row, beside a fingerprint


class TransposeSizes(msgspec.Struct, frozen=True):
    """The worker's: of strips of mapped pages, and of tiles past the page cache."""

    mapped_strip_bytes: int  # that a thread turns and writes, and at least a cache line of columns
    bounce_bytes: int  # of the buffer of a request, without a page on either side
    requests_in_flight: int  # of a node, two a rank at least, and a buffer for each both ways


class TransposeFiles(Files, frozen=True, kw_only=True):
    """Both files, as far as the way of `staged` depends on them, too."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.columns, self.source.rows

    @property
    def turned(self) -> bool:
        """True if the files store their numbers in different sequences."""
        return self.source.order == self.order

    @property
    def stored(self) -> tuple[int, int]:
        """Rows and columns of the input as its file stores it."""
        rows, columns = self.source.rows, self.source.columns
        return (columns, rows) if self.source.order == "F" else (rows, columns)

    @property
    def plain(self) -> bool:
        """True if numbers are turned from one binary file into another."""
        return self.turned and self.source.in_one_piece and self.kind.one_array

    @property
    def swapped(self) -> bool:
        """True if the files have different byte orders."""
        return self.source.byte_order != self.kind.byte_order_of(self.source.dtype)

    @property
    def in_strips(self) -> bool:
        """True if `staged` can turn the input where it is mapped."""
        return self.plain and not self.swapped


def in_tiles(files: TransposeFiles, variant: Variant) -> bool:
    """True if `staged` takes tiles of plain files through memory."""
    return files.plain and {variant.read, variant.write} <= {"positioned", "uncached"}


def staged(
    files: TransposeFiles, variant: Variant, room: int, on_node: int, verify: str, given: int | None = None
) -> tuple[int, need.Need]:
    """Bytes of what `staged` holds at a time on each rank, and what all of that needs.

    `room` is what a rank may take; tiles may be `given`. A band of a text holds whole rows, whatever their
    length.
    """
    room -= need.FIXED
    item = ITEMSIZE[files.source.dtype]
    size = max(files.source.bytes, LEAST_STAGE)
    if files.in_strips and (variant.read, variant.write) == ("mapped", "positioned"):
        stage, buffers = LEAST_STAGE, strips(files, variant.threads)
    elif in_tiles(files, variant):
        past_cache = "uncached" in (variant.read, variant.write)
        sizes = constants("transpose", TransposeSizes)
        requests = 2 * max(2, sizes.requests_in_flight // variant.ranks) if past_cache else 0
        bounces = requests * (sizes.bounce_bytes + 2 * PAGE)
        stage = given or max(LEAST_STAGE, min(TILE, (room - bounces) // 3 - 4 * PAGE, size))
        tiles = 3 if stage < size else 2  # of a matrix that is one tile, no other is read meanwhile
        buffers = tiles * (stage + 4 * PAGE) + bounces
    else:  # band by band, as conversions go
        beside = need.staging(variant) + files.lines(variant)
        row = files.written[1] * item if files.line else 0
        share = -(-size // variant.ranks)
        stage = max(LEAST_STAGE, row, min(BAND, (room - beside) // 3, 2 * share))
        buffers = 3 * stage + beside
    buffers = max(buffers, _proving(files, variant, verify))
    rank = buffers + need.FIXED
    return stage, need.Need(rank=rank, node=on_node * rank, shared=0, blocks=0, buffers=buffers)


def scattered(files: TransposeFiles, room: int) -> int:
    """Bytes of the result between two tiles that write next to each other, with `room` for what is held."""
    item = ITEMSIZE[files.source.dtype]
    side = math.isqrt(max(LEAST_STAGE, min(TILE, (room - need.FIXED) // 3)) // item)
    return min(files.source.bytes, side * files.written[1] * item)


def strips(files: TransposeFiles, threads: int) -> int:
    """Bytes of the strips that a rank's threads turn and write."""
    rows, columns = files.stored
    strip = constants("transpose", TransposeSizes).mapped_strip_bytes
    return threads * max(strip, rows * min(LINE, columns * ITEMSIZE[files.source.dtype]))


def in_memory(files: TransposeFiles, variant: Variant, on_node: int, verify: str) -> need.Need:
    """Memory of algorithms that hold the matrix in memory, spread over the ranks.

    The grid lies over the input as it is stored, and in `swap` also over the result as that is.
    """
    item, whole = ITEMSIZE[files.source.dtype], files.source.bytes
    block, written = (_block(shape, variant) * item for shape in (files.stored, files.written))
    # Rank 0 of `gather` writes from where it has received, but for a text.
    direct = variant.algorithm == "gather" and not files.line
    stages = need.staging(msgspec.structs.replace(variant, write="positioned") if direct else variant)
    beside = stages + files.lines(variant)
    shared = whole if variant.exchange == "shared" else 0
    if variant.algorithm == "reread":
        rank, everywhere = 2 * block, 2 * whole
    elif variant.algorithm == "swap":  # as read, as sent, as received, as written
        copies = 1 if shared else 2
        rank, everywhere = 2 * block + copies * written, (2 + copies) * whole
    else:
        received = 0 if shared else whole
        collected = received + (whole if variant.root_write == "whole" else block)
        rank, everywhere = 2 * block + collected, 2 * whole + collected
    proving = _proving(files, variant, verify)
    buffers = max(rank + beside, proving)
    held = max(everywhere + variant.ranks * beside, variant.ranks * proving)
    return need.Need(
        rank=buffers + need.FIXED,
        node=-(-(held + variant.ranks * need.FIXED) * on_node // variant.ranks),
        shared=shared,
        blocks=block,
        buffers=buffers - block,
    )


def _block(shape: tuple[int, int], variant: Variant) -> int:
    """Numbers of the largest block when the variant's grid lies over `shape`."""
    rows, columns = (
        grid.part(extent, parts, variant.remainder) for extent, parts in zip(shape, variant.grid, strict=True)
    )
    return rows * columns


def _proving(files: TransposeFiles, variant: Variant, verify: str) -> int:
    """Bytes on each rank when both files are read again.

    Lines of a text are read whole; each stands beside its numbers and their weights.
    """
    if verify in ("auto", "off"):
        return 0
    item = ITEMSIZE[files.source.dtype]
    longest = max(need.longest_line(files.source), files.line)
    return PROOF + files.read_again() + longest * (item + max(item, WEIGHT))


def cost_of(plan: Plan, target: Target | None) -> Cost:
    """The cost of the transposition that `plan` is of."""
    job, variant, source = plan.job, plan.job.variant, plan.job.inputs[0]
    use = Use(variant, plan.spread)
    files = TransposeFiles(source=source, kind=target.format if target else Format(), order=plan.order)
    item = ITEMSIZE[source.dtype]
    rows = part(files.stored[0], variant.grid[0], variant.remainder)
    streams = variant.algorithm == "staged"
    whole = variant.grid[1] == 1 or streams
    inputs = reading(source, variant.read, use, rows=rows, whole_rows=whole, fresh=not streams)
    output = writing(
        plan,
        target,
        use,
        rows=part(files.written[0], variant.grid[0], variant.remainder),
        whole_rows=whole or variant.root_write == "whole",
    )
    sent = traffic(files, variant)
    turning: list[Part] = [use.shared_out("turn", 2.0 * source.bytes)] if files.turned else []
    if streams and variant.read == "mapped" and variant.write != "mapped":
        # A tile is turned out of mapped pages into a buffer that stays in a cache, and written from there.
        inputs, turning, output = [], [], [Longest((*turning, *touching(source, use))), *output]
    elif streams and variant.read in DEALT:
        inputs.append(use.by_ranks("copy", 2.0 * source.bytes))
    elif not streams:
        turning += use.new_pages(source.bytes)
    exchange = use.sent(sent.most * item, sent.most_messages) if sent.messages else []
    return Cost(
        phases={
            "input": inputs,
            "compute": turning,
            "exchange": exchange,
            "output": output,
            "verify": verifying([source], source.bytes, target, use) if job.verify == "fast" else [],
        },
        ranks=use.ranks_and_nodes,
        messages=sent.messages,
        exchanged=sent.numbers * item,
        flops=0.0,
    )


def traffic(files: TransposeFiles, variant: Variant) -> Traffic:
    """Traffic of the pieces of blocks as they were read that other ranks write, each one message."""
    if variant.algorithm not in ("gather", "swap") or variant.ranks == 1 or variant.exchange == "shared":
        return Traffic()
    (down, across), (p, q) = files.stored, variant.grid
    whole = down * across
    rows, columns = cuts(down, p, variant.remainder), cuts(across, q, variant.remainder)
    if variant.algorithm == "gather":
        first = (rows[0][1] - rows[0][0]) * (columns[0][1] - columns[0][0]) if rows and columns else 0
        others = max(0, len(rows) * len(columns) - 1)
        return Traffic(others, whole - first, others, whole - first)
    # Of the result, as its file stores it, rank (i, j) writes part i of the rows and part j of the columns.
    wide, high = (across, down) if files.turned else (down, across)
    result_rows = cuts(wide, p, variant.remainder)
    result_columns = cuts(high, q, variant.remainder)
    along, beside = (columns, rows) if files.turned else (rows, columns)
    met_rows = _meetings(result_rows, along)
    met_columns = _meetings(result_columns, beside)
    own = own_messages = 0
    for i in range(p):
        for j in range(q):
            read = (j, i) if files.turned else (i, j)
            kept = _common(result_rows, i, along, read[0]) * _common(result_columns, j, beside, read[1])
            own += kept
            own_messages += kept > 0
    messages = sum(met_rows) * sum(met_columns) - own_messages
    most = part(wide, p, variant.remainder) * part(high, q, variant.remainder)
    return Traffic(messages, whole - own, max(met_rows, default=0) * max(met_columns, default=0), most)


def _meetings(ours: list[tuple[int, int]], theirs: list[tuple[int, int]]) -> list[int]:
    """With how many parts of the other cut each part has numbers in common."""
    return [sum(min(e, end) > max(b, begin) for begin, end in theirs) for b, e in ours]


def _common(ours: list[tuple[int, int]], i: int, theirs: list[tuple[int, int]], j: int) -> int:
    if i >= len(ours) or j >= len(theirs):
        return 0
    return max(0, min(ours[i][1], theirs[j][1]) - max(ours[i][0], theirs[j][0]))
