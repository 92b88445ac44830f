"""The record of a job that has ended: what the ranks said, what the plan meant, what the front knows."""

from __future__ import annotations

import os
import shlex
import time

import msgspec

from tilewise import files
from tilewise.files.region import Region, Source
from tilewise.files.target import Target
from tilewise.launch import assemble, hosts, job, launcher
from tilewise.launch.events import Done
from tilewise.launch.record import Matrix, Record, Storage
from tilewise.machine import profile, storage
from tilewise.plan.plan import Plan, peak_key
from tilewise.units import listing, plural

_BEGIN = time.perf_counter()


def record_of(
    done: Done,
    plan: Plan,
    final: job.Job,
    outputs: list[Matrix],
    stored: list[Storage],
    start: launcher.Start,
    front: assemble.FrontSeconds,
) -> Record:
    """What `--json` will say."""
    kernel = done.environment.get("blas_kernel", "")
    fits = plan.peak is not None and plan.peak.kernel == kernel
    needed = plan.need
    if plan.fallback is not None and done.result.get("start_used") == "qr":
        needed = plan.fallback.need
        variant = msgspec.structs.replace(final.variant, blocks=plan.fallback.blocks)
        final = msgspec.structs.replace(final, variant=variant)
    known = assemble.Known(
        job=final,
        facts=plan.facts,
        inputs=[_matrix(region) for region in plan.job.inputs],
        outputs=outputs,
        storage=stored,
        chosen_by=plan.chosen_by,
        fixed=plan.fixed,
        reasons=plan.reasons,
        warnings=[*plan.warnings, *_elsewhere(done, plan)],
        needed_bytes=needed.node,
        launcher=shlex.join(start.command),
        variables=start.environment,
        oversubscribed=plan.oversubscribed,
        front=front,
        wall=time.perf_counter() - _BEGIN,
        peak=plan.peak.flops_per_second if plan.peak is not None and fits else None,
    )
    return assemble.assemble(done, known)


def _elsewhere(done: Done, plan: Plan) -> list[str]:
    """A warning where a launcher of the user's did not use as many hosts as the plan was made for."""
    if not plan.choices.hosts or not plan.choices.launcher:
        return []
    used = list(dict.fromkeys(rank.host for rank in done.ranks))
    listed = hosts.read_hosts(plan.choices.hosts)
    meant = len(set(hosts.deal(listed, len(done.ranks), plan.job.place)))
    if len(used) == meant:
        return []
    return [
        f"the plan was for {plural(meant, 'host')} of --hosts, but --launcher ran the ranks on "
        f"{listing(used)}; name the hosts in --launcher too"
    ]


def remember(record: Record, plan: Plan) -> None:
    """Keeps a peak that this run measured or passed, and measures what the next one can use."""
    if plan.keeps_peak and record.peak_flops:
        key = peak_key(plan.facts, plan.job.variant, plan.job.dtype)
        profile.store_peak(key, profile.Peak(record.peak_flops, record.environment.blas_kernel))
    if plan.measure_tile is not None:
        from tilewise.machine.transposition import measure_tile

        measure_tile(*plan.measure_tile, plan.facts, launcher.find_worker().path)


def _matrix(region: Region) -> Matrix:
    path = region.path or region.name
    kind = "generated" if region.generator else files.format_name(region.name)
    planes = region.planes if isinstance(region, Source) else 1
    shape = (region.rows // planes, region.columns)
    return Matrix(path, kind, shape, region.dtype, region.order, planes)


def storage_of(inputs: list[Region], target: Target) -> list[Storage]:
    """Where files lie, looked at before the job warms the cache."""
    found = [
        Storage(region.path, storage.file_system(region.path), storage.cache_state(region.path))
        for region in inputs
        if region.path
    ]
    return [*found, Storage(target.path, storage.file_system(os.path.dirname(target.path)), "new")]
