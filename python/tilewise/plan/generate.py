"""Plans the making of a matrix: every rank makes its own block and writes it."""

from __future__ import annotations

from tilewise.errors import UsageError
from tilewise.files.dtypes import in_memory
from tilewise.files.region import Region
from tilewise.launch.job import Job, Variant
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.plan import grid, need, rule
from tilewise.plan.choices import Choices
from tilewise.plan.plan import Plan, finish, new_id

_ELEMENT_WORK = 100  # multiply-adds that making one element is worth


def plan_generate(region: Region, choices: Choices, facts: Facts, joined: Join | None = None) -> Plan:
    """The plan for writing what `region` makes; raises UsageError for choices that make no sense."""
    for flag, value in (("--algorithm", choices.algorithm), ("--exchange", choices.exchange)):
        if value is not None:
            raise UsageError(f"{flag} {value} makes no sense with generate: every rank makes its own block")
    if choices.verify in ("fast", "serial"):
        raise UsageError(f"--verify {choices.verify} makes no sense with generate: there is nothing to prove")
    why: list[str] = []
    work = float(region.rows) * region.columns * _ELEMENT_WORK
    ranks, threads = rule.ranks_and_threads(choices, facts, work, why, joined=joined)
    nodes, _ = rule.nodes_used(choices, joined)
    shape, _ = grid.choose("generate", ranks, choices.grid, region.rows, region.columns)
    read, write = rule.io(choices)
    variant = Variant(
        algorithm="local" if ranks == 1 else "summa",
        exchange="none",
        read=read,
        write=write,
        grid=shape,
        ranks=ranks,
        threads=threads,
        kernel=choices.kernel,
        remainder=choices.remainder,
    )
    dtype = in_memory(region.dtype)
    wanted = need.generate_need(region.rows, region.columns, dtype, variant, nodes)
    need.require_fit(wanted, choices.memory, facts.memory_available, facts.shared_memory)
    job = Job(id=new_id(), command="generate", inputs=[region], output=None, variant=variant, dtype=dtype)
    return finish(
        job=job,
        shape=(region.rows, region.columns),
        dtype=region.dtype,
        choices=choices,
        facts=facts,
        need=wanted,
        reasons=why,
        warnings=[],
        flops=0.0,
        nodes=nodes,
        choosable=("ranks", "threads", "io", "grid"),
    )
