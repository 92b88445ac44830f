"""Plans a product: checks that the operands fit, then grid, variant, memory and proof."""

from __future__ import annotations

import os

from tilewise.errors import UsageError
from tilewise.files import TEXTS, format_module, format_name, natural_order
from tilewise.files.dtypes import ITEMSIZE, of_product
from tilewise.files.region import Region
from tilewise.files.target import Target, check_holds
from tilewise.launch.job import Job, Variant
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.plan import grid, io, need, proof, rule
from tilewise.plan.choices import Choices
from tilewise.plan.plan import Plan, finish, new_id
from tilewise.units import shape_text

READ_BACK = 1e-3  # bytes of output for each operation, below which reading it back costs little


def plan_multiply(
    left: Region,
    right: Region,
    choices: Choices,
    facts: Facts,
    joined: Join | None = None,
    target: Target | None = None,
    overflow: str = "refuse",
) -> Plan:
    """The plan for left · right; transposition stands in the regions.

    `joined` tells of ranks that exist already because somebody else started them, `target` where the product
    will be written; without it, no device is asked how fast it is. `overflow` says what becomes of integers
    beyond 64 bits. Raises UsageError when the shapes do not
    fit, the output's format cannot hold the product, a choice makes no sense, or memory does not suffice.
    """
    m, k, n = _extents(left, right)
    why: list[str] = []
    dtype = _product_type(left, right, target, why)
    if overflow == "wrap" and not dtype.startswith(("int", "uint")):
        raise UsageError(f"--overflow wrap is for products of integers, not of {dtype}")
    item = ITEMSIZE[dtype]
    work = float(m) * k * n
    ranks, threads, nodes = rule.spread(choices, facts, work, why, joined=joined)
    algorithm = rule.algorithm(choices, ranks, why)
    shape, copies = grid.choose(algorithm.name, ranks, choices.grid, m, n)
    operands = (m * k + k * n) * item
    exchange = rule.exchange(choices, algorithm, operands, facts, nodes, why)
    read, write = io.fitting(choices, [left, right], target)
    variant = Variant(
        algorithm=algorithm.name,
        exchange=exchange,
        read=read,
        write=write,
        grid=shape,
        copies=copies,
        ranks=ranks,
        threads=threads,
        kernel=choices.kernel,
        remainder=choices.remainder,
    )
    order = natural_order(target.name) if target is not None else "C"
    plain = target is None or (order == "C" and format_name(target.name) not in ("tiles", "petsc", *TEXTS))
    if target is not None:
        folder = os.path.dirname(target.path)
        variant = io.choose(variant, (left, right), dtype, choices, facts, folder, why, plain)
    flops = (8 if dtype.startswith("complex") else 2) * work
    warnings: list[str] = []
    share = proof.fast_share(
        m * k + 2 * k * n + m * n,  # B twice: its norms come first
        dtype,
        left.bytes + right.bytes + m * n * item,
        flops,
        min(ranks * threads, facts.cores),
    )
    verify = proof.choose(choices.verify, share, warnings)
    lies = [variant.read == "mapped" and io.in_place(region, dtype) for region in (left, right)]
    wanted = need.multiply_need(
        m, k, n, dtype, variant, verify, nodes, in_place=(lies[0], lies[1]), turned=order == "F"
    )
    need.require_fit(wanted, choices.memory, facts.memory_available, facts.shared_memory)
    job = Job(
        id=new_id(),
        command="multiply",
        inputs=[left, right],
        output=None,
        variant=variant,
        dtype=dtype,
        verify=verify,
        overflow=overflow,
        read_back=verify == "fast"
        and (choices.verify == "fast" or _cheap_to_read(variant, m * n * item, flops)),
    )
    return finish(
        job=job,
        shape=(m, n),
        dtype=dtype,
        order=order,
        choices=choices,
        facts=facts,
        need=wanted,
        reasons=why,
        warnings=warnings,
        flops=flops,
        nodes=nodes,
        joined=joined is not None,
        choosable=("ranks", "threads", "algorithm", "io")
        if algorithm.name == "local"
        else ("ranks", "threads", "algorithm", "exchange", "io", "grid"),
    )


def _cheap_to_read(variant: Variant, output_bytes: int, flops: float) -> bool:
    """Whether reading the output back costs next to nothing, as it does out of the page cache."""
    return variant.write != "uncached" and output_bytes < READ_BACK * flops


def _product_type(left: Region, right: Region, target: Target | None, why: list[str]) -> str:
    """The type of the product; float64 where the output's format holds real numbers of that type only."""
    dtype = of_product(left.dtype, right.dtype)
    if target is None:
        return dtype
    holds: tuple[str, ...] = format_module(target.path).NUMBERS
    if dtype not in holds and "float64" in holds and not dtype.startswith("complex"):
        why.append(f"computed in float64: {target.name} holds nothing else")
        return "float64"
    check_holds(target, dtype)
    return dtype


def _extents(left: Region, right: Region) -> tuple[int, int, int]:
    """Rows, inner extent and columns; UsageError naming both shapes when the inner ones differ."""
    (m, k), (inner, n) = left.shape, right.shape
    if k == inner:
        return m, k, n
    raise UsageError(
        f"{_described(left)} and {_described(right)} do not fit: {k} columns meet {inner} rows",
        _transposing(left, right),
    )


def _described(region: Region) -> str:
    text = f"{region.name} ({shape_text(region.rows, region.columns)}"
    return text + (f", transposed to {shape_text(*region.shape)})" if region.transposed else ")")


def _transposing(left: Region, right: Region) -> str:
    """Which transposition would make the shapes fit, if one does."""
    (m, k), (inner, n) = left.shape, right.shape
    flip = {True: "without ", False: ""}
    if m == inner:
        return f"{flip[left.transposed]}--transpose-a"
    if k == n:
        return f"{flip[right.transposed]}--transpose-b"
    return ""
