"""The options of each function: the flags of its command. Written by tools/package_tables.py."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Required, TypedDict

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Job = Literal["multiply", "transpose", "stencil", "svd", "convert", "generate", "norm"]

class JobOptions(TypedDict, total=False):
    # Number of ranks.
    ranks: int
    # Threads per rank.
    threads: int
    # Algorithm to use.
    algorithm: str
    # How ranks exchange data.
    exchange: str
    # How files are read and written: NAME, or READ:WRITE.
    io: str
    # Process grid: PxQ.
    grid: str | tuple[int, int]
    # Where the remainder of an uneven division goes: spread over all parts, or to the last one.
    remainder: str
    # Arithmetic kernel; plain: the reference loops.
    kernel: str
    # MPI-IO hint, as KEY=VALUE.
    hint: Sequence[str]
    # How to verify the result. fast: a cheap check; serial: a second computation on one rank.
    verify: str
    # Same as --verify off.
    no_verify: bool
    # Run the in-memory part N times and record each.
    repeat: int
    # Run the in-memory part N times first, unrecorded.
    warmup: int
    # Flush the output to disk before publishing it.
    sync: bool
    # Skip N lines at the top of a text.
    header_rows: int
    # Separator of the numbers in a text: ';', '|', tab, …; or READ:WRITE.
    separator: str
    # Decimal mark of a text: point or comma; or READ:WRITE.
    decimal: str
    # Read this word in a text, such as NA, and empty fields as nan.
    missing: str | Sequence[str]
    # First column of a text with labels of rows: drop leaves it out, keep reads it.
    index: str
    # Memory limit for all ranks on a node, such as 4GiB.
    memory: str | int
    # File with one host per line: HOST or HOST:SLOTS.
    hosts: str | os.PathLike[str]
    # Put neighbouring ranks on neighbouring units of this kind.
    place: str
    # Checkpoint interval, for --resume: 30s, 10min; or off.
    checkpoint: float
    # Command to use instead of mpiexec and its options, such as "srun --mpi=pmix -K".
    launcher: str
    # Simulate the ranks on a cluster instead of running them: 64x2:12.5GB/s:1.5us, or a platform file of
    # SimGrid.
    simulate: str | os.PathLike[str]
    # Format of an input of any name, or of standard input: npy, csv, raw:30x20:float32, …
    from_: str
    # File for the timeline (Perfetto format); may end in .gz.
    trace: str | os.PathLike[str]
    # Replace an existing output, and any file at --json or --trace.
    force: bool
    # Stop the run after X seconds.
    timeout: float
    # Resume an interrupted run, or start from the beginning if there is none.
    resume: bool
    # Retry automatically, up to N times.
    retries: int
    # Continue without ranks that die, if the MPI library can.
    survive: bool
    # Stop before this limit, with exit code 4 and a checkpoint for --resume: 90s, 30min, 2h.
    time_limit: float
    # Stop if a rank sends no heartbeat, or all ranks are blocked, for this long: 30s, 5min; or off.
    deadline: str | float
    # Do not update this machine's profile.
    no_learn: bool

class MultiplyOptions(JobOptions, total=False):
    # Use the transpose of A.
    transpose_a: bool
    # Use the transpose of B.
    transpose_b: bool
    # If an integer product may exceed 64 bits: refuse, or wrap modulo 2^64.
    overflow: str
    # Allowed error of an element, relative to A's longest row times B's longest column. It permits
    # Strassen's product if its error bound is smaller.
    tolerance: float
    # Read a one-dimensional array as a column or a row.
    as_: str
    # Process every slice of a stack along this axis, or along several: 0,1.
    each: int | str | Sequence[int]
    # With --each: apart, each rank takes its own slices; together, all ranks share each slice.
    slices: str

class TransposeOptions(JobOptions, total=False):
    # C: row by row; F: column by column.
    order: str
    # Begin text output with the line: rows columns.
    header: bool
    # gather: how rank 0 writes: rows, view, whole.
    root_write: str
    # staged: idle ranks take the next tile (queue), or each rank has its own tiles (fixed).
    tiles: str
    # Read a one-dimensional array as a column or a row.
    as_: str
    # Process every slice of a stack along this axis, or along several: 0,1.
    each: int | str | Sequence[int]
    # With --each: apart, each rank takes its own slices; together, all ranks share each slice.
    slices: str

class StencilOptions(JobOptions, total=False):
    # Number of sweeps over the matrix.
    steps: Required[int]
    # star5 (centre 0.6, neighbours 0.1), star5:CENTRE,NEIGHBOUR, star9, box3, or a square matrix file
    # with an odd side of at most 9.
    weights: str | os.PathLike[str] | ArrayLike
    # Values outside the matrix: zero: all 0; fixed: edge cells keep their value; periodic: the opposite
    # edge; reflect: mirrored about the edge: d c b a | a b c d; mirror: about the outer cells: d c b | a
    # b c d; nearest: the edge cell repeated; constant:V: all V, any number or nan.
    boundary: str
    # Stop once a sweep changes every element by less than X; exit code 3 on NaN or infinity.
    until_change: float
    # Check the change every N sweeps.
    check_every: int
    # Save the state every N sweeps, too, as B-000100.npy next to B.npy.
    snapshot_every: int
    # C: row by row; F: column by column.
    order: str
    # Begin text output with the line: rows columns.
    header: bool
    # rows: whole rows per rank; columns: whole columns per rank; grid: a rectangle per rank.
    decomposition: str
    # Sweeps per exchange, and per pass over memory.
    depth: int
    # packed: copied into one message; datatype: packed by MPI; elementwise: one per element.
    halo: str
    # Let MPI choose the block of each rank (MPI_Cart_create with reordering).
    reorder: bool
    # Read a one-dimensional array as a column or a row.
    as_: str
    # Process every slice of a stack along this axis, or along several: 0,1.
    each: int | str | Sequence[int]
    # With --each: apart, each rank takes its own slices; together, all ranks share each slice.
    slices: str

class SvdOptions(JobOptions, total=False):
    # Compute only the N largest singular values.
    components: int
    # Compute the fewest components with this share of the squared Frobenius norm, such as 0.99.
    energy: float
    # Also write US.npy: U times diag(s).
    scaled: bool
    # jacobi, serial: fail after N sweeps.
    max_sweeps: int
    # jacobi, serial: cosine below which two columns count as orthogonal. randomized: relative error of
    # each singular value.
    tolerance: float
    # jacobi, serial: also stop when the sum of squares of the off-diagonal elements of AᵀA is below X.
    off_squares: float
    # jacobi: columns per block.
    block_columns: int
    # jacobi: blocks: pairs of column blocks, by matrix products; rotations: pairs of columns, one
    # rotation each.
    inner: str
    # jacobi: eigen: from the eigenvectors of AᵀA if accurate enough, else as qr; qr: from a column-
    # pivoted QR and an LQ of its triangle; none: from the columns of A.
    start: str
    # randomized: run exactly N iterations.
    power: int
    # randomized: extra vectors per block, beyond the components.
    oversample: int
    # randomized: seed of the random numbers.
    seed: int
    # Read a one-dimensional array as a column or a row.
    as_: str
    # Process every slice of a stack along this axis, or along several: 0,1.
    each: int | str | Sequence[int]
    # With --each: apart, each rank takes its own slices; together, all ranks share each slice.
    slices: str

class ConvertOptions(JobOptions, total=False):
    # Data type of the output: float32, int16, …
    dtype: str
    # Only these rows, counted from 0: 100:200, :50, -10: or 7.
    rows: str | int | slice
    # Only these columns, in the same form.
    columns: str | int | slice
    # Multiply each number by X, which may be a fraction: 1/255.
    scale: str | float
    # C: row by row; F: column by column.
    order: str
    # Begin text output with the line: rows columns.
    header: bool
    # Read a one-dimensional array as a column or a row.
    as_: str
    # Process every slice of a stack along this axis, or along several: 0,1.
    each: int | str | Sequence[int]
    # With --each: apart, each rank takes its own slices; together, all ranks share each slice.
    slices: str

class GenerateOptions(JobOptions, total=False):
    # Shape: ROWSxCOLUMNS.
    shape: Required[str | tuple[int, int]]
    # Data type: float32, int32, …
    dtype: str
    # Contents of the matrix.
    kind: str
    # C: row by row; F: column by column.
    order: str
    # Begin text output with the line: rows columns.
    header: bool
    # Seed of the random numbers.
    seed: int

class NormOptions(JobOptions, total=False):
    # Read a one-dimensional array as a column or a row.
    as_: str
    # Process every slice of a stack along this axis, or along several: 0,1.
    each: int | str | Sequence[int]
    # With --each: apart, each rank takes its own slices; together, all ranks share each slice.
    slices: str

class MeasureOptions(TypedDict, total=False):
    # ping, memory: sizes of messages or arrays, such as 1..4MiB (doubling) or 8,1KiB.
    bytes: str | Sequence[str] | Sequence[int]
    # ping: numbers of pairs that communicate at once, such as 1,3.
    pairs: str | Sequence[str] | Sequence[int]
    # ping: distance between the ranks of a pair: sibling, core, cache, socket, node.
    levels: str | Sequence[str] | Sequence[int]
    # ping: kind of exchange: blocking, nonblocking, put, get.
    exchange: str | Sequence[str] | Sequence[int]
    # ping: roundtrip, or stream (64 messages in a row).
    pattern: str | Sequence[str] | Sequence[int]
    # ping: collectives: bcast, scatter, gather, allreduce, alltoallv, or none.
    collectives: str | Sequence[str] | Sequence[int]
    # ping: measure every pair of ranks.
    matrix: bool
    # ping: do not measure every pair.
    no_matrix: bool
    # ping, file: rank counts, such as 1,2,4; in ping only for collectives and --matrix.
    ranks: str | Sequence[str] | Sequence[int]
    # file: block sizes, such as 128K..16M (128K, 256K, 512K, 1M, 2M … 16M) or 64KiB,1MiB.
    block: str | Sequence[str] | Sequence[int]
    # file: number of blocks.
    blocks_per_rank: int
    # file: I/O strategies of jobs, such as positioned,mapped, or all; or gpudirect.
    io: str | Sequence[str] | Sequence[int]
    # file, ping: memory: malloc; with a graphics processor also pinned, device, managed.
    buffer: str | Sequence[str] | Sequence[int]
    # file: interleaved (block by block), contiguous (rank by rank), per_rank (a file per rank).
    layout: str | Sequence[str] | Sequence[int]
    # file: warm (in the page cache), cold (dropped before reading), direct (past the cache).
    cache: str | Sequence[str] | Sequence[int]
    # file: what to check after reading: none, counts or content.
    check: str | Sequence[str] | Sequence[int]
    # file: each rank reads what rank + N wrote, to avoid its own caches.
    shift: int
    # file: time a write until the data is on disk.
    sync: bool
    # file: time a write until the data is in the page cache (the default).
    no_sync: bool
    # file, ping: number of graphics processors per node that ranks share.
    gpus: int
    # compute: sizes N of N×N products, such as 64,1024.
    sizes: str | Sequence[str] | Sequence[int]
    # compute: data types: float32, float64, complex64, complex128.
    dtypes: str | Sequence[str] | Sequence[int]
    # memory, compute: thread counts, such as 1,2.
    threads: str | Sequence[str] | Sequence[int]
    # Launches per point.
    launches: int
    # Take exactly N samples per point and launch.
    runs: int
    # Sample until the 95 % interval of the median is within this fraction of it.
    interval: float
    # Sample a point for at most X seconds.
    seconds: float
    # Seed of the order of points; the result records it.
    seed: int
    # Stop the run after X seconds.
    timeout: float
    # file: folder for temporary sample files.
    folder: str | os.PathLike[str]
    # File with one host per line, for level node.
    hosts: str | os.PathLike[str]
    # Command to use instead of mpiexec and its options.
    launcher: str | Sequence[str] | Sequence[int]
    # File for an HTML page.
    html: str | Sequence[str] | Sequence[int]
    # Folder for figures (SVG and PNG).
    plots: str | Sequence[str] | Sequence[int]
    # Folder for tables (CSV, Markdown and JSON).
    tables: str | Sequence[str] | Sequence[int]
    # Store the result as this machine's profile.
    store: bool
    # Store nothing.
    no_store: bool
    # Print the JSON schema of the result.
    schema: bool
