"""Jobs whose ranks go on without one that has died: whether that can be, and how such a job is done."""

from __future__ import annotations

from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.engine.job_output import JobOutput
from tilewise.engine.prepare import prepare
from tilewise.engine.request import Request
from tilewise.launch import launcher
from tilewise.launch.describe import describe
from tilewise.launch.join import Join
from tilewise.planning.choices import Strategies

# What goes by messages: of windows and of files that MPI opens no library says when a rank has died.
_EXCHANGES = ("none", "synchronous", "blocking", "nonblocking", "overlap", "persistent")
_STRATEGIES = ("positioned", "sieve", "mapped", "uncached", "root", "generated")


def trouble(request: Request, joined: Join | None) -> str:
    """Why the death of a rank ends the job all the same; empty where it does not. Starts the worker once."""
    if joined is not None:
        return "the launcher that has started these ranks ends them all"
    worker = launcher.find_worker()
    described, _ = describe(worker.path)
    if not (described or {}).get("survives"):
        return f"{launcher.NAMES.get(worker.family, 'this MPI library')} cannot go on after a death here"
    chosen = request.operation.launcher
    words = chosen.split() if chosen else [launcher.mpiexec_path(worker.build) or ""]
    if not words[0] or launcher.flavour(words[0]) != "openmpi":
        return "only Open MPI's own launcher lets the others live"
    return ""


def prepared(request: Request) -> JobOutput[Any]:
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
        _check(output)
    except BaseException:
        _let_go(output)
        raise
    output.plan = msgspec.structs.replace(output.plan, reasons=[*output.plan.reasons, *why])
    return output


def _let_go(output: JobOutput[Any]) -> None:
    if output.begun is not None:
        output.begun.let_go()


def _check(output: JobOutput[Any]) -> None:
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
