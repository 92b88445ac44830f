"""The seam's first half: what the worker is told. Mirrors `docs/reference/seam.md` field by field.

Design: docs/design/front.md.
"""

from __future__ import annotations

import msgspec

from tilewise.base.journal import JournalPiece
from tilewise.files.region import Region, Source
from tilewise.launch import constants

PROTOCOL = 16


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """Way to do a job; names as on the command line, never `auto`. `grid` is rows × columns of ranks.
    `between_nodes` is the exchange where the ranks turn out to be on several nodes; empty: as said.

    Of a transposition: `root_write` is how rank 0 of `gather` writes, `tile` the rows and columns of the tile
    measured for this machine ((0, 0): the kernel's own), `streaming` whether it writes past the caches.
    Of a stencil: how the matrix is cut (`decomposition`; the cut itself is `grid`), `depth` sweeps for each
    exchange and pass over memory, how cells get into messages (`halo`), and whether MPI says which rank has
    which block (`reorder`); where the field does not fit in memory, `tile` is what is swept at a time, and a
    pass of `depth` sweeps goes from file to file.
    Of a decomposition by `jacobi`: column `blocks` of the ring over all ranks (even), what it starts from
    (`start`: "eigen", "qr" or "none"), and how a pair of blocks is solved (`inner`).
    """

    algorithm: str
    exchange: str
    between_nodes: str = ""
    read: str
    write: str
    grid: tuple[int, int]
    copies: int = 1
    ranks: int
    threads: int
    kernel: str = "fast"
    remainder: str = "spread"
    root_write: str = ""
    tile: tuple[int, int] = (0, 0)
    streaming: bool = False
    decomposition: str = ""
    depth: int = 0
    halo: str = ""
    reorder: bool = False
    blocks: int = 0
    start: str = ""
    inner: str = ""


class StencilJob(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a stencil. `weights` are (2·radius + 1)² numbers, row by row.

    Input and output are `planes` matrices, one above the other. After every `snapshot_every` sweeps but the
    last the state goes to the next of `snapshots`. `until_change` (0: never) ends the sweeps early; it is
    looked at after every `check_every` of them. `states` are files for a plane between passes from file to
    file.
    """

    steps: int
    radius: int
    weights: list[float]
    boundary: str
    planes: int = 1
    snapshot_every: int = 0
    snapshots: list[Region] = []
    states: list[Region] = []
    until_change: float = 0.0
    check_every: int = 16


class SvdJob(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a singular value decomposition: the part that is computed, and where it goes.

    `components` K (0: all min(M, N)); with `energy` above 0 the most there may be. `max_sweeps` and
    `off_squares` (of what squares beside the diagonal of AᵀA sum to, where sweeps end; 0: as the tolerance
    says) are of `jacobi` and `serial`, `tolerance` (0: its own) of these and of `randomized`; of the latter
    `power` iterations (-1: as many as it takes), `oversample`, `basis` (most columns of its space) and
    `seed`; with `keep_small`, `local` leaves matrices whose small values it would lose to `jacobi`.
    `panel_bytes` (of a matrix in memory, all ranks of a node) of `randomized`, `tall` and of proofs.
    `qr_blocks`: the blocks of `jacobi` where it starts by `qr`, also because `eigen` would cost accuracy
    (0: those of the variant); `share_eigen`: where it starts by `eigen`, all ranks reduce AᵀA. The files are
    in the job's `dtype`, row by row: `u` M×K, `s` 1×K, `vt` K×N and, where `scaled`, `us` = U·diag(s); None
    where one is not wanted.
    """

    components: int = 0
    values_only: bool = False
    max_sweeps: int = 30
    tolerance: float = 0.0
    off_squares: float = 0.0
    energy: float = 0.0
    power: int = -1
    oversample: int = 10
    basis: int = 0
    seed: int = 0
    keep_small: bool = False
    require_converged: bool = True
    panel_bytes: int = 0
    qr_blocks: int = 0
    share_eigen: bool = False
    scaled: bool = False
    u: Region | None = None
    s: Region | None = None
    vt: Region | None = None
    us: Region | None = None


class Stack(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is done for every slice of a stack with so many slices along each of its axes.

    Regions with `steps` are those of the first slice, all others the same for every one. `apart`: each rank
    does slices of its own, by the variant of one rank; else all ranks work on one after another.
    """

    extents: list[int]
    apart: bool = False


class ConvertJob(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a conversion: each number is multiplied by `scale`."""

    scale: float


class Saved(msgspec.Struct, frozen=True):
    """A state that an earlier start left whole in the file `slot`; see `tilewise.base.journal`."""

    slot: int
    version: int
    facts: list[str]
    pieces: list[JournalPiece]


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """Journal of the finished parts of the output's part file, by ranks of this start and of earlier ones.

    `start` is how many there were. With `slots` states are kept in these two files in turn, `every` so many
    seconds, 0: only when the job is asked to end; `saved` are those that are there, the newest first. The
    job must have ended when the monotonic clock of rank 0's host says `ends`, 0: not known.
    """

    folder: str
    start: int = 0
    standing: list[JournalPiece] = []
    every: float = 0.0
    ends: float = 0.0
    slots: list[Region] = []
    saved: list[Saved] = []


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """When a point of a measurement has samples enough; `warmup` samples come before and do not count.

    There are at least `least`, and the 95 % interval of each median is within `relative` of it; or there are
    `most`; or `seconds` have passed, but never before the third.
    """

    least: int = 10
    most: int = 200
    warmup: int = 2
    relative: float = 0.05
    seconds: float = 0.5


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One point of a measurement; what a kind does not use keeps its default.

    `ping`: messages of `bytes` between all `pairs` of ranks at once, as `name` says (blocking, nonblocking,
    put, get), to and fro or in a stream (`pattern`); from and into memory of `buffer`, with its addresses on
    a device where MPI takes them (`direct`). `collective`: `name` over all ranks, by the `library` or
    by a plain `loop` (`pattern`). `file`: each rank writes, then reads, `blocks` of `bytes` by the strategy
    `name`, with one more series of writes after `pause` seconds each. `memory`: `name` (copy, triad, read,
    write) on arrays of `bytes`, by `threads`. `compute`: `gemm` of size × size × size numbers of `dtype`, by
    `threads`, by each of `kernels` in turn, or as jobs do.
    """

    kind: str
    name: str
    pattern: str = ""
    bytes: int = 0
    pairs: list[tuple[int, int]] = []
    threads: int = 1
    size: int = 0
    dtype: str = ""
    kernels: list[str] = []
    blocks: int = 0
    path: str = ""
    layout: str = ""
    buffer: str = ""
    cache: str = ""
    check: str = ""
    shift: int = 0
    sync: bool = False
    pause: int = 0
    gpus: int = 0
    direct: bool = False


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """Measurement in one launch: `points`, in this order.

    `cpus`: the core of each rank, taken in turn; empty: as the job's `bind` and `place` say.
    """

    stop: Stop
    cpus: list[int] = []
    points: list[Point]


class StagedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """File that the front made for this job, at a new `path`; `bytes` is its size, -1: a folder.

    `name` is for messages. With `root` only rank 0 has to do with it.
    """

    path: str
    name: str
    bytes: int = -1
    root: bool = False


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """An input as it lay before the front: see `Look` of `tilewise.files.unchanged`, of so many `pages`."""

    path: str
    name: str
    bytes: int
    modified: int
    inode: int
    begin: int
    end: int
    pages: int
    digest: int
    root: bool = False


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that hosts must share with the front's before any work.

    `view` is the front's `file_view`. `memory` bytes are what `node_ranks` ranks need on their node (0: not
    known), of which `percent` of what is available there may be taken.
    """

    host: str
    view: str
    made: list[StagedOutput] = []
    seen: list[Seen] = []
    memory: int = 0
    percent: int = 100
    node_ranks: int = 1


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Job of the worker, which decides nothing that could stand here.

    `constants` is the digest of the worker's constants that the plan went by; 0: there were none. `queue`: of
    tiles that ranks do on their own, whoever is idle takes the next; else each has its own from the start.
    `survive`: where the library can, ranks go on without one that has died.
    """

    protocol: int = PROTOCOL
    constants: int = msgspec.field(default_factory=constants.digest)
    id: str
    command: str
    inputs: list[Region]
    output: Region | None
    variant: Variant
    dtype: str
    stencil: StencilJob | None = None
    svd: SvdJob | None = None
    stack: Stack | None = None
    convert: ConvertJob | None = None
    measure: Measure | None = None
    journal: Journal | None = None
    verify: str = "off"
    overflow: str = "refuse"
    symmetric: bool = False
    repeat: int = 1
    warmup: int = 0
    sync: bool = False
    bind: bool = True
    read_back: bool = False
    survive: bool = False
    queue: bool = True
    band_bytes: int = 0
    stage: tuple[int, int, int] = (0, 0, 0)
    tolerance: float = 0.0
    place: str = "core"
    hints: dict[str, str] = {}
    trace: str = ""
    site: Site | None = None
    progress: bool = False
    fault: str = ""


def quit_job() -> Job:
    """A job that releases ranks which already wait: all leave quietly."""
    nothing = Variant(
        algorithm="local",
        exchange="none",
        read="positioned",
        write="positioned",
        grid=(1, 1),
        ranks=1,
        threads=1,
    )
    return Job(id="quit", command="quit", inputs=[], output=None, variant=nothing, dtype="float64")


def encode(job: Job) -> bytes:
    """The job as the JSON that goes to rank 0's standard input."""
    inputs = [found.region() if isinstance(found, Source) else found for found in job.inputs]
    return msgspec.json.encode(msgspec.structs.replace(job, inputs=inputs)) + b"\n"
