"""The record: what was done, how long every phase took, how much moved, and the proof. Mirrors `--json`."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from tilewise.launch.events import RankPlace, Verification
from tilewise.machine.disturbance import Disturbance


class RankSeconds(msgspec.Struct, frozen=True):
    """Seconds over ranks."""

    min: float
    mean: float
    max: float


class InputSeconds(RankSeconds, frozen=True):
    """Reading: `parse` makes numbers of bytes, `file` waits for the file, `distribute` sends."""

    parse: RankSeconds
    file: RankSeconds
    distribute: RankSeconds


class OutputSeconds(RankSeconds, frozen=True):
    """Writing: `format` makes bytes of numbers, `file` waits for the file, `collect` gathers."""

    format: RankSeconds
    file: RankSeconds
    collect: RankSeconds


class Seconds(msgspec.Struct, frozen=True):
    """Phases are exclusive and add up to `total` on every rank; `wall` includes the launch and the front."""

    input: InputSeconds
    compute: RankSeconds
    exchange: RankSeconds
    output: OutputSeconds
    verify: RankSeconds
    total: RankSeconds
    wall: float


class Bytes(msgspec.Struct, frozen=True):
    """Sums over ranks; `exchanged` counts what ranks received, `exchanged_max_rank` the most that one did."""

    read: int
    useful: int
    written: int
    exchanged: int
    exchanged_max_rank: int
    copied_in_node: int


class Rates(msgspec.Struct, frozen=True):
    """Work over the slowest rank's time in its phase, each second; null without work or time."""

    flops_per_second: float | None
    read_bytes_per_second: float | None
    written_bytes_per_second: float | None
    exchanged_bytes_per_second: float | None
    whole_flops_per_second: float | None


class PeakMemory(msgspec.Struct, frozen=True):
    """Bytes of resident memory: every rank, the largest, and the node with most."""

    per_rank: list[int]
    max_rank: int
    node_sum: int


class Matrix(msgspec.Struct, frozen=True):
    """An input or an output as the record names it; a coloured picture has more `planes` than one.

    `shape` has one extent where a file holds a list of numbers, such as singular values, else two. Where only
    a part of the file's matrix is taken, `window` is its rows and columns [begin, end).
    """

    path: str
    format: str
    shape: tuple[int, ...]
    dtype: str
    order: str
    planes: int = 1
    window: tuple[tuple[int, int], ...] | msgspec.UnsetType = msgspec.UNSET


class RecordSlices(msgspec.Struct, frozen=True):
    """The slices of a stack that the job was done for: how many along which axes, and who did them.

    `apart`: each rank did some of them, with the variant of one rank; else all ranks worked on each.
    """

    axes: tuple[int, ...]
    extents: tuple[int, ...]
    slices: int
    apart: bool


class RecordVariant(msgspec.Struct, frozen=True):
    """Way in which it was done. `io` is `READ:WRITE`; `copies` counts the layers of `replicated`.

    Of a transposition: how rank 0 of `gather` wrote, and the tile measured for this machine; of a stencil:
    how the matrix was cut, sweeps for each exchange, how halos got into messages, whether MPI was asked to
    reorder ranks, and of a field larger than memory the tile that was swept at a time; of `svd` by `jacobi`:
    how many column blocks there were, what it was to start from and how pairs were solved; of a stack
    `each`; else null. `hints` are what MPI-IO was told, by the plan or by the user.
    """

    algorithm: str
    exchange: str
    io: str
    grid: tuple[int, int]
    ranks: int
    threads: int
    copies: int
    kernel: str
    remainder: str
    root_write: str | None = None
    tile: tuple[int, int] | None = None
    decomposition: str | None = None
    depth: int | None = None
    halo: str | None = None
    reorder: bool | None = None
    blocks: int | None = None
    start: str | None = None
    inner: str | None = None
    each: RecordSlices | None = None
    hints: dict[str, str] = {}


class Storage(msgspec.Struct, frozen=True):
    """Place of a file: kind of file system, and whether the page cache held it before the job."""

    path: str
    file_system: str
    cache: str


class Simulated(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster that ranks were simulated on, of which `hosts` have so many `cores` each.

    `operations_per_second` and `bytes_per_second` of a core; null: computing was timed. Without `numbers`
    kernels only said how long they would take.
    """

    cluster: str
    hosts: int
    cores: int
    operations_per_second: float | None
    bytes_per_second: float | None
    numbers: bool


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything around the job that its numbers depend on; `virtual` machine: null if unknown.

    `simulated`: null where ranks were real.
    """

    host: str
    cpu: str
    cores: int
    cpus: int
    numa_nodes: int
    mpi_library: str
    mpi_standard: str
    blas: str
    blas_kernel: str
    gemm_kernel: str
    compiler: str
    binding: str
    launcher: str
    storage: list[Storage]
    oversubscribed: bool
    variables: dict[str, str]
    versions: dict[str, str]
    time: str
    virtual: bool | None = None
    simulated: Simulated | None = None


class Record(msgspec.Struct, kw_only=True):
    """One job's whole record; the fields stand in the reference under their names."""

    tilewise: str
    command: str
    inputs: list[Matrix]
    outputs: list[Matrix]
    variant: RecordVariant
    chosen_by: str
    fixed: list[str]
    reasons: list[str]
    seconds: Seconds
    samples: list[dict[str, float]]
    bytes: Bytes
    messages: int
    io_calls: int
    flops: float
    rates: Rates
    peak_flops: float | None
    fraction_of_peak: float | None
    peak_rss_bytes: PeakMemory
    needed_bytes: int
    ranks_working: int
    placement: list[RankPlace]
    predicted_seconds: dict[str, float] | None
    verification: Verification | None
    result: dict[str, Any]
    warnings: list[str]
    environment: Environment
    labels: list[str] = []
    disturbance: Disturbance | None = None


def encode(record: Record) -> bytes:
    """The record as indented JSON with a final newline; what is not a finite number becomes null."""
    plain = _finite(msgspec.to_builtins(record))
    return msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value
