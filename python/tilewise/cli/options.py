"""The flags that all jobs take, and their check: names against the tables, numbers against sense."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from tilewise.cli.declare import HOW, SHOW, WHERE, Parameter
from tilewise.errors import UsageError
from tilewise.plan.choices import Choices, one_of, parse_hints, parse_io
from tilewise.plan.names import ALGORITHMS, EXCHANGES, IO, KERNELS, PLACES, REMAINDERS, VERIFY
from tilewise.units import parse_pair, parse_size


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)


_ALGORITHMS = "; ".join(f"{command}: {_names(names)}" for command, names in ALGORITHMS.items())


def check_order(order: str | None) -> None:
    """Raises UsageError for what is no order of storage."""
    if order not in (None, "C", "F"):
        raise UsageError(f"--order {order!r} is unknown; known are C (row by row) and F (column by column)")


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """Flags of every job, as they were written."""

    ranks: Annotated[
        int | None, Parameter(name=["--ranks", "-n"], group=HOW, help="Ranks; the plan's choice.")
    ] = None
    threads: Annotated[
        int | None, Parameter(name=["--threads", "-t"], group=HOW, help="Threads on each rank.")
    ] = None
    algorithm: Annotated[
        str | None, Parameter(name="--algorithm", group=HOW, help=f"auto; {_ALGORITHMS}.")
    ] = None
    exchange: Annotated[
        str | None, Parameter(name="--exchange", group=HOW, help=f"auto, {_names(EXCHANGES)}.")
    ] = None
    io: Annotated[
        str | None,
        Parameter(name="--io", group=HOW, help=f"NAME, or READ:WRITE where they differ: auto, {_names(IO)}."),
    ] = None
    grid: Annotated[
        str | None, Parameter(name="--grid", group=HOW, help="PxQ: rows and columns of ranks.")
    ] = None
    remainder: Annotated[
        str,
        Parameter(name="--remainder", group=HOW, help="Uneven cuts: spread evenly, or all on the last part."),
    ] = "spread"
    kernel: Annotated[
        str, Parameter(name="--kernel", group=HOW, help="fast, or plain: the reference loops.")
    ] = "fast"
    hint: Annotated[
        tuple[str, ...], Parameter(name="--hint", group=HOW, help="KEY=VALUE: an MPI-IO hint; repeatable.")
    ] = ()
    verify: Annotated[
        str | None,
        Parameter(
            name="--verify",
            group=HOW,
            help="auto, off, fast (a cheap check) or serial (a plain second product).",
        ),
    ] = None
    no_verify: Annotated[bool, Parameter(name="--no-verify", group=HOW, help="The same as --verify off.")] = (
        False
    )
    repeat: Annotated[
        int, Parameter(name="--repeat", group=HOW, help="Run the part in memory N times, report each.")
    ] = 1
    warmup: Annotated[int, Parameter(name="--warmup", group=HOW, help="And N times before, not counted.")] = 0
    sync: Annotated[
        bool, Parameter(name="--sync", group=HOW, help="Flush the output to disk before it gets its name.")
    ] = False
    force: Annotated[bool, Parameter(name="--force", group=HOW, help="Replace an existing output.")] = False
    timeout: Annotated[
        float | None, Parameter(name="--timeout", group=HOW, help="End a run that takes more SECONDS.")
    ] = None
    memory: Annotated[
        str | None,
        Parameter(
            name="--memory", group=WHERE, help="Cap on each node, such as 4GiB; else 80 % of what is free."
        ),
    ] = None
    hosts: Annotated[
        str | None,
        Parameter(name="--hosts", group=WHERE, help="FILE with a host a line, as host or host:slots."),
    ] = None
    place: Annotated[
        str,
        Parameter(
            name="--place",
            group=WHERE,
            help="Neighbouring ranks go to neighbours of a kind: core, socket, node.",
        ),
    ] = "core"
    launcher: Annotated[
        str | None,
        Parameter(
            name="--launcher", group=WHERE, help='Replaces mpiexec and its options: "srun --mpi=pmix".'
        ),
    ] = None
    json: Annotated[
        str | None,
        Parameter(
            name="--json",
            group=SHOW,
            allow_leading_hyphen=True,
            help="FILE for the record; - for standard output.",
        ),
    ] = None
    trace: Annotated[
        str | None,
        Parameter(name="--trace", group=SHOW, help="FILE for the timeline (Perfetto); .gz is allowed."),
    ] = None
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], group=SHOW, help="Only errors.")] = False
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"], group=SHOW, help="More.")] = False


def choices_of(options: JobOptions, command: str = "multiply") -> Choices:
    """The options that a plan needs, checked; UsageError for names and numbers that make no sense.

    `command` says whose algorithms are known; those without any refuse the flag themselves.
    """
    read, write = parse_io(options.io)
    grid = None
    if options.grid not in (None, "auto"):
        grid = parse_pair(str(options.grid), "--grid", "2x2")
    if options.repeat < 1:
        raise UsageError(f"--repeat {options.repeat} makes no sense; it must be 1 or more")
    if options.warmup < 0:
        raise UsageError(f"--warmup {options.warmup} makes no sense; it must be 0 or more")
    if options.timeout is not None and not options.timeout > 0:
        raise UsageError(f"--timeout {options.timeout:g} makes no sense; it must be more than 0 seconds")
    if options.quiet and options.verbose:
        raise UsageError("-q and -v contradict each other")
    return Choices(
        ranks=options.ranks,
        threads=options.threads,
        algorithm=one_of("--algorithm", options.algorithm, list(ALGORITHMS[command])),
        exchange=one_of("--exchange", options.exchange, list(EXCHANGES)),
        read=read,
        write=write,
        grid=grid,
        memory=None if options.memory is None else parse_size(options.memory, "--memory"),
        hosts=options.hosts or "",
        place=_strictly("--place", options.place, PLACES),
        remainder=_strictly("--remainder", options.remainder, REMAINDERS),
        kernel=_strictly("--kernel", options.kernel, KERNELS),
        hints=parse_hints(options.hint),
        launcher=options.launcher or "",
        verify=_verify(options),
        repeat=options.repeat,
        warmup=options.warmup,
        sync=options.sync,
    )


def _verify(options: JobOptions) -> str:
    if options.no_verify:
        if options.verify not in (None, "off"):
            raise UsageError(f"--no-verify and --verify {options.verify} contradict each other")
        return "off"
    return _strictly("--verify", options.verify or "auto", VERIFY)


def _strictly(flag: str, value: str, names: tuple[str, ...]) -> str:
    if value not in names:
        raise UsageError(f"{flag} {value!r} is unknown; known are {', '.join(names)}")
    return value
