"""What a product costs: operations, panels and blocks that travel, files, and the proof.

Of m×k · k×n on p × q ranks, with c layers of k, every rank receives

    cannon       q − 1 blocks of A and of B, from its neighbours            Cannon, 1969
    summa        (q − 1)/q of its rows of A, (p − 1)/p of its columns of    van de Geijn and Watts, 1997
                 B, in panels that go along rings piece by piece
    replicated   the same of k/c, and then parts of C to add up             Solomonik and Demmel, 2011

A ring of q ranks has the last piece of a panel q − 2 hops later than the first rank, once; whoever owns the
panels next starts from there. What `overlap`s goes on behind the computing, but for that.
"""

from __future__ import annotations

import itertools
import math

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.launch.constants import constants
from tilewise.machine.terms import gemm
from tilewise.operations.multiply.need import Sizes
from tilewise.operations.multiply.rings import Rings
from tilewise.operations.multiply.traffic import GETTING, traffic, widths
from tilewise.planning import io
from tilewise.planning.cost import Cost, Longest, Part, Take
from tilewise.planning.file_cost import Use, at, reading, touching, writing
from tilewise.planning.grid import part
from tilewise.planning.plan import Plan

_LEVEL = 7 / 8  # of the operations that one level of Strassen's product leaves


def cost_of(plan: Plan, target: Target | None) -> Cost:
    """The cost of the product that `plan` is of; `target` is None where nothing is written."""
    job, variant = plan.job, plan.job.variant
    use = Use(variant, plan.spread)
    (m, k), n = job.inputs[0].shape, job.inputs[1].shape[1]
    sizes = constants("multiply", Sizes)
    strassen = variant.kernel == "strassen" or job.tolerance > 0
    width = sizes.wide_panel_width if strassen else sizes.panel_width
    counted = traffic(m, k, n, job.dtype, variant, width)
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
        exchanged=None if job.symmetric or job.stage[0] else counted.bytes,
        flops=_operations(plan),
    )


def _waits(part: Part) -> bool:
    """Whether no core works meanwhile."""
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
    """Whether what is multiplied are the pages of the file."""
    variant = plan.job.variant
    return variant.read == "mapped" and variant.algorithm == "local" and io.in_place(region, plan.job.dtype)


def _exchange(plan: Plan, use: Use, strassen: bool, width: int) -> tuple[list[Part], list[Part]]:
    """What ranks wait for in any case, and what may go on while they compute."""
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
