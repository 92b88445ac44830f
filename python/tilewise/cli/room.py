"""What a planned job needs on disks, beside what is there: outputs, snapshots, decoded inputs."""

from __future__ import annotations

import os

from tilewise.cli.places import Place
from tilewise.files.output import grows, needed_bytes
from tilewise.files.region import Source
from tilewise.files.room import Room, Want, rooms
from tilewise.plan.plan import Plan
from tilewise.units import plural


def needed(plan: Plan, place: Place) -> list[Room]:
    """One for each file system that the job of `plan` writes to; old outputs stay until the new are whole.

    Factors of a decomposition whose number its numbers decide are left out.
    """
    target = place.target
    folder = os.path.dirname(target.path)
    if plan.pieces:
        svd = plan.job.svd
        cut = svd is not None and svd.energy > 0
        found = [] if cut else [Want(folder, sum(each.bytes for each in plan.pieces), target.name)]
    else:
        count = len(plan.snapshots)
        name = f"{target.name} and {plural(count, 'snapshot')}" if count else target.name
        found = [
            Want(folder, (1 + count) * needed_bytes(target, plan.shape, plan.dtype), name, grows(target))
        ]
    found += [
        Want(folder, source.bytes, f"the decoded {source.name}")
        for source in plan.job.inputs
        if isinstance(source, Source) and source.encoded
    ]
    return rooms(found)
