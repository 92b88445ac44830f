"""The memory a job needs, from one clear formula, held against what there is."""

from __future__ import annotations

import msgspec

from tilewise.errors import UsageError
from tilewise.files import TEXTS
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.launch.job import Variant
from tilewise.plan.grid import part
from tilewise.units import bytes_text

FIXED = 48 << 20  # MPI and BLAS, each rank
STAGING = 2 * (16 << 20)  # two buffers a rank, where data pass through rank 0 or through MPI-IO
PACKING = 4 << 20  # what gemm packs A and B into, each thread
STREAMED, STREAMED_ROWS = 64 << 20, 520  # bytes of C in one of two buffers, and the fewest rows
SUMMING = 2 * (16 << 20)  # pieces that layers add up, each rank
PANEL = 768  # columns of A or rows of B in one panel
SHARE = 0.8  # of what is available, when there is no --memory
_STAGED = (
    "root",
    "root_collective",
    "collective",
    "split_collective",
    "two_phase",
    "uncached",
    "sieve",
    "per_rank",
)


# Characters of the longest number and what stands behind it, as `cpp/tilewise/kernel/number.hpp` prints it.
_CHARACTERS = {"float16": 12, "float32": 16, "float64": 25, "complex64": 34, "complex128": 52}
_LINES_HELD = 5  # two stages of whole lines, each also packed, and one of which only part is wanted


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes on the rank and on the node that need most; `shared` of the latter in /dev/shm."""

    rank: int
    node: int
    shared: int
    blocks: int
    buffers: int


def multiply_need(
    m: int,
    k: int,
    n: int,
    dtype: str,
    variant: Variant,
    verify: str,
    nodes: int = 1,
    in_place: tuple[bool, bool] = (False, False),
    turned: bool = False,
) -> Need:
    """What an m×k · k×n product in `dtype` takes.

    rank = blocks of A, B and C + exchange buffers + I/O staging + what gemm, MPI, BLAS and the check
    take. The layers of `replicated` share out k, so that a node's sum counts A and B once, C once a layer,
    and the rest once a rank. On one rank, operands used `in_place` are pages of their files and take
    nothing, and C is streamed through two buffers where it is written `uncached`. `turned`: it is stored
    column by column.
    """
    p, q = variant.grid
    item = ITEMSIZE[dtype]
    rows, columns = part(m, p, variant.remainder), part(n, q, variant.remainder)
    layer = part(k, variant.copies, variant.remainder)
    a = rows * part(layer, q, variant.remainder) * item
    b = part(layer, p, variant.remainder) * columns * item
    c = rows * columns * item
    buffers = _exchange_buffers(variant, a, b, min(PANEL, layer) * (rows + columns) * item)
    fixed = FIXED + staging(variant) + variant.threads * PACKING
    if verify == "fast":  # vectors of all of m, n and k, in double
        fixed += (9 * m + 5 * n + 7 * k) * (16 if dtype.startswith("complex") else 8)
    if dtype in ("int64", "uint64"):  # sums that bound what could overflow
        fixed += 32 * max(m, n) + 16 * k
    operands, result = (m * k + k * n) * item, m * n * item
    if turned:  # for a file that is stored column by column, a second copy of C
        c, result = 2 * c, 2 * result
    if variant.algorithm == "local":
        a, b = (0 if free else size for size, free in zip((a, b), in_place, strict=True))
        c = min(c, 2 * max(STREAMED, STREAMED_ROWS * columns * item)) if variant.write == "uncached" else c
        operands, result = a + b, c
    # The serial proof gathers both operands and the result on rank 0, beside a second product.
    serial = (m * k + k * n + 2 * m * n) * item if verify == "serial" else 0
    everywhere = operands + variant.copies * result + variant.ranks * (buffers + fixed)
    return Need(
        rank=a + b + c + buffers + fixed + serial,
        node=-(-everywhere // nodes) + serial,
        shared=operands if variant.exchange == "shared" else 0,
        blocks=a + b + c,
        buffers=buffers,
    )


def staging(variant: Variant) -> int:
    """Bytes of the buffers through which this way of reading or writing moves its data, each rank."""
    return STAGING if variant.read in _STAGED or variant.write in _STAGED else 0


def characters(dtype: str) -> int:
    """The most characters that a number takes in a text."""
    return _CHARACTERS.get(dtype, 21)


def longest_line(region: Region) -> int:
    """Numbers that are read together however many they are: on a line of a text, in a row of a tile."""
    if region.tiles:
        return max(tile.columns[1] - tile.columns[0] for tile in region.tiles)
    return region.line_numbers // (1 + region.pairs)


def whole_lines(region: Region) -> int:
    """Bytes on each rank of a row of a tile, or of lines of a text, as they are read."""
    numbers, item = longest_line(region), ITEMSIZE[region.dtype]
    if region.encoding != "text":
        return numbers * item
    lines = max(1, region.rows * region.columns // max(1, numbers))
    return parsed(numbers, item, region.file_bytes // lines)


def parsed(numbers: int, item: int, text: int) -> int:
    """Bytes that lines take while they are read, of so many `numbers` and so many bytes of `text` each."""
    return _LINES_HELD * numbers * item + 2 * text


def line_numbers(kind: str, width: int) -> int:
    """Numbers on a line of a file of format `kind` whose stored rows have `width`; 0 where it is no text."""
    if kind not in TEXTS:
        return 0
    return 1 if kind == "mtx" else width


def written_whole(kind: str, stored: tuple[int, int], dtype: str, variant: Variant) -> int:
    """Bytes on each rank of lines that are formatted whole, and of rows of a tile.

    `kind` is the format, `stored` the rows and columns of the matrix as the file stores them.
    """
    item = ITEMSIZE[dtype]
    if kind == "tiles":
        return -(-stored[1] // variant.grid[1]) * item
    line = line_numbers(kind, stored[1])
    if not line:
        return 0
    gathered = 2 * line * item if variant.ranks > 1 else 0
    at_once = min(variant.threads, max(1, stored[0] * stored[1] // line))
    return gathered + at_once * line * characters(dtype)


def convert_need(band_bytes: int, bands: int, variant: Variant, nodes: int = 1) -> Need:
    """What conversion takes, whatever the matrix: a band as read, where needed also turned and converted."""
    buffers = bands * band_bytes
    rank = buffers + staging(variant) + FIXED
    return Need(rank=rank, node=-(-variant.ranks * rank // nodes), shared=0, blocks=0, buffers=buffers)


def require_fit(
    need: Need, cap: int | None, available: int, shared_room: int, exchange: str = "shared"
) -> None:
    """Raises UsageError with both numbers when `need` is over `cap`, or over 80 % of `available`.

    `exchange` is what takes room in /dev/shm.
    """
    limit = cap if cap is not None else int(available * SHARE)
    if need.node > limit:
        needed, allowed = _apart(need.node, limit)
        what = f"--memory allows {allowed}" if cap is not None else f"80 % of what is available is {allowed}"
        raise UsageError(f"this needs {needed} of memory on a node, but {what}")
    if cap is not None and need.node > available:
        needed, there = _apart(need.node, available)
        raise UsageError(f"this needs {needed} of memory on a node, but only {there} is available")
    if need.shared > shared_room:
        needed, left = _apart(need.shared, shared_room)
        raise UsageError(
            f"--exchange {exchange} needs {needed} in /dev/shm, which has {left} left",
            "--exchange overlap",
        )


def _apart(more: int, less: int) -> tuple[str, str]:
    """Both as text, to the byte where they would read the same."""
    texts = bytes_text(more), bytes_text(less)
    return texts if texts[0] != texts[1] else (f"{more} bytes", f"{less} bytes")


def _exchange_buffers(variant: Variant, a: int, b: int, panels: int) -> int:
    """Spare blocks or panels that one rank needs beside its own blocks; sizes in bytes."""
    adding = SUMMING if variant.copies > 1 else 0
    if variant.exchange == "shared" or variant.grid == (1, 1):
        return adding
    if variant.algorithm == "cannon":
        return (2 if variant.exchange.startswith("one_sided") else 1) * (a + b)
    return adding + 2 * panels
