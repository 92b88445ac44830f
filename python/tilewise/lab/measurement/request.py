"""The request of a measurement: its flags, the kinds that each belongs to, and lists in words."""

from __future__ import annotations

from typing import Annotated

from tilewise.base.declare import (
    COMMAND,
    FILE,
    FOLDER,
    HOW,
    HTML,
    JSON,
    NUMBER,
    SHOW,
    SIZE,
    WHERE,
    Argument,
    Flag,
    Flags,
    declared,
)
from tilewise.base.errors import UsageError
from tilewise.base.units import parse_size
from tilewise.machine import topology
from tilewise.planning.names import BOTH_WAYS

KINDS = ("ping", "file", "memory", "compute")
LEVELS = (*topology.LEVELS, "node")  # from near to far
EXCHANGES = ("blocking", "nonblocking", "put", "get")
PATTERNS = ("roundtrip", "stream")
COLLECTIVES = ("bcast", "scatter", "gather", "allreduce", "alltoallv")
BUFFERS = ("malloc", "pinned", "device", "managed")
LAYOUTS = ("interleaved", "contiguous", "per_rank")
CACHES = ("warm", "cold", "direct")
GPUDIRECT = "gpudirect"  # between files and memory of a device: measured where it is named
CHECKS = ("none", "counts", "content")
DTYPES = ("float32", "float64", "complex64", "complex128")

PING, FILES, COMPUTE = ("ping",), ("file",), ("compute",)  # the kinds that a flag belongs to
MOST = (1 << 31) - 1
_MOST_POINTS = 10_000  # of one flag's range
_ONE_KIND = ("bytes", "ranks")  # mean something else for each of their kinds
_HARMLESS = ("folder", "matrix", "no_sync")  # leave nothing out, and measure nothing else
_USUAL_INTERVAL = 0.05
_LEAST_SECONDS = 1.0  # of a point: less than what some kind takes by itself


class MeasureRequest(Flags, frozen=True, kw_only=True):
    """Measure this machine: messages by distance, files, memory, arithmetic. To test for changes, use
    measure compare BEFORE.json AFTER.json.

    Sizes are in bytes; None is where the kind has a default of its own. Without `runs` a point is sampled
    until the interval of the median is within `interval` of it, or `seconds` have passed.

    Examples:
        tilewise measure
            Measure everything, and store the result as the profile of this machine.
        tilewise measure ping --bytes 8,1KiB,1MiB --exchange blocking
            Measure messages of three sizes.
        tilewise measure memory --threads 1,2 --json memory.json
            Measure memory bandwidth with one and two threads, and store all samples in a file.
    """

    kind: Annotated[
        str,
        Flag(
            "What to measure: ping, file, memory or compute.",
            choices=(*KINDS, "all"),
            default="all",
            place=True,
        ),
    ] = "all"
    bytes: Annotated[
        list[int] | None,
        Flag(
            "sizes of messages or arrays, such as 1..4MiB (doubling) or 8,1KiB.",
            value=SIZE,
            parse=parse_sizes,
            only=("ping", "memory"),
            joined=",",
        ),
    ] = None
    pairs: Annotated[
        list[int] | None,
        Flag(
            "numbers of pairs that communicate at once, such as 1,3.",
            value=NUMBER,
            parse=parse_counts,
            least=1,
            most=32_768,
            only=PING,
            joined=",",
        ),
    ] = None
    levels: Annotated[
        list[str] | None,
        Flag(
            f"distance between the ranks of a pair: {', '.join(LEVELS)}.",
            choices=LEVELS,
            parse=parse_names,
            only=PING,
            joined=",",
            default="all levels of this machine",
        ),
    ] = None
    exchanges: Annotated[
        list[str] | None,
        Flag(
            f"kind of exchange: {', '.join(EXCHANGES)}.",
            choices=EXCHANGES,
            parse=parse_names,
            only=PING,
            name="exchange",
            joined=",",
        ),
    ] = None
    patterns: Annotated[
        list[str] | None,
        Flag(
            "roundtrip, or stream (64 messages in a row).",
            choices=PATTERNS,
            parse=parse_names,
            only=PING,
            name="pattern",
            joined=",",
            default="roundtrip, and stream for one exchange",
        ),
    ] = None
    collectives: Annotated[
        list[str] | None,
        Flag(
            f"collectives: {', '.join(COLLECTIVES)}, or none.",
            choices=(*COLLECTIVES, "none"),
            parse=parse_names,
            only=PING,
            joined=",",
        ),
    ] = None
    matrix: Annotated[
        bool,
        Flag("measure every pair of ranks.", only=PING, excludes={"no_matrix": ""}, default="up to 16 ranks"),
    ] = False
    no_matrix: Annotated[bool, Flag("do not measure every pair.", only=PING)] = False
    ranks: Annotated[
        list[int] | None,
        Flag(
            "rank counts, such as 1,2,4; in ping only for collectives and --matrix.",
            short="-n",
            value=NUMBER,
            parse=parse_counts,
            least=1,
            most=65_536,
            only=("ping", "file"),
            joined=",",
            common=True,
        ),
    ] = None
    blocks: Annotated[
        list[int] | None,
        Flag(
            "block sizes, such as 128K..16M (128K, 256K, 512K, 1M, 2M … 16M) or 64KiB,1MiB.",
            value=SIZE,
            parse=parse_sizes,
            only=FILES,
            name="block",
            joined=",",
        ),
    ] = None
    blocks_per_rank: Annotated[
        int | None, Flag("number of blocks.", only=FILES, least=1, most=MOST, default="64; fewer if large")
    ] = None
    io: Annotated[
        list[str] | None,
        Flag(
            "I/O strategies of jobs, such as positioned,mapped, or all; or gpudirect.",
            choices=("all", *BOTH_WAYS, GPUDIRECT),
            parse=parse_io_names,
            only=FILES,
            joined=",",
        ),
    ] = None
    buffers: Annotated[
        list[str] | None,
        Flag(
            "memory: malloc; with a graphics processor also pinned, device, managed.",
            choices=BUFFERS,
            parse=parse_names,
            only=("file", "ping"),
            name="buffer",
            joined=",",
        ),
    ] = None
    layouts: Annotated[
        list[str] | None,
        Flag(
            "interleaved (block by block), contiguous (rank by rank), per_rank (a file per rank).",
            choices=LAYOUTS,
            parse=parse_names,
            only=FILES,
            name="layout",
            joined=",",
        ),
    ] = None
    caches: Annotated[
        list[str] | None,
        Flag(
            "warm (in the page cache), cold (dropped before reading), direct (past the cache).",
            choices=CACHES,
            parse=parse_names,
            only=FILES,
            name="cache",
            joined=",",
        ),
    ] = None
    check: Annotated[
        str, Flag("what to check after reading: none, counts or content.", only=FILES, choices=CHECKS)
    ] = "counts"
    shift: Annotated[
        int | None,
        Flag(
            "each rank reads what rank + N wrote, to avoid its own caches.",
            only=FILES,
            least=0,
            most=MOST,
            default="1",
        ),
    ] = None
    sync: Annotated[
        bool, Flag("time a write until the data is on disk.", only=FILES, excludes={"no_sync": ""})
    ] = False
    no_sync: Annotated[
        bool, Flag("time a write until the data is in the page cache (the default).", only=FILES)
    ] = False
    gpus: Annotated[
        int | None,
        Flag(
            "number of graphics processors per node that ranks share.",
            only=("file", "ping"),
            least=1,
            most=MOST,
        ),
    ] = None
    sizes: Annotated[
        list[int] | None,
        Flag(
            "sizes N of N×N products, such as 64,1024.",
            value=NUMBER,
            parse=parse_counts,
            least=1,
            most=1 << 20,
            only=COMPUTE,
            joined=",",
        ),
    ] = None
    dtypes: Annotated[
        list[str] | None,
        Flag(
            f"data types: {', '.join(DTYPES)}.", choices=DTYPES, parse=parse_names, only=COMPUTE, joined=","
        ),
    ] = None
    threads: Annotated[
        list[int] | None,
        Flag(
            "thread counts, such as 1,2.",
            short="-t",
            value=NUMBER,
            parse=parse_counts,
            least=1,
            most=4096,
            only=("memory", "compute"),
            joined=",",
        ),
    ] = None
    launches: Annotated[int, Flag("Launches per point.", HOW, least=1, most=MOST)] = 3
    runs: Annotated[
        int | None, Flag("Take exactly N samples per point and launch.", HOW, least=1, most=MOST)
    ] = None
    interval: Annotated[
        float,
        Flag("Sample until the 95 % interval of the median is within this fraction of it.", HOW, above=0),
    ] = 0.05
    seconds: Annotated[
        float | None, Flag("Sample a point for at most X seconds.", HOW, above=0, common=True)
    ] = None
    seed: Annotated[
        int | None, Flag("Seed of the order of points; the result records it.", HOW, least=0, most=MOST)
    ] = None
    timeout: Annotated[float | None, Flag("Stop the run after X seconds.", HOW, above=0)] = None
    folder: Annotated[
        str,
        Flag(
            "folder for temporary sample files.",
            WHERE,
            only=FILES,
            value=FOLDER,
            default="the current folder",
            common=True,
        ),
    ] = "."
    hosts: Annotated[str, Flag("File with one host per line, for level node.", WHERE, value=FILE)] = ""
    launcher: Annotated[
        str, Flag("Command to use instead of mpiexec and its options.", WHERE, value=COMMAND)
    ] = ""
    json: Annotated[
        str | None,
        Flag(
            "File for all figures and samples; - for standard output.",
            SHOW,
            value=JSON,
            stream=True,
            common=True,
        ),
    ] = None
    html: Annotated[
        str | None, Flag("File for an HTML page.", SHOW, value=HTML, stream=True, common=True)
    ] = None
    plots: Annotated[str | None, Flag("Folder for figures (SVG and PNG).", SHOW, value=FOLDER)] = None
    tables: Annotated[str | None, Flag("Folder for tables (CSV, Markdown and JSON).", SHOW, value=FOLDER)] = (
        None
    )
    store: Annotated[
        bool,
        Flag(
            "Store the result as this machine's profile.",
            SHOW,
            excludes={"no_store": ""},
            default="yes, unless flags narrow or weaken the run",
        ),
    ] = False
    no_store: Annotated[bool, Flag("Store nothing.", SHOW)] = False
    schema: Annotated[bool, Flag("Print the JSON schema of the result.", SHOW)] = False
    quiet: Annotated[bool, Flag("Print errors only.", SHOW, short="-q", excludes={"verbose": ""})] = False
    verbose: Annotated[bool, Flag("Print all tables.", SHOW, short="-v")] = False

    def __post_init__(self) -> None:
        """Raise UsageError for flags of another kind, or that mean something else for each kind."""
        super().__post_init__()
        for flag in self._narrowing():
            kinds = " and ".join(flag.only)
            advice = f"tilewise measure {flag.only[0]}"
            if self.kind == "all" and flag.field in _ONE_KIND:
                raise UsageError(
                    f"{flag.name} differs between {kinds}; name one of them", f"{advice} {flag.name} …"
                )
            if self.kind not in (*flag.only, "all"):
                raise UsageError(f"{flag.name} belongs to {kinds}, not to {self.kind}", advice)
        if not self.folder:
            raise UsageError("--folder expects a folder, not an empty name")

    def _narrowing(self) -> list[Argument]:
        """The flags that were given and belong to some kinds."""
        return [flag for flag in declared(type(self)) if flag.only and flag.given(self)]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that are measured."""
        return KINDS if self.kind == "all" else (self.kind,)

    @property
    def brief(self) -> bool:
        """Several kinds share the time: their defaults are shorter."""
        return len(self.kinds) > 1

    @property
    def whole(self) -> bool:
        """Return whether no flag leaves out or weakens anything, so that the result may be stored."""
        left_out = any(flag.field not in _HARMLESS for flag in self._narrowing())
        sloppy = self.interval > _USUAL_INTERVAL or (self.seconds or _LEAST_SECONDS) < _LEAST_SECONDS
        return not (left_out or sloppy or self.launcher) and self.runs is None and self.launches > 1

    @property
    def stored(self) -> bool:
        """Return whether the result becomes this machine's profile."""
        return self.store or (self.whole and not self.no_store)


class CompareFlags(Flags, frozen=True, kw_only=True):
    """Compare two measurements. A statistical test calls each figure faster, slower or not distinguishable.

    Examples:
        tilewise measure compare before.json after.json
            Two files that measure --json has written.
    """

    before: Annotated[str, Flag("A measurement that measure --json FILE wrote.", value=JSON, place=True)]
    after: Annotated[str, Flag("A later measurement, or one of another machine.", value=JSON, place=True)]
    json: Annotated[
        str | None,
        Flag("File for the whole comparison; - for standard output.", SHOW, value=JSON, stream=True),
    ] = None
    verbose: Annotated[bool, Flag("Print every line.", SHOW, short="-v")] = False


def parse_names(text: str, flag: str) -> list[str]:
    """Names with commas between them, each once; an empty list for `none`."""
    return [] if text == "none" else list(dict.fromkeys(word.strip() for word in text.split(",")))


def parse_io_names(text: str, flag: str) -> list[str]:
    """Strategies of files; `all` for each that jobs have."""
    return list(BOTH_WAYS) if text == "all" else parse_names(text, flag)


def parse_counts(text: str, flag: str) -> list[int]:
    """Whole numbers with commas between them, such as `1,2,4`, each once; UsageError for other words."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() for word in words):
        raise UsageError(f"{flag} expects whole numbers such as 1,2,4, not {text!r}")
    return list(dict.fromkeys(map(int, words)))


def parse_sizes(text: str, flag: str) -> list[int]:
    """Sizes in bytes with commas between them; `A..B` stands for A, twice A and so on as far as B.

    After 512 of a decimal unit comes 1 of the next one, as people count: `128K..16M` is 128K, 256K, 512K, 1M,
    2M … 16M, which are the sizes of the reports; binary units just double.
    """
    sizes: list[int] = []
    for word in text.split(","):
        first, dots, last = word.partition("..")
        begin = parse_size(first, flag)
        end = parse_size(last, flag) if dots else begin
        if begin < 1:
            raise UsageError(f"{flag} {first.strip()} makes no sense; it must be 1 byte or more")
        if end < begin:
            raise UsageError(f"{flag} {word.strip()} is an empty range; the smaller size comes first")
        size = begin
        while size <= end:
            sizes.append(size)
            size = following(size)
    if len(sizes) > _MOST_POINTS:
        raise UsageError(f"{flag} names {len(sizes)} sizes; at most {_MOST_POINTS} are allowed")
    return list(dict.fromkeys(sizes))


def following(size: int) -> int:
    """The size after this one in a range."""
    unit = 1000
    while unit <= size:
        if size == 512 * unit:
            return 1000 * unit
        unit *= 1000
    return 2 * size
