"""Makes the record out of the worker's lists, one number a rank, and of what the front knows by itself."""

from __future__ import annotations

import datetime
import platform
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

import tilewise
from tilewise.launch.events import Done
from tilewise.launch.job import Job, Variant
from tilewise.launch.record import (
    Bytes,
    Environment,
    InputSeconds,
    Matrix,
    OutputSeconds,
    PeakMemory,
    Place,
    Rates,
    Record,
    RecordVariant,
    Seconds,
    Spread,
    Storage,
)
from tilewise.machine.facts import Facts

_TELLING = ("OPENBLAS_", "OMP_", "GOTO_", "BLIS_", "MKL_", "MPIR_CVAR_", "MPICH_", "OMPI_MCA_", "FI_", "UCX_")


class FrontSeconds(msgspec.Struct, frozen=True):
    """What the front did with files that ranks cannot read or write in parallel."""

    decoding: float = 0.0
    packing: float = 0.0


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What the front knows of a job besides what the worker tells. `peak` is gemm's stored rate, if any."""

    job: Job
    facts: Facts
    inputs: list[Matrix]
    outputs: list[Matrix]
    storage: list[Storage]
    chosen_by: str
    fixed: list[str]
    reasons: list[str]
    warnings: list[str]
    needed_bytes: int
    launcher: str
    variables: Mapping[str, str]
    oversubscribed: bool
    front: FrontSeconds
    wall: float
    peak: float | None


def assemble(done: Done, known: Known) -> Record:
    """The record of a job that ended well."""
    _count_front(done, known.front)
    seconds = _seconds(done, known.wall)
    compute_rate = _rate(done.flops, seconds.compute.max)
    measured = done.peak_flops or known.peak
    # What a job reached is no more than the machine can: a measurement that was disturbed is raised by it.
    peak = max(measured, compute_rate or 0.0) if measured else None
    return Record(
        tilewise=tilewise.__version__,
        command=known.job.command,
        inputs=known.inputs,
        outputs=known.outputs,
        variant=record_variant(_as_done(known.job.variant, done)),
        chosen_by=known.chosen_by,
        fixed=known.fixed,
        reasons=known.reasons,
        seconds=seconds,
        samples=done.samples,
        bytes=_bytes(done),
        messages=sum(done.messages),
        io_calls=sum(done.io_calls),
        flops=done.flops,
        rates=_rates(done, seconds, known.job),
        peak_flops=peak,
        fraction_of_peak=compute_rate / peak if compute_rate and peak else None,
        peak_rss_bytes=_memory(done),
        needed_bytes=known.needed_bytes,
        ranks_working=sum(rank.working for rank in done.ranks),
        placement=[Place(rank.rank, rank.host, rank.pid, rank.cpus, rank.node) for rank in done.ranks],
        predicted_seconds=None,
        verification=done.verification,
        result=done.result,
        warnings=list(dict.fromkeys([*known.warnings, *done.warnings])),
        environment=_environment(done, known),
    )


def _count_front(done: Done, front: FrontSeconds) -> None:
    """Adds the front's share to every rank's input and output: no rank could do anything meanwhile."""
    added = (("input", front.decoding), ("input_parse", front.decoding), ("output", front.packing))
    for name, seconds in (
        *added,
        ("output_format", front.packing),
        ("total", front.decoding + front.packing),
    ):
        done.seconds[name] = [value + seconds for value in done.seconds.get(name, [])]


def _as_done(variant: Variant, done: Done) -> Variant:
    """The variant with the algorithm that the worker took in the end, where the job let it choose."""
    algorithm = done.result.pop("algorithm", None)
    if algorithm is None:
        return variant
    start = str(done.result.get("start_used") or "")
    return msgspec.structs.replace(variant, algorithm=algorithm, start=start, inner="blocks")


def record_variant(variant: Variant) -> RecordVariant:
    """The variant as the record shows it."""
    return RecordVariant(
        algorithm=variant.algorithm,
        exchange=variant.exchange,
        io=f"{variant.read}:{variant.write}",
        grid=variant.grid,
        ranks=variant.ranks,
        threads=variant.threads,
        copies=variant.copies,
        kernel=variant.kernel,
        remainder=variant.remainder,
        root_write=variant.root_write or None,
        tile=variant.tile if variant.tile != (0, 0) else None,
        decomposition=variant.decomposition or None,
        depth=variant.depth or None,
        halo=variant.halo or None,
        blocks=variant.blocks or None,
        start=variant.start or None,
        inner=variant.inner or None,
    )


def telling_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that change how fast MPI or BLAS run."""
    return {key: value for key, value in sorted(environment.items()) if key.startswith(_TELLING)}


def spread(values: Sequence[float]) -> Spread:
    """Minimum, mean and maximum; zeros for nothing."""
    if not values:
        return Spread(0.0, 0.0, 0.0)
    return Spread(min(values), sum(values) / len(values), max(values))


def _seconds(done: Done, wall: float) -> Seconds:
    def of(name: str) -> Spread:
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


def _bytes(done: Done) -> Bytes:
    def total(name: str) -> int:
        return sum(done.bytes.get(name, []))

    return Bytes(
        read=total("read"),
        useful=total("useful"),
        written=total("written"),
        exchanged=total("exchanged"),
        exchanged_max_rank=max(done.bytes.get("exchanged", []), default=0),
        copied_in_node=total("copied_in_node"),
    )


def _rates(done: Done, seconds: Seconds, job: Job) -> Rates:
    moved = _bytes(done)
    # Written while the rest was computed: what is left of `output` says nothing about the device.
    multiplied = job.command == "multiply" and job.variant.copies == 1 and done.flops > 0
    early = multiplied and job.variant.write == "uncached"
    return Rates(
        flops_per_second=_rate(done.flops, seconds.compute.max),
        read_bytes_per_second=_rate(moved.read, seconds.input.max),
        written_bytes_per_second=None if early else _rate(moved.written, seconds.output.max),
        exchanged_bytes_per_second=_rate(moved.exchanged, seconds.exchange.max),
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


def _environment(done: Done, known: Known) -> Environment:
    return environment_of(
        done,
        known.facts,
        bind=known.job.bind,
        launcher=known.launcher,
        storage=known.storage,
        variables=known.variables,
        oversubscribed=known.oversubscribed,
    )


def environment_of(
    done: Done,
    facts: Facts,
    *,
    bind: bool,
    launcher: str,
    storage: list[Storage],
    variables: Mapping[str, str],
    oversubscribed: bool,
) -> Environment:
    """Everything around a run that its numbers depend on; `bind`: ranks were told to keep to their cores."""
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
        launcher=launcher,
        storage=storage,
        oversubscribed=done.oversubscribed or oversubscribed,
        variables=telling_variables(variables),
        versions=versions,
        time=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    )
