"""Choices: the flags of every job that say how and where, declared once; None is where the plan decides."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from tilewise.base.declare import CLUSTER, FILE, HOW, SIZE, TIME, WHERE, Parameter, Value
from tilewise.base.errors import UsageError
from tilewise.base.units import parse_pair, parse_size, parse_time
from tilewise.files.style import (
    DECIMAL,
    HEADER_ROWS,
    MISSING,
    SEPARATOR,
    Marks,
    Style,
    check_header_rows,
)
from tilewise.launch.job import Job
from tilewise.machine.cluster import Cluster, parse_cluster
from tilewise.planning import simulated
from tilewise.planning.names import (
    EXCHANGES,
    IO,
    KERNELS,
    ONLY_READ,
    PLACES,
    REMAINDERS,
    VERIFY,
    Algorithm,
)

CHECKPOINT_EVERY, CHECKPOINT_BEYOND = 600.0, 1200.0  # seconds
NO_PROOFS = ("auto", "off")  # what --verify may be where there is nothing to verify


class Strategies(NamedTuple):
    """How files are read, and how they are written."""

    read: str | None = None
    write: str | None = None


def one_of(flag: str, value: str | None, names: tuple[str, ...] | list[str]) -> str | None:
    """`value` when it is one of `names`, None for `auto` or nothing; UsageError listing `names` otherwise."""
    if value is None or value in names:
        return value
    if value == "auto":
        return None
    raise UsageError(f"{flag} {value!r} is unknown; expected one of auto, {', '.join(names)}")


def parse_io(text: str) -> Strategies:
    """Reading and writing strategy out of `NAME` or `READ:WRITE`; None where the plan decides."""
    read, colon, write = text.partition(":")
    if not colon:
        write = "auto" if read in ONLY_READ else read
    if write in ONLY_READ:
        raise UsageError(f"--io {text}: {write} only reads", f"--io {write}:positioned")
    return Strategies(one_of("--io", read, list(IO)), one_of("--io", write, list(IO)))


def parse_hints(pairs: tuple[str, ...]) -> dict[str, str]:
    """MPI-IO hints out of `KEY=VALUE` words."""
    hints: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--hint expects KEY=VALUE such as cb_nodes=2, not {pair!r}")
        if hints.setdefault(key, value) != value:
            raise UsageError(f"--hint {key} was given twice with different values")
    return hints


def between(flag: str, value: int | None, low: int, high: int) -> None:
    """Raises UsageError for a number that is given and not from `low` to `high`."""
    if value is not None and not low <= value <= high:
        raise UsageError(f"{flag} {value} makes no sense; it must be a whole number from {low} to {high}")


def _parse_exchange(text: str) -> str | None:
    return one_of("--exchange", text, list(EXCHANGES))


def _parse_kernel(text: str) -> str:
    if text in KERNELS:
        return text
    raise UsageError(f"--kernel {text!r} is unknown; expected one of {', '.join(KERNELS)}")


def _parse_verify(text: str) -> str:
    if text in VERIFY:
        return text
    raise UsageError(f"--verify {text!r} is unknown; expected one of {', '.join(VERIFY)}")


def _parse_grid(text: str) -> tuple[int, int] | None:
    return None if text == "auto" else parse_pair(text, "--grid", "2x2")


def _parse_checkpoint(text: str) -> float:
    return 0.0 if text.strip() == "off" else parse_time(text, "--checkpoint")


def _parse_memory(text: str) -> int:
    return parse_size(text, "--memory")


def _algorithms(kind: type[Choices]) -> tuple[str, ...]:
    return ("auto", *kind.algorithms) if kind.algorithms else ()


def _exchanges(kind: type[Choices]) -> tuple[str, ...]:
    used = {name for algorithm in kind.algorithms.values() for name in algorithm.exchanges}
    return ("auto", *(name for name in EXCHANGES if name in used)) if used else ()


def _remainders(kind: type[Choices]) -> tuple[str, ...]:
    return REMAINDERS if kind.writes else ()


def _kernels(kind: type[Choices]) -> tuple[str, ...]:
    return kind.kernels if kind.algorithms else ()


def _proofs(kind: type[Choices]) -> tuple[str, ...]:
    return kind.proofs


def _has_proofs(kind: type[Choices]) -> bool:
    return kind.proofs != NO_PROOFS


def _keeps(kind: type[Choices]) -> bool:
    return kind.keeps


def _has_algorithms(kind: type[Choices]) -> bool:
    return bool(kind.algorithms)


def _writes(kind: type[Choices]) -> bool:
    return kind.writes


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The flags that say how and where. Memory in bytes; `grid` is rows × columns of ranks.

    `algorithms`, `kernels` and `proofs` (values of --verify) are those of the operation that these are for,
    and whether it `writes` files, and `keeps` what another start can go on from.
    """

    writes: ClassVar[bool] = True
    keeps: ClassVar[bool] = False
    algorithms: ClassVar[dict[str, Algorithm]] = {}
    kernels: ClassVar[tuple[str, ...]] = ("fast", "plain")
    proofs: ClassVar[tuple[str, ...]] = VERIFY

    ranks: Annotated[
        int | None,
        Parameter(name=["--ranks", "-n"], group=HOW, help="Number of ranks.", default="planned", common=True),
    ] = None
    threads: Annotated[
        int | None,
        Parameter(name=["--threads", "-t"], group=HOW, help="Threads per rank.", default="planned"),
    ] = None
    algorithm: Annotated[
        str | None,
        Parameter(
            name="--algorithm", group=HOW, help="Algorithm to use.", choices=_algorithms, default="auto"
        ),
    ] = None
    exchange: Annotated[
        str | None,
        Parameter(
            name="--exchange",
            group=HOW,
            help="How ranks exchange data.",
            choices=_exchanges,
            default="auto",
            parse=_parse_exchange,
        ),
    ] = None
    io: Annotated[
        Strategies,
        Parameter(
            name="--io",
            group=HOW,
            help="How files are read and written: NAME, or READ:WRITE.",
            choices=("auto", *IO),
            joined=":",
            default="auto",
            parse=parse_io,
        ),
    ] = Strategies()
    grid: Annotated[
        tuple[int, int] | None,
        Parameter(
            name="--grid",
            value=Value("PxQ"),
            group=HOW,
            help="Process grid: PxQ.",
            default="planned",
            parse=_parse_grid,
            applies=_writes,
        ),
    ] = None
    remainder: Annotated[
        str,
        Parameter(
            name="--remainder",
            group=HOW,
            help="How an uneven division is dealt out: spread over the parts, or all in the last one.",
            choices=_remainders,
        ),
    ] = "spread"
    kernel: Annotated[
        str,
        Parameter(
            name="--kernel",
            group=HOW,
            help="Arithmetic kernel; plain: the reference loops.",
            choices=_kernels,
            parse=_parse_kernel,
        ),
    ] = "fast"
    hints: Annotated[
        dict[str, str],
        Parameter(
            name="--hint",
            value=Value("KEY=VALUE"),
            group=HOW,
            help="MPI-IO hint, as KEY=VALUE.",
            parse=parse_hints,
            several=True,
        ),
    ] = {}
    verify: Annotated[
        str,
        Parameter(
            name="--verify",
            group=HOW,
            help="How to verify the result. fast: a cheap check; serial: a second computation on one rank.",
            choices=_proofs,
            parse=_parse_verify,
            applies=_has_proofs,
        ),
    ] = "auto"
    no_verify: Annotated[
        bool,
        Parameter(name="--no-verify", group=HOW, help="Same as --verify off.", applies=_has_proofs),
    ] = False
    repeat: Annotated[
        int,
        Parameter(
            name="--repeat",
            group=HOW,
            help="Run the in-memory part N times and record each.",
            applies=_has_algorithms,
        ),
    ] = 1
    warmup: Annotated[
        int,
        Parameter(
            name="--warmup",
            group=HOW,
            help="First run it N times without recording.",
            applies=_has_algorithms,
        ),
    ] = 0
    sync: Annotated[
        bool,
        Parameter(
            name="--sync",
            group=HOW,
            help="Flush the output to disk before publishing it.",
            applies=_writes,
        ),
    ] = False
    header_rows: Annotated[int | None, HEADER_ROWS] = None
    separator: Annotated[Marks, SEPARATOR] = Marks()
    decimal: Annotated[Marks, DECIMAL] = Marks()
    missing: Annotated[tuple[str, ...], MISSING] = ()
    memory: Annotated[
        int | None,
        Parameter(
            name="--memory",
            value=SIZE,
            group=WHERE,
            help="Memory limit for all ranks on a node, such as 4GiB.",
            default="80 % of the free memory",
            parse=_parse_memory,
            common=True,
        ),
    ] = None
    hosts: Annotated[
        str,
        Parameter(
            name="--hosts", value=FILE, group=WHERE, help="File with one host per line: HOST or HOST:SLOTS."
        ),
    ] = ""
    place: Annotated[
        str,
        Parameter(
            name="--place",
            group=WHERE,
            help="Put neighbouring ranks on neighbouring units of this kind.",
            choices=PLACES,
        ),
    ] = "core"
    checkpoint: Annotated[
        float | None,
        Parameter(
            name="--checkpoint",
            value=TIME,
            group=HOW,
            help="Keep the state of the work so often for --resume: 30s, 10min; or off.",
            default="10min, for over 20min",
            parse=_parse_checkpoint,
            applies=_keeps,
        ),
    ] = None
    resumed: Job | None = None  # whose pieces of the result are to be kept
    launcher: Annotated[
        str,
        Parameter(
            name="--launcher",
            value=Value("COMMAND"),
            group=WHERE,
            help='Command to use instead of mpiexec and its options, such as "srun --mpi=pmix -K".',
        ),
    ] = ""

    simulate: Annotated[
        Cluster | None,
        Parameter(
            name="--simulate",
            value=CLUSTER,
            group=WHERE,
            help="Simulate the ranks on a cluster instead of running them: 64x2:12.5GB/s:1.5us, or "
            "a platform file of SimGrid.",
            parse=parse_cluster,
            applies=_has_algorithms,
        ),
    ] = None

    def __post_init__(self) -> None:
        """Raises UsageError where flags contradict each other, or cannot be."""
        check_header_rows(self.header_rows)
        if self.no_verify:
            if self.verify not in ("auto", "off"):
                raise UsageError(f"--no-verify and --verify {self.verify} contradict each other")
            msgspec.structs.force_setattr(self, "verify", "off")
            msgspec.structs.force_setattr(self, "no_verify", False)
        if self.simulate is not None:
            simulated.check(self.launcher, self.hosts, self.threads, self.io)
            msgspec.structs.force_setattr(self, "threads", 1)

    def checkpoint_every(self, foreseen: float) -> float | None:
        """The seconds from one state that is kept to the next, of work that is `foreseen` to take so many."""
        if self.checkpoint is None:
            return CHECKPOINT_EVERY if foreseen > CHECKPOINT_BEYOND else None
        return self.checkpoint or None

    @property
    def command(self) -> str:
        """The word that asks for the operation that these are for."""
        return type(self).__name__.lower()

    @property
    def again(self) -> bool:
        """Whether what is done in memory is done more than once."""
        return self.repeat > 1 or self.warmup > 0

    @property
    def read_style(self) -> Style:
        """How texts are read."""
        return Style(self.header_rows, self.separator.read, self.decimal.read, self.missing)

    @property
    def written_style(self) -> Style:
        """How texts are written."""
        return Style(None, self.separator.write, self.decimal.write, self.missing)

    def fixed(self) -> list[str]:
        """Names of the flags that were given, out of those a plan chooses."""
        given: dict[str, Any] = {
            "ranks": self.ranks,
            "threads": self.threads,
            "algorithm": self.algorithm,
            "exchange": self.exchange,
            "io": self.io.read or self.io.write,
            "grid": self.grid,
        }
        return [name for name, value in given.items() if value is not None]
