"""`tilewise plan CMD …`: what a job would do, and why; runs nothing and writes nothing."""

from __future__ import annotations

import os
from typing import Annotated

from tilewise.base.declare import FILE, WHERE, Flag, Flags
from tilewise.base.errors import UsageError
from tilewise.base.units import plural
from tilewise.cli import JOBS, page_of
from tilewise.cli.help import page
from tilewise.launch.join import Join
from tilewise.operations import options_of

_NAMES = 100  # of results that are tried where none is named


class PlannedFlags(Flags, frozen=True, kw_only=True):
    """The flags of a plan beside those of its job."""

    all: Annotated[
        bool, Flag("List every variant that the job's flags leave open, with its time and memory.")
    ] = False
    machine: Annotated[
        str, Flag("Plan for the machine that a JSON file describes, instead of this one.", WHERE, value=FILE)
    ] = ""


class PlanFlags(PlannedFlags, frozen=True, kw_only=True):
    """Show what a job would do, why, and how long it would take, without running it.
    --json FILE lists every variant.

    Examples:
        tilewise plan multiply A.npy B.npy
            Show the plan, its time and its memory, for an output in this folder.
        tilewise plan svd random:2000x2000:float64 --all
            List every variant on this machine, with its time and memory.
    """

    command: Annotated[str, Flag("The job.", choices=JOBS, place=True)]
    arguments: Annotated[tuple[str, ...], Flag("The arguments of the job.", name="ARGUMENT", place=True)] = ()
    forget: Annotated[bool, Flag("Discard learned profiles; takes no COMMAND.", WHERE)] = False


def main(words: list[str], joined: Join | None) -> int:
    """Run the command, which takes all words of a job and only plans it; return the exit code."""
    if not words:
        print(page(page_of("plan")))
        return 0
    if "--forget" in words:
        if len(words) > 1:
            raise UsageError("plan --forget takes nothing else")
        from tilewise.machine.profile import forget_terms

        count = forget_terms()
        forgot = f"forgot what runs taught of {plural(count, 'figure')}"
        print(forgot if count else "there was nothing to forget")
        return 0
    name = next((word for word in words if word in JOBS), "")
    if not name:
        instead = f", not {words[0]!r}" if words[0] not in ("--all", "--machine") else ""
        raise UsageError(f"plan takes the arguments of a job ({', '.join(JOBS)}){instead}")
    words.remove(name)
    from tilewise.cli import jobs
    from tilewise.cli.streams import warn, write_json
    from tilewise.engine.planned import planned_of
    from tilewise.engine.prepare import prepare
    from tilewise.lab.report.planned import planned, ways
    from tilewise.lab.report.terminal import show
    from tilewise.machine.machines import read_machine
    from tilewise.operations.prediction import cost_of, machine_of

    asked = jobs.asked_of(name, [*words, *_output(name, words)], PlannedFlags)
    flags: PlannedFlags = asked.more[0]
    if asked.streams.any:
        raise UsageError("plan looks at files, and - is standard input or output", "the name of a file")
    machine = read_machine(flags.machine) if flags.machine else None
    output = prepare(asked.request, joined, machine)
    disks = output.disk_needs() if machine is None else []  # nobody knows the disks of others
    every = planned_of(output, asked.request, joined, machine)
    if asked.shown.json is not None:
        write_json(asked.shown.json, every, "--json")
    if asked.shown.json == "-":
        warn([] if asked.shown.quiet else every.warnings)
    else:
        place = output.target.path if output.target else ""
        known = machine or machine_of(output.plan)
        cost = cost_of(output.plan, output.target)
        show(planned(output.plan, every, place, cost, known, [each.text() for each in disks]))
        if flags.all:
            show(ways(every))
    for each in disks:
        each.require()
    return 0


def _output(name: str, words: list[str]) -> list[str]:
    """A place for the result in this folder, where no flag names one."""
    job = options_of(name)
    if not job.writes or any(word.startswith(("-o", "--output", "-h", "--help")) for word in words):
        return []
    suffix = "" if job.several else ".npy"
    names = (f"result{number}{suffix}" for number in ("", *range(1, _NAMES)))
    return ["-o", next((free for free in names if not os.path.lexists(free)), f"result{suffix}")]
