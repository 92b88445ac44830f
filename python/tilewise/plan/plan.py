"""Plan: one job with its variant chosen, the reasons, its need and its warnings; a printable value."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from tilewise.files.folder import Piece
from tilewise.files.owner import new_owner
from tilewise.launch import environment
from tilewise.launch.job import Job, Variant
from tilewise.machine import profile
from tilewise.machine.facts import Facts
from tilewise.plan import io
from tilewise.plan.choices import Choices
from tilewise.plan.need import Need
from tilewise.units import plural

CALIBRATE_FROM = 1e11  # operations from which a measurement of gemm's peak is lost in the noise of the run
_MEASURED = ("float32", "float64", "complex64", "complex128")
# Bytes of the matrices that one thread multiplies to measure the peak: `size_for` in measure/gemm_rate.cpp.
CALIBRATION = 120 << 20


def _may_calibrate(variant: Variant, choices: Choices, facts: Facts, on_node: int) -> bool:
    """Whether the measurement, whose size grows with the threads, keeps to the cap or the free memory."""
    room = choices.memory if choices.memory is not None else facts.memory_available
    return bool(on_node * CALIBRATION * variant.threads ** (2 / 3) <= room)


class Fallback(msgspec.Struct, frozen=True):
    """What a decomposition takes where its start turns out to cost accuracy: another cut, and more memory."""

    blocks: int
    need: Need


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What will be done. `job.output` is still empty: making files is not planning.

    `measure_tile`: the bytes of an item and the threads for which a tile is to be found after the job.
    `keeps_peak`: a product long enough for its rate to be kept, where it passes the stored peak.
    Of a stencil: the result has `planes` in the rows of `shape`, and is also kept after `snapshots` sweeps.
    `pieces` are the files of a result that is a folder; `shape` is that of the first one then.
    """

    job: Job
    shape: tuple[int, int]
    dtype: str
    order: str
    header: bool
    choices: Choices
    facts: Facts
    need: Need
    reasons: list[str]
    warnings: list[str]
    fixed: list[str]
    chosen_by: str
    oversubscribed: bool
    peak: profile.Peak | None
    peak_key: str
    measure_tile: tuple[int, int] | None = None
    keeps_peak: bool = False
    planes: int = 1
    snapshots: list[int] = []
    pieces: list[Piece] = []
    fallback: Fallback | None = None


def new_id() -> str:
    """A name for temporary things that no other job has."""
    return new_owner().identity


def finish(
    *,
    job: Job,
    shape: tuple[int, int],
    dtype: str,
    choices: Choices,
    facts: Facts,
    need: Need,
    reasons: list[str],
    warnings: list[str],
    flops: float,
    nodes: int,
    choosable: tuple[str, ...],
    joined: bool = False,
    order: str = "C",
    header: bool = False,
    measure_tile: tuple[int, int] | None = None,
    gemm: bool = True,
    also_fixed: Sequence[str] = (),
    planes: int = 1,
    snapshots: Sequence[int] = (),
    pieces: Sequence[Piece] = (),
    fallback: Fallback | None = None,
) -> Plan:
    """Puts a plan together: binding, oversubscription, stored peak, traps in the environment, who chose.

    `gemm`: the job multiplies, so that BLAS matters and its peak can be measured. `also_fixed`: flags of one
    operation that were given.
    """
    variant = job.variant
    on_node = -(-variant.ranks // nodes)
    # Where a launcher has bound this rank, its processors are not the node's, and the worker will know.
    bound = joined and facts.cpus < (os.cpu_count() or 1)
    over = not bound and on_node * variant.threads > facts.cpus
    if over:
        warnings.append(
            f"oversubscribed: {plural(on_node, 'rank')} × {plural(variant.threads, 'thread')} "
            f"on {plural(facts.cpus, 'processor')}: ranks take turns, and times say little of the algorithm"
        )
    if flops > 0 and gemm:
        warnings.extend(environment.blas_warnings(os.environ, facts))
    key = peak_key(facts, variant, job.dtype)
    peak = profile.load().peaks.get(key) if flops > 0 and not over else None
    telling = flops >= CALIBRATE_FROM and not over and job.dtype in _MEASURED and variant.kernel == "fast"
    calibrates = gemm and telling and _may_calibrate(variant, choices, facts, on_node)
    fixed = [*choices.fixed(), *also_fixed]
    return Plan(
        job=msgspec.structs.replace(
            job,
            bind=not over,
            place=choices.place,
            hints=io.hints(variant, choices.hints),
            repeat=choices.repeat,
            warmup=choices.warmup,
            sync=choices.sync,
            calibrate=peak is None and calibrates,
            fault=os.environ.get("TILEWISE_FAULT", ""),
        ),
        shape=shape,
        dtype=dtype,
        order=order,
        header=header,
        choices=choices,
        facts=facts,
        need=need,
        reasons=reasons,
        warnings=warnings,
        fixed=fixed,
        chosen_by="user" if set(choosable) <= set(fixed) else "plan",
        oversubscribed=over,
        peak=peak,
        peak_key=key,
        keeps_peak=job.command == "multiply" and telling,
        measure_tile=measure_tile,
        planes=planes,
        snapshots=list(snapshots),
        pieces=list(pieces),
        fallback=fallback,
    )


def peak_key(facts: Facts, variant: Variant, dtype: str) -> str:
    """Where the stored profile keeps the peak of as many cores as `variant` uses."""
    cores = min(variant.ranks * variant.threads, facts.cpus)
    return profile.peak_key(facts.host, facts.cpu, dtype, cores, os.environ.get("OPENBLAS_CORETYPE", ""))
