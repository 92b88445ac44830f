"""The road that every job takes: look, plan, make the part file, run, judge, name, record.

Design: docs/design/front.md.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from tilewise.base import claim, forked
from tilewise.base.errors import (
    Interrupted,
    RunError,
    StartError,
    Stopped,
    TilewiseError,
    TimeLimitError,
    UsageError,
    VerificationError,
    disk_failure,
)
from tilewise.engine import journal
from tilewise.engine.job_output import JobOutput
from tilewise.engine.learning import is_wanted, measure_once, remember, teach
from tilewise.engine.limit import Limit, in_batch, seconds_left
from tilewise.engine.prepare import prepare, prepare_to_survive, survival_trouble
from tilewise.engine.record import disproof, gathered, record_of, storage_of
from tilewise.engine.request import Listener, Request
from tilewise.engine.side_files import SideFile
from tilewise.engine.site import site_of
from tilewise.files.decoded import Decoding
from tilewise.files.unchanged import Inputs
from tilewise.launch import diagnose, job, launcher, signals, worker
from tilewise.launch.cleanup import Guardian
from tilewise.launch.events import Done
from tilewise.launch.join import Join, end_all, foreign
from tilewise.launch.outcome import Outcome
from tilewise.launch.record import Record, encode
from tilewise.launch.supervise import Supervisor
from tilewise.machine.disturbance import Watch
from tilewise.machine.terms import Machine
from tilewise.operations.prediction import cost_of, machine_of, predicted
from tilewise.planning.cost import Cost, into_cache
from tilewise.planning.plan import Plan
from tilewise.planning.where import misplaced

_START_CRASHES = 1  # of MPI itself, after which a job on several hosts starts once more
_RELEASING = 60.0  # seconds for ranks that exist already to start and to leave


@contextmanager
def session(
    joined: Join | None = None, begin: float | None = None, ending: bool = False
) -> Iterator[Session]:
    """Around a job: signals are Interrupted errors inside. `begin` is when the caller began, if before now.

    With `ending` the process only ends after an interrupt, and further signals are ignored.

    With `joined` this is rank 0 of ranks that exist already: they wait for a job, so that an error before
    one was sent to them has to release them.
    """
    opened = Session(joined, time.perf_counter() if begin is None else begin)
    if joined is not None:
        _require_our_launcher(joined)
    with signals.watched(ending) as opened.caught:
        try:
            yield opened
        except TilewiseError:
            if joined is not None and not opened.prepared:
                _release(joined)
            raise


class Session:
    """State of one running job; `session` opens it."""

    caught: signals.Signals

    def __init__(self, joined: Join | None, begin: float) -> None:
        self.prepared = False
        self._joined = joined
        self._warnings: list[str] = []
        self._measured = False
        self._begin = begin

    def run(self, request: Request, listener: Listener | None = None) -> Record:
        """Does the job, once in a session; raises what `tilewise.engine.run` raises."""
        listener = listener or Listener()
        trouble = survival_trouble(request, self._joined) if request.survive else ""
        if trouble:
            self._warnings.append(f"--survive: {trouble}; after one, use --retries or --resume")
            listener.warning(self._warnings[0])
        survives = request.survive and not trouble
        left, crashes = request.retries, _START_CRASHES
        while True:
            output = prepare_to_survive(request) if survives else prepare(request, self._joined)
            machine = machine_of(output.plan)
            cost = cost_of(output.plan, output.target)  # while files are in the cache, or not
            free = self._joined is None and not survives
            if free and is_wanted(request, output.plan, cost, machine):
                measure_once(output, listener, self.caught)
                self._measured = True
                output = prepare(request)
                machine, cost = machine_of(output.plan), cost_of(output.plan, output.target)
            self.prepared = True
            try:
                return self._run(request, output, cost, machine, listener, survives)
            except RunError as error:
                if isinstance(error, StartError) and crashes > 0:
                    crashes -= 1
                elif left > 0 and self._joined is None and not isinstance(error, TimeLimitError):
                    left -= 1
                else:
                    raise
                listener.retrying(error, left)
                signals.run_kept()
                request = msgspec.structs.replace(request, resume=True)
            finally:
                if output.begun is not None:
                    output.begun.let_go()

    def _run(
        self,
        request: Request,
        output: JobOutput,
        cost: Cost,
        machine: Machine,
        listener: Listener,
        survives: bool,
    ) -> Record:
        plan, target, caught = output.plan, output.target, self.caught
        start = _start(plan, self._joined, survives, not request.operation.nowhere)
        foreseen = predicted(plan, cost, machine)
        listener.foreseen(foreseen.total)
        storage = storage_of(plan.job.inputs, target)
        inputs = Inputs(plan.job.inputs)
        trace = SideFile("the timeline", request.trace, plan.job.id)
        kept = SideFile("the record", request.record, plan.job.id)
        decoding = Decoding(plan.job.inputs, output.folder, plan.job.id)
        beside = [decoding.claim, trace.claim, kept.claim]
        guardian: Guardian | None = None
        limit: Limit | None = None
        try:
            for each in output.disk_needs():
                each.require()
            with caught.hold():
                output.sweep()
                guardian = Guardian([*output.claims, *beside], "the job was killed")
                output.make()
                kept_on = output.keep_journal(output.with_outputs(plan.job), inputs, request.line)
                guardian.tell([*output.claims, *beside])
            sent = msgspec.structs.replace(
                kept_on,
                inputs=decoding.decode(plan.choices.memory, caught.check),
                trace=trace.part,
                progress=listener.progress,
                survive=start.survives,
            )
            if start.remote:
                trace.reserve()
                sent = msgspec.structs.replace(sent, site=site_of(output, sent, inputs))
            if output.begun is not None:
                left = seconds_left(request.time_limit, os.environ)
                # Of ranks that exist already, a SIGTERM says that one has died: their launcher ends them all.
                ours = self._joined is None
                folder, slots = output.begun.folder, plan.state if output.begun.states else None
                size = slots.bytes if slots else 0
                writing = sum(machine.seconds(term, size) for term in into_cache(folder))
                limit = Limit(folder, left, caught, in_batch() and ours, writing)
                if sent.journal is not None:
                    near = not start.remote
                    sent = msgspec.structs.replace(sent, journal=limit.told(sent.journal, near))
            elif request.time_limit is not None:
                raise UsageError(
                    f"--time-limit makes no sense here: this {plan.job.command} keeps nothing to resume from",
                    "--timeout, which ends the job for good",
                )
            if request.survive and (output.begun is None or output.begun.states):
                raise UsageError(
                    f"--survive makes no sense here: this {plan.job.command} keeps no pieces to resume from",
                    "--retries, which starts again after a death",
                )
            deadline = time.monotonic() + request.timeout if request.timeout is not None else None
            watch = Watch(light=True)
            outcome = self._supervise(start, sent, request, output, listener, limit)
            disturbance = watch.seen(
                launch=0,
                what=sent.command,
                oversubscribed=plan.oversubscribed,
                ours=self._joined is None and not start.remote,
            )
            overdue = limit is not None and outcome.timed_out and limit.passed
            error = None if overdue else diagnose.error_of(outcome, request.timeout, start)
            if limit is not None and (overdue or isinstance(error, Stopped)):
                error = limit.reached(error, bool(claim.kept(output.claims)))
            if error is not None:
                if outcome.started is not None and (wrong := misplaced(plan.spread, outcome.started.ranks)):
                    error.message += f"; {wrong}"
                raise error
            assert outcome.record is not None
            decoding.remove()
            done = gathered(outcome.record, plan.each)
            warnings = [*output.settle(done.result), *inputs.warnings(), *self._warnings]
            packing = _pack(output, done, request.timeout, caught, deadline)
            record = record_of(
                done,
                sent,
                output,
                start,
                storage=storage,
                decoding=decoding.seconds,
                packing=packing,
                wall=time.perf_counter() - self._begin,
                foreseen=foreseen if output.begun is None or not request.resume else None,
                warnings=warnings,
                disturbance=disturbance,
            )
            caught.check()
            with caught.hold():
                if (failed := disproof(record, plan)) is not None:
                    kept.put(encode(record))
                    kept.name()
                    failed.record = record
                    raise failed
                trace.finish()
                kept.put(encode(record))
                output.ready()
                guardian.tell([*output.claims, *beside])
                output.name(request.force)
                # From here on it is written, whatever comes: messages say so.
                _admit(output, caught)
                if late := output.tidy():
                    record.warnings.extend(late)
                    kept.put(encode(record))
                trace.name()
                kept.name()
        except BaseException as raised:
            failure = raised
            if isinstance(raised, OSError) and not isinstance(raised, BrokenPipeError):
                failure = disk_failure(f"{target.name if target else output.folder} cannot be made", raised)
            _clean(output, [trace, kept], failure, caught)
            if guardian is not None:  # until we have said why, we may be killed, and it says at least that
                signals.keep(guardian.dismiss)
            raise failure from None
        finally:
            decoding.remove()
            if limit is not None:
                limit.close()
        guardian.dismiss()
        remember(request, record, plan)
        if self._joined is None and decoding.seconds + packing == 0:
            teach(request, record, plan, target, cost, machine, plain=not self._measured)
        return record

    def _supervise(
        self,
        start: launcher.Start,
        sent: job.Job,
        request: Request,
        output: JobOutput,
        listener: Listener,
        limit: Limit | None,
    ) -> Outcome:
        def name_snapshot(index: int) -> None:
            with self.caught.hold():
                output.name_snapshot(index, request.force)

        listener.starting(shlex.join(start.shown()))
        supervisor = Supervisor(
            start,
            launcher.find_worker().path,
            self.caught,
            timeout=_shorter(request.timeout, limit),
            deadline=request.deadline,
            on_running=listener.running,
            on_progress=listener.update,
            on_chatter=listener.chatter,
            on_snapshot=name_snapshot,
            on_standstill=lambda hang: listener.warning(hang.standstill()),
            on_survived=lambda event: listener.warning(diagnose.survived(event)),
        )
        return supervisor.run(job.encode(sent))


def _shorter(timeout: float | None, limit: Limit | None) -> float | None:
    """The seconds after which the ranks are ended."""
    ends = None if limit is None or limit.ends is None else max(0.1, limit.ends - time.monotonic())
    return min((each for each in (timeout, ends) if each is not None), default=None)


def _pack(
    output: JobOutput,
    done: Done,
    timeout: float | None,
    caught: signals.Signals,
    deadline: float | None,
) -> float:
    """Packs an output whose format asks for it, unless it will be thrown away; returns the seconds.

    In a child: libraries pack a whole picture in one call, in which nothing else is heard.
    """
    begin = time.perf_counter()
    proved = done.verification is None or done.verification.passed
    late = RunError(
        f"the ranks finished, but packing the output took longer than --timeout {timeout} leaves",
        "a longer --timeout, or a .npy file, which needs no packing",
    )
    packed = proved and output.pack(lambda work: forked.run(work, caught.check, deadline, late))
    return time.perf_counter() - begin if packed else 0.0


def _start(plan: Plan, joined: Join | None, survives: bool, numbers: bool) -> launcher.Start:
    program = launcher.find_worker()
    variant = plan.job.variant
    if joined is not None:
        return launcher.join_start(program, variant, plan.oversubscribed, joined.remote)
    if (cluster := plan.choices.simulate) is not None:
        from tilewise.launch import simulated

        return simulated.start(variant, cluster, plan.spread.hosts, numbers)
    chosen = plan.choices.launcher
    start = launcher.own_start(
        program,
        variant,
        plan.spread.hosts,
        chosen,
        plan.oversubscribed,
        plan.job.place,
        survives=survives,
    )
    return start.guarded(program.path)


def _admit(output: JobOutput, caught: signals.Signals) -> None:
    """Whatever interrupts us from here on says what was written."""
    caught.admit(claim.verdict(output.claims))


def _clean(output: JobOutput, side: list[SideFile], error: BaseException, caught: signals.Signals) -> None:
    """Removes part files. The error's message then says what was written all the same, and what is left."""
    for each in side:
        each.discard()
    if isinstance(error, VerificationError):
        for one in output.claims:
            one.spoilt = True
    staying = claim.kept(output.claims)
    halted = staying and isinstance(error, Interrupted)  # who else would say that nothing was written
    said = claim.verdict(output.claims) if claim.named(output.claims) or halted else ""
    left = output.discard()
    if not isinstance(error, TilewiseError):
        return
    if said and isinstance(error, Interrupted):
        _admit(output, caught)
    elif said:
        error.message += f"; {said}" + (
            "; snapshots are not verified" if isinstance(error, VerificationError) else ""
        )
    for one in staying:
        error.message += f"; {journal.done_text(one.journal)} of {one.name} is kept"
        goes_on = one.goes_on
        if isinstance(error, UsageError) and output.begun is not None and output.begun.header.goes_on:
            goes_on = output.begun.header.goes_on  # this one does not
        error.advice = f"{error.advice}; then {goes_on}" if error.advice else goes_on
    if left:
        error.message += f"; {', '.join(left)} could not be removed"


def _require_our_launcher(joined: Join) -> None:
    if joined.nodes > 1 and worker.find() is None:  # others may have one, and wait for us
        signals.keep(end_all)
    program = launcher.find_worker()
    if foreign(joined, program.mpi):
        raise launcher.foreign(joined, program)


def _release(joined: Join) -> None:
    """Lets ranks go that wait for a job which will not come; after an interrupt too: no signal is heard."""
    program = launcher.find_worker()
    quitting = job.quit_job()
    variant = msgspec.structs.replace(quitting.variant, ranks=joined.size)
    start = launcher.join_start(program, variant, oversubscribed=True, remote=joined.remote)
    Supervisor(start, program.path, signals.Signals(), timeout=_RELEASING).run(job.encode(quitting))
