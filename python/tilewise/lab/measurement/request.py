"""What is asked for: kinds, sizes, ranks and names, each checked against what there is, and the defaults."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

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

_MOST_POINTS = 10_000  # of one flag's range


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement as it is asked for. Sizes in bytes; None is where the kind has a default of its own.

    `whole`: nothing of it was left out by a flag, so that it may replace what is stored. `runs`: exactly so
    many samples of each point; 0: until the interval of the median is within `interval` of it, or `seconds`
    have passed.
    """

    kinds: tuple[str, ...] = KINDS
    whole: bool = True
    ranks: list[int] | None = None
    threads: list[int] | None = None
    bytes: list[int] | None = None
    pairs: list[int] | None = None
    levels: list[str] | None = None
    exchanges: list[str] | None = None
    patterns: list[str] | None = None
    collectives: list[str] | None = None
    matrix: bool | None = None
    io: list[str] | None = None
    blocks: list[int] | None = None
    blocks_per_rank: int | None = None
    buffers: list[str] | None = None
    layouts: list[str] | None = None
    caches: list[str] | None = None
    check: str = "counts"
    shift: int | None = None
    sync: bool = False
    gpus: int = 0
    folder: str = "."
    sizes: list[int] | None = None
    dtypes: list[str] | None = None
    runs: int = 0
    launches: int = 3
    seconds: float | None = None
    interval: float = 0.05
    seed: int = 0
    hosts: str = ""
    launcher: str = ""

    @property
    def brief(self) -> bool:
        """Several kinds share the time: their defaults are shorter."""
        return len(self.kinds) > 1


def parse_names(text: str | None, flag: str, known: Sequence[str]) -> list[str] | None:
    """Names with commas between them, each once; UsageError for one that is not `known`."""
    if text is None:
        return None
    names = [word.strip() for word in text.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(f"{flag} {name!r} is unknown; expected one of {', '.join(known)}")
    return list(dict.fromkeys(names))


def parse_counts(text: str | None, flag: str, most: int = 1 << 20) -> list[int] | None:
    """Whole numbers from 1 to `most` with commas between them, such as `1,2,4`."""
    if text is None:
        return None
    numbers = []
    for word in text.split(","):
        if not (word.strip().isascii() and word.strip().isdigit()):
            raise UsageError(f"{flag} expects whole numbers such as 1,2,4, not {text!r}")
        numbers.append(int(word))
        if not 1 <= numbers[-1] <= most:
            raise UsageError(f"{flag} {word.strip()} makes no sense; it must be from 1 to {most}")
    return list(dict.fromkeys(numbers))


def parse_sizes(text: str | None, flag: str) -> list[int] | None:
    """Sizes in bytes with commas between them; `A..B` stands for A, twice A and so on as far as B.

    After 512 of a decimal unit comes 1 of the next one, as people count: `128K..16M` is 128K, 256K, 512K, 1M,
    2M … 16M, which are the sizes of the reports; binary units just double.
    """
    if text is None:
        return None
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


def parse_io_names(text: str | None) -> list[str] | None:
    """Strategies of files; `all` for each that jobs have."""
    return list(BOTH_WAYS) if text == "all" else parse_names(text, "--io", (*BOTH_WAYS, GPUDIRECT))


def parse_collectives(text: str | None) -> list[str] | None:
    """Collectives; an empty list for `none`."""
    return [] if text == "none" else parse_names(text, "--collectives", COLLECTIVES)


def parse_check(text: str | None) -> str:
    """One way to look at what was read; counts if not said."""
    checks = parse_names(text, "--check", CHECKS) or ["counts"]
    if len(checks) > 1:
        raise UsageError(f"--check expects one of {', '.join(CHECKS)}, not {text!r}")
    return checks[0]
