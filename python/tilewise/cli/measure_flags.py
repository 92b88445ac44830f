"""The flags of `tilewise measure`: what of a kind, how sure, where, and what is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tilewise.base.declare import FILE, FOLDER, HOW, JSON, SHOW, SIZE, WHAT, WHERE, Parameter, Value
from tilewise.measurement import request as asked
from tilewise.planning.names import IO

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
            help="ping: of a message, 1..4MiB (doubling) or 8,1KiB; memory: of an array.",
        ),
    ] = None
    pairs: Annotated[
        str | None,
        Parameter(
            name="--pairs", value=NUMBER, joined=",", group=WHAT, help="ping: pairs that talk at once: 1,3."
        ),
    ] = None
    levels: Annotated[
        str | None,
        Parameter(
            name="--levels",
            choices=asked.LEVELS,
            joined=",",
            group=WHAT,
            help=f"ping: {', '.join(asked.LEVELS)}.",
            default="all that there are",
        ),
    ] = None
    exchange: Annotated[
        str | None,
        Parameter(
            name="--exchange",
            choices=asked.EXCHANGES,
            joined=",",
            group=WHAT,
            help=f"ping: {', '.join(asked.EXCHANGES)}.",
        ),
    ] = None
    pattern: Annotated[
        str | None,
        Parameter(
            name="--pattern",
            choices=asked.PATTERNS,
            joined=",",
            group=WHAT,
            help="ping: roundtrip, stream (64 in a row).",
            default="both, stream of one exchange only",
        ),
    ] = None
    collectives: Annotated[
        str | None,
        Parameter(
            name="--collectives",
            choices=(*asked.COLLECTIVES, "none"),
            joined=",",
            group=WHAT,
            help=f"ping: {', '.join(asked.COLLECTIVES)}, or none.",
        ),
    ] = None
    matrix: Annotated[
        bool, Parameter(name="--matrix", group=WHAT, help="ping: every two ranks.", default="up to 16 ranks")
    ] = False
    no_matrix: Annotated[
        bool, Parameter(name="--no-matrix", group=WHAT, help="ping: not every two ranks.")
    ] = False
    ranks: Annotated[
        str | None,
        Parameter(
            name=["--ranks", "-n"],
            value=NUMBER,
            joined=",",
            group=WHAT,
            help="file: 1,2,4; ping: of collectives and of --matrix.",
        ),
    ] = None
    block: Annotated[
        str | None,
        Parameter(
            name="--block",
            value=SIZE,
            joined=",",
            group=WHAT,
            help="file: bytes of a call: 128K..16M (128K, 256K, 512K, 1M, 2M … 16M) or 64KiB,1MiB.",
        ),
    ] = None
    blocks_per_rank: Annotated[
        int | None,
        Parameter(
            name="--blocks-per-rank", group=WHAT, help="file: how many.", default="64, fewer large ones"
        ),
    ] = None
    io: Annotated[
        str | None,
        Parameter(
            name="--io",
            choices=("all", *IO),
            joined=",",
            group=WHAT,
            help="file: strategies as jobs have them: positioned,… or all.",
        ),
    ] = None
    buffer: Annotated[
        str | None,
        Parameter(
            name="--buffer",
            choices=asked.BUFFERS,
            joined=",",
            group=WHAT,
            help="file: malloc; on a graphics processor pinned, device, managed.",
        ),
    ] = None
    layout: Annotated[
        str | None,
        Parameter(
            name="--layout",
            choices=asked.LAYOUTS,
            joined=",",
            group=WHAT,
            help="file: interleaved (block by block), contiguous (rank by rank), per_rank (a file each).",
        ),
    ] = None
    cache: Annotated[
        str | None,
        Parameter(
            name="--cache",
            choices=asked.CACHES,
            joined=",",
            group=WHAT,
            help="file: warm, cold (dropped before reading), direct.",
        ),
    ] = None
    check: Annotated[
        str | None,
        Parameter(
            name="--check",
            choices=asked.CHECKS,
            group=WHAT,
            help="file: none, counts or content.",
            default="counts",
        ),
    ] = None
    shift: Annotated[
        int | None,
        Parameter(
            name="--shift",
            group=WHAT,
            help="file: a rank reads what the one N above it wrote, so that no cache of its own answers.",
            default="1",
        ),
    ] = None
    sync: Annotated[
        bool, Parameter(name="--sync", group=WHAT, help="file: writing lasts until the disk has it.")
    ] = False
    no_sync: Annotated[
        bool, Parameter(name="--no-sync", group=WHAT, help="file: until the page cache has it, as is usual.")
    ] = False
    gpus: Annotated[
        int | None,
        Parameter(name="--gpus", group=WHAT, help="file: graphics processors of a node that ranks share."),
    ] = None
    sizes: Annotated[
        str | None,
        Parameter(
            name="--sizes", value=NUMBER, joined=",", group=WHAT, help="compute: N of N×N products: 64,1024."
        ),
    ] = None
    dtypes: Annotated[
        str | None,
        Parameter(
            name="--dtypes",
            choices=asked.DTYPES,
            joined=",",
            group=WHAT,
            help=f"compute: {', '.join(asked.DTYPES)}.",
        ),
    ] = None
    threads: Annotated[
        str | None,
        Parameter(
            name=["--threads", "-t"], value=NUMBER, joined=",", group=WHAT, help="memory, compute: 1,2."
        ),
    ] = None
    launches: Annotated[
        int, Parameter(name="--launches", group=HOW, help="Starts of the ranks for every point: 3.")
    ] = 3
    runs: Annotated[
        int | None,
        Parameter(name="--runs", group=HOW, help="Exactly N samples of each point and launch, however sure."),
    ] = None
    interval: Annotated[
        float,
        Parameter(
            name="--interval",
            group=HOW,
            help="Enough samples: the median is known to this part of it (0.05), with 95 %.",
        ),
    ] = 0.05
    seconds: Annotated[
        float | None, Parameter(name="--seconds", group=HOW, help="Or so much time went into the point.")
    ] = None
    seed: Annotated[
        int | None, Parameter(name="--seed", group=HOW, help="Repeats an order of points: the result has it.")
    ] = None
    timeout: Annotated[
        float | None, Parameter(name="--timeout", group=HOW, help="End a run that takes more SECONDS.")
    ] = None
    folder: Annotated[
        str | None,
        Parameter(
            name="--folder",
            value=FOLDER,
            group=WHERE,
            help="file: where samples lie for a while.",
            default="the current folder",
        ),
    ] = None
    hosts: Annotated[
        str | None,
        Parameter(name="--hosts", value=FILE, group=WHERE, help="FILE with a host a line, for level node."),
    ] = None
    launcher: Annotated[
        str | None,
        Parameter(
            name="--launcher", value=Value("COMMAND"), group=WHERE, help="Replaces mpiexec and its options."
        ),
    ] = None
    json: Annotated[
        str | None,
        Parameter(
            name="--json",
            value=JSON,
            stream=True,
            group=SHOW,
            help="FILE for all figures and samples; - for standard output.",
        ),
    ] = None
    html: Annotated[
        str | None,
        Parameter(name="--html", value=HTML, stream=True, group=SHOW, help="FILE for a page."),
    ] = None
    plots: Annotated[
        str | None,
        Parameter(name="--plots", value=FOLDER, group=SHOW, help="FOLDER for figures, SVG and PNG."),
    ] = None
    tables: Annotated[
        str | None,
        Parameter(name="--tables", value=FOLDER, group=SHOW, help="FOLDER for tables: CSV, Markdown, JSON."),
    ] = None
    store: Annotated[
        bool,
        Parameter(
            name="--store",
            group=SHOW,
            help="Keep it as this machine's profile.",
            default="yes, unless flags left much out or made it less sure",
        ),
    ] = False
    no_store: Annotated[bool, Parameter(name="--no-store", group=SHOW, help="Keep nothing.")] = False
    schema: Annotated[
        bool, Parameter(name="--schema", group=SHOW, help="Print what fits the JSON, as a JSON schema.")
    ] = False
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], group=SHOW, help="Only errors.")] = False
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"], group=SHOW, help="All tables.")] = False
