"""What norms cost: the file once, and memory once."""

from __future__ import annotations

from tilewise.files.target import Target
from tilewise.planning.cost import Cost
from tilewise.planning.file_cost import Use, reading
from tilewise.planning.plan import Plan


def cost_of(plan: Plan, target: Target | None) -> Cost:
    """The cost of the norms that `plan` is of."""
    variant, source = plan.job.variant, plan.job.inputs[0]
    use = Use(variant, plan.spread)
    return Cost(
        phases={
            "input": reading(source, variant.read, use, fresh=False),
            "compute": [use.shared_out("copy", source.bytes)],
        },
        ranks=use.ranks_and_nodes,
        messages=0,
        exchanged=0,
    )
