"""The road that every job takes: look, plan, make the part file, run, judge, commit, record, explain."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from tilewise import files
from tilewise.cli import places, room, side_files
from tilewise.cli.decoding import Decoding
from tilewise.cli.options import JobOptions
from tilewise.errors import RunError, TilewiseError, UsageError, VerificationError
from tilewise.files.output import Target
from tilewise.files.region import Region, Source
from tilewise.launch import afterwards, assemble, diagnose, hosts, job, launcher, signals
from tilewise.launch.events import Done
from tilewise.launch.guardian import Guardian
from tilewise.launch.join import Join, foreign
from tilewise.launch.record import Matrix, Record, Storage
from tilewise.launch.record import write as write_record
from tilewise.launch.supervise import Outcome, Supervisor
from tilewise.machine import profile, storage
from tilewise.machine.facts import Facts, gather
from tilewise.plan.choices import Choices
from tilewise.plan.plan import Plan, peak_key
from tilewise.report.progress import ProgressBar
from tilewise.units import listing, plural

_BEGIN = time.perf_counter()
_RELEASING = 60.0  # seconds for ranks that exist already to start and to leave
_LOOSE = 1e-12  # a tolerance of cosines above which a proof may find vectors that are not orthogonal


@dataclass(frozen=True)
class Request:
    """One job as the command line asks for it: how to look at its inputs, and how to plan it.

    The output may be a picture with `colours`; with `several` files it is a folder.
    """

    output: str
    options: JobOptions
    choices: Choices
    inspect: Callable[[], list[Region]]
    plan: Callable[[list[Region], Target, Facts, Join | None], Plan]
    colours: bool = False
    several: bool = False


def main(name: str, parse: Callable[[], Request | None], joined: Join | None) -> int:
    """Runs the job that `parse` reads from the command line; returns the exit code.

    With `joined` this is rank 0 of ranks that exist already: they wait for a job, so that a wrong request
    still has to release them.
    """
    if joined is not None:
        _require_our_launcher(joined)
    prepared: Prepared | None = None
    with signals.watched() as caught:
        try:
            request = parse()
            if request is None:
                return 0
            prepared = prepare(request, joined)
        except TilewiseError:
            if joined is not None:
                _release(joined)
            raise
        return _run(prepared, joined, caught)


@dataclass(frozen=True)
class Prepared:
    """A request that was found possible; still nothing has been written."""

    request: Request
    plan: Plan
    place: places.Place


def prepare(request: Request, joined: Join | None) -> Prepared:
    """Looks at inputs and outputs and plans; raises UsageError for whatever cannot be. Changes nothing."""
    regions = request.inspect()
    place = places.find(request.output, request.colours, request.several)
    options = request.options
    paths = [place.target.path, *(region.path for region in regions)]
    side_files.check("--json", options.json, paths)
    side_files.check("--trace", options.trace, [*paths, options.json or ""])
    plan = _with_notes(request.plan(regions, place.target, gather(), joined), place)
    for flag, path in (("--json", options.json), ("--trace", options.trace)):
        side_files.check(flag, path, place.paths(plan))
    # Last, so that nobody removes an old output for a request that makes no sense anyway.
    place.check(plan, options.force)
    return Prepared(request, plan, place)


def _with_notes(plan: Plan, place: places.Place) -> Plan:
    """`plan` with what there is to say of its files, as reasons and as warnings."""
    inputs = [source for source in plan.job.inputs if isinstance(source, Source)]
    notes = [f"{source.name}: {note}" for source in inputs for note in source.notes]
    warnings = [f"{source.name}: {warning}" for source in inputs for warning in source.warnings]
    warnings += [f"{place.target.name}: {warning}" for warning in place.warnings(plan)]
    return msgspec.structs.replace(
        plan, reasons=[*notes, *plan.reasons], warnings=[*warnings, *plan.warnings]
    )


def _run(prepared: Prepared, joined: Join | None, caught: signals.Signals) -> int:
    options, plan, target = prepared.request.options, prepared.plan, prepared.place.target
    start = _start(plan, joined)
    stored = _storage(plan.job.inputs, target)
    trace = side_files.Trace(options.trace, plan.job.id)
    # Open MPI gives ranks a terminal of its own, wherever their output goes.
    bar = ProgressBar(wanted=not options.quiet and joined is None)
    output: places.Made | None = None
    guardian: Guardian | None = None
    decoding = Decoding(plan.job.inputs, target, plan.job.id)
    try:
        for each in room.needed(plan, prepared.place):
            each.require()
        with caught.hold():
            output = prepared.place.make(plan)
            guardian = Guardian(
                [*output.paths, *decoding.expected],
                f"tilewise: the job was killed; {target.name} was not written",
            )
        final = msgspec.structs.replace(
            output.told(plan.job), inputs=decoding.decode(), trace=trace.part, progress=bar.wanted
        )
        outcome = _supervise(start, final, options, bar, caught)
        error = diagnose.error_of(outcome, options.timeout)
        if error is not None:
            raise error
        assert outcome.record is not None
        decoding.remove()
        plan.warnings.extend(output.settle(outcome.record.result))
        packing = _pack(output, outcome.record, options)
        front = assemble.FrontSeconds(decoding.seconds, packing)
        record = _record(outcome.record, plan, final, output.matrices(plan), stored, start, front)
        caught.check()
        with caught.hold():
            _judge(record, options, plan)
            record.warnings.extend(output.commit(options.sync, options.force))
            output = None
            trace.commit()
    except BaseException as error:
        _clean(output, trace, error)
        if guardian is not None:  # until we have said why, we may be killed, and it says at least that
            afterwards.later(guardian.dismiss)
        raise
    finally:
        bar.close()
        decoding.remove()
    guardian.dismiss()
    _remember(record, plan)
    try:
        _tell(record, outcome, options, plain=joined is not None)
    except BrokenPipeError:
        raise
    except (TilewiseError, OSError) as lost:
        reason = lost.message if isinstance(lost, TilewiseError) else lost.strerror
        raise RunError(
            f"{target.name} is complete, but what there is to say of it is lost: {reason}"
        ) from None
    return 0


def _pack(output: places.Made, done: Done, options: JobOptions) -> float:
    """Packs an output whose format asks for it, unless it will be thrown away; returns the seconds."""
    begin = time.perf_counter()
    proved = done.verification is None or done.verification.passed
    return time.perf_counter() - begin if proved and output.pack(options.sync) else 0.0


def _start(plan: Plan, joined: Join | None) -> launcher.Start:
    found = launcher.find_worker()
    variant = plan.job.variant
    if joined is not None:
        return launcher.join_start(found, variant, plan.oversubscribed)
    choices = plan.choices
    return launcher.own_start(
        found, variant, choices.hosts, choices.launcher, plan.oversubscribed, plan.job.place
    )


def _supervise(
    start: launcher.Start, final: job.Job, options: JobOptions, bar: ProgressBar, caught: signals.Signals
) -> Outcome:
    def chatter(line: str) -> None:
        if options.verbose:
            print(line, file=sys.stderr, flush=True)

    if options.verbose:
        print(f"tilewise: starting {shlex.join(start.command)}", file=sys.stderr, flush=True)
    supervisor = Supervisor(
        start,
        launcher.find_worker().path,
        caught,
        timeout=options.timeout,
        on_running=lambda: _get_ready(options),
        on_progress=bar.update,
        on_chatter=chatter,
    )
    return supervisor.run(job.encode(final))


def _get_ready(options: JobOptions) -> None:
    """Imports what the end needs while the ranks work."""
    if not options.quiet and options.json != "-":
        import tilewise.report.explain  # noqa: F401


def _judge(record: Record, options: JobOptions, plan: Plan) -> None:
    """Raises VerificationError, after keeping the record, when the proof failed."""
    proof = record.verification
    if proof is None or proof.passed:
        return
    _write_record(record, options)
    if proof.method == "convergence":
        raise _not_converged(record, plan)
    numbers = ""
    if proof.error is not None and proof.tolerance is not None:
        numbers = f": error {proof.error:.2e}, allowed {proof.tolerance:.2e}"
    raise VerificationError(
        f"the result failed its {proof.method} verification{numbers}; it was thrown away",
        _loose(plan) or "--verify serial to be sure, and tilewise doctor",
    )


def _loose(plan: Plan) -> str:
    """What to try where the tolerance that was asked for may be the reason, else an empty string."""
    tolerance = plan.job.svd.tolerance if plan.job.svd is not None else 0.0
    if tolerance <= _LOOSE or plan.job.variant.algorithm == "randomized":
        return ""
    return f"no --tolerance: {tolerance:g} leaves columns with cosines as large as that to each other"


def _not_converged(record: Record, plan: Plan) -> VerificationError:
    if plan.job.stencil is not None:
        from tilewise.report.stencil import diverged

        return diverged(record, plan.job.stencil.weights)
    from tilewise.report.svd import not_converged

    return not_converged(record)


def _record(
    done: Done,
    plan: Plan,
    final: job.Job,
    outputs: list[Matrix],
    stored: list[Storage],
    start: launcher.Start,
    front: assemble.FrontSeconds,
) -> Record:
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


def _remember(record: Record, plan: Plan) -> None:
    """Keeps a peak that this run measured or passed, and measures what the next one can use."""
    if plan.keeps_peak and record.peak_flops:
        key = peak_key(plan.facts, plan.job.variant, plan.job.dtype)
        profile.store_peak(key, profile.Peak(record.peak_flops, record.environment.blas_kernel))
    if plan.measure_tile is not None:
        from tilewise.machine.transposition import measure_tile

        measure_tile(*plan.measure_tile, plan.facts, launcher.find_worker().path)


def _tell(record: Record, outcome: Outcome, options: JobOptions, plain: bool) -> None:
    _write_record(record, options)
    if options.quiet:
        return
    if not options.verbose:  # with -v it was shown when it came
        for line in outcome.chatter:
            print(line, file=sys.stderr)
    for warning in record.warnings:
        print(f"tilewise: warning: {warning}", file=sys.stderr)
    if options.json != "-":
        from tilewise.report.explain import explain
        from tilewise.report.terminal import show

        show(explain(record), plain)


def _write_record(record: Record, options: JobOptions) -> None:
    if options.json == "-":
        from tilewise.launch.record import encode

        sys.stdout.write(encode(record).decode())
        sys.stdout.flush()
    elif options.json is not None:
        write_record(record, options.json)


def _clean(output: places.Made | None, trace: side_files.Trace, error: BaseException) -> None:
    """Removes part files; one that cannot be removed is named in the error's message."""
    trace.discard()
    left = output.discard() if output is not None else ""
    if left and isinstance(error, TilewiseError):
        error.message += f"; {left} could not be removed"


def _matrix(region: Region) -> Matrix:
    path = region.path or region.name
    kind = "generated" if region.generator else files.format_name(region.name)
    planes = region.planes if isinstance(region, Source) else 1
    shape = (region.rows // planes, region.columns)
    return Matrix(path, kind, shape, region.dtype, region.order, planes)


def _storage(inputs: list[Region], target: Target) -> list[Storage]:
    """Where files lie, looked at before the job warms the cache."""
    found = [
        Storage(region.path, storage.file_system(region.path), storage.cache_state(region.path))
        for region in inputs
        if region.path
    ]
    return [*found, Storage(target.path, storage.file_system(os.path.dirname(target.path)), "new")]


def _require_our_launcher(joined: Join) -> None:
    found = launcher.find_worker()
    if foreign(joined, found.mpi):
        ours = launcher.mpiexec_path(found.build) or "the mpiexec of the mpich package"
        raise UsageError(
            "this mpiexec belongs to another MPI library (Open MPI) than the worker was built with (MPICH)",
            f"{ours} -n {joined.size} tilewise …, or tilewise … -n {joined.size} without mpiexec",
        )


def _release(joined: Join) -> None:
    """Lets ranks go that wait for a job which will not come; after an interrupt too: no signal is heard."""
    found = launcher.find_worker()
    quitting = job.quit_job()
    variant = msgspec.structs.replace(quitting.variant, ranks=joined.size)
    start = launcher.join_start(found, variant, oversubscribed=True)
    Supervisor(start, found.path, signals.Signals(), timeout=_RELEASING).run(job.encode(quitting))
