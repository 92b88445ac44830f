"""The memory a job needs, from one clear formula, held against what there is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tilewise.base.units import bytes_text
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import Format
from tilewise.files.region import Region
from tilewise.launch.constants import constants
from tilewise.launch.job import Variant
from tilewise.machine.facts import Facts

FIXED = 32 << 20  # MPI and BLAS, each rank
STAGING = 2 * (16 << 20)  # two buffers a rank, where data pass through rank 0 or through MPI-IO
SHARE = 0.8  # of what is available, when there is no --memory
_STAGED = (
    "root",
    "root_collective",
    "collective",
    "split_collective",
    "shared_pointer",
    "ordered",
    "two_phase",
    "uncached",
    "sieve",
    "per_rank",
)
_LINES_HELD = 5  # two stages of whole lines, each also packed, and one of which only part is wanted


class Widths(msgspec.Struct, frozen=True):
    """Characters of the longest number and what stands behind it, as the worker prints it."""

    float16: int
    float32: int
    float64: int
    complex64: int
    complex128: int
    integer: int


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes on the rank and on the node that need most; `shared` of the latter in /dev/shm."""

    rank: int
    node: int
    shared: int
    blocks: int
    buffers: int


def staging(variant: Variant) -> int:
    """Bytes of the buffers through which this way of reading or writing moves its data, each rank."""
    return STAGING if variant.read in _STAGED or variant.write in _STAGED else 0


def characters(dtype: str) -> int:
    """The most characters that a number takes in a text."""
    widths = constants("text", Widths)
    return int(getattr(widths, dtype, widths.integer))


def longest_line(region: Region) -> int:
    """Numbers that are read together however many they are: on a line of a text."""
    return region.line_taken // (1 + region.pairs)


def whole_lines(region: Region) -> int:
    """Bytes on each rank of lines of a text, as they are read."""
    if region.encoding != "text":
        return 0
    numbers, item = longest_line(region), ITEMSIZE[region.dtype]
    lines = max(1, region.uncut.rows * region.uncut.columns // max(1, numbers))
    end = region.file_bytes if region.text_end < 0 else region.text_end
    return parsed(numbers, item, end // lines)


def parsed(numbers: int, item: int, text: int) -> int:
    """Bytes that lines take while they are read, of so many `numbers` and so many bytes of `text` each."""
    return _LINES_HELD * numbers * item + 2 * text


def written_whole(kind: Format, stored: tuple[int, int], dtype: str, variant: Variant) -> int:
    """Bytes on each rank of lines that are formatted whole.

    `kind` is the format, `stored` the rows and columns of the matrix as the file stores them.
    """
    item = ITEMSIZE[dtype]
    line = kind.line_numbers(stored[1])
    if not line:
        return 0
    gathered = 2 * line * item if variant.ranks > 1 else 0
    at_once = min(variant.threads, max(1, stored[0] * stored[1] // line))
    return gathered + at_once * line * characters(dtype)


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """Input and output, as far as memory depends on them; `kind` and `order` are those of the output."""

    source: Region
    kind: Format
    order: str

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        return self.source.rows, self.source.columns

    @property
    def written(self) -> tuple[int, int]:
        """Rows and columns of the result as its file stores it."""
        return self.shape if self.order == "C" else self.shape[::-1]

    @property
    def line(self) -> int:
        """Numbers on one line of the result; 0 where it is no text."""
        return self.kind.line_numbers(self.written[1])

    def lines(self, variant: Variant) -> int:
        """Bytes on each rank of lines that are read and written whole."""
        written = written_whole(self.kind, self.written, self.source.dtype, variant)
        return whole_lines(self.source) + written

    def read_again(self) -> int:
        """Bytes of lines, on a rank that proves the result and so reads both files."""
        text = parsed(self.line, ITEMSIZE[self.source.dtype], self.line * characters(self.source.dtype))
        staged = STAGING // 2 if self.line or self.source.encoding == "text" else 0
        return staged + max(whole_lines(self.source), text)


class Rounds(msgspec.Struct, frozen=True):
    """The worker's."""

    round_bytes: int  # of chunks that a rank has unpacked before it sends them, if not one for each thread


def unpacking(inputs: Sequence[Region], variant: Variant) -> int:
    """Bytes on each rank for chunks: packed, in two steps of unpacking, as sent and as received."""
    most = 0
    for region in inputs:
        if region.chunks is not None:
            chunk = region.chunks.numbers * ITEMSIZE[region.dtype]
            at_once = max(variant.threads * chunk, constants("chunks", Rounds).round_bytes)
            most = max(most, 3 * variant.threads * chunk + (2 * at_once if variant.ranks > 1 else 0))
    return most


def with_unpacking(need: Need, inputs: Sequence[Region], variant: Variant, on_node: int) -> Need:
    """`need`, and what unpacking takes of it."""
    more = unpacking(inputs, variant)
    return msgspec.structs.replace(
        need, rank=need.rank + more, node=need.node + on_node * more, buffers=need.buffers + more
    )


class Refusal(msgspec.Struct, frozen=True):
    """Why something cannot be done, and what could be instead."""

    message: str
    advice: str = ""


def misfit(
    need: Need, cap: int | None, facts: Facts, on_node: int, *, sure: bool = True, exchange: str = "shared"
) -> Refusal | None:
    """With both numbers, that `need` is over `cap`, or over 80 % of what is available; None where it fits.

    What nobody has looked at refuses nothing, and where it is not `sure` which ranks share a node, one rank
    is what a node must have room for: ranks look for themselves when they start. `exchange` is what takes
    room in /dev/shm, beside MPI itself for `on_node` ranks.
    """
    node, available = need.node if sure else need.rank, facts.memory_available
    limit = cap if cap is not None else int(available * SHARE)
    if node > limit and (cap is not None or facts.memory_known):
        needed, allowed = _apart(node, limit)
        what = f"--memory allows {allowed}" if cap is not None else f"80 % of what is available is {allowed}"
        return Refusal(f"this needs {needed} of memory on a node, but {what}")
    if cap is not None and node > available and facts.memory_known:
        needed, there = _apart(node, available)
        return Refusal(f"this needs {needed} of memory on a node, but only {there} is available")
    left = facts.shared_left(on_node)
    if need.shared > left and not facts.remote:
        needed, there = _apart(need.shared, left)
        return Refusal(
            f"--exchange {exchange} needs {needed} in /dev/shm, which has {there} left beside MPI's own",
            "--exchange overlap",
        )
    return None


def _apart(more: int, less: int) -> tuple[str, str]:
    """Both as text, to the byte where they would read the same."""
    texts = bytes_text(more), bytes_text(less)
    return texts if texts[0] != texts[1] else (f"{more} bytes", f"{less} bytes")
