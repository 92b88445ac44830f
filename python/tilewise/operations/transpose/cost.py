"""What a transposition costs: numbers that are read, turned, sent and written, each once.

gather    all that others have read goes to rank 0, which writes
swap      block (i, j) of the input goes to the ranks that write its transpose: on a square grid to one
reread    each rank reads what it writes, in short rows
staged    tile after tile: read in, turned, written out, on as many threads as there are
"""

from __future__ import annotations

from typing import NamedTuple

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import Format
from tilewise.files.target import Target
from tilewise.launch.job import Variant
from tilewise.operations.transpose.need import Files
from tilewise.planning.cost import Cost, Longest, Part
from tilewise.planning.file_cost import DEALT, Use, reading, touching, verifying, writing
from tilewise.planning.grid import cuts, part
from tilewise.planning.plan import Plan


class Traffic(NamedTuple):
    """What ranks receive together, and the numbers and messages of the one that receives most."""

    messages: int
    numbers: int
    most: int
    most_messages: int


def cost_of(plan: Plan, target: Target | None) -> Cost:
    """The cost of the transposition that `plan` is of."""
    job, variant, source = plan.job, plan.job.variant, plan.job.inputs[0]
    use = Use(variant, plan.spread)
    files = Files(source=source, kind=target.format if target else Format(), order=plan.order)
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


def traffic(files: Files, variant: Variant) -> Traffic:
    """Of the pieces of blocks as they were read that other ranks write, each one message."""
    if variant.algorithm not in ("gather", "swap") or variant.ranks == 1 or variant.exchange == "shared":
        return Traffic(0, 0, 0, 0)
    (down, across), (p, q) = files.stored, variant.grid
    whole = down * across
    rows, columns = cuts(down, p, variant.remainder), cuts(across, q, variant.remainder)
    if variant.algorithm == "gather":
        first = (rows[0][1] - rows[0][0]) * (columns[0][1] - columns[0][0]) if rows and columns else 0
        others = max(0, len(rows) * len(columns) - 1)
        return Traffic(others, whole - first, whole - first, others)
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
    return Traffic(messages, whole - own, most, max(met_rows, default=0) * max(met_columns, default=0))


def _meetings(ours: list[tuple[int, int]], theirs: list[tuple[int, int]]) -> list[int]:
    """With how many parts of the other cut each part has numbers in common."""
    return [sum(min(e, end) > max(b, begin) for begin, end in theirs) for b, e in ours]


def _common(ours: list[tuple[int, int]], i: int, theirs: list[tuple[int, int]], j: int) -> int:
    if i >= len(ours) or j >= len(theirs):
        return 0
    return max(0, min(ours[i][1], theirs[j][1]) - max(ours[i][0], theirs[j][0]))
