"""The cost of a decomposition: operations of its algorithm, panels of A that are read, blocks that travel.

m×n with m ≥ n, k components; operations over m·n² where A is tall, and what is read for them:

    local       LAPACK's gesdd: half of the reduction is products of a matrix and a vector, from memory
    two_stage   8/3 to a band, 8/3 to divide and conquer, 8 back: products of matrices; and to
                chase the band away, which is none
    jacobi      AᵀA, its eigenvectors, and then sweeps of 6·m·n² + 4·n³ each, shared out
    serial      sweeps of rotations, 4·m·n² + 3·n³ each: those of X and V, and a product of two columns before
    randomized  4·m·n·(k + oversample) for each reading of A, and eigenvectors of the space so far
    tall        QR of panels, gesdd of the triangle, two readings of A

How many sweeps or readings there are depends on the numbers: before a job, those that are expected count;
after it, those that it took. What is learned of an algorithm's operations is that algorithm's: a product
of its blocks tells nothing of those that `multiply` forms. Design: docs/design/svd.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.target import Target
from tilewise.launch import job
from tilewise.machine.terms import gemm
from tilewise.operations.svd.plan import FEWEST, MOST, READINGS, is_high, readings_of, space_operations
from tilewise.operations.svd.stages import is_tall
from tilewise.planning.cost import Cost, Longest, Part, Take, Use, into_cache, reading
from tilewise.planning.plan import Plan

_ROTATIONS = {"eigen": 1.0, "qr": 10.0, "none": 13.0}  # sweeps of them, after a start
_PANEL = 32  # columns that are reduced, to R or to three diagonals, before the others are brought up to date
_CHASED = 2300  # operations for n² of a band that is chased away, from runs with n from 1000 to 3000
_PROBES = 16  # vectors of the fast proof
_PASSES = 40  # over the columns of X, by products with a few columns of V, of a start and a sweep
_TURNING = 2  # times as long as an operation on blocks is one of a rotation, whose columns come from a cache


class Course(msgspec.Struct, frozen=True):
    """Sweeps and readings, which depend on the numbers of A, and are known when a job is done."""

    sweeps: float
    readings: int
    sure: bool
    between: tuple[float, float] = (1.0, 1.0)


def cost_of(plan: Plan, target: Target | None) -> Cost:
    """The cost of the decomposition that `plan` is of, as far as it can be foreseen; `target`: its folder."""
    return _cost(plan, target, _expected(plan))


def cost_after(plan: Plan, target: Target | None, result: Mapping[str, Any]) -> Cost:
    """Cost by what the job did; not sure where another algorithm or start took over."""
    proofs = 1 if plan.job.verify == "fast" else 0
    planned = not result["fallback"] and result["start_used"] in ("", plan.job.variant.start)
    return _cost(plan, target, Course(float(result["sweeps"]), result["reads"] - proofs, sure=planned))


def _expected(plan: Plan) -> Course:
    """Sweeps and readings of the file by what random matrices take."""
    wanted, variant = plan.job.svd, plan.job.variant
    assert wanted is not None
    least = min(plan.job.inputs[0].shape)
    usual = readings_of(least, (wanted.components or least) + wanted.oversample)
    by_power = usual if wanted.power < 0 else wanted.power + 2
    readings = {"randomized": by_power, "tall": 2}.get(variant.algorithm, 1)
    depth = math.log2(max(2, variant.blocks))
    by_blocks = {"eigen": 1.0, "qr": 3 + depth, "none": 1 + 2 * depth if depth > 1 else 2.0}
    sweeps = _ROTATIONS if variant.inner == "rotations" else by_blocks
    fixed = variant.algorithm in ("local", "two_stage", "tall")
    # As singular values fall fast, or hardly do.
    free = variant.algorithm == "randomized" and wanted.power < 0
    between = (FEWEST / READINGS, MOST / READINGS) if free else (1.0, 1.0)
    return Course(sweeps.get(variant.start, 0.0), readings, sure=fixed, between=between)


def _cost(plan: Plan, target: Target | None, course: Course) -> Cost:
    wanted, variant, source = plan.job.svd, plan.job.variant, plan.job.inputs[0]
    assert wanted is not None
    use = Use(variant, plan.spread)
    m, n = max(source.shape), min(source.shape)
    k = wanted.components or n
    item = ITEMSIZE[plan.job.dtype]
    sampled = variant.algorithm == "randomized"
    fresh = not (sampled or variant.algorithm == "tall")  # which read through a few buffers, again and again
    inputs = reading(source, variant.read, use, times=course.readings, fresh=fresh, cached=sampled)
    files = 0 if wanted.values_only else k * (source.rows + source.columns)
    exchange = _exchange(plan, use, m, n, course.sweeps)
    hidden = variant.exchange == "overlap"
    return Cost(
        phases={
            "input": inputs,
            "compute": _compute(plan, wanted, use, m, n, k, course),
            "exchange": [] if hidden else exchange,
            "output": [
                use.shared_out(term, float(files * item))
                for term in into_cache(target.path if target else "")
            ],
            "verify": _verify(plan, wanted, use, k),
        },
        behind={"exchange": exchange} if hidden else {},
        peculiar=("compute", "verify"),
        ranks=use.ranks_and_nodes,
        sure=course.sure,
        course=course.between,
        messages=None,
        exchanged=None,
    )


def _compute(plan: Plan, wanted: job.SvdJob, use: Use, m: int, n: int, k: int, course: Course) -> list[Part]:
    variant = plan.job.variant
    number = 16 if plan.job.dtype.startswith("complex") else 8
    parts = (number // 8) ** 2  # operations on real numbers for one
    product = gemm("complex128" if number == 16 else "float64")
    cores = use.on_node * use.threads
    mn2, n3 = float(m) * n * n * parts, float(n) ** 3 * parts
    vectors = not wanted.values_only

    def alone(term: str, amount: float) -> Take:
        """On rank 0, with its threads."""
        return Take(term, amount / use.threads, use.threads)

    def gesdd(rows: int, columns: int) -> list[Part]:
        """Parts of rank 0, with its threads; half of the reduction reads the matrix from memory."""
        whole = float(rows) * columns * columns * parts
        high = whole if 6 * rows < 11 * columns else n3
        reduction = 4 * high - 4 / 3 * n3
        halves = Longest((Take("lapack", reduction), Take("copy", reduction / parts / 8 * number)))
        back = (8 / 3 * n3 + 4 * n3 + (2 * whole if high < whole else 0)) if vectors else 0.0
        found: list[Part] = [halves, alone(product, back)]
        if high < whole:  # its R first, by panels of a few columns that do not stay in a cache
            passes = 2 if vectors else 1
            panels = Take("copy", float(rows) * columns * _PANEL * number * passes)
            found += [Take("lapack", 2 * whole * passes), panels]
        return found

    if variant.algorithm == "local":
        return gesdd(m, n)
    if variant.algorithm == "two_stage":
        all_cores = Take(product, (8 / 3 + (8 / 3 + 8 if vectors else 0)) * n3 / cores, cores)
        chased = Take("lapack", _CHASED * float(n) * n * parts)
        panels = Take("copy", 2.0 * m * n * _PANEL * number / cores, cores)
        tall = [Take(product, 4 * mn2 / cores, cores), panels] if is_high(m, n) else []
        return [all_cores, chased, *tall, Take("copy", 8.0 * m * n * number / cores, cores)]
    if variant.algorithm == "randomized":
        width = min(n, k + wanted.oversample)  # of products too narrow for the fast kernel
        read = use.shared_out("lapack", 4.0 * m * n * width * course.readings)
        return [read, alone("lapack", space_operations(width) * course.readings)]
    if variant.algorithm == "tall":
        return [use.shared_out("lapack", (6 if vectors else 2) * mn2), *gesdd(n, n)]
    if variant.algorithm == "serial":
        return [Take("lapack", _TURNING * (4 * mn2 + 3 * n3) * course.sweeps)]
    swept: list[Part] = []
    if is_tall(m, n, variant):  # all ranks factor their rows, and sweep over a triangle
        panels = use.shared_out("copy", 2.0 * m * n * _PANEL * number)
        swept = [use.shared_out("lapack", 4 * mn2), panels, use.shared_out(product, 2 * mn2 * vectors)]
        mn2 = n3
    turned = _TURNING * (4 * mn2 + 3 * n3) * course.sweeps
    if variant.inner == "rotations":
        swept.append(use.shared_out("lapack", turned))
    else:
        swept.append(use.shared_out(product, (6 * mn2 + 4 * n3) * course.sweeps))
        swept.append(use.shared_out("copy", float(_PASSES) * mn2 / n * number / parts))
    if variant.start == "eigen":
        to_three = Longest((alone("lapack", 4 / 3 * n3), alone("copy", n3 / 6 * number)))
        divided = alone(product, 4 / 3 * n3)
        if wanted.share_eigen:  # a panel's corrections all ranks compute alike; of A, each reads its columns
            read = use.shared_out("copy", n3 / 3 * number)
            to_three = Longest((use.shared_out("lapack", 2 * n3), read))
            alike = _PANEL * float(n) * n / use.threads
            corrections = Take("lapack", 3 * parts * alike, cores), Take("copy", number * alike / 2, cores)
            swept.append(Longest(corrections))
            divided = use.shared_out(product, 4 / 3 * n3)
        swept += [use.shared_out(product, 3 * mn2 + 2 * n3), to_three, divided]
    elif variant.start == "qr":
        swept += [use.shared_out("lapack", 4 * mn2)]
    return swept


def _exchange(plan: Plan, use: Use, m: int, n: int, sweeps: float) -> list[Part]:
    """A step of a sweep sends a block each way, with its columns of V; there are as many as blocks."""
    variant = plan.job.variant
    if variant.algorithm != "jacobi" or variant.ranks == 1:
        return []
    number = 16 if plan.job.dtype.startswith("complex") else 8
    steps = max(1, variant.blocks - 1) * sweeps
    block = (m + n) * -(-n // max(1, variant.blocks)) * number
    parts = use.sent(2 * steps * block, 2 * steps)
    if plan.job.svd is not None and plan.job.svd.share_eigen:  # a gathering for each column
        parts += use.sent(n * n * number, n * math.ceil(math.log2(variant.ranks)))
    return parts


def _verify(plan: Plan, wanted: job.SvdJob, use: Use, k: int) -> list[Part]:
    """A and the factors once more, against some vectors; or LAPACK, on rank 0."""
    source = plan.job.inputs[0]
    m, n = max(source.shape), min(source.shape)
    if plan.job.verify == "serial":
        return [Take("lapack", 22.0 * m * n * n)]
    if plan.job.verify != "fast":
        return []
    factors = 0 if wanted.values_only else 2 * k * (source.rows + source.columns)
    numbers = float(m) * n + factors
    again = reading(source, plan.job.variant.read, use, fresh=False)  # by panels
    probed = use.shared_out("lapack", 2 * _PROBES * numbers), use.shared_out("copy", 8 * numbers)
    return [*again, *probed]
