"""The record of a job that has ended, by what ranks, plan and front know; and the verdict on its result."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

import tilewise
from tilewise.base.errors import VerificationError
from tilewise.base.units import listing, plural
from tilewise.engine.decoder_check import unchecked
from tilewise.engine.job_output import JobOutput
from tilewise.files.formats import format_name
from tilewise.files.region import Region, Source
from tilewise.files.slices import whole_shape
from tilewise.files.style import loss_text
from tilewise.files.target import Target
from tilewise.launch.events import Done, RankPlace, SliceDone, Verification
from tilewise.launch.job import Job, Stack, Variant
from tilewise.launch.launcher import Start
from tilewise.launch.record import (
    Bytes,
    Environment,
    InputSeconds,
    Matrix,
    OutputSeconds,
    PeakMemory,
    RankSeconds,
    Rates,
    Record,
    RecordSlices,
    RecordVariant,
    Seconds,
    Simulated,
    Storage,
)
from tilewise.machine.disturbance import Disturbance
from tilewise.machine.facts import Facts
from tilewise.machine.storage import cache_state, file_system
from tilewise.operations import show_of
from tilewise.operations.show import slices_text
from tilewise.planning.cost import Prediction
from tilewise.planning.need import Need
from tilewise.planning.plan import Each, Plan
from tilewise.planning.rule import SHARED
from tilewise.planning.where import misplaced


def record_of(
    done: Done,
    sent: Job,
    output: JobOutput,
    start: Start,
    *,
    storage: list[Storage],
    decoding: float,
    packing: float,
    wall: float,
    foreseen: Prediction | None,
    warnings: Sequence[str],
    disturbance: Disturbance,
) -> Record:
    """The record of a job that ended well: `done` is what the ranks said of what was `sent` to them.

    Of all seconds the front took `decoding` and `packing` for files that ranks cannot read or write in
    parallel. `foreseen` is what was predicted before, None of what only goes on. `warnings` came up after the
    planning; `disturbance` is what else happened meanwhile.
    """
    _count_front(done, decoding, packing)
    plan, cluster = output.plan, output.plan.choices.simulate
    seconds = _seconds(done, wall)
    compute_rate = _rate(done.flops, seconds.compute.max)
    need, variant = _as_done(plan, sent.variant, done)
    environment = environment_of(
        done,
        plan.facts,
        start,
        bind=sent.bind,
        storage=storage,
        oversubscribed=plan.oversubscribed and plan.spread.sure,
        simulated=_simulated(plan, bool(output.matrices())),
    )
    peak = _peak(done, compute_rate, environment)
    disturbance.oversubscribed = environment.oversubscribed
    return Record(
        tilewise=tilewise.__version__,
        command=sent.command,
        inputs=[_matrix(region) for region in plan.job.inputs],
        outputs=output.matrices(),
        variant=record_variant(variant, sent.stack, plan.each, sent.hints),
        chosen_by=plan.chosen_by,
        fixed=plan.fixed,
        reasons=_reasons(done, plan),
        seconds=seconds,
        samples=done.samples,
        bytes=_bytes(done),
        messages=sum(done.messages),
        io_calls=sum(done.io_calls),
        flops=done.flops,
        rates=_rates(done, seconds, plan.writes_early),
        peak_flops=peak,
        fraction_of_peak=compute_rate / peak if compute_rate and peak else None,
        peak_rss_bytes=_memory(done),
        needed_bytes=need.node,
        ranks_working=sum(rank.working for rank in done.ranks),
        placement=[RankPlace(rank.rank, rank.host, rank.pid, rank.cpus, rank.node) for rank in done.ranks],
        predicted_seconds=foreseen.as_dict() if foreseen else None,
        verification=_proof(done, plan),
        result=done.result,
        warnings=list(
            dict.fromkeys(
                [*plan.warnings, *_lost(done, plan), *warnings, *_placed(done, plan), *done.warnings]
            )
        ),
        environment=environment,
        labels=[] if cluster is not None and cluster.counted else disturbance.words(),
        disturbance=disturbance,
    )


def _proof(done: Done, plan: Plan) -> Verification | None:
    """The proof, which holds for the numbers that were read: whether these are the file's, it cannot see."""
    if done.verification is None or not unchecked(plan.job.inputs):
        return done.verification
    said = "decoding of the input not checked"
    return msgspec.structs.replace(done.verification, unchecked=said)


def _simulated(plan: Plan, numbers: bool) -> Simulated | None:
    cluster = plan.choices.simulate
    if cluster is None:
        return None
    return Simulated(
        cluster=cluster.name,
        hosts=len(cluster.hosts),
        cores=cluster.cores,
        operations_per_second=cluster.operations if cluster.counted else None,
        bytes_per_second=cluster.bytes if cluster.counted else None,
        numbers=numbers,
    )


def _count_front(done: Done, decoding: float, packing: float) -> None:
    """Adds the front's share to every rank's input and output: no rank could do anything meanwhile."""
    for name, seconds in (
        ("input", decoding),
        ("input_parse", decoding),
        ("output", packing),
        ("output_format", packing),
        ("total", decoding + packing),
    ):
        done.seconds[name] = [value + seconds for value in done.seconds.get(name, [])]


def _peak(done: Done, reached: float | None, environment: Environment) -> float | None:
    """Peak of the processors' units; None where threads shared a core, or where the job was faster than the
    loops that measured it, which something must have disturbed.
    """
    peak = done.peak_flops
    return None if peak is None or environment.oversubscribed or peak < (reached or 0.0) else peak


def _as_done(plan: Plan, variant: Variant, done: Done) -> tuple[Need, Variant]:
    """Memory and variant in the end, where the job left the ranks a choice."""
    need = plan.need
    start = str(done.result.get("start_used") or "")
    if plan.fallback is not None and start == "qr":
        need = plan.fallback.need
        variant = msgspec.structs.replace(variant, blocks=plan.fallback.blocks)
    if survived := done.result.get("survived"):
        variant = msgspec.structs.replace(
            variant, ranks=survived["ranks"], grid=(survived["grid"][0], survived["grid"][1])
        )
    if done.exchange:
        variant = msgspec.structs.replace(variant, exchange=done.exchange)
    if (algorithm := done.result.pop("algorithm", None)) is not None:
        variant = msgspec.structs.replace(variant, algorithm=algorithm, start=start, inner="blocks")
    return need, variant


def _lost(done: Done, plan: Plan) -> list[str]:
    """Warnings of numbers in texts that could not be held as they are written."""
    warnings = []
    for loss in done.losses:
        source = plan.job.inputs[loss.input]
        said = loss_text(loss.kind, loss.count, loss.line, loss.column, source.dtype)
        warnings.append(f"{source.name}: {said}")
    return warnings


def _placed(done: Done, plan: Plan) -> list[str]:
    """Warnings of ranks that are not where the plan wanted them, or too many where a launcher put them."""
    warnings = []
    if wrong := misplaced(plan.spread, done.ranks):
        warnings.append(f"{wrong}; threads and memory are chosen for the second")
    if done.oversubscribed and not (plan.oversubscribed and plan.spread.sure):
        warnings.append("oversubscribed: a node has more threads than processors, so ranks take turns")
    return warnings


def _reasons(done: Done, plan: Plan) -> list[str]:
    """The plan's, with those for an exchange that the ranks took because they are on several nodes."""
    if not done.exchange or done.exchange == plan.job.variant.exchange:
        return plan.reasons
    used = list(dict.fromkeys(rank.host for rank in done.ranks))
    kept = [reason for reason in plan.reasons if not reason.startswith(SHARED)]
    named = listing(used) if len(used) <= 4 else plural(len(used), "host")
    return [*kept, f"{done.exchange}: the ranks are on {named}"]


def _matrix(region: Region) -> Matrix:
    path = region.path or region.name
    kind = "generated" if region.generator else format_name(region.name)
    planes = region.planes if isinstance(region, Source) else 1
    shape: tuple[int, ...] = (region.rows // planes, region.columns)
    if isinstance(region, Source) and region.part is not None and region.part.slices is not None:
        shape = whole_shape(region.stack, region.part.slices.axes, region.rows // planes, region.columns)
    ends = tuple((each.start, each.stop) for each in region.window)
    window = msgspec.UNSET if region.whole is None else ends
    return Matrix(path, kind, shape, region.dtype, region.order, planes, window)


def record_variant(
    variant: Variant,
    stack: Stack | None = None,
    each: Each | None = None,
    hints: Mapping[str, str] = MappingProxyType({}),
) -> RecordVariant:
    """The variant as the record shows it: null where the worker was told nothing. Of a stack with `each`."""
    names = (name for name in RecordVariant.__struct_fields__ if name not in ("io", "each", "hints"))
    said = {name: getattr(variant, name) for name in names}
    for field in msgspec.structs.fields(RecordVariant):
        if field.default is None and said.get(field.name) in ("", 0, (0, 0)):
            said[field.name] = None
    slices = RecordSlices(each.axes, each.extents, each.count, stack.apart) if stack and each else None
    return RecordVariant(io=f"{variant.read}:{variant.write}", each=slices, hints=dict(hints), **said)


def spread(values: Sequence[float]) -> RankSeconds:
    """Minimum, mean and maximum; zeros for nothing."""
    if not values:
        return RankSeconds(0.0, 0.0, 0.0)
    return RankSeconds(min(values), sum(values) / len(values), max(values))


def _seconds(done: Done, wall: float) -> Seconds:
    def of(name: str) -> RankSeconds:
        return spread(done.seconds.get(name, []))

    reading, writing = of("input"), of("output")
    return Seconds(
        input=InputSeconds(
            reading.min,
            reading.mean,
            reading.max,
            of("input_parse"),
            of("input_file"),
            of("input_distribute"),
        ),
        compute=of("compute"),
        exchange=of("exchange"),
        output=OutputSeconds(
            writing.min,
            writing.mean,
            writing.max,
            of("output_format"),
            of("output_file"),
            of("output_collect"),
        ),
        verify=of("verify"),
        total=of("total"),
        wall=wall,
    )


def _total(done: Done, name: str) -> int:
    """Bytes of that name, of all ranks."""
    return sum(done.bytes.get(name, []))


def _bytes(done: Done) -> Bytes:
    return Bytes(
        read=_total(done, "read"),
        useful=_total(done, "useful"),
        written=_total(done, "written"),
        exchanged=_total(done, "exchanged"),
        exchanged_max_rank=max(done.bytes.get("exchanged", []), default=0),
        copied_in_node=_total(done, "copied_in_node"),
    )


def _rates(done: Done, seconds: Seconds, early: bool) -> Rates:
    """Rates of bytes that moved in the seconds of their phase: not of those read ahead, or by the check."""
    written = _total(done, "written_in_output")
    # What was written `early` was written while the rest was computed: the seconds of `output` are not all.
    return Rates(
        flops_per_second=_rate(done.flops, seconds.compute.max),
        read_bytes_per_second=_rate(_total(done, "read_in_input"), seconds.input.max),
        written_bytes_per_second=None if early else _rate(written, seconds.output.max),
        exchanged_bytes_per_second=_rate(_total(done, "exchanged"), seconds.exchange.max),
        whole_flops_per_second=_rate(done.flops, seconds.total.max),
    )


def _rate(work: float, seconds: float) -> float | None:
    return work / seconds if work > 0 and seconds > 0 else None


def _memory(done: Done) -> PeakMemory:
    nodes: dict[object, int] = defaultdict(int)
    for rank in done.ranks:
        nodes[(rank.host, rank.node)] += rank.peak_rss_bytes
    each = [rank.peak_rss_bytes for rank in done.ranks]
    return PeakMemory(each, max(each, default=0), max(nodes.values(), default=0))


_TELLING = ("OPENBLAS_", "OMP_", "GOTO_", "BLIS_", "MKL_", "MPIR_CVAR_", "MPICH_", "OMPI_MCA_", "FI_", "UCX_")


def environment_of(
    done: Done,
    facts: Facts,
    start: Start,
    *,
    bind: bool,
    storage: list[Storage],
    oversubscribed: bool,
    simulated: Simulated | None = None,
) -> Environment:
    """Environment of a run of `start` that ended with `done`; `bind`: ranks were told to keep to cores."""
    told = dict(done.environment)
    versions = {"python": platform.python_version(), "tilewise": tilewise.__version__}
    if "worker_version" in told:
        versions["worker"] = told["worker_version"]
    versions["kernel"] = platform.release()
    bound = [rank.cpus for rank in done.ranks]
    return Environment(
        host=facts.host,
        cpu=facts.cpu,
        cores=facts.cores,
        cpus=facts.cpus,
        numa_nodes=facts.numa,
        mpi_library=told.get("mpi_library", "unknown"),
        mpi_standard=told.get("mpi_standard", "unknown"),
        blas=told.get("blas", "unknown"),
        blas_kernel=told.get("blas_kernel", "unknown"),
        gemm_kernel=told.get("gemm_kernel", ""),
        compiler=told.get("compiler", "unknown"),
        binding="each rank to its own cores" if bind and any(bound) else "none",
        launcher=shlex.join(start.shown()),
        storage=storage,
        oversubscribed=done.oversubscribed or oversubscribed,
        variables=_telling(start.environment),
        versions=versions,
        time=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        virtual="hypervisor" in facts.flags if facts.flags else None,
        simulated=simulated,
    )


def _telling(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that change how fast MPI or BLAS run."""
    return {key: value for key, value in sorted(environment.items()) if key.startswith(_TELLING)}


def storage_of(inputs: Sequence[Region], target: Target | None) -> list[Storage]:
    """Where files lie, looked at before the job warms the cache."""
    inputs_lie = [
        Storage(region.path, file_system(region.path), cache_state(region.path))
        for region in inputs
        if region.path
    ]
    if target is None:
        return inputs_lie
    return [*inputs_lie, Storage(target.path, file_system(os.path.dirname(target.path)), "new")]


def disproof(record: Record, plan: Plan) -> VerificationError | None:
    """Error of a job of `plan`; None where its result was proved, or no proof was wanted."""
    proof, show = record.verification, show_of(record.command, record.variant.each)
    if proof is None or proof.passed:
        return None
    if proof.method == "convergence":
        return VerificationError(*show.not_converged(record, plan))
    numbers = ""
    if proof.error is not None and proof.tolerance is not None:
        numbers = f": error {proof.error:.2e}, allowed {proof.tolerance:.2e}"
    which = "the result"
    if record.variant.each is not None:
        from tilewise.operations.show import failed

        which = f"{failed(record)} of the result"
    return VerificationError(
        f"{which} failed its {proof.method} verification{numbers}; it was discarded",
        show.tolerated(plan) or "--verify serial to be sure, and tilewise doctor",
    )


_WARNINGS = 4  # different ones that are shown


def gathered(done: Done, each: Each | None) -> Done:
    """`done`; for a stack, with result, verification and warnings of all its slices."""
    if each is None:
        return done
    slices = done.slices
    result: dict[str, Any] = {"slices": len(slices)}
    differ: dict[str, list[Any]] = {}
    for key in dict.fromkeys(key for one in slices for key in one.result):
        values = [one.result.get(key) for one in slices]
        if all(value == values[0] for value in values):
            result[key] = values[0]
        else:
            differ[key] = values
    result["each"] = differ
    if failed := _failed(slices):
        result["failed_slices"] = failed
    return msgspec.structs.replace(
        done,
        result=result,
        slices=[],
        verification=_worst(slices),
        warnings=[*done.warnings, *_warnings(slices, each)],
    )


def _failed(slices: list[SliceDone]) -> list[int]:
    return [
        number
        for number, one in enumerate(slices)
        if one.verification is not None and not one.verification.passed
    ]


def _worst(slices: list[SliceDone]) -> Verification | None:
    """The verdict on all slices: that of the worst, of the mean share."""
    proofs = [one.verification for one in slices if one.verification is not None]
    if not proofs:
        return None
    share = sum(proof.share for proof in proofs) / len(slices)
    worst = max(proofs, key=lambda proof: (not proof.passed, _excess(proof)))
    return msgspec.structs.replace(worst, share=share)


def _excess(proof: Verification) -> float:
    """The error, in units of what it may be."""
    return (proof.error or 0.0) / (proof.tolerance or 1.0)


def _warnings(slices: list[SliceDone], each: Each) -> list[str]:
    """Each different one once, with the slices that it is about."""
    about: dict[str, list[int]] = {}
    for number, one in enumerate(slices):
        for warning in one.warnings:
            about.setdefault(warning, []).append(number)
    said = [f"{slices_text(numbers, each.extents)}: {warning}" for warning, numbers in about.items()]
    left = len(said) - _WARNINGS
    return [*said[:_WARNINGS], *([f"and {plural(left, 'warning')} of other slices"] if left > 0 else [])]
