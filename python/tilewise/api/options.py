"""The options of each function: the flags of its command. Written by tools/api_options.py."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Required, TypedDict

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Job = Literal["multiply", "transpose", "stencil", "svd", "convert", "generate", "norm"]


class JobOptions(TypedDict, total=False):
    # Ranks.
    ranks: int
    # Threads of each rank.
    threads: int
    # How it is done.
    algorithm: str
    # How ranks pass numbers on.
    exchange: str
    # How files are read and written: one name, or READ:WRITE.
    io: str
    # PxQ: rows and columns of ranks.
    grid: str | tuple[int, int]
    # Where uneven cuts put what is left over.
    remainder: str
    # plain: the reference loops.
    kernel: str
    # KEY=VALUE: an MPI-IO hint.
    hint: Sequence[str]
    # How the result is checked. fast: a cheap check; serial: a second, plain computation.
    verify: str
    # The same as --verify off.
    no_verify: bool
    # Run the part in memory N times; the record has each.
    repeat: int
    # Run it N times before, uncounted.
    warmup: int
    # Flush the output to disk before it gets its name.
    sync: bool
    # At most so much on each node, such as 4GiB.
    memory: str | int
    # File with a host a line, as host or host:slots.
    hosts: str | os.PathLike[str]
    # Neighbouring ranks go to neighbours of this kind.
    place: str
    # Instead of mpiexec and its options, such as "srun --mpi=pmix -K".
    launcher: str
    # File for the timeline (for Perfetto); may end with .gz.
    trace: str | os.PathLike[str]
    # Replace an existing output, and any file at --json or --trace.
    force: bool
    # End a run that takes more than X seconds.
    timeout: float


class MultiplyOptions(JobOptions, total=False):
    # Take the transpose of A.
    transpose_a: bool
    # Take the transpose of B.
    transpose_b: bool
    # Integers that could leave 64 bits: refuse, or wrap modulo 2^64.
    overflow: str
    # What an array with one dimension is.
    as_: str


class TransposeOptions(JobOptions, total=False):
    # C: row by row; F: column by column.
    order: str
    # Begin a text with the line: rows columns.
    header: bool
    # With gather, how rank 0 writes: rows, view, whole.
    root_write: str
    # What an array with one dimension is.
    as_: str


class StencilOptions(JobOptions, total=False):
    # Sweeps over the whole matrix.
    steps: Required[int]
    # star5 (0.6, each neighbour 0.1), star5:CENTRE,NEIGHBOUR, star9, box3, or a square matrix file with
    # an odd side up to 9.
    weights: str | os.PathLike[str] | ArrayLike
    # What lies outside: zero: outside is 0; fixed: edge cells keep their value; periodic: the other side;
    # reflect: mirrored about the edge: d c b a | a b c d.
    boundary: str
    # End when no number changes by X or more in a sweep; exit code 3 if one is NaN or infinite.
    until_change: float
    # Sweeps between two looks at the change.
    check_every: int
    # Also keep the state behind every N sweeps, as B-000100.npy beside B.npy.
    snapshot_every: int
    # C: row by row; F: column by column.
    order: str
    # Begin a text with the line: rows columns.
    header: bool
    # rows: each rank has whole rows; columns: each rank has whole columns; grid: each rank has a
    # rectangle.
    decomposition: str
    # Sweeps for each exchange, and for each pass over memory.
    depth: int
    # packed: copied into one message; datatype: MPI does that; elementwise: a message a number.
    halo: str
    # What an array with one dimension is.
    as_: str


class SvdOptions(JobOptions, total=False):
    # Only the N largest singular values.
    components: int
    # Only the fewest that have this share of the sum of A's squares, such as 0.99.
    energy: float
    # Also US.npy: U with each column times its value.
    scaled: bool
    # jacobi: fail after so many sweeps.
    max_sweeps: int
    # jacobi: columns are orthogonal below this cosine. randomized: relative error of each singular value.
    tolerance: float
    # jacobi: columns that travel together.
    block_columns: int
    # jacobi: blocks: each pair of column blocks at once, by matrix products; rotations: column by column,
    # rotation by rotation.
    inner: str
    # jacobi: eigen: from the eigenvectors of AᵀA where the matrix allows that, else as qr; qr: from a QR
    # with pivoted columns and an LQ of its triangle.
    start: str
    # randomized: exactly so many iterations.
    power: int
    # randomized: vectors of a block beyond the components.
    oversample: int
    # randomized: where its random numbers begin.
    seed: int
    # What an array with one dimension is.
    as_: str


class ConvertOptions(JobOptions, total=False):
    # The type to convert to: float32, int16, …
    dtype: str
    # C: row by row; F: column by column.
    order: str
    # Begin a text with the line: rows columns.
    header: bool
    # What an array with one dimension is.
    as_: str


class GenerateOptions(JobOptions, total=False):
    # MxN: rows and columns.
    shape: Required[str | tuple[int, int]]
    # Type of its numbers: float32, int32, …
    dtype: str
    # The rule.
    kind: str
    # C: row by row; F: column by column.
    order: str
    # Begin a text with the line: rows columns.
    header: bool
    # Another seed makes other numbers.
    seed: int


class NormOptions(JobOptions, total=False):
    # What an array with one dimension is.
    as_: str


class MeasureOptions(TypedDict, total=False):
    # ping: of a message, 1..4MiB (doubling) or 8,1KiB; memory: of an array.
    bytes: str | Sequence[str] | Sequence[int]
    # ping: pairs that talk at once: 1,3.
    pairs: str | Sequence[str] | Sequence[int]
    # ping: sibling, core, cache, socket, node.
    levels: str | Sequence[str] | Sequence[int]
    # ping: blocking, nonblocking, put, get.
    exchange: str | Sequence[str] | Sequence[int]
    # ping: roundtrip, stream (64 in a row).
    pattern: str | Sequence[str] | Sequence[int]
    # ping: bcast, scatter, gather, allreduce, alltoallv, or none.
    collectives: str | Sequence[str] | Sequence[int]
    # ping: every two ranks.
    matrix: bool
    # ping: not every two ranks.
    no_matrix: bool
    # file: 1,2,4; ping: of collectives and of --matrix.
    ranks: str | Sequence[str] | Sequence[int]
    # file: bytes of a call: 128K..16M (128K, 256K, 512K, 1M, 2M … 16M) or 64KiB,1MiB.
    block: str | Sequence[str] | Sequence[int]
    # file: how many.
    blocks_per_rank: int
    # file: strategies as jobs have them: positioned,… or all.
    io: str | Sequence[str] | Sequence[int]
    # file: malloc; on a graphics processor pinned, device, managed.
    buffer: str | Sequence[str] | Sequence[int]
    # file: interleaved (block by block), contiguous (rank by rank), per_rank (a file each).
    layout: str | Sequence[str] | Sequence[int]
    # file: warm, cold (dropped before reading), direct.
    cache: str | Sequence[str] | Sequence[int]
    # file: none, counts or content.
    check: str | Sequence[str] | Sequence[int]
    # file: a rank reads what the one N above it wrote, so that no cache of its own answers.
    shift: int
    # file: writing lasts until the disk has it.
    sync: bool
    # file: until the page cache has it, as is usual.
    no_sync: bool
    # file: graphics processors of a node that ranks share.
    gpus: int
    # compute: N of N×N products: 64,1024.
    sizes: str | Sequence[str] | Sequence[int]
    # compute: float32, float64, complex64, complex128.
    dtypes: str | Sequence[str] | Sequence[int]
    # memory, compute: 1,2.
    threads: str | Sequence[str] | Sequence[int]
    # Starts of the ranks for every point: 3.
    launches: int
    # Exactly N samples of each point and launch, however sure.
    runs: int
    # Enough samples: the median is known to this part of it (0.05), with 95 %.
    interval: float
    # Or so much time went into the point.
    seconds: float
    # Repeats an order of points: the result has it.
    seed: int
    # End a run that takes more SECONDS.
    timeout: float
    # file: where samples lie for a while.
    folder: str | os.PathLike[str]
    # FILE with a host a line, for level node.
    hosts: str | os.PathLike[str]
    # Replaces mpiexec and its options.
    launcher: str | Sequence[str] | Sequence[int]
    # FILE for a page.
    html: str | Sequence[str] | Sequence[int]
    # FOLDER for figures, SVG and PNG.
    plots: str | Sequence[str] | Sequence[int]
    # FOLDER for tables: CSV, Markdown, JSON.
    tables: str | Sequence[str] | Sequence[int]
    # Keep it as this machine's profile.
    store: bool
    # Keep nothing.
    no_store: bool
    # Print what fits the JSON, as a JSON schema.
    schema: bool
