"""The road that every job takes: look, plan, make the part file, run, judge, commit, record, explain."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from tilewise.cli import places, room, side_files
from tilewise.cli.decoding import Decoding
from tilewise.cli.job_record import record_of, remember, storage_of
from tilewise.cli.options import JobOptions
from tilewise.errors import Interrupted, RunError, TilewiseError, UsageError, VerificationError, clean
from tilewise.files.claim import named, verdict
from tilewise.files.guard import disk_failure
from tilewise.files.region import Region, Source
from tilewise.files.target import Target
from tilewise.files.unchanged import Inputs
from tilewise.launch import afterwards, assemble, diagnose, forked, job, launcher, signals
from tilewise.launch.events import Done
from tilewise.launch.guardian import Guardian
from tilewise.launch.join import Join, foreign
from tilewise.launch.record import Record, encode
from tilewise.launch.supervise import Outcome, Supervisor
from tilewise.machine.facts import Facts, gather
from tilewise.plan.choices import Choices
from tilewise.plan.plan import Plan
from tilewise.report.progress import ProgressBar

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
    afterwards.admit(signals.NOTHING)
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
        side_files.check(flag, path, place.paths(plan), options.force)
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
    options, plan, place = prepared.request.options, prepared.plan, prepared.place
    start = _start(plan, joined)
    stored = storage_of(plan.job.inputs, place.target)
    inputs = Inputs(plan.job.inputs)
    trace = side_files.SideFile("the timeline", options.trace, plan.job.id)
    kept = side_files.SideFile("the record", options.json if options.json != "-" else None, plan.job.id)
    # Open MPI gives ranks a terminal of its own, wherever their output goes.
    bar = ProgressBar(wanted=not options.quiet and joined is None)
    output: places.Made | None = None
    guardian: Guardian | None = None
    decoding = Decoding(plan.job.inputs, place.target, plan.job.id)
    beside = [decoding.claim, trace.claim, kept.claim]
    try:
        for each in room.needed(plan, prepared.place):
            each.require()
        with caught.hold():
            place.sweep()
            guardian = Guardian([*place.claims(plan), *beside], "the job was killed")
            output = place.make(plan)
            guardian.tell([*output.claims, *beside])
        final = msgspec.structs.replace(
            output.told(plan.job), inputs=decoding.decode(), trace=trace.part, progress=bar.wanted
        )
        deadline = time.monotonic() + options.timeout if options.timeout is not None else None
        outcome = _supervise(start, final, options, bar, caught, output)
        error = diagnose.error_of(outcome, options.timeout)
        if error is not None:
            raise error
        assert outcome.record is not None
        decoding.remove()
        plan.warnings.extend([*output.settle(outcome.record.result), *inputs.warnings()])
        packing = _pack(output, outcome.record, options, caught, deadline)
        front = assemble.FrontSeconds(decoding.seconds, packing)
        record = record_of(outcome.record, plan, final, output.matrices(plan), stored, start, front)
        caught.check()
        with caught.hold():
            _judge(record, kept, options, plan)
            trace.finish()
            _keep(record, kept)
            output.ready(options.sync)
            guardian.tell([*output.claims, *beside])
            output.name(options.force)
            # From here on it is written, whatever comes: messages say so.
            _admit(output, caught)
            if late := output.tidy(options.sync):
                record.warnings.extend(late)
                _keep(record, kept)
            trace.name()
            kept.name()
    except BaseException as raised:
        failure = raised
        if isinstance(raised, OSError) and not isinstance(raised, BrokenPipeError):
            failure = disk_failure(f"{place.target.name} cannot be made", raised)
        _clean(output, [trace, kept], failure, caught)
        if guardian is not None:  # until we have said why, we may be killed, and it says at least that
            afterwards.later(guardian.dismiss)
        raise failure from None
    finally:
        bar.close()
        decoding.remove()
    guardian.dismiss()
    remember(record, plan)
    try:
        _tell(record, outcome, options, plain=joined is not None)
    except (BrokenPipeError, Interrupted):
        raise
    except (TilewiseError, OSError) as lost:
        reason = lost.message if isinstance(lost, TilewiseError) else lost.strerror
        raise RunError(
            f"{place.target.name} is complete, but what there is to say of it is lost: {reason}",
            "look at where standard output goes",
        ) from None
    return 0


def _pack(
    output: places.Made, done: Done, options: JobOptions, caught: signals.Signals, deadline: float | None
) -> float:
    """Packs an output whose format asks for it, unless it will be thrown away; returns the seconds.

    In a child: libraries pack a whole picture in one call, in which nothing else is heard.
    """
    begin = time.perf_counter()
    proved = done.verification is None or done.verification.passed
    late = RunError(
        f"the ranks are done, but packing the output took longer than --timeout {options.timeout} leaves",
        "a longer --timeout, or a .npy file, which needs no packing",
    )
    packed = proved and output.pack(options.sync, lambda work: forked.run(work, caught.check, deadline, late))
    return time.perf_counter() - begin if packed else 0.0


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
    start: launcher.Start,
    final: job.Job,
    options: JobOptions,
    bar: ProgressBar,
    caught: signals.Signals,
    output: places.Made,
) -> Outcome:
    def named(index: int) -> None:
        with caught.hold():
            output.name_snapshot(index, options.sync, options.force)

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
        on_snapshot=named,
    )
    return supervisor.run(job.encode(final))


def _get_ready(options: JobOptions) -> None:
    """Imports what the end needs while the ranks work."""
    if not options.quiet and options.json != "-":
        import tilewise.report.explain  # noqa: F401


def _judge(record: Record, kept: side_files.SideFile, options: JobOptions, plan: Plan) -> None:
    """Raises VerificationError, after keeping the record, when the proof failed."""
    proof = record.verification
    if proof is None or proof.passed:
        return
    _keep(record, kept)
    kept.name()
    _print_record(record, options)
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


def _tell(record: Record, outcome: Outcome, options: JobOptions, plain: bool) -> None:
    _print_record(record, options)
    if options.quiet:
        return
    if not options.verbose:  # with -v it was shown when it came
        for line in outcome.chatter:
            print(line, file=sys.stderr)
    for warning in record.warnings:
        # In one piece: an interrupt that comes here has a line of its own.
        sys.stderr.write(f"tilewise: warning: {clean(warning)}\n")
    if options.json != "-":
        from tilewise.report.explain import explain
        from tilewise.report.terminal import show

        show(explain(record), plain)


def _keep(record: Record, kept: side_files.SideFile) -> None:
    """Writes the record where it waits for its name."""
    if kept.part:
        kept.put(encode(record))


def _print_record(record: Record, options: JobOptions) -> None:
    if options.json == "-":
        sys.stdout.write(encode(record).decode())
        sys.stdout.flush()


def _admit(output: places.Made, caught: signals.Signals) -> None:
    """Whatever interrupts us from here on says what was written."""
    said = verdict(output.claims)
    caught.admit(said)
    afterwards.admit(said)


def _clean(
    output: places.Made | None,
    side: list[side_files.SideFile],
    error: BaseException,
    caught: signals.Signals,
) -> None:
    """Removes part files. The error's message then says what was written all the same, and what is left."""
    for each in side:
        each.discard()
    if output is None:
        return
    said = verdict(output.claims) if named(output.claims) else ""
    left = output.discard()
    if not isinstance(error, TilewiseError):
        return
    if said and isinstance(error, Interrupted):
        _admit(output, caught)
    elif said:
        error.message += f"; {said}" + (
            "; snapshots are not verified" if isinstance(error, VerificationError) else ""
        )
    if left:
        error.message += f"; {', '.join(left)} could not be removed"


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
