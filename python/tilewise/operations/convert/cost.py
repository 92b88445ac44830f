"""What a conversion costs, or making a matrix: bands that are read, changed and written, on all ranks."""

from __future__ import annotations

from tilewise.files.target import Target
from tilewise.planning.cost import Cost, Part
from tilewise.planning.file_cost import Use, reading, verifying, writing
from tilewise.planning.plan import Plan


def cost_of(plan: Plan, target: Target | None) -> Cost:
    """The cost of the conversion that `plan` is of."""
    job, variant, source = plan.job, plan.job.variant, plan.job.inputs[0]
    use = Use(variant, plan.spread)
    turned = plan.order != source.order and not source.generator
    changed = plan.dtype != source.dtype or job.convert is not None
    rows, columns = plan.shape
    share = rows * columns / max(1, source.rows * source.columns)
    compute: list[Part] = [use.shared_out("turn", 2 * source.bytes * share)] if turned else []
    output = writing(plan, target, use)
    if changed:
        output.append(use.shared_out("copy", 2 * source.bytes * share))
    return Cost(
        phases={
            "input": reading(source, variant.read, use, times=share, fresh=False),
            "compute": compute,
            "output": output,
            "verify": verifying([], source.bytes, target, use) if job.verify == "fast" else [],
        },
        ranks=use.ranks_and_nodes,
        messages=0,
        exchanged=0,
        flops=0.0,
    )
