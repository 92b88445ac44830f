"""Plan: one job with its variant chosen, the reasons, its need and its warnings; a printable value."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.owner import new_owner
from tilewise.files.folder import FolderFile
from tilewise.files.region import Region
from tilewise.files.slices import whole_shape
from tilewise.launch import environment
from tilewise.launch.job import Job, Variant
from tilewise.machine.facts import Facts
from tilewise.machine.storage import Probed
from tilewise.planning import io
from tilewise.planning.choices import Choices
from tilewise.planning.need import Need, Refusal, misfit, with_unpacking
from tilewise.planning.task import Task
from tilewise.planning.where import Spread

UNPACKED = "chunks are unpacked by all ranks, each once, and sent to the ranks that need them"


class Fallback(msgspec.Struct, frozen=True):
    """Another cut, and its memory, for a decomposition whose start turns out to cost accuracy."""

    blocks: int
    need: Need


class Each(msgspec.Struct, frozen=True, kw_only=True):
    """The slices of a stack that a job is done for: along which axes, and how many along each of them."""

    axes: tuple[int, ...]
    extents: tuple[int, ...]

    @property
    def count(self) -> int:
        return math.prod(self.extents)

    @property
    def said(self) -> str:
        """`0,1`, as --each has it."""
        return ",".join(map(str, self.axes))

    def shape(self, rows: int, columns: int) -> tuple[int, ...]:
        """That of an array of results: slices stand where those of the input stood."""
        return whole_shape(self.extents, self.axes, rows, columns)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One job as it will be done. `job.output` is still empty: making files is not planning.

    `measure_tile`: the bytes of an item and the threads for which a tile is to be found after the job.
    `probed`: what was found of the output's device, to be kept then.
    Of a stencil: the result has `planes` in the rows of `shape`, and is also kept after `snapshots` sweeps;
    `states` are what files between its passes hold, where there are any.
    `pieces` are the files of a result that is a folder; `shape` is that of the first one then.

    `writes_early`: ranks write while they still compute; `journaled`: what is done stands in the output piece
    by piece, so that another start can go on from there. `state` is what a file holds from which it can go on
    in the midst of the work; one is kept every `checkpoint` seconds, 0: when the job is asked to end, None:
    never. With `each` shapes and needs are those of one slice.

    `refusal` says why there is no room for it. `fixed` are the flags that were given; `oversubscribed` may be
    wrong where `spread` is not sure.
    """

    job: Job
    shape: tuple[int, int]
    dtype: str
    order: str = "C"
    header: bool = False
    names: tuple[str, ...] = ()
    choices: Choices
    facts: Facts
    need: Need
    reasons: list[str]
    warnings: list[str]
    spread: Spread
    measure_tile: tuple[int, int] | None = None
    probed: Probed | None = None
    planes: int = 1
    snapshots: list[int] = []
    states: list[Region] = []
    pieces: list[FolderFile] = []
    fallback: Fallback | None = None
    writes_early: bool = False
    journaled: bool = False
    state: Region | None = None
    checkpoint: float | None = None
    each: Each | None = None

    refusal: Refusal | None
    fixed: list[str]
    chosen_by: str
    oversubscribed: bool

    def required(self, advise: Callable[[], str] = str) -> Plan:
        """Itself; UsageError where it is refused. `advise` is asked where the refusal has no advice."""
        if self.refusal is not None:
            raise UsageError(self.refusal.message, self.refusal.advice or advise())
        return self


def variant_of(
    choices: Choices,
    spread: Spread,
    ways: tuple[str, str],
    grid: tuple[int, int],
    algorithm: str = "local",
    **more: Any,
) -> Variant:
    """The variant of ranks as they are `spread`, which read and write in these `ways`; `more` are its fields.

    They exchange nothing unless told.
    """
    told = {"exchange": "none", "kernel": choices.kernel, "remainder": choices.remainder, **more}
    return Variant(
        algorithm=algorithm,
        read=ways[0],
        write=ways[1],
        grid=grid,
        ranks=spread.ranks,
        threads=spread.threads,
        **told,
    )


def plan_of(
    task: Task[Any],
    spread: Spread,
    variant: Variant,
    need: Need,
    *,
    compute_type: str,
    choosable: Sequence[str],
    warnings: Sequence[str] = (),
    flops: float = 0.0,
    gemm: bool = True,
    also_fixed: Sequence[str] = (),
    fallback: Fallback | None = None,
    job: Mapping[str, Any] = {},
    **more: Any,
) -> Plan:
    """The plan of a `variant`, with what follows from it: binding, warnings, who chose, if it fits.

    `choosable` are the flags that decide everything, `also_fixed` those of one operation that were given.
    `gemm`: the job multiplies, so that BLAS matters. `job` and `more` are fields
    of the job and of the plan that not every operation has. The result's shape and type are those of the
    first input unless `more` has others.
    """
    choices, facts, inputs, reasons = task.options, task.facts, task.inputs, task.why
    over = bool(spread.crowded)
    notes = [*warnings, *crowding(spread)]
    need = with_unpacking(need, inputs, variant, spread.on_node)
    if fallback is not None:
        other = with_unpacking(fallback.need, inputs, variant, spread.on_node)
        fallback = msgspec.structs.replace(fallback, need=other)
    if flops > 0 and gemm:
        notes.extend(environment.blas_warnings(os.environ, facts))
    fixed = [*choices.fixed(), *also_fixed]
    refusals = (
        misfit(each, choices.memory, facts, spread.on_node, sure=spread.sure, exchange=variant.exchange)
        for each in (need, *([fallback.need] if fallback else []))
    )
    source = inputs[0]
    if any(region.chunks for region in inputs):
        reasons = [*reasons, UNPACKED]
    return Plan(
        job=Job(
            id=new_owner().identity,
            command=choices.command,
            inputs=inputs,
            output=None,
            variant=variant,
            dtype=compute_type,
            bind=not over,
            place=choices.place,
            hints=io.hints(variant, choices.hints),
            repeat=choices.repeat,
            warmup=choices.warmup,
            sync=choices.sync,
            fault=os.environ.get("TILEWISE_FAULT", ""),
            **job,
        ),
        choices=choices,
        facts=facts,
        need=need,
        fallback=fallback,
        reasons=reasons,
        warnings=notes,
        spread=spread,
        refusal=next(filter(None, refusals), None),
        fixed=fixed,
        chosen_by="user" if set(choosable) <= set(fixed) else "plan",
        oversubscribed=over,
        **{"shape": (source.rows, source.columns), "dtype": source.dtype, **more},
    )


def crowding(spread: Spread) -> list[str]:
    """Warnings of more ranks than there is room for."""
    notes = []
    if spread.crowded and spread.sure:
        notes.append(
            f"oversubscribed: {spread.crowded}: ranks take turns, and the times reveal "
            "little about the algorithm"
        )
    if spread.beyond:
        notes.append(f"more ranks than slots: {spread.beyond}")
    return notes
