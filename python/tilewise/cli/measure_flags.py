"""The flags of `tilewise measure`: what of a kind, how sure, where, and what is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tilewise.base.declare import FILE, FOLDER, HOW, JSON, SHOW, SIZE, WHAT, WHERE, Parameter, Value
from tilewise.lab.measurement import request as asked
from tilewise.planning.names import BOTH_WAYS

NUMBER, HTML = Value("N"), Value("FILE", (".html",))


@dataclass(frozen=True, kw_only=True)
class MeasureFlags:
    """As they were written; None where a flag was not given."""

    bytes: Annotated[
        str | None,
        Parameter(
            name="--bytes",
            value=SIZE,
            joined=",",
            group=WHAT,
            help="ping: message sizes, as 1..4MiB (doubling) or 8,1KiB; memory: array sizes.",
        ),
    ] = None
    pairs: Annotated[
        str | None,
        Parameter(
            name="--pairs",
            value=NUMBER,
            joined=",",
            group=WHAT,
            help="ping: pairs of ranks that communicate at once, as 1,3.",
        ),
    ] = None
    levels: Annotated[
        str | None,
        Parameter(
            name="--levels",
            choices=asked.LEVELS,
            joined=",",
            group=WHAT,
            help=f"ping: what a pair of ranks shares: {', '.join(asked.LEVELS)}.",
            default="all levels of this machine",
        ),
    ] = None
    exchange: Annotated[
        str | None,
        Parameter(
            name="--exchange",
            choices=asked.EXCHANGES,
            joined=",",
            group=WHAT,
            help=f"ping: kind of exchange: {', '.join(asked.EXCHANGES)}.",
        ),
    ] = None
    pattern: Annotated[
        str | None,
        Parameter(
            name="--pattern",
            choices=asked.PATTERNS,
            joined=",",
            group=WHAT,
            help="ping: roundtrip, or stream (64 messages in a row).",
            default="roundtrip, and stream for one exchange",
        ),
    ] = None
    collectives: Annotated[
        str | None,
        Parameter(
            name="--collectives",
            choices=(*asked.COLLECTIVES, "none"),
            joined=",",
            group=WHAT,
            help=f"ping: collectives: {', '.join(asked.COLLECTIVES)}, or none.",
        ),
    ] = None
    matrix: Annotated[
        bool,
        Parameter(
            name="--matrix", group=WHAT, help="ping: measure every pair of ranks.", default="up to 16 ranks"
        ),
    ] = False
    no_matrix: Annotated[
        bool, Parameter(name="--no-matrix", group=WHAT, help="ping: do not measure every pair.")
    ] = False
    ranks: Annotated[
        str | None,
        Parameter(
            name=["--ranks", "-n"],
            value=NUMBER,
            joined=",",
            group=WHAT,
            help="file: rank counts, as 1,2,4; ping: for collectives and --matrix.",
            common=True,
        ),
    ] = None
    block: Annotated[
        str | None,
        Parameter(
            name="--block",
            value=SIZE,
            joined=",",
            group=WHAT,
            help="file: block sizes, as 128K..16M (128K, 256K, 512K, 1M, 2M … 16M) or 64KiB,1MiB.",
        ),
    ] = None
    blocks_per_rank: Annotated[
        int | None,
        Parameter(
            name="--blocks-per-rank", group=WHAT, help="file: number of blocks.", default="64; fewer if large"
        ),
    ] = None
    io: Annotated[
        str | None,
        Parameter(
            name="--io",
            choices=("all", *BOTH_WAYS, asked.GPUDIRECT),
            joined=",",
            group=WHAT,
            help="file: I/O strategies of jobs, as positioned,mapped, or all; or gpudirect.",
        ),
    ] = None
    buffer: Annotated[
        str | None,
        Parameter(
            name="--buffer",
            choices=asked.BUFFERS,
            joined=",",
            group=WHAT,
            help="file, ping: memory: malloc; with a graphics processor also pinned, device, managed.",
        ),
    ] = None
    layout: Annotated[
        str | None,
        Parameter(
            name="--layout",
            choices=asked.LAYOUTS,
            joined=",",
            group=WHAT,
            help="file: interleaved (block by block), contiguous (rank by rank), per_rank (a file per rank).",
        ),
    ] = None
    cache: Annotated[
        str | None,
        Parameter(
            name="--cache",
            choices=asked.CACHES,
            joined=",",
            group=WHAT,
            help="file: warm (in the page cache), cold (dropped before reading), direct (past the cache).",
        ),
    ] = None
    check: Annotated[
        str | None,
        Parameter(
            name="--check",
            choices=asked.CHECKS,
            group=WHAT,
            help="file: what to check after reading: none, counts or content.",
            default="counts",
        ),
    ] = None
    shift: Annotated[
        int | None,
        Parameter(
            name="--shift",
            group=WHAT,
            help="file: each rank reads what rank + N wrote, to avoid its own caches.",
            default="1",
        ),
    ] = None
    sync: Annotated[
        bool, Parameter(name="--sync", group=WHAT, help="file: time a write until the data is on disk.")
    ] = False
    no_sync: Annotated[
        bool,
        Parameter(
            name="--no-sync",
            group=WHAT,
            help="file: time a write until the data is in the page cache (the default).",
        ),
    ] = False
    gpus: Annotated[
        int | None,
        Parameter(
            name="--gpus",
            group=WHAT,
            help="file, ping: number of graphics processors per node that ranks share.",
        ),
    ] = None
    sizes: Annotated[
        str | None,
        Parameter(
            name="--sizes",
            value=NUMBER,
            joined=",",
            group=WHAT,
            help="compute: sizes N of N×N products, as 64,1024.",
        ),
    ] = None
    dtypes: Annotated[
        str | None,
        Parameter(
            name="--dtypes",
            choices=asked.DTYPES,
            joined=",",
            group=WHAT,
            help=f"compute: data types: {', '.join(asked.DTYPES)}.",
        ),
    ] = None
    threads: Annotated[
        str | None,
        Parameter(
            name=["--threads", "-t"],
            value=NUMBER,
            joined=",",
            group=WHAT,
            help="memory, compute: thread counts, as 1,2.",
        ),
    ] = None
    launches: Annotated[int, Parameter(name="--launches", group=HOW, help="Launches per point.")] = 3
    runs: Annotated[
        int | None,
        Parameter(name="--runs", group=HOW, help="Take exactly N samples per point and launch."),
    ] = None
    interval: Annotated[
        float,
        Parameter(
            name="--interval",
            group=HOW,
            help="Sample until the 95 % interval of the median is within this fraction of it.",
        ),
    ] = 0.05
    seconds: Annotated[
        float | None,
        Parameter(name="--seconds", group=HOW, help="Sample a point for at most X seconds.", common=True),
    ] = None
    seed: Annotated[
        int | None,
        Parameter(name="--seed", group=HOW, help="Seed of the order of points; the result records it."),
    ] = None
    timeout: Annotated[
        float | None, Parameter(name="--timeout", group=HOW, help="Stop the run after X seconds.")
    ] = None
    folder: Annotated[
        str | None,
        Parameter(
            name="--folder",
            value=FOLDER,
            group=WHERE,
            help="file: folder for temporary sample files.",
            default="the current folder",
            common=True,
        ),
    ] = None
    hosts: Annotated[
        str | None,
        Parameter(
            name="--hosts", value=FILE, group=WHERE, help="File with one host per line, for level node."
        ),
    ] = None
    launcher: Annotated[
        str | None,
        Parameter(
            name="--launcher",
            value=Value("COMMAND"),
            group=WHERE,
            help="Command to use instead of mpiexec and its options.",
        ),
    ] = None
    json: Annotated[
        str | None,
        Parameter(
            name="--json",
            value=JSON,
            stream=True,
            group=SHOW,
            help="File for all figures and samples; - for standard output.",
            common=True,
        ),
    ] = None
    html: Annotated[
        str | None,
        Parameter(
            name="--html", value=HTML, stream=True, group=SHOW, help="File for an HTML page.", common=True
        ),
    ] = None
    plots: Annotated[
        str | None,
        Parameter(name="--plots", value=FOLDER, group=SHOW, help="Folder for figures (SVG and PNG)."),
    ] = None
    tables: Annotated[
        str | None,
        Parameter(
            name="--tables", value=FOLDER, group=SHOW, help="Folder for tables (CSV, Markdown and JSON)."
        ),
    ] = None
    store: Annotated[
        bool,
        Parameter(
            name="--store",
            group=SHOW,
            help="Store the result as this machine's profile.",
            default="yes, unless flags narrow or weaken the run",
        ),
    ] = False
    no_store: Annotated[bool, Parameter(name="--no-store", group=SHOW, help="Store nothing.")] = False
    schema: Annotated[
        bool, Parameter(name="--schema", group=SHOW, help="Print the JSON schema of the result.")
    ] = False
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], group=SHOW, help="Print errors only.")] = False
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"], group=SHOW, help="Print all tables.")] = (
        False
    )
