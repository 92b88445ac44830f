"""The site of a job: files that other hosts must see as this one does, and memory that they must have.

Design: docs/design/hosts.md.
"""

from __future__ import annotations

import os

from tilewise.engine.job_output import JobOutput
from tilewise.files.region import is_encoded
from tilewise.files.unchanged import Inputs
from tilewise.launch.job import Job, Seen, Site, StagedOutput
from tilewise.machine import host
from tilewise.planning.need import SHARE

_BY_ROOT = ("root", "root_collective")


def site_of(output: JobOutput, final: Job, inputs: Inputs) -> Site:
    """The site of the job `final`, whose `output` is made, and whose `inputs` were looked at."""
    plan, variant = output.plan, final.variant
    read_by_root = variant.read in _BY_ROOT
    written_by_root = variant.write in _BY_ROOT or bool(variant.root_write)
    made = [_made(each, written_by_root) for each in output.staged()]
    pairs = zip(plan.job.inputs, final.inputs, strict=True)
    decoded = [after for before, after in pairs if is_encoded(before)]
    made += [_made((region.path, f"the decoded {region.name}"), read_by_root) for region in decoded]
    if final.trace:
        made.append(_made((final.trace, "the timeline"), root=True))
    seen = [
        Seen(
            path=each.path,
            name=each.region.name,
            bytes=each.look.bytes,
            modified=each.look.modified,
            inode=each.look.inode,
            begin=each.look.begin,
            end=each.look.end,
            pages=each.look.pages,
            digest=each.look.digest,
            root=read_by_root,
        )
        for each in inputs.files
        if each.look is not None and not is_encoded(each.region)
    ]
    return Site(
        host=host.name(),
        view=host.file_view(),
        made=made,
        seen=seen,
        memory=plan.need.node,
        percent=100 if plan.choices.memory is not None else round(100 * SHARE),
        node_ranks=plan.spread.on_node,
    )


def _made(file: tuple[str, str], root: bool) -> StagedOutput:
    path, name = file
    size = -1 if os.path.isdir(path) else os.stat(path).st_size
    return StagedOutput(path=path, name=name, bytes=size, root=root)
