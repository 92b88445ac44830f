"""The memory that stencil sweeps need: fields, halos, what the kernel keeps, files and proofs."""

from __future__ import annotations

import msgspec

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import Format
from tilewise.files.region import Region
from tilewise.launch.constants import constants
from tilewise.launch.job import Variant
from tilewise.operations.stencil.cut import Cut
from tilewise.planning import need
from tilewise.planning.grid import part
from tilewise.planning.need import Need
from tilewise.planning.proof import patches

STRIP = 8 << 10  # bytes of a row in a strip, at most
LINE, PAGE = 64, 4096
REQUEST = 256  # bytes of a message under way: its handle, and what MPI keeps for it
_AT_ONCE = ("nonblocking", "overlap")  # exchanges that have all messages under way together


class Sizes(msgspec.Struct, frozen=True):
    """The worker's."""

    proof_band_bytes: int  # of a file that is read again


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """Both files, as far as memory depends on them; `kind` is the output's format, `order` its storage."""

    source: Region
    kind: Format
    order: str

    @property
    def turned(self) -> bool:
        """Whether blocks change their order of storage on the way out."""
        return self.source.order != self.order

    def beside(self, variant: Variant) -> int:
        """Bytes on each rank of lines that are read and written whole."""
        written = need.written_whole(self.kind, self._written, self.source.dtype, variant)
        return need.whole_lines(self.source) + written

    def read_again(self) -> int:
        """Bytes of lines, on a rank that proves and so reads both files."""
        source, item = self.source, ITEMSIZE[self.source.dtype]
        line = self.kind.line_numbers(self._written[1])
        if not line and source.encoding != "text":
            return need.whole_lines(source)
        return need.STAGING // 2 + max(
            need.whole_lines(source), need.parsed(line, item, line * need.characters(source.dtype))
        )

    @property
    def _written(self) -> tuple[int, int]:
        shape = (self.source.rows, self.source.columns)
        return shape if self.order == "C" else (shape[1], shape[0])


def stencil_need(
    cut: Cut,
    dtype: str,
    variant: Variant,
    verify: str,
    steps: int,
    files: Files,
    on_node: int | None = None,
    again: int = 0,
    planes: int = 1,
    at_once: int = 1,
) -> Need:
    """What sweeps take: two fields, halos as sent and as received, what the kernel keeps, and the I/O.

    Planes are swept one after the other. `again`: bytes of a number of the input where it is kept because
    sweeps are repeated, else 0. `at_once`: sweeps that the kernel does together with a tile. A proof sweeps
    again with the plain kernel: `fast` over patches and what they depend on, or a whole plane on one rank
    where that is little work; `serial` over all, on rank 0.
    """
    rule = patches()
    item = ITEMSIZE[dtype]
    if variant.tile == (0, 0):
        fields, beside = field_bytes(cut, dtype, variant), _beside_block(cut, dtype, variant, files, again)
    else:
        fields, beside = _tile_bytes(cut, dtype, variant, files, at_once)
    whole = cut.rows * cut.columns * max(1, steps) <= rule.points_swept_again
    patch = [
        extent if whole else min(extent, rule.patch_side + 2 * steps * cut.radius)
        for extent in (cut.rows, cut.columns)
    ]
    bands = 2 * constants("stencil", Sizes).proof_band_bytes
    proof = 2 * patch[0] * patch[1] * item + bands if verify == "fast" else 0
    lines = files.beside(variant) + (0 if verify == "off" else files.read_again())
    buffers = beside + lines
    serial = 4 * cut.rows * cut.columns * item if verify == "serial" else 0
    rank = fields + buffers + need.FIXED + need.staging(variant)
    most = variant.ranks if on_node is None else on_node
    proving = min(most, planes) if whole else most
    return Need(
        rank=rank + proof + serial,
        node=most * rank + proving * proof + serial,
        shared=variant.ranks * fields if variant.exchange == "shared" else 0,
        blocks=fields,
        buffers=buffers,
    )


def field_bytes(cut: Cut, dtype: str, variant: Variant) -> int:
    """Bytes of the two fields that the rank with most sweeps between: its block, a margin, and padding.

    [ margin ·············· ]   depth · radius cells on every side, where there are neighbours or the
    [ · block of numbers  · ]   other side is one; rows, or columns of a matrix that is stored by columns,
    [ ····················· ]   end at cache lines, never a power of two apart
    """
    item, margin = ITEMSIZE[dtype], variant.depth * cut.radius
    rows, columns = _block(cut, variant)
    pitch = columns + 2 * margin + 6 * (LINE // item)
    return 2 * ((rows + 2 * margin) * pitch * item + PAGE)


def _block(cut: Cut, variant: Variant) -> tuple[int, int]:
    """Rows and columns of the largest block as it lies in memory, where stored columns are rows."""
    rows = part(cut.rows, variant.grid[0], variant.remainder)
    columns = part(cut.columns, variant.grid[1], variant.remainder)
    return (rows, columns) if cut.by_rows else (columns, rows)


def _beside_block(cut: Cut, dtype: str, variant: Variant, files: Files, again: int) -> int:
    """Bytes beside the fields of a block: halos, what the kernel keeps, the input again, the block turned."""
    rows, columns = _block(cut, variant)
    kept = rows * columns * (again + files.turned * ITEMSIZE[dtype])
    scratch = _scratch((rows, columns), cut.radius, variant.depth, ITEMSIZE[dtype], variant)
    return _halos(cut, dtype, variant) + scratch + kept


def _tile_bytes(cut: Cut, dtype: str, variant: Variant, files: Files, at_once: int) -> tuple[int, int]:
    """Bytes of the two fields around the largest tile, and beside them.

    The latter: rows that the next tile needs too, what the kernel keeps, the tile turned.
    """
    item, reach = ITEMSIZE[dtype], variant.depth * cut.radius
    extents, tile = (pair if cut.by_rows else pair[::-1] for pair in ((cut.rows, cut.columns), variant.tile))
    rows, columns = (
        size + 2 * reach if cut.periodic else min(size + 2 * reach, extent)
        for size, extent in zip(tile, extents, strict=True)
    )
    fields = 2 * (rows * (columns + 6 * (LINE // item)) * item + PAGE)
    kept = min(2 * reach, rows) * columns * item if tile[0] < extents[0] else 0
    turned = tile[0] * tile[1] * item if files.turned else 0
    scratch = _scratch((rows, columns), cut.radius, min(variant.depth, at_once), item, variant)
    return fields, kept + turned + scratch


def _halos(cut: Cut, dtype: str, variant: Variant) -> int:
    """Bytes of halos beside the fields, as sent and as received."""
    rows, columns = _block(cut, variant)
    margin = variant.depth * cut.radius
    cells = 2 * 2 * margin * (rows + columns + 2 * margin)
    if variant.halo == "packed" and variant.exchange not in ("none", "shared"):
        return cells * ITEMSIZE[dtype]
    return cells * REQUEST if variant.halo == "elementwise" and variant.exchange in _AT_ONCE else 0


def _scratch(block: tuple[int, int], radius: int, depth: int, item: int, variant: Variant) -> int:
    """Bytes that the kernel keeps for `depth` sweeps of a block, as it lies in memory.

    Fast: a few rows of a strip of columns for each sweep, a thread. Plain: two fields for each of `threads`
    bands of rows, with the rows around a band that its first sweep computes; none for one sweep a pass.
    """
    (rows, columns), reach = block, depth * radius
    if variant.kernel != "plain":
        row = min(columns + 2 * reach, max(STRIP // item, 4 * reach)) * item + 8 * LINE
        return variant.threads * (1 + 2 * max(8, 2 * radius + 4) + 4 * reach) * row
    if depth == 1:
        return 0
    around = 2 * (depth - 1) * radius
    bands = max(1, min(variant.threads, rows))
    band = min(-(-rows // bands) + around, rows + 2 * reach)
    return bands * 2 * (band * (columns + around) * item + PAGE)
