"""`tilewise measure`: how fast messages, files, memory and arithmetic are here, and what changed since."""

from __future__ import annotations

import random
import sys
from typing import Annotated, NamedTuple

from tilewise.base.declare import JSON, SHOW, WHAT, Parameter
from tilewise.base.errors import UsageError
from tilewise.cli.measure_flags import MeasureFlags
from tilewise.cli.parse import parse
from tilewise.lab.measurement import request as asked
from tilewise.lab.measurement.request import Request, parse_counts, parse_names, parse_sizes
from tilewise.launch.join import Join

_OF = {  # the kinds that a flag is for
    "--pairs": ("ping",),
    "--levels": ("ping",),
    "--exchange": ("ping",),
    "--pattern": ("ping",),
    "--collectives": ("ping",),
    "--matrix": ("ping",),
    "--no-matrix": ("ping",),
    "--bytes": ("ping", "memory"),
    "--ranks": ("ping", "file"),
    "--block": ("file",),
    "--blocks-per-rank": ("file",),
    "--io": ("file",),
    "--buffer": ("file", "ping"),
    "--layout": ("file",),
    "--cache": ("file",),
    "--check": ("file",),
    "--shift": ("file",),
    "--sync": ("file",),
    "--no-sync": ("file",),
    "--gpus": ("file", "ping"),
    "--folder": ("file",),
    "--sizes": ("compute",),
    "--dtypes": ("compute",),
    "--threads": ("memory", "compute"),
}
_ONE_KIND = ("--bytes", "--ranks")  # mean something else for each of their kinds
_HARMLESS = ("--folder", "--matrix", "--no-sync")  # leave nothing out, and measure nothing else
_USUAL_INTERVAL = 0.05
_LEAST_SECONDS = 1.0  # of a point: less than what some kind takes by itself


class MeasureRequest(NamedTuple):
    """What is to be measured, and what is to be done with it."""

    request: Request
    flags: MeasureFlags
    store: bool


def request(
    kind: Annotated[
        str,
        Parameter(
            name="KIND",
            choices=(*asked.KINDS, "all"),
            group=WHAT,
            help="What to measure: ping, file, memory or compute.",
            default="all",
        ),
    ] = "all",
    /,
    *,
    flags: Annotated[MeasureFlags, Parameter(name="*", group=WHAT)] = MeasureFlags(),  # noqa: B008 - a frozen value
) -> MeasureRequest | None:
    """Measure this machine: messages by distance, files, memory, arithmetic. Another form: measure compare
    BEFORE.json AFTER.json, which says of each figure whether it changed.

    Examples:
        tilewise measure
            Everything; the result is kept as the profile of this machine.
        tilewise measure ping --bytes 8,1KiB,1MiB --exchange blocking
            Messages of three sizes.
        tilewise measure memory --threads 1,2 --json memory.json
            How fast memory is for one and two threads, with all samples in a file.
    """
    if flags.schema:
        from tilewise.lab.measurement.stored import schema

        sys.stdout.write(schema().decode())
        return None
    if kind not in (*asked.KINDS, "all"):
        known = ", ".join((*asked.KINDS, "all"))
        raise UsageError(f"{kind!r} cannot be measured; expected one of {known}, compare", "tilewise measure")
    values = {flag: getattr(flags, flag[2:].replace("-", "_")) for flag in _OF}
    given = [flag for flag, value in values.items() if value is not None and value is not False]
    _check_flags(kind, given, flags)
    _check_numbers(flags)
    left_out = [flag for flag in given if flag not in _HARMLESS]
    sloppy = flags.interval > _USUAL_INTERVAL or (flags.seconds or _LEAST_SECONDS) < _LEAST_SECONDS
    whole = not (left_out or sloppy or flags.launcher) and flags.runs is None and flags.launches > 1
    return MeasureRequest(_request(kind, whole, flags), flags, flags.store or (whole and not flags.no_store))


def _request(kind: str, whole: bool, flags: MeasureFlags) -> Request:
    return Request(
        kinds=asked.KINDS if kind == "all" else (kind,),
        whole=whole,
        ranks=parse_counts(flags.ranks, "--ranks", 65_536),
        threads=parse_counts(flags.threads, "--threads", 4096),
        bytes=parse_sizes(flags.bytes, "--bytes"),
        pairs=parse_counts(flags.pairs, "--pairs", 32_768),
        levels=parse_names(flags.levels, "--levels", asked.LEVELS),
        exchanges=parse_names(flags.exchange, "--exchange", asked.EXCHANGES),
        patterns=parse_names(flags.pattern, "--pattern", asked.PATTERNS),
        collectives=asked.parse_collectives(flags.collectives),
        matrix=True if flags.matrix else False if flags.no_matrix else None,
        io=asked.parse_io_names(flags.io),
        blocks=parse_sizes(flags.block, "--block"),
        blocks_per_rank=flags.blocks_per_rank,
        buffers=parse_names(flags.buffer, "--buffer", asked.BUFFERS),
        layouts=parse_names(flags.layout, "--layout", asked.LAYOUTS),
        caches=parse_names(flags.cache, "--cache", asked.CACHES),
        check=asked.parse_check(flags.check),
        shift=flags.shift,
        sync=flags.sync,
        gpus=flags.gpus or 0,
        folder="." if flags.folder is None else flags.folder,
        sizes=parse_counts(flags.sizes, "--sizes", 1 << 20),
        dtypes=parse_names(flags.dtypes, "--dtypes", asked.DTYPES),
        runs=flags.runs or 0,
        launches=flags.launches,
        seconds=flags.seconds,
        interval=flags.interval,
        seed=random.SystemRandom().randrange(1 << 31) if flags.seed is None else flags.seed,
        hosts=flags.hosts or "",
        launcher=flags.launcher or "",
    )


def compare(
    before: Annotated[
        str,
        Parameter(
            name="BEFORE", value=JSON, group=WHAT, help="A measurement that measure --json FILE wrote."
        ),
    ],
    after: Annotated[
        str, Parameter(name="AFTER", value=JSON, group=WHAT, help="A later one, or one of another machine.")
    ],
    /,
    *,
    json: Annotated[
        str | None,
        Parameter(
            name="--json",
            value=JSON,
            stream=True,
            group=SHOW,
            help="File for every line; - for standard output.",
        ),
    ] = None,
    verbose: Annotated[
        bool, Parameter(name=["--verbose", "-v"], group=SHOW, help="Print every line.")
    ] = False,
) -> int:
    """Compare two measurements. A statistical test calls each figure faster, slower or not distinguishable.

    Examples:
        tilewise measure compare before.json after.json
            Two files that measure --json has written.
    """
    from tilewise.cli.measure_show import compare_files

    return compare_files(before, after, json, verbose)


def _check_flags(kind: str, given: list[str], flags: MeasureFlags) -> None:
    """Raises UsageError for flags of another kind, that mean several things, or contradict each other."""
    for flag in given:
        kinds = _OF[flag]
        if kind == "all" and flag in _ONE_KIND:
            raise UsageError(
                f"{flag} differs between {' and '.join(kinds)}; name one of them",
                f"tilewise measure {kinds[0]} {flag} …",
            )
        if kind not in (*kinds, "all"):
            raise UsageError(
                f"{flag} belongs to {' and '.join(kinds)}, not to {kind}", f"tilewise measure {kinds[0]}"
            )
    for first, second, both in (
        ("--matrix", "--no-matrix", flags.matrix and flags.no_matrix),
        ("--sync", "--no-sync", flags.sync and flags.no_sync),
        ("--store", "--no-store", flags.store and flags.no_store),
        ("-q", "-v", flags.quiet and flags.verbose),
    ):
        if both:
            raise UsageError(f"{first} and {second} contradict each other")


def _check_numbers(flags: MeasureFlags) -> None:
    if flags.folder == "":
        raise UsageError("--folder expects a folder, not an empty name")
    _at_least("--launches", flags.launches, 1)
    _at_least("--runs", flags.runs, 1)
    _at_least("--blocks-per-rank", flags.blocks_per_rank, 1)
    _at_least("--shift", flags.shift, 0)
    _at_least("--gpus", flags.gpus, 1)
    _at_least("--seed", flags.seed, 0)
    for flag, value in (
        ("--interval", flags.interval),
        ("--seconds", flags.seconds),
        ("--timeout", flags.timeout),
    ):
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"{flag} {value:g} makes no sense; it must be more than 0")


def _at_least(flag: str, value: int | None, least: int) -> None:
    if value is not None and not least <= value < 1 << 31:
        raise UsageError(f"{flag} {value} makes no sense; it must be {least} or more")


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    if words[:1] == ["compare"]:
        code: int | None = parse("measure compare", compare, words[1:])
        return code or 0
    wanted: MeasureRequest | None = parse("measure", request, words)
    if wanted is None:
        return 0
    if joined is not None:
        raise UsageError(
            "measure starts its own ranks and cannot run under mpiexec or srun",
            "tilewise measure without mpiexec or srun; --hosts FILE for several nodes",
        )
    from tilewise.cli import measure_show

    return measure_show.run(wanted.request, wanted.flags, wanted.store)
