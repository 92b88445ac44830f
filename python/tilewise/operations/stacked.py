"""Plans a job that is done for every slice of a stack: as for one slice, and then whether ranks share it.

The stated rule. Ranks work *apart*, each on slices of its own and without a message, where there are as many
slices as ranks, or where a slice is too small to share; they work *together*, all on one slice after another,
where there are fewer slices, where flags say how ranks exchange, or where one slice a rank does not fit in
memory. Where nobody says how many ranks, there are as many as one slice takes; but a rank for each core
where slices are too small to share and all of them together are worth the start of so many.
"""

from __future__ import annotations

import contextlib

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import listing, plural
from tilewise.files.formats import FORMATS, extension, format_of
from tilewise.files.region import Region, Source
from tilewise.files.target import Target, base_of
from tilewise.launch.job import Stack
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.operations.operation import OfOneInput
from tilewise.planning import rule
from tilewise.planning.need import misfit
from tilewise.planning.plan import Each, Plan, crowding
from tilewise.planning.task import Task
from tilewise.planning.where import Spread

STARTS = 5e8  # multiply-adds from which several ranks are worth their start
OPENED = 1e6  # multiply-adds that opening and closing the files of a slice is worth
_ABOUT_EXCHANGE = ("grid", "exchange", "decomposition", "halo", "reorder")


def plan_slices(
    operation: OfOneInput, inputs: list[Region], target: Target | None, facts: Facts, joined: Join | None
) -> Plan:
    """The plan of `operation` for every slice of `inputs`, of which one at least is a stack; UsageError."""
    each = _each_of(inputs)
    _require_room_for_stacks(operation, target)
    one = operation.plan(inputs, target, facts, joined)
    spread = _spread(operation, one, each, facts, joined)
    why: list[str] = []
    plan = None
    if _apart(operation, spread, each, why):
        plan = _alone(operation, inputs, target, facts, spread, why)
    apart = plan is not None
    if plan is None:
        why.append("together: all ranks work on one slice after another")
        plan = one
    stack = Stack(extents=list(each.extents), apart=apart)
    return msgspec.structs.replace(
        plan,
        job=msgspec.structs.replace(plan.job, stack=stack),
        each=each,
        reasons=[*plan.reasons, *(why if spread.ranks > 1 else [])],
    )


def _each_of(inputs: list[Region]) -> Each:
    """The axes and extents of the stacks among `inputs`; UsageError where these differ."""
    found: list[tuple[Source, Each]] = [
        (each, Each(axes=each.part.slices.axes, extents=each.stack))
        for each in inputs
        if isinstance(each, Source) and each.part is not None and each.part.slices is not None
    ]
    for source, each in found[1:]:
        if each != found[0][1]:
            first = found[0][0]
            raise UsageError(
                f"{first.name} has {plural(found[0][1].count, 'slice')} along axis {found[0][1].said}, and "
                f"{source.name} has {each.count} along axis {each.said}; stacks must be equally long",
                "two stacks of one length, or one stack and a single matrix",
            )
    return found[0][1]


def _require_room_for_stacks(operation: OfOneInput, target: Target | None) -> None:
    if target is None or operation.several or target.format.stacked:
        return
    able = [ending for ending in FORMATS if format_of(f"A{ending}").stacked]
    raise UsageError(
        f"the output {target.name} cannot hold a stack: a {extension(base_of(target))} file has two "
        f"dimensions; {listing(able)} files hold more",
        "a .npy file",
    )


def _spread(operation: OfOneInput, one: Plan, each: Each, facts: Facts, joined: Join | None) -> Spread:
    """How many ranks, and where: those of one slice, or a rank for each core."""
    spread = one.spread
    worth = spread.work < rule.SMALL and max(spread.work, OPENED) * each.count >= STARTS
    free = operation.ranks is None and joined is None and not _about_exchange(operation)
    if not worth or not free or operation.slices == "together":
        return spread
    task = Task(operation, one.job.inputs, None, facts, joined)
    wide = rule.spread(task.asking(), spread.work, all_cores=True)
    if wide.ranks > each.count:
        wide = rule.spread(task.asking(ranks=each.count), spread.work)
    return wide


def _about_exchange(operation: OfOneInput) -> bool:
    """True if flags say how ranks exchange."""
    algorithm = operation.algorithms.get(operation.algorithm or "")
    exchanging = algorithm is not None and algorithm.name != "sweeps" and bool(algorithm.exchanges)
    return exchanging or any(getattr(operation, name, None) not in (None, False) for name in _ABOUT_EXCHANGE)


def _apart(operation: OfOneInput, spread: Spread, each: Each, why: list[str]) -> bool:
    """True if each rank does slices of its own, as far as these fit in memory."""
    if operation.slices == "apart":
        why.append("apart: as --slices asks")
        return spread.ranks > 1
    if spread.ranks == 1 or operation.slices == "together" or _about_exchange(operation):
        return False
    enough = each.count >= spread.ranks
    if enough or spread.work < rule.SMALL:
        reason = "there is one at least for each" if enough else "a slice is too small to share"
        why.append(f"apart: each rank does slices of its own, as {reason}")
        return True
    return False


def _alone(
    operation: OfOneInput,
    inputs: list[Region],
    target: Target | None,
    facts: Facts,
    spread: Spread,
    why: list[str],
) -> Plan | None:
    """The plan of ranks that work apart; None where that cannot be and nobody insists on it."""
    asked = operation.slices == "apart"
    on_node = spread.on_node
    lone = msgspec.structs.replace(
        operation,
        ranks=1,
        threads=spread.threads,
        memory=None if operation.memory is None else max(1, operation.memory // on_node),
    )
    share = msgspec.structs.replace(facts, memory_available=facts.memory_available // on_node)
    plan = None
    with contextlib.nullcontext() if asked else contextlib.suppress(UsageError):
        plan = lone.plan(inputs, target, share, None)
    if plan is None:
        return None
    need = msgspec.structs.replace(
        plan.need, node=on_node * plan.need.rank, shared=on_node * plan.need.shared
    )
    refusal = misfit(need, operation.memory, facts, on_node, sure=spread.sure)
    if refusal is not None and not asked:
        why[:] = ["one slice for each rank does not fit in memory"]
        return None
    fallback = plan.fallback
    if fallback is not None:
        taken = msgspec.structs.replace(fallback.need, node=on_node * fallback.need.rank)
        fallback = msgspec.structs.replace(fallback, need=taken)
    given = operation.fixed()
    free = [name for name in ("ranks", "threads") if name not in given]
    return msgspec.structs.replace(
        plan,
        job=msgspec.structs.replace(
            plan.job,
            variant=msgspec.structs.replace(plan.job.variant, ranks=spread.ranks),
            bind=not spread.crowded,
        ),
        choices=operation,
        facts=facts,
        need=need,
        fallback=fallback,
        refusal=refusal,
        spread=spread,
        fixed=[name for name in plan.fixed if name not in free],
        chosen_by="plan" if free else plan.chosen_by,
        oversubscribed=bool(spread.crowded),
        warnings=[*crowding(spread), *plan.warnings],
    )
