"""`tilewise plan CMD …`: what a job would do, and why; runs nothing and writes nothing."""

from __future__ import annotations

import os
from typing import Annotated

from tilewise.base.declare import FILE, WHERE, Flag, Flags
from tilewise.base.errors import UsageError
from tilewise.base.units import plural
from tilewise.cli.commands import JOBS, page_of
from tilewise.cli.help import page
from tilewise.launch.join import Join
from tilewise.operations import options_of

_NAMES = 100  # of results that are tried where none is named


class PlanFlags(Flags, frozen=True, kw_only=True):
    """Say what a job would do, why, and how long it would take; nothing runs. --json FILE has every variant.

    Examples:
        tilewise plan multiply A.npy B.npy
            What would be done, how long it would take, and what it needs, with the result in this folder.
        tilewise plan svd random:2000x2000:float64 --all
            Every way to do it on this machine, with its seconds and its memory.
    """

    command: Annotated[str, Flag("The job.", choices=JOBS, place=True)]
    arguments: Annotated[tuple[str, ...], Flag("The arguments of the job.", name="ARGUMENT", place=True)] = ()
    all: Annotated[
        bool, Flag("List every variant that its flags leave open, its seconds and its memory.")
    ] = False
    machine: Annotated[
        str, Flag("Plan for the machine that a JSON file describes, instead of this one.", WHERE, value=FILE)
    ] = ""
    forget: Annotated[bool, Flag("Discard learned profiles; takes no COMMAND.", WHERE)] = False


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code. Takes all words of a job, and only plans it."""
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
    everything = "--all" in words
    words, described = _machine([word for word in words if word != "--all"])
    if not words or words[0] not in JOBS:
        instead = f", not {words[0]!r}" if words else ""
        raise UsageError(f"plan takes the arguments of a job ({', '.join(JOBS)}){instead}")
    name, rest = words[0], words[1:]
    from tilewise.cli import jobs
    from tilewise.cli.streams import warn, write_json
    from tilewise.engine.planned import planned_of
    from tilewise.engine.prepare import prepare
    from tilewise.lab.report.planned import planned, ways
    from tilewise.lab.report.terminal import show
    from tilewise.machine.machines import read_machine
    from tilewise.operations.prediction import cost_of, machine_of

    asked = jobs.asked_of(name, [*rest, *_output(name, rest)])
    if asked.streams.any:
        raise UsageError("plan looks at files, and - is standard input or output", "the name of a file")
    machine = read_machine(described) if described is not None else None
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
        if everything:
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


def _machine(words: list[str]) -> tuple[list[str], str | None]:
    """`words` without --machine FILE, and that file."""
    kept: list[str] = []
    found: str | None = None
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        if name != "--machine":
            kept.append(word)
            continue
        if found is not None:
            raise UsageError("--machine was given more than once")
        found = value if equals else next(left, "")
        if not found:
            raise UsageError("--machine expects a file that describes a machine", "--machine cluster.json")
    return kept, found
