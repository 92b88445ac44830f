"""The cost of a product: memory, operations, panels and blocks that travel, files, and the proof.

Of m×k · k×n on p × q ranks, with c layers of k, every rank receives

    cannon       q − 1 blocks of A and of B, from its neighbours            Cannon, 1969
    summa        (q − 1)/q of its rows of A, (p − 1)/p of its columns of    van de Geijn and Watts, 1997
                 B, in panels that go along rings piece by piece
    replicated   the same of k/c, and then parts of C to add up             Solomonik and Demmel, 2011

A ring of q ranks has the last piece of a panel q − 2 hops later than the first rank, once; whoever owns the
panels next starts from there. What `overlap`s goes on behind the computing, but for that.

Messages and bytes are counted as the worker counts them: those that ranks receive. How long ranks wait for
panels that go around rings while they compute is added up hop by hop (`Rings`):

    step s, owner o:    o ──▶ o+1 ──▶ o+2 ──▶ …     A rank passes a panel on where it looks for messages:
                                                    between slices of its product, or while it waits.

One ring stands for the rows and the columns of the grid, whose panels come to a rank at the same time. Hops
are added up rank by rank and step by step, as max-plus algebra has it: a panel is there once it was sent and
the link took its time; a product begins once its panel is there and the one before it is done.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.launch.constants import constants
from tilewise.launch.job import Variant
from tilewise.machine.terms import Machine, gemm
from tilewise.planning import io
from tilewise.planning.cost import (
    Cost,
    Longest,
    Part,
    Span,
    Take,
    Traffic,
    Use,
    at,
    of_phase,
    reading,
    touching,
    writing,
)
from tilewise.planning.grid import cuts, part, sizes
from tilewise.planning.names import DESCRIBED_ONCE
from tilewise.planning.need import Need, staging
from tilewise.planning.plan import Plan

_LEVEL = 7 / 8  # of the operations that one level of Strassen's product leaves


def cost_of(plan: Plan, target: Target | None) -> Cost:
    """The cost of the product that `plan` is of; `target` is None where nothing is written."""
    job, variant = plan.job, plan.job.variant
    use = Use(variant, plan.spread)
    (m, k), n = job.inputs[0].shape, job.inputs[1].shape[1]
    sizes = constants("multiply", MultiplySizes)
    strassen = variant.kernel == "strassen" or job.tolerance > 0
    width = sizes.wide_panel_width if strassen else sizes.panel_width
    item = ITEMSIZE[job.dtype]
    counted = traffic(m, k, n, item, variant, width)
    exposed, moving = _exchange(plan, use, strassen, width)
    inputs = _input(plan, use)
    phases: dict[str, list[Part]] = {
        "input": inputs,
        "compute": _compute(plan, use, strassen),
        "exchange": exposed,
        "output": writing(plan, target, use, rows=m, whole_rows=variant.grid[1] == 1),
        "verify": _verify(plan, target, use),
    }
    behind: dict[str, list[Part]] = {}
    if variant.exchange == "overlap":
        behind["exchange"] = moving
    else:
        phases["exchange"] = [*exposed, *moving]
    if plan.writes_early:
        behind["output"], phases["output"] = phases["output"], []
    # A device is read while the part before is multiplied; cores do one or the other.
    if job.stage != (0, 0, 0):
        behind["input"] = [part for part in inputs if _waits(part)]
        phases["input"] = [part for part in inputs if not _waits(part)]
    return Cost(
        phases=phases,
        behind=behind,
        peculiar=("verify",),
        ranks=use.ranks_and_nodes,
        messages=None if job.symmetric or job.stage[0] else counted.messages,
        exchanged=None if job.symmetric or job.stage[0] else counted.numbers * item,
        flops=_operations(plan),
    )


def _waits(part: Part) -> bool:
    """True if no core works meanwhile."""
    return all(name.startswith("device/") for name in part.terms())


def _operations(plan: Plan) -> float:
    job = plan.job
    (m, k), n = job.inputs[0].shape, job.inputs[1].shape[1]
    of_c = m * (m + 1) / 2 if job.symmetric else float(m) * n
    return (8.0 if job.dtype.startswith("complex") else 2.0) * of_c * k


def _largest(plan: Plan) -> tuple[int, int, int]:
    """Rows and columns of the largest block of C, and the most of k that a layer has."""
    variant, (left, right) = plan.job.variant, plan.job.inputs
    (m, k), n, (p, q) = left.shape, right.shape[1], variant.grid
    rows, columns, depth = (part(*of, variant.remainder) for of in ((m, p), (n, q), (k, variant.copies)))
    return rows, columns, depth


def _input(plan: Plan, use: Use) -> list[Part]:
    """A is read once for each column of tiles that C has in memory, B once for each row of them."""
    job, variant = plan.job, plan.job.variant
    left, right = job.inputs
    times = [1, 1]
    once = job.stage == (0, 0, 0)
    if not once:
        m, n, _ = job.stage
        times = [-(-right.shape[1] // n), -(-left.shape[0] // m)]
    parts: list[Part] = []
    for region, often, across in zip((left, right), times, variant.grid[::-1], strict=True):
        if _in_place(plan, region):
            continue
        rows = part(region.rows, variant.grid[0], variant.remainder)
        whole = across == 1
        parts += reading(region, variant.read, use, rows=rows, times=often, whole_rows=whole, fresh=once)
    return parts


def _product(plan: Plan, use: Use, strassen: bool, share: float = 1.0) -> Longest:
    """Operations of the rank that has most, or the memory that it goes through; a `share` of both."""
    job, variant = plan.job, plan.job.variant
    (m, k), n, item = job.inputs[0].shape, job.inputs[1].shape[1], ITEMSIZE[job.dtype]
    rows, columns, depth = _largest(plan)
    busiest = _operations(plan) * rows * columns * depth / max(1, m * n * k)
    if strassen:
        smallest = min(rows, columns, depth)
        busiest *= _LEVEL ** max(0, min(2, int(math.log2(max(1, smallest / 1024)))))
    cores = use.on_node * use.threads
    term = "plain" if variant.kernel == "plain" else gemm(job.dtype)
    moved = item * (rows * depth + depth * columns + 2 * rows * columns)
    return Longest(
        (
            Take(term, share * busiest / use.threads, cores),
            Take("copy", share * moved / use.threads, cores),
        )
    )


def _compute(plan: Plan, use: Use, strassen: bool) -> list[Part]:
    """The product, and pages that are new to the rank: of C, and of mapped files."""
    job = plan.job
    m, n, item = job.inputs[0].shape[0], job.inputs[1].shape[1], ITEMSIZE[job.dtype]
    mapped = [each for each in job.inputs if _in_place(plan, each)]
    pages = [part for each in mapped for part in touching(each, use)]
    return [_product(plan, use, strassen), *pages, *use.new_pages(float(m * n * item))]


def _in_place(plan: Plan, region: Region) -> bool:
    """True if the pages of the file are multiplied as they lie."""
    variant = plan.job.variant
    return variant.read == "mapped" and variant.algorithm == "local" and io.in_place(region, plan.job.dtype)


def _exchange(plan: Plan, use: Use, strassen: bool, width: int) -> tuple[list[Part], list[Part]]:
    """Parts that ranks wait for in any case, and parts that may go on while they compute."""
    job, variant = plan.job, plan.job.variant
    k, item = job.inputs[0].shape[1], ITEMSIZE[job.dtype]
    p, q = variant.grid
    rows, columns, depth = _largest(plan)
    exposed: list[Part] = []
    moving: list[Part] = []
    if variant.exchange in ("none", "shared") or variant.ranks == 1:
        pass
    elif variant.algorithm == "cannon":
        block = (rows + columns) * part(k, q, variant.remainder) * item
        moving += use.sent((q - 1) * block, 2 * (q - 1))
    elif variant.exchange in GETTING:
        received = depth * (rows * (q - 1) / q + columns * (p - 1) / p) * item
        exposed += use.sent(received, len(widths(depth, variant, width)) * ((q > 1) + (p > 1)))
    else:
        panels, longer = widths(depth, variant, width), max(p, q)
        begins = itertools.accumulate(panels, initial=0)
        each = max(1, -(-depth // longer))
        travelling = ((rows if q > 1 else 0) + (columns if p > 1 else 0)) * item
        exposed.append(
            Rings(
                ranks=longer,
                widths=tuple(panels),
                owners=tuple(
                    min(longer - 1, begin // each) for begin, _ in zip(begins, panels, strict=False)
                ),
                product=(_product(plan, use, strassen, 1 / max(1, depth)),),
                hop=(Take(use.link, travelling, use.on_node),),
                message=(Take(use.message, 1),),
                overlap=variant.exchange == "overlap",
            )
        )
    if variant.copies > 1:  # a tree for each layer's share
        deep = math.ceil(math.log2(variant.copies))
        exposed += use.sent(deep * rows * columns * item, deep * variant.copies)
        exposed.append(Take("copy", 3 * deep * rows * columns * item, use.on_node))
    return exposed, moving


def _verify(plan: Plan, target: Target | None, use: Use) -> list[Part]:
    """A and C once, B twice, in memory; C once more out of its file; or all of it again, on rank 0."""
    job = plan.job
    left, right = job.inputs
    (m, k), n, item = left.shape, right.shape[1], ITEMSIZE[job.dtype]
    if job.verify == "fast":
        checked = max(8, item)  # bytes of a number: the check computes in float64
        parts: list[Part] = [use.shared_out("copy", (m * k + 2 * k * n + m * n) * checked)]
        if job.read_back:
            parts.append(use.shared_out(at("read", target.path if target else ""), float(m * n * item)))
        return parts
    if job.verify == "serial":
        return [Take("plain", 2.0 * m * n * k), Take("read", (m * k + k * n + m * n) * item)]
    return []


PIECE = 2 << 20  # bytes of a piece of a panel, at least
GETTING = ("one_sided_fence", "one_sided_lock")
_AT_ONCE = ("collective", *GETTING)  # where a panel is one message


def traffic(m: int, k: int, n: int, item: int, variant: Variant, width: int) -> Traffic:
    """Traffic of an m×k · k×n product, whose panels are `width` wide at most."""
    found: list[Traffic] = []
    if variant.algorithm == "cannon" and variant.exchange not in ("none", "shared"):
        found = [_blocks(m, k, n, variant)]
    elif variant.exchange not in ("none", "shared"):
        layers = cuts(k, variant.copies, variant.remainder)
        found = [_panels(m, end - begin, n, item, variant, width) for begin, end in layers]
    if variant.copies > 1:
        found.append(_layers(m, n, item, variant))
    return Traffic(sum(each.messages for each in found), sum(each.numbers for each in found))


def widths(k: int, variant: Variant, width: int) -> list[int]:
    """Widths of the panels of one layer's k: they end where an owner of A or of B does."""
    borders = {end for parts in variant.grid for _, end in cuts(k, parts, variant.remainder)}
    found: list[int] = []
    begin = 0
    for end in sorted(borders):
        while begin < end:
            found.append(min(width, end - begin))
            begin += found[-1]
    return found


def pieces(elements: int, item: int, ranks: int, exchange: str) -> int:
    """Number of pieces of a panel on its way around a ring of so many ranks."""
    if exchange in _AT_ONCE:
        return 1
    return min(max(1, elements * item // PIECE), max(1, ranks - 1))


def _blocks(m: int, k: int, n: int, variant: Variant) -> Traffic:
    """Every block of A and of B visits the q − 1 other ranks of its row or column.

    Messages that were described once are as long as the largest block of the row or column. Of empty blocks
    nobody gets anything, but they are sent.
    """
    q, remainder = variant.grid[0], variant.remainder
    numbers = m * k + k * n
    if variant.exchange in DESCRIBED_ONCE:
        numbers = (m + n) * q * part(k, q, remainder)
    messages = 2 * q * q
    if variant.exchange in GETTING:
        there = [len(cuts(extent, q, remainder)) for extent in (m, k, n)]
        messages = (there[0] + there[2]) * there[1]
    return Traffic((q - 1) * messages, (q - 1) * numbers)


def _panels(m: int, k: int, n: int, item: int, variant: Variant, width: int) -> Traffic:
    """Each panel of A goes to all others of its row, each of B to all others of its column."""
    p, q = variant.grid
    messages = 0
    for each in widths(k, variant, width):
        for extent, parts, others in ((m, p, q), (n, q, p)):
            for size, count in sizes(extent, parts, variant.remainder):
                if size == 0 and variant.exchange in GETTING:
                    continue
                messages += count * (others - 1) * pieces(size * each, item, others, variant.exchange)
    return Traffic(messages, (q - 1) * m * k + (p - 1) * k * n)


def _layers(m: int, n: int, item: int, variant: Variant) -> Traffic:
    """Each layer gets its share of the rows of C from all others, in pieces."""
    piece = constants("multiply", MultiplySizes).layer_piece_bytes // item
    p, q = variant.grid
    messages = 0
    for rows, of_rows in sizes(m, p, variant.remainder):
        for columns, of_columns in sizes(n, q, variant.remainder):
            for share, layers in sizes(rows, variant.copies, "spread"):
                times = of_rows * of_columns * layers * (variant.copies - 1)
                messages += times * -(-share * columns // piece)
    return Traffic(messages, (variant.copies - 1) * m * n)


SLICE = 384  # of k, after which a rank that computes looks for messages


class Rings(NamedTuple):
    """Panels of so many `widths` of k, whose owners change where `owners` do, around `ranks` ranks.

    `product` and `hop` are the parts of one unit of k. With `overlap` a panel is on its way while the one
    before it is multiplied.
    """

    ranks: int
    widths: tuple[int, ...]
    owners: tuple[int, ...]
    product: tuple[Part, ...]
    hop: tuple[Part, ...]
    message: tuple[Part, ...]
    overlap: bool

    def span(self, machine: Machine) -> Span:
        """Seconds beyond those of all products."""
        product, hop = of_phase(self.product, machine), of_phase(self.hop, machine)
        start = of_phase(self.message, machine).seconds
        end = [0.0] * self.ranks  # of each rank's last product
        begun = [0.0] * self.ranks
        for step, (width, owner) in enumerate(zip(self.widths, self.owners, strict=True)):
            takes, travels = width * product.seconds, width * hop.seconds + start
            posted = begun if self.overlap and step else end  # a panel is asked for, and sent by its owner
            slices = max(1, width // SLICE)
            there = posted[owner]
            now = list(end)
            for place in range(1, self.ranks):
                rank = (owner + place) % self.ranks
                before = (rank - 1) % self.ranks
                sent = there if place == 1 else _looked(there, begun[before], end[before], slices)
                there = max(sent, posted[rank]) + travels
                now[rank] = max(end[rank], there)
            begun = now
            end = [moment + takes for moment in now]
        computing = sum(self.widths) * product.seconds
        waited = max(end, default=0.0) - computing
        return Span(waited, waited * (hop.error / hop.seconds if hop.seconds else 0.0))

    def takes(self, machine: Machine) -> Sequence[Take]:
        """Nothing: what is waited for is many terms at once."""
        return []

    def terms(self) -> Sequence[str]:
        """Names of the terms of products, hops and messages."""
        return [name for part in (*self.product, *self.hop, *self.message) for name in part.terms()]


def _looked(there: float, begun: float, end: float, slices: int) -> float:
    """When a rank that computes from `begun` to `end` finds what is `there`."""
    if not begun < there < end:
        return there
    piece = (end - begun) / slices
    return begun + math.ceil((there - begun) / piece) * piece


OWN = 28 << 20  # the program and MPI, each rank
FOR_EACH = 1 << 19  # and what MPI keeps on each for every other of its node
BLAS = 20 << 20
BLAS_DEPTH, BLAS_PACKS = 384, 36 << 20  # of k that BLAS packs of all rows of C; bytes at most, each thread
PACKING = 4 << 20  # what gemm packs A and B into, each thread
PIECES = 32  # of k, at most, each with a C of its own where C is small: fewer than PIECES tiles
TILE, DEPTH = 192 * 192, 2048  # numbers of such a tile, and of k in a piece at least
SHARED_PANELS = 9 << 20  # what the threads of Strassen's product pack B into together


class MultiplySizes(msgspec.Struct, frozen=True):
    """The worker's: of panels, of parts of C that are written early, and of what layers add up."""

    panel_width: int  # columns of A, rows of B
    wide_panel_width: int  # the same for Strassen's product
    part_bytes: int  # at most, but for the fewest rows
    least_rows: int  # of a part, rounded up to a multiple
    row_multiple: int
    layer_piece_bytes: int  # sent at a time, and received
    swap_piece_bytes: int  # the same, of the halves of a symmetric product
    direct_bytes: int  # of an operand that is read in parts past the page cache


def multiply_need(
    m: int,
    k: int,
    n: int,
    dtype: str,
    variant: Variant,
    verify: str,
    on_node: int | None = None,
    in_place: tuple[bool, bool] = (False, False),
    turned: bool = False,
    symmetric: bool = False,
    strassen: bool = False,
    whole: tuple[int, int, int] | None = None,
    plain: bool = True,
) -> Need:
    """Memory of an m×k · k×n product in `dtype`.

    rank = blocks of A, B and C + exchange buffers + I/O staging + what gemm, MPI, BLAS and the check
    take, and the node with most of them has `on_node` ranks (None: all). The layers of `replicated` share out
    k, so that a node's sum counts A and B once, C once a layer, and the rest once a rank. On one rank,
    operands used `in_place` are pages of their files and take nothing, and C is streamed through two buffers
    where it is written `uncached`. `turned`: it is stored column by column. `symmetric`: B is the transpose
    of A, and on one row of ranks lies in it; C is then mirrored in memory before it is written, and with
    `shared` lies in the node's. With `strassen`, panels are wider and C is not streamed. Where m, k and n are
    only what is in memory at a time, `whole` are those of the product, and the need is the same whether
    operands that are `plain` go through the page cache or past it.
    """
    sizes = constants("multiply", MultiplySizes)
    p, q = variant.grid
    item = ITEMSIZE[dtype]
    rows, columns = part(m, p, variant.remainder), part(n, q, variant.remainder)
    layer = part(k, variant.copies, variant.remainder)
    a = rows * part(layer, q, variant.remainder) * item
    b_lies_in_a = symmetric and p == 1
    b = 0 if b_lies_in_a else part(layer, p, variant.remainder) * columns * item
    c = rows * columns * item
    width = min(sizes.wide_panel_width if strassen else sizes.panel_width, layer)
    buffers = _exchange_buffers(variant, sizes, a, b, width * (rows + columns) * item)
    operands, result = (m * k + (0 if b_lies_in_a else k * n)) * item, m * n * item
    ahead = bool(whole) and variant.read in ("positioned", "uncached")
    if ahead:  # one window is read while another is multiplied
        a, b, buffers, operands = 2 * a, 2 * b, 2 * buffers, 2 * operands
    most = variant.ranks if on_node is None else on_node
    fixed = OWN + most * FOR_EACH + _packed_by_blas(variant, dtype, rows, layer)
    fixed += staging(msgspec.structs.replace(variant, read=variant.write) if ahead and plain else variant)
    fixed += 2 * sizes.direct_bytes if ahead else 0
    fixed += variant.threads * PACKING + (SHARED_PANELS if strassen else 0)
    if verify == "fast":  # vectors of all of m, n and k, in double
        all_m, all_k, all_n = whole or (m, k, n)
        fixed += (9 * all_m + 5 * all_n + 7 * all_k) * (16 if dtype.startswith("complex") else 8)
    if dtype in ("int64", "uint64"):  # sums that bound what could overflow
        fixed += 32 * max(m, n) + 16 * k
    if (symmetric or rows * columns < PIECES * TILE) and layer >= 2 * DEPTH:
        each = min(PIECES * rows * columns, 2 * PIECES * TILE) * item
        fixed += each * (variant.threads if symmetric else 1)  # threads have parts of their own
    shared = (operands + (result if symmetric else 0)) if variant.exchange == "shared" else 0
    if turned:  # for a file that is stored column by column, a second copy of C
        c, result = 2 * c, 2 * result
    if symmetric and variant.ranks > 1 and not shared:
        buffers += 2 * sizes.swap_piece_bytes
    if variant.algorithm == "local":
        a, b = (0 if free else size for size, free in zip((a, b), in_place, strict=True))
        if variant.write == "uncached" and not (symmetric or strassen or whole):  # through two buffers
            fewest = (sizes.least_rows + sizes.row_multiple) * columns * item
            c = min(c, 2 * max(sizes.part_bytes, fewest))
        operands, result = a + b, c
    # The serial proof gathers both operands and the result on rank 0, beside a second product.
    serial = (m * k + k * n + 2 * m * n) * item if verify == "serial" else 0
    everywhere = operands + variant.copies * result + variant.ranks * (buffers + fixed)
    return Need(
        rank=a + b + c + buffers + fixed + serial,
        node=-(-everywhere * most // variant.ranks) + serial,
        shared=shared,
        blocks=a + b + c,
        buffers=buffers,
    )


def _packed_by_blas(variant: Variant, dtype: str, rows: int, layer: int) -> int:
    """Bytes on one rank where BLAS may do the work, as it does for `fast` on some processors; measured.

    For other kernels, too: a job may go on with another one, and its tiles must still fit.
    """
    if not dtype.startswith(("float", "complex")):
        return 0
    each = -(-rows // math.isqrt(variant.threads)) * min(layer, BLAS_DEPTH) * ITEMSIZE[dtype]
    packed = variant.threads * min(each, BLAS_PACKS)
    return max(packed, BLAS) if variant.kernel == "blas" else packed


def _exchange_buffers(variant: Variant, sizes: MultiplySizes, a: int, b: int, panels: int) -> int:
    """Spare blocks or panels that one rank needs beside its own blocks; sizes in bytes."""
    adding = 2 * sizes.layer_piece_bytes if variant.copies > 1 else 0
    if variant.exchange == "shared" or variant.grid == (1, 1):
        return adding
    if variant.algorithm == "cannon":
        return (2 if variant.exchange.startswith("one_sided") else 1) * (a + b)
    return adding + 2 * panels
