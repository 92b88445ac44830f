"""Prepares a request: looks at its inputs and outputs and plans it; what is refused, is refused here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.engine import journal, side_files
from tilewise.engine.decoder_check import checked
from tilewise.engine.job_output import JobOutput, find_place, output_of
from tilewise.engine.journal import Begun
from tilewise.engine.limit import in_batch
from tilewise.engine.request import Request
from tilewise.files import folder, sweep
from tilewise.files.formats import format_of
from tilewise.files.region import Region, Source
from tilewise.files.style import PLAIN
from tilewise.files.target import Target, require_replaceable, written_warnings
from tilewise.launch import launcher
from tilewise.launch.constants import describe
from tilewise.launch.join import Join
from tilewise.machine.facts import facts_of, of_ranks
from tilewise.machine.storage import is_own
from tilewise.machine.terms import Machine
from tilewise.operations.candidates import weighed
from tilewise.operations.operation import NOWHERE, Operation
from tilewise.planning.choices import Strategies
from tilewise.planning.plan import Plan


def foresee(request: Request, unknown: Sequence[str], record: str | None) -> None:
    """Raises UsageError for what is refused whatever the inputs in the fields `unknown` will turn out to be.

    `record` names a file for the record. Changes nothing.
    """
    operation = request.operation
    target = None if operation.nowhere else find_place(operation)
    known = [getattr(operation, field) for field in operation.operands if field not in unknown]
    named = [*([target.path] if target else []), *(operation.input(name).path for name in known)]
    for flag, path in (("--json", record), ("--trace", request.trace)):
        side_files.check(flag, path, named, request.force)
    if target is not None:
        (folder.require_replaceable if operation.several else require_replaceable)(target, request.force)


def prepare(request: Request, joined: Join | None = None, machine: Machine | None = None) -> JobOutput:
    """The planned result of `request`; raises UsageError for whatever cannot be. Changes nothing.

    `joined` tells of ranks that exist already, `machine` of one that is not here but is planned for.
    """
    operation = request.operation
    nowhere = operation.nowhere
    if nowhere:
        if request.resume or operation.checkpoint:
            raise UsageError("-o none writes nothing, so there is nothing to keep or to resume")
        operation = _without_numbers(operation)
    inputs = checked(operation.inspect(), operation.memory)
    if nowhere and any(region.path for region in inputs):
        raise UsageError("-o none simulates without numbers, so no file is read", "random:… as input")
    target = find_place(operation)
    begun = None
    if target is not None and not nowhere:
        begun = journal.find(target, operation, request.resume, request.force)
    if begun is not None:
        operation = msgspec.structs.replace(operation, resumed=begun.header.job)
    try:
        return _prepared(request, operation, inputs, target, begun, joined, machine)
    except BaseException:
        if begun is not None:
            begun.let_go()
        raise


def _prepared(
    request: Request,
    operation: Operation,
    inputs: list[Region],
    target: Target | None,
    begun: Begun | None,
    joined: Join | None,
    machine: Machine | None,
) -> JobOutput:
    _check_style(operation, inputs, target)
    named = [*([target.path] if target else []), *(region.path for region in inputs)]
    side_files.check("--json", request.record, named)
    side_files.check("--trace", request.trace, [*named, request.record or ""])
    facts = of_ranks()
    if operation.simulate is not None and machine is not None:
        raise UsageError("--machine and --simulate name two machines; a plan is for one")
    if operation.simulate is not None:
        if joined is not None:
            raise UsageError("--simulate starts no ranks, so that no launcher can have started them")
        facts = operation.simulate.facts(facts)
    elif machine is not None:
        if operation.hosts:
            raise UsageError("--machine and --hosts name two sets of hosts; a plan is for one")
        facts = facts_of(machine, facts)
    ruled = operation.plan_all(inputs, target, facts, joined)
    if begun is not None:
        begun.require_room(ruled)
    planned = weighed(ruled, operation, target, facts, joined, machine)
    plan = _with_notes(planned.required(lambda: operation.what_fits(planned, joined)), target)
    if operation.simulate is not None:
        plan = _of_no_machine(plan)
    if request.operation.nowhere:
        target, plan = None, msgspec.structs.replace(plan, state=None, checkpoint=None)
    plan = _with_checkpoints(plan, request, begun)
    if begun is not None:
        begun.require_same(plan)
    elif request.resume:
        anew = "--resume: no earlier run left anything, so this starts from the beginning"
        plan = msgspec.structs.replace(plan, reasons=[*plan.reasons, anew])
    output = output_of(operation, target, plan)
    output.begun = begun
    for flag, path in (("--json", request.record), ("--trace", request.trace)):
        side_files.check(flag, path, output.paths(), request.force)
    # Last, so that nobody removes an old output for a request that makes no sense anyway.
    output.check(request.force)
    return output


def _without_numbers(operation: Operation) -> Operation:
    """`operation` with nothing to verify, planned as if it wrote a file."""
    if operation.verify not in ("auto", "off"):
        raise UsageError(
            f"--verify {operation.verify}: a simulation with -o none has no numbers", "--verify off"
        )
    return msgspec.structs.replace(operation, verify="off", output=f"{NOWHERE}.npy")


def _of_no_machine(plan: Plan) -> Plan:
    """`plan` of a simulation: nothing of it tells about this machine, or comes from what is known of it."""
    job = msgspec.structs.replace(plan.job, bind=False)
    return msgspec.structs.replace(plan, job=job, measure_tile=None)


def _with_checkpoints(plan: Plan, request: Request, begun: Begun | None) -> Plan:
    """`plan` as states are kept; UsageError where that was asked for, and cannot be.

    Where the job may be asked to end, one is kept then, whatever else was said.
    """
    if plan.each is not None and request.operation.checkpoint:
        raise UsageError("--checkpoint makes no sense with --each: slices are done one after another")
    if plan.state is None or plan.each is not None:
        return msgspec.structs.replace(plan, state=None)
    ends = request.time_limit is not None or in_batch() or (begun is not None and begun.states)
    if plan.checkpoint is None and ends:
        return msgspec.structs.replace(plan, checkpoint=0.0)
    return plan


def _check_style(operation: Operation, inputs: list[Region], target: Target | None) -> None:
    """Raises UsageError for flags that say how a text is read or written where there is none."""
    given = operation.read_style
    if given == PLAIN:
        return
    read = any(region.path and format_of(region.name).styled for region in inputs)
    written = target is not None and not operation.several and target.format.styled
    named = written and any(isinstance(region, Source) and region.names for region in inputs)
    if not read and (given.index is not None or (given.header_rows is not None and not named)):
        flag = "--index" if given.index is not None else "--header-rows"
        raise UsageError(f"{flag} makes no sense: no input is a .csv, .tsv or .txt file")
    if not (read or written):
        flags = {"--separator": given.separator, "--decimal": given.decimal, "--missing": given.missing}
        flag = next(name for name, value in flags.items() if value)
        raise UsageError(f"{flag} makes no sense: neither input nor output is a .csv, .tsv or .txt file")


def _with_notes(plan: Plan, target: Target | None) -> Plan:
    """`plan` with what there is to say of its files, as reasons and as warnings."""
    inputs = [source for source in plan.job.inputs if isinstance(source, Source)]
    notes = [f"{source.name}: {note}" for source in inputs for note in source.notes]
    warnings = [f"{source.name}: {warning}" for source in inputs for warning in source.warnings]
    if target is not None and not plan.pieces:
        shape = plan.each.shape(*plan.shape) if plan.each else plan.shape
        said = written_warnings(target, shape, plan.dtype, plan.order)
        warnings += [f"{target.name}: {warning}" for warning in said]
    if target is not None:
        warnings += sweep.foreign(target.path, is_own(target.path))
    return msgspec.structs.replace(
        plan, reasons=[*notes, *plan.reasons], warnings=[*warnings, *plan.warnings]
    )


# What goes by messages: of windows and of files that MPI opens no library says when a rank has died.
_EXCHANGES = ("none", "synchronous", "blocking", "nonblocking", "overlap", "persistent")
_STRATEGIES = ("positioned", "sieve", "mapped", "uncached", "root", "generated")


def survival_trouble(request: Request, joined: Join | None) -> str:
    """Why the death of a rank ends the job all the same; empty where it does not. Starts the worker once."""
    if joined is not None:
        return "the launcher that has started these ranks ends them all"
    worker = launcher.find_worker()
    described, _ = describe(worker.path)
    if not (described or {}).get("survives"):
        return f"{launcher.NAMES.get(worker.family, 'this MPI library')} cannot continue after a death here"
    chosen = request.operation.launcher
    words = chosen.split() if chosen else [launcher.mpiexec_path(worker.build) or ""]
    if not words[0] or not launcher.kind_of(words[0]).survivable:
        return "only Open MPI's own launcher lets the others live"
    return ""


def prepare_to_survive(request: Request) -> JobOutput:
    """As `prepare`, done in a way that a death leaves whole. Raises UsageError for ways that do not."""
    operation = request.operation
    why = []
    if getattr(operation, "tiles", None) == "queue":
        operation = msgspec.structs.replace(operation, tiles="fixed")
        why.append("--survive: each rank has its own tiles, since the queue is in memory of one rank")
    output = prepare(msgspec.structs.replace(request, operation=operation))
    again: dict[str, Any] = {}
    if output.plan.job.variant.exchange not in _EXCHANGES and operation.exchange is None:
        again["exchange"] = "overlap"
        why.append("--survive: blocks use messages, since shared memory tells no rank of a death")
    if not output.plan.journaled and operation.io == Strategies():
        again["io"] = Strategies("positioned", "positioned")
        why.append("--survive: files are read and written by position, as a journal wants it")
    if again:
        _let_go(output)
        operation = msgspec.structs.replace(operation, **again)
        output = prepare(msgspec.structs.replace(request, operation=operation))
    try:
        _check_survives(output)
    except BaseException:
        _let_go(output)
        raise
    output.plan = msgspec.structs.replace(output.plan, reasons=[*output.plan.reasons, *why])
    return output


def _let_go(output: JobOutput) -> None:
    if output.begun is not None:
        output.begun.let_go()


def _check_survives(output: JobOutput) -> None:
    variant = output.plan.job.variant
    if variant.exchange not in _EXCHANGES:
        raise UsageError(
            f"--survive makes no sense with --exchange {variant.exchange}: no rank hears of a death there",
            "--exchange overlap",
        )
    for strategy in (variant.read, variant.write):
        if strategy not in _STRATEGIES:
            raise UsageError(
                f"--survive makes no sense with --io {strategy}: no rank hears of a death there",
                "--io positioned",
            )
