"""Choices: the flags of every job that say how and where, declared once; None is where the plan decides."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from tilewise.base.declare import CLUSTER, FILE, HOW, SIZE, TIME, WHERE, Flag, Value
from tilewise.base.errors import UsageError
from tilewise.base.units import parse_pair, parse_size, parse_time
from tilewise.files.style import (
    DECIMAL,
    HEADER_ROWS,
    INDEX,
    MISSING,
    SEPARATOR,
    MarkPair,
    Style,
)
from tilewise.launch.job import Job
from tilewise.machine.cluster import Cluster, parse_cluster
from tilewise.planning.names import (
    EXCHANGES,
    IO,
    KERNELS,
    MPI_IO,
    ONLY_READ,
    PLACES,
    REMAINDERS,
    VERIFY,
    Algorithm,
)

RANKS_MOST, THREADS_MOST, SEED_MAX = 2**20, 4096, 2**63 - 1
CHECKPOINT_EVERY, CHECKPOINT_BEYOND = 600.0, 1200.0  # seconds
NO_RANKS = {"simulate": "a simulation starts no ranks"}
NO_PROOFS = ("auto", "off")  # what --verify may be where there is nothing to verify


class Strategies(NamedTuple):
    """I/O strategies for reading and for writing; None where the plan decides."""

    read: str | None = None
    write: str | None = None


def parse_io(text: str, flag: str = "--io") -> Strategies:
    """Reading and writing strategy out of `NAME` or `READ:WRITE`; None where the plan decides."""
    read, colon, write = text.partition(":")
    if not colon:
        write = "auto" if read in ONLY_READ else read
    if write in ONLY_READ:
        raise UsageError(f"{flag} {text}: {write} only reads", f"{flag} {write}:positioned")
    for name in (read, write):
        if name not in ("auto", *IO):
            raise UsageError(f"{flag} {name!r} is unknown; expected one of auto, {', '.join(IO)}")
    return Strategies(*(None if name == "auto" else name for name in (read, write)))


def parse_hints(pairs: tuple[str, ...], flag: str = "--hint") -> dict[str, str]:
    """MPI-IO hints out of `KEY=VALUE` words."""
    hints: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"{flag} expects KEY=VALUE such as cb_nodes=2, not {pair!r}")
        if hints.setdefault(key, value) != value:
            raise UsageError(f"{flag} {key} was given twice with different values")
    return hints


def _parse_grid(text: str, flag: str) -> tuple[int, int] | None:
    return None if text == "auto" else parse_pair(text, flag, "2x2")


def _parse_checkpoint(text: str, flag: str) -> float:
    return 0.0 if text.strip() == "off" else parse_time(text, flag)


def _algorithms(kind: type[Choices]) -> tuple[str, ...]:
    return ("auto", *kind.algorithms) if kind.algorithms else ()


def exchanges_of(kind: type[Choices]) -> list[str]:
    """Exchanges that some algorithm of an operation can use, in the order of the table."""
    used = {name for algorithm in kind.algorithms.values() for name in algorithm.exchanges}
    return [name for name in EXCHANGES if name in used]


def _exchanges(kind: type[Choices]) -> tuple[str, ...]:
    found = exchanges_of(kind)
    return ("auto", *found) if found else ()


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
    and whether it `writes` files, and `keeps` what another start can go on from. `exchange_words` says what
    an exchange does, where that is not what `EXCHANGES` says, and `halos` which exchanges can carry one.
    """

    writes: ClassVar[bool] = True
    keeps: ClassVar[bool] = False
    algorithms: ClassVar[dict[str, Algorithm]] = {}
    exchange_words: ClassVar[dict[str, str]] = {}
    halos: ClassVar[dict[str, tuple[str, ...]]] = {}
    kernels: ClassVar[tuple[str, ...]] = ("fast", "plain")
    proofs: ClassVar[tuple[str, ...]] = VERIFY

    ranks: Annotated[
        int | None,
        Flag("Number of ranks.", HOW, short="-n", least=1, most=RANKS_MOST, default="planned", common=True),
    ] = None
    threads: Annotated[
        int | None, Flag("Threads per rank.", HOW, short="-t", least=1, most=THREADS_MOST, default="planned")
    ] = None
    algorithm: Annotated[str | None, Flag("Algorithm to use.", HOW, choices=_algorithms, default="auto")] = (
        None
    )
    exchange: Annotated[
        str | None,
        Flag("How ranks exchange data.", HOW, choices=_exchanges, default="auto", known=("auto", *EXCHANGES)),
    ] = None
    io: Annotated[
        Strategies,
        Flag(
            "How files are read and written: NAME, or READ:WRITE.",
            HOW,
            choices=("auto", *IO),
            joined=":",
            default="auto",
            parse=parse_io,
        ),
    ] = Strategies()
    grid: Annotated[
        tuple[int, int] | None,
        Flag(
            "Process grid: PxQ.",
            HOW,
            value=Value("PxQ"),
            default="planned",
            parse=_parse_grid,
            applies=_writes,
        ),
    ] = None
    remainder: Annotated[
        str,
        Flag(
            "Where the remainder of an uneven division goes: spread over all parts, or to the last one.",
            HOW,
            choices=_remainders,
        ),
    ] = "spread"
    kernel: Annotated[
        str,
        Flag("Arithmetic kernel; plain: the reference loops.", HOW, choices=_kernels, known=KERNELS),
    ] = "fast"
    hints: Annotated[
        dict[str, str],
        Flag(
            "MPI-IO hint, as KEY=VALUE.",
            HOW,
            name="hint",
            value=Value("KEY=VALUE"),
            parse=parse_hints,
            several=True,
        ),
    ] = {}
    verify: Annotated[
        str,
        Flag(
            "How to verify the result. fast: a cheap check; serial: a second computation on one rank.",
            HOW,
            choices=_proofs,
            known=VERIFY,
            applies=_has_proofs,
        ),
    ] = "auto"
    no_verify: Annotated[bool, Flag("Same as --verify off.", HOW, applies=_has_proofs)] = False
    repeat: Annotated[
        int, Flag("Run the in-memory part N times and record each.", HOW, least=1, applies=_has_algorithms)
    ] = 1
    warmup: Annotated[
        int, Flag("Run the in-memory part N times first, unrecorded.", HOW, least=0, applies=_has_algorithms)
    ] = 0
    sync: Annotated[bool, Flag("Flush the output to disk before publishing it.", HOW, applies=_writes)] = (
        False
    )
    header_rows: Annotated[int | None, HEADER_ROWS] = None
    separator: Annotated[MarkPair, SEPARATOR] = MarkPair()
    decimal: Annotated[MarkPair, DECIMAL] = MarkPair()
    missing: Annotated[tuple[str, ...], MISSING] = ()
    index: Annotated[str | None, INDEX] = None
    memory: Annotated[
        int | None,
        Flag(
            "Memory limit for all ranks on a node, such as 4GiB.",
            WHERE,
            value=SIZE,
            default="80 % of the free memory",
            parse=parse_size,
            common=True,
        ),
    ] = None
    hosts: Annotated[
        str, Flag("File with one host per line: HOST or HOST:SLOTS.", WHERE, excludes=NO_RANKS, value=FILE)
    ] = ""
    place: Annotated[
        str, Flag("Put neighbouring ranks on neighbouring units of this kind.", WHERE, choices=PLACES)
    ] = "core"
    checkpoint: Annotated[
        float | None,
        Flag(
            "Checkpoint interval, for --resume: 30s, 10min; or off.",
            HOW,
            value=TIME,
            default="10min, for jobs over 20min",
            parse=_parse_checkpoint,
            applies=_keeps,
        ),
    ] = None
    resumed: Job | None = None  # whose pieces of the result are to be kept
    launcher: Annotated[
        str,
        Flag(
            'Command to use instead of mpiexec and its options, such as "srun --mpi=pmix -K".',
            WHERE,
            excludes=NO_RANKS,
            value=Value("COMMAND"),
        ),
    ] = ""

    simulate: Annotated[
        Cluster | None,
        Flag(
            "Simulate the ranks on a cluster instead of running them: 64x2:12.5GB/s:1.5us, or "
            "a platform file of SimGrid.",
            WHERE,
            value=CLUSTER,
            parse=parse_cluster,
            applies=_has_algorithms,
        ),
    ] = None

    def __post_init__(self) -> None:
        """Raises UsageError where flags contradict each other, or cannot be."""
        if self.no_verify:
            if self.verify not in ("auto", "off"):
                raise UsageError(f"--no-verify and --verify {self.verify} contradict each other")
            msgspec.structs.force_setattr(self, "verify", "off")
            msgspec.structs.force_setattr(self, "no_verify", False)
        if self.simulate is not None:
            self._check_simulated()
            msgspec.structs.force_setattr(self, "threads", 1)

    def _check_simulated(self) -> None:
        """Raise UsageError for what the simulator cannot do."""
        if self.threads not in (None, 1):
            raise UsageError(
                f"--threads {self.threads}: simulated ranks have one thread each", "more --ranks"
            )
        if mpi_io := next((name for name in self.io if name in MPI_IO), ""):
            raise UsageError(
                f"--io {mpi_io}: files are not simulated, and MPI-IO not at all", "--io positioned"
            )

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
        """Return whether the in-memory part runs more than once."""
        return self.repeat > 1 or self.warmup > 0

    @property
    def read_style(self) -> Style:
        """Style of texts that are read."""
        return Style(self.header_rows, self.separator.read, self.decimal.read, self.missing, self.index)

    @property
    def written_style(self) -> Style:
        """Style of texts that are written."""
        return Style(self.header_rows, self.separator.write, self.decimal.write, self.missing)

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
