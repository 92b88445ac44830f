"""The memory of a product: blocks, what is exchanged, files, what gemm packs, and the proof."""

from __future__ import annotations

import math

import msgspec

from tilewise.files.dtypes import ITEMSIZE
from tilewise.launch.constants import constants
from tilewise.launch.job import Variant
from tilewise.planning.grid import part
from tilewise.planning.need import Need, staging

OWN = 28 << 20  # the program and MPI, each rank
FOR_EACH = 1 << 19  # and what MPI keeps on each for every other of its node
BLAS = 20 << 20
BLAS_DEPTH, BLAS_PACKS = 384, 36 << 20  # of k that BLAS packs of all rows of C; bytes at most, each thread
PACKING = 4 << 20  # what gemm packs A and B into, each thread
PIECES = 32  # of k, at most, each with a C of its own where C is small: fewer than PIECES tiles
TILE, DEPTH = 192 * 192, 2048  # numbers of such a tile, and of k in a piece at least
SHARED_PANELS = 9 << 20  # what the threads of Strassen's product pack B into together


class Sizes(msgspec.Struct, frozen=True):
    """The worker's: of panels, of parts of C that are written early, and of what layers add up."""

    panel_width: int  # columns of A, rows of B
    wide_panel_width: int  # the same for Strassen's product
    part_bytes: int  # at most, but for the fewest rows
    least_rows: int  # of a part, rounded up to a multiple
    row_multiple: int
    layer_piece_bytes: int  # sent at a time, and received
    swap_piece_bytes: int  # the same, of the halves of a symmetric product
    direct_bytes: int  # of an operand that is read in parts past the page cache


def multiply_need(
    m: int,
    k: int,
    n: int,
    dtype: str,
    variant: Variant,
    verify: str,
    on_node: int | None = None,
    in_place: tuple[bool, bool] = (False, False),
    turned: bool = False,
    symmetric: bool = False,
    strassen: bool = False,
    whole: tuple[int, int, int] | None = None,
    plain: bool = True,
) -> Need:
    """What an m×k · k×n product in `dtype` takes.

    rank = blocks of A, B and C + exchange buffers + I/O staging + what gemm, MPI, BLAS and the check
    take, and the node with most of them has `on_node` ranks (None: all). The layers of `replicated` share out
    k, so that a node's sum counts A and B once, C once a layer, and the rest once a rank. On one rank,
    operands used `in_place` are pages of their files and take nothing, and C is streamed through two buffers
    where it is written `uncached`. `turned`: it is stored column by column. `symmetric`: B is the transpose
    of A, and on one row of ranks lies in it; C is then mirrored in memory before it is written, and with
    `shared` lies in the node's. With `strassen`, panels are wider and C is not streamed. Where m, k and n are
    only what is in memory at a time, `whole` are those of the product, and the need is the same whether
    operands that are `plain` go through the page cache or past it.
    """
    sizes = constants("multiply", Sizes)
    p, q = variant.grid
    item = ITEMSIZE[dtype]
    rows, columns = part(m, p, variant.remainder), part(n, q, variant.remainder)
    layer = part(k, variant.copies, variant.remainder)
    a = rows * part(layer, q, variant.remainder) * item
    b_lies_in_a = symmetric and p == 1
    b = 0 if b_lies_in_a else part(layer, p, variant.remainder) * columns * item
    c = rows * columns * item
    width = min(sizes.wide_panel_width if strassen else sizes.panel_width, layer)
    buffers = _exchange_buffers(variant, sizes, a, b, width * (rows + columns) * item)
    operands, result = (m * k + (0 if b_lies_in_a else k * n)) * item, m * n * item
    ahead = bool(whole) and variant.read in ("positioned", "uncached")
    if ahead:  # one window is read while another is multiplied
        a, b, buffers, operands = 2 * a, 2 * b, 2 * buffers, 2 * operands
    most = variant.ranks if on_node is None else on_node
    fixed = OWN + most * FOR_EACH + _packed_by_blas(variant, dtype, rows, layer)
    fixed += staging(msgspec.structs.replace(variant, read=variant.write) if ahead and plain else variant)
    fixed += 2 * sizes.direct_bytes if ahead else 0
    fixed += variant.threads * PACKING + (SHARED_PANELS if strassen else 0)
    if verify == "fast":  # vectors of all of m, n and k, in double
        all_m, all_k, all_n = whole or (m, k, n)
        fixed += (9 * all_m + 5 * all_n + 7 * all_k) * (16 if dtype.startswith("complex") else 8)
    if dtype in ("int64", "uint64"):  # sums that bound what could overflow
        fixed += 32 * max(m, n) + 16 * k
    if (symmetric or rows * columns < PIECES * TILE) and layer >= 2 * DEPTH:
        each = min(PIECES * rows * columns, 2 * PIECES * TILE) * item
        fixed += each * (variant.threads if symmetric else 1)  # threads have parts of their own
    shared = (operands + (result if symmetric else 0)) if variant.exchange == "shared" else 0
    if turned:  # for a file that is stored column by column, a second copy of C
        c, result = 2 * c, 2 * result
    if symmetric and variant.ranks > 1 and not shared:
        buffers += 2 * sizes.swap_piece_bytes
    if variant.algorithm == "local":
        a, b = (0 if free else size for size, free in zip((a, b), in_place, strict=True))
        if variant.write == "uncached" and not (symmetric or strassen or whole):  # through two buffers
            fewest = (sizes.least_rows + sizes.row_multiple) * columns * item
            c = min(c, 2 * max(sizes.part_bytes, fewest))
        operands, result = a + b, c
    # The serial proof gathers both operands and the result on rank 0, beside a second product.
    serial = (m * k + k * n + 2 * m * n) * item if verify == "serial" else 0
    everywhere = operands + variant.copies * result + variant.ranks * (buffers + fixed)
    return Need(
        rank=a + b + c + buffers + fixed + serial,
        node=-(-everywhere * most // variant.ranks) + serial,
        shared=shared,
        blocks=a + b + c,
        buffers=buffers,
    )


def _packed_by_blas(variant: Variant, dtype: str, rows: int, layer: int) -> int:
    """Bytes on one rank where BLAS may do the work, as it does for `fast` on some processors; measured.

    For other kernels, too: a job may go on with another one, and its tiles must still fit.
    """
    if not dtype.startswith(("float", "complex")):
        return 0
    each = -(-rows // math.isqrt(variant.threads)) * min(layer, BLAS_DEPTH) * ITEMSIZE[dtype]
    packed = variant.threads * min(each, BLAS_PACKS)
    return max(packed, BLAS) if variant.kernel == "blas" else packed


def _exchange_buffers(variant: Variant, sizes: Sizes, a: int, b: int, panels: int) -> int:
    """Spare blocks or panels that one rank needs beside its own blocks; sizes in bytes."""
    adding = 2 * sizes.layer_piece_bytes if variant.copies > 1 else 0
    if variant.exchange == "shared" or variant.grid == (1, 1):
        return adding
    if variant.algorithm == "cannon":
        return (2 if variant.exchange.startswith("one_sided") else 1) * (a + b)
    return adding + 2 * panels
