"""What to do instead where a decomposition does not fit in memory."""

from __future__ import annotations

import contextlib

import msgspec

from tilewise.base.errors import UsageError
from tilewise.launch.join import Join
from tilewise.operations.svd.chosen import few
from tilewise.operations.svd.need import DOUBLE
from tilewise.operations.svd.options import Svd
from tilewise.operations.svd.variants import plan_svd, shape_of
from tilewise.planning.plan import Plan

USUAL = 20  # components that are advised where none were asked for


def what_fits(options: Svd, refused: Plan, joined: Join | None) -> str:
    """Flags with which a job fits in memory, where `refused` does not; empty where nothing helps.

    The least memory with which it would be done as it was asked for, and what needs less.
    """
    source, ranks = refused.job.inputs[0], refused.job.variant.ranks
    shape = shape_of(source, options)
    components = options.components or USUAL
    one = msgspec.structs.replace(options, ranks=1, exchange=None)
    sampled = msgspec.structs.replace(
        options, algorithm="randomized", components=None if options.energy else components
    )
    said = "" if options.components or options.energy else f" --components {components}"
    least = _smallest_memory(options, refused, joined)
    memory = f"--memory {least}MiB" if least else ""
    ways = [("-n 1", one)] if ranks > 1 and joined is None else []
    few_enough = few(msgspec.structs.replace(shape, components=components))
    if (few_enough or options.energy) and options.algorithm != "randomized" and shape.number == DOUBLE:
        ways.append((f"--algorithm randomized{said}: it reads the file in panels", sampled))
    for advice, asked in ways:
        with contextlib.suppress(UsageError):
            if plan_svd(source, asked, refused.facts, joined).refusal is None:
                return f"{memory}, or {advice}" if memory else advice
    return memory


def _smallest_memory(options: Svd, refused: Plan, joined: Join | None) -> int:
    """MiB with which the job would be done, as far as there is so much; 0 where there is not."""

    def fits(mebibytes: int) -> bool:
        with contextlib.suppress(UsageError):
            asked = msgspec.structs.replace(options, memory=mebibytes << 20)
            return plan_svd(refused.job.inputs[0], asked, refused.facts, joined).refusal is None
        return False

    low, high = 0, refused.facts.memory_available >> 20
    if not fits(high):
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
