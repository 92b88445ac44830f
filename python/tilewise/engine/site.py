"""What a job says of its host: files that other hosts must see likewise, and memory that they must have."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tilewise.files.region import Region, is_encoded
from tilewise.files.unchanged import Inputs
from tilewise.launch.job import Job, Seen, Site, StagedOutput
from tilewise.machine import host
from tilewise.planning.need import SHARE
from tilewise.planning.plan import Plan

_BY_ROOT = ("root", "root_collective")


def site_of(plan: Plan, final: Job, inputs: Inputs) -> Site:
    """Of the job `final`, whose part files are made, and of `inputs` as they were looked at."""
    variant = final.variant
    read_by_root = variant.read in _BY_ROOT
    written_by_root = variant.write in _BY_ROOT or bool(variant.root_write)
    made = [_made(each, written_by_root) for each in _one_a_folder(_outputs(final))]
    if final.svd is not None and final.svd.s is not None:  # a hidden folder, which holds all files
        parts, name = os.path.dirname(final.svd.s.path), os.path.dirname(final.svd.s.name)
        made.append(StagedOutput(path=parts, name=name, root=written_by_root))
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


def _outputs(final: Job) -> Iterator[tuple[str, str]]:
    """Every file that was made for the result: its path, and what it is called."""
    regions: list[Region | None] = [final.output]
    if final.stencil is not None:
        regions += [*final.stencil.snapshots, *final.stencil.states]
    for region in regions:
        if region is not None:
            yield from (
                (path, region.name) for path in [t.path for t in region.tiles if t.path] or [region.path]
            )


def _one_a_folder(files: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first of each folder: it is the folder that is the same or not."""
    of_folder: dict[str, tuple[str, str]] = {}
    for path, name in files:
        of_folder.setdefault(os.path.dirname(path), (path, name))
    return list(of_folder.values())


def _made(file: tuple[str, str], root: bool) -> StagedOutput:
    path, name = file
    return StagedOutput(path=path, name=name, bytes=os.stat(path).st_size, root=root)
