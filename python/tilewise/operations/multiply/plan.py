"""The plan of a product: algorithm, grid and its copies, the part that is in memory at a time, and the proof.

`choose` gives panels that travel a grid with fewer places than ranks where that pays; `best` cuts a product
that does not fit in memory into tiles of C, past which A and B stream. Design: docs/design/products.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import listing, plural, shape_text, times_text
from tilewise.files.dtypes import ITEMSIZE, of_product
from tilewise.files.formats import Format, format_of
from tilewise.files.region import Region, are_transposes
from tilewise.files.target import Target, check_holds
from tilewise.launch.job import Variant
from tilewise.operations.multiply.cost import multiply_need
from tilewise.operations.multiply.options import ALGORITHMS, Multiply
from tilewise.planning import grid, io, proof, rule
from tilewise.planning.grid import part
from tilewise.planning.names import DESCRIBED_ONCE, Algorithm
from tilewise.planning.need import Need, with_unpacking
from tilewise.planning.plan import Plan, plan_of, variant_of
from tilewise.planning.task import Task
from tilewise.planning.where import Spread

LEAVE_IDLE = ("summa", "replicated")  # whose panels travel on any grid
LEAST_DEPTH = 512  # of k for each rank of a row: less is not worth a pass over C
HALF = "symmetric: B is the transpose of A, so half of the product is computed and the rest copied"
READ_BACK = 1e-3  # bytes of output for each operation, below which reading it back costs little


def plan_multiply(task: Task[Multiply]) -> Plan:
    """The plan for a product of two inputs; transposition stands in the regions.

    Without a target no device is asked how fast it is. Raises UsageError when the shapes do not fit, the
    output's format cannot hold the product, or a choice makes no sense.
    """
    options, target, facts, why = task.options, task.target, task.facts, task.why
    left, right = task.inputs
    m, k, n = _extents(left, right)
    dtype = _product_type(left, right, target, why)
    if options.overflow == "wrap" and not dtype.startswith(("int", "uint")):
        raise UsageError(f"--overflow wrap is for products of integers, not of {dtype}")
    _check_tolerance(options)
    item = ITEMSIZE[dtype]
    work = float(m) * k * n
    spread = rule.spread(task, work)
    ranks, threads = spread.ranks, spread.threads
    algorithm = _algorithm(options, ranks, why)
    shape, copies = grid.choose(algorithm.name, ranks, options.grid, m, n)
    in_a_row = False
    symmetric = copies == 1 and options.kernel != "strassen" and are_transposes(left, right)
    if symmetric:
        why.append(HALF)
        in_a_row = _pays_in_a_row(options, algorithm, spread, k)
        if in_a_row:
            shape = (1, ranks)
    in_shared = (m * k + (0 if symmetric and shape[0] == 1 else k * n) + (m * n if symmetric else 0)) * item
    what = "A and C" if symmetric else "both operands"
    exchange, between = rule.exchange(task, algorithm, in_shared, spread, what)
    if options.grid is None and algorithm.name in LEAVE_IDLE and exchange != "shared" and not in_a_row:
        wanted_by = Product(m, k, n, options.remainder)
        p, q, copies = choose(wanted_by, ranks, Places(*shape, copies), why)
        shape = (p, q)
    variant = variant_of(
        options,
        spread,
        io.fitting(task),
        shape,
        algorithm.name,
        exchange=exchange,
        between_nodes=between,
        copies=copies,
    )
    order = target.natural_order if target is not None else "C"
    kind = target.format if target is not None else Format()
    plain = order == "C" and kind.one_array and kind.byte_order == "little"
    flops = _flops(dtype, m * (m + 1) / 2 if symmetric else float(m) * n, k)
    warnings: list[str] = []
    share = proof.fast_share(
        m * k + 2 * k * n + m * n,  # B twice: its norms come first
        dtype,
        left.bytes + right.bytes + m * n * item,
        flops,
        min(ranks * threads, facts.cores),
    )
    verify = proof.choose(options.verify, share, warnings)
    strassen = options.kernel == "strassen" or options.tolerance is not None
    in_place = (False, False)

    def need_of(variant: Variant, part: Stage | None = None) -> Need:
        return multiply_need(
            *((part.m, part.k, part.n) if part else (m, k, n)),
            dtype,
            variant,
            verify,
            spread.on_node,
            in_place=in_place,
            turned=order == "F",
            symmetric=symmetric and part in (None, (m, n, k)),
            strassen=strassen,
            whole=(m, k, n) if part else None,
            plain=io.are_plain((left, right)),
        )

    stage = probed = None
    if not strassen and verify != "serial":
        streaming = variant
        if exchange == "shared" and options.grid is None:  # where it costs nothing who has which panel
            streaming = msgspec.structs.replace(variant, grid=grid_of(ranks, _across(left, right)))
        stage = _stage(task, (variant, streaming), need_of, spread)
    if stage is not None:
        if task.limit is not None and facts.memory_known:
            streaming = io.of_streams(task, streaming, facts.memory_available - task.limit)
        variant = streaming
        if symmetric:
            why.remove(HALF)
        symmetric = False
        flops = _flops(dtype, float(m) * n, k)
        times = -(-n // stage.n), -(-m // stage.m)
        why.append(
            f"a tile of {shape_text(stage.m, stage.n)} of C stays in memory: "
            f"A is read {times_text(times[0])}, B {times_text(times[1])}"
        )
    elif target is not None:
        variant, probed = io.choose(task, variant, dtype, plain)
    if variant.read == "mapped":
        in_place = (io.in_place(left, dtype), io.in_place(right, dtype))
    wanted = need_of(variant, stage)
    flags = ("ranks", "threads", "algorithm", "io")
    return plan_of(
        task,
        spread,
        variant,
        wanted,
        compute_type=dtype,
        choosable=(*flags, "exchange", "grid") if algorithm.exchanges else flags,
        warnings=warnings,
        flops=flops,
        job={
            "verify": verify,
            "overflow": options.overflow,
            "symmetric": symmetric,
            "stage": stage or (0, 0, 0),
            "tolerance": options.tolerance or 0.0,
            "read_back": verify == "fast"
            and (
                options.verify == "fast" or (stage is None and _cheap_to_read(variant, m * n * item, flops))
            ),
        },
        shape=(m, n),
        dtype=dtype,
        order=order,
        probed=probed,
        journaled=stage is not None and (stage.m < m or stage.n < n),
        writes_early=variant.write == "uncached"
        and variant.copies == 1
        and flops > 0
        and not (symmetric or strassen or stage),
    )


def _flops(dtype: str, elements: float, k: int) -> float:
    return (8.0 if dtype.startswith("complex") else 2.0) * elements * k


def _across(left: Region, right: Region) -> tuple[bool, bool]:
    """True for A, and for B, if the file has its rows together."""
    return left.transposed == (left.order == "F"), right.transposed == (right.order == "F")


def what_fits(options: Multiply, refused: Plan) -> str:
    """The least memory to be advised for a product that streams; empty where it cannot."""
    left, right = refused.job.inputs
    verify = refused.job.verify
    strassen = options.kernel == "strassen" or options.tolerance is not None
    variant = msgspec.structs.replace(refused.job.variant, write="positioned")
    if variant.read in ("mapped", "uncached"):  # chunks and tiles are read in their own way, with its buffers
        variant = msgspec.structs.replace(variant, read="positioned")
    if strassen or verify == "serial" or not _streams(options, variant, (left, right)):
        return ""
    (m, k), n = left.shape, right.shape[1]
    least = smallest(m, k, n, ITEMSIZE[refused.job.dtype], format_of(options.output).text)
    need = multiply_need(
        least.m,
        least.k,
        least.n,
        refused.job.dtype,
        variant,
        verify,
        refused.spread.on_node,
        turned=refused.order == "F",
        whole=(m, k, n),
    )
    need = with_unpacking(need, [left, right], variant, refused.spread.on_node)
    if need.node > refused.facts.memory_available:
        return ""
    return f"--memory {-(-need.node >> 20)}MiB, with which A and B stream past a tile of C"


def _streams(options: Multiply, variant: Variant, operands: tuple[Region, Region]) -> bool:
    """True if a tile of C may stay in memory while A and B stream past it."""
    return (
        variant.algorithm in ("local", "summa")
        and variant.copies == 1
        and not options.again
        and options.io.read != "mapped"
        and all(region.encoding != "text" for region in operands)
    )


FLOPS = 20e9  # of one core in a second, to foresee roughly how long a product takes


def _stage(
    task: Task[Multiply],
    variants: tuple[Variant, Variant],
    need_of: Callable[[Variant, Stage | None], Need],
    spread: Spread,
) -> Stage | None:
    """Part of the product in memory at a time; None where all of it is, or where it cannot be streamed.

    `variants`: how all of it would be done, and how it is in parts.
    The page cache does not count as memory that there is: operands in mapped files must fit, too.
    """
    options, target, limit = task.options, task.target, task.limit
    left, right = task.inputs
    if options.resumed is not None:  # its tiles, in whatever memory: the need is compared with that as always
        return Stage(*options.resumed.stage) if all(options.resumed.stage) else None
    (m, k), n = left.shape, right.shape[1]
    dtype = of_product(left.dtype, right.dtype)
    item = ITEMSIZE[dtype]
    # A tile that is done is what another start goes on from.
    seconds = _flops(dtype, float(m) * n, k) / (FLOPS * spread.ranks * spread.threads)
    every = options.checkpoint_every(seconds)
    whole, streaming = variants
    if not _streams(options, streaming, (left, right)):
        if options.checkpoint:
            raise UsageError(
                "--checkpoint makes no sense here: what is kept are tiles of C, past which A and B stream",
                "omit --algorithm, --repeat and --io mapped; no input can be a text",
            )
        return None
    if limit is None and every is None:
        return None

    def fits(part: Stage) -> bool:
        if every is not None and seconds * part.m * part.n > every * max(1, m * n):
            return False
        if limit is None:
            return True
        variant, streamed = (whole, None) if part == (m, n, k) else (streaming, part)
        return task.taken(need_of(variant, streamed), variant, spread) <= limit

    if fits(Stage(m, n, k)):
        return None
    text = target is not None and target.format.text
    return best(m, k, n, item, fits, _across(left, right), whole_rows=text)


def _check_tolerance(options: Multiply) -> None:
    if options.tolerance is not None and options.kernel not in ("fast", "strassen"):
        raise UsageError(
            f"--tolerance makes no sense with --kernel {options.kernel}, which works to rounding",
            "--kernel strassen, or omit one of the two",
        )


def _algorithm(options: Multiply, ranks: int, why: list[str]) -> Algorithm:
    """The algorithm for `ranks` ranks; UsageError, saying what would do, when the user's does not fit."""
    if options.algorithm is not None:
        chosen = ALGORITHMS[options.algorithm]
    elif options.exchange in DESCRIBED_ONCE:
        chosen = ALGORITHMS["cannon"]
        why.append(f"cannon: {options.exchange} requests need messages that repeat")
    elif ranks == 1 and options.exchange is None and options.grid in (None, (1, 1)):
        chosen = ALGORITHMS["local"]
        why.append("local: there is one rank")
    else:
        chosen = ALGORITHMS["summa"]
        why.append("summa: it works on any grid")
    if not chosen.takes(ranks):
        fitting = [name for name, other in ALGORITHMS.items() if other.takes(ranks)]
        raise UsageError(
            f"{chosen.name} works on {chosen.takes_text}, not on {ranks}",
            f"{_near(chosen, ranks)}--algorithm {listing(fitting, 'or')}",
        )
    return chosen


def _pays_in_a_row(options: Multiply, algorithm: Algorithm, spread: Spread, k: int) -> bool:
    """True if ranks of a symmetric product form one row, where each panel of A has B's numbers in it.

    So A is read once; on one node that saves more than a square grid saves in panels.
    """
    return (
        algorithm.name == "summa"
        and options.grid is None
        and spread.nodes == 1
        and k // spread.ranks >= LEAST_DEPTH
    )


def _near(chosen: Algorithm, ranks: int) -> str:
    if chosen.name == "cannon":
        return f"-n {math.isqrt(ranks) ** 2} or -n {(math.isqrt(ranks) + 1) ** 2}, or "
    return ""


def _cheap_to_read(variant: Variant, output_bytes: int, flops: float) -> bool:
    """True if reading the output back costs next to nothing, as it does out of the page cache.

    The page cache is not counted on where the product does not fit.
    """
    return variant.write != "uncached" and output_bytes < READ_BACK * flops


def _product_type(left: Region, right: Region, target: Target | None, why: list[str]) -> str:
    """The type of the product; float64 where the output's format holds real numbers of that type only."""
    dtype = of_product(left.dtype, right.dtype)
    if target is None:
        return dtype
    holds = target.format.numbers
    if dtype not in holds and "float64" in holds and not dtype.startswith("complex"):
        why.append(f"computed in float64: {target.name} holds no other type")
        return "float64"
    check_holds(target, dtype)
    return dtype


def _extents(left: Region, right: Region) -> tuple[int, int, int]:
    """Rows, inner extent and columns; UsageError naming both shapes when the inner ones differ."""
    (m, k), (inner, n) = left.shape, right.shape
    if k == inner:
        return m, k, n
    raise UsageError(
        f"{_described(left)} and {_described(right)} do not fit: {k} columns meet {inner} rows",
        _transposing(left, right),
    )


def _described(region: Region) -> str:
    text = f"{region.name} ({shape_text(region.rows, region.columns)}"
    return text + (f", transposed to {shape_text(*region.shape)})" if region.transposed else ")")


def _transposing(left: Region, right: Region) -> str:
    """Which transposition would make the shapes fit, if one does."""
    (m, k), (inner, n) = left.shape, right.shape
    flip = {True: "without ", False: ""}
    if m == inner:
        return f"{flip[left.transposed]}--transpose-a"
    if k == n:
        return f"{flip[right.transposed]}--transpose-b"
    return ""


WORD = 16  # multiply-adds in the time in which a number arrives: 20 GF/s and 5 GB/s for a rank, in float64
CLEARLY = 0.95  # of the time that the usual grid takes: what gains less is within the error of the model


class Places(NamedTuple):
    """`copies` of `rows` × `columns`."""

    rows: int
    columns: int
    copies: int = 1

    @property
    def ranks(self) -> int:
        """How many have one."""
        return self.rows * self.columns * self.copies

    def said(self) -> str:
        """As a plan says it."""
        grid = f"{shape_text(self.rows, self.columns)} grid"
        return grid if self.copies == 1 else f"{self.copies} copies of a {grid}"

    def with_article(self) -> str:
        """The words within a sentence."""
        return f"a {self.said()}" if self.copies == 1 else self.said()


class Product(NamedTuple):
    """An m×k · k×n product, and how uneven divisions are dealt out."""

    m: int
    k: int
    n: int
    remainder: str = "spread"

    def cost(self, places: Places) -> int:
        """The time of the rank with most to do, in multiply-adds.

        Panels of its own count as received, since it passes them on: so more places never cost more.
        """
        rows, columns, depth = self._block(places)
        added = rows * columns if places.copies > 1 else 0
        return rows * columns * depth + WORD * ((rows + columns) * depth + added)

    def received(self, places: Places) -> float:
        """Numbers that come to a rank from others."""
        rows, columns, depth = self._block(places)
        p, q, copies = places
        panels = depth * (rows * (q - 1) / q + columns * (p - 1) / p)
        return panels + rows * columns * (copies - 1) / copies

    def _block(self, places: Places) -> tuple[int, int, int]:
        return (
            part(self.m, places.rows, self.remainder),
            part(self.n, places.columns, self.remainder),
            part(self.k, places.copies, self.remainder),
        )


def choose(product: Product, ranks: int, usual: Places, why: list[str]) -> Places:
    """`usual`, which has a place for each rank, or what takes clearly less time; adds its reason to `why`.

    Copies stay copies, and are never more than `usual` has: each takes memory for all of C.
    """
    best = min(_candidates(ranks, usual.copies), key=product.cost)
    if product.cost(best) >= CLEARLY * product.cost(usual):
        return usual
    less = product.received(usual) / max(1.0, product.received(best))
    gain = (
        f"the busiest receives {less:.1f} times less than on {usual.with_article()}"
        if less >= 1.1
        else f"the busiest has less to do than on {usual.with_article()}"
    )
    idle = ranks - best.ranks
    left = f"{idle} of {plural(ranks, 'rank')} {'is' if idle == 1 else 'are'} left idle, and " if idle else ""
    why.append(f"{best.said()}: {left}{gain}")
    return best


def _candidates(ranks: int, most_copies: int) -> Iterator[Places]:
    """All to which no row and no column could be added; of copies, up to the cube root of the ranks.

    More copies than that send more, not less: see Solomonik and Demmel, 2011.
    """
    few, many = (1, 1) if most_copies == 1 else (2, max(2, min(most_copies, round(ranks ** (1 / 3)))))
    for copies in range(few, many + 1):
        each = ranks // copies
        for p in range(1, math.isqrt(each) + 1):
            q = each // p
            yield Places(each // q, q, copies)
            yield Places(q, each // q, copies)


MULTIPLE = 8  # rows and columns of a tile: whole register tiles
LEAST_RUN = 2 << 10  # bytes of a row of A, so that a device reads at speed
RUN = 24 << 10  # bytes that are read in the time that it takes to ask for some: 40,000 runs a second, 1 GB/s
TRIED = 16  # tiles, from the largest that fits on
ADVISED = 512
MOST_TILES = 1024  # along a side


class Stage(NamedTuple):
    """Rows and columns of the tile of C, and of k what is read of A and B at a time."""

    m: int
    n: int
    k: int


def best(
    m: int,
    k: int,
    n: int,
    item: int,
    fits: Callable[[Stage], bool],
    across: tuple[bool, bool] = (True, True),
    whole_rows: bool = False,
) -> Stage | None:
    """Nearly square tile of C, with as much of k as `fits`, for which reading takes the least time; or None.

    A and B are read ⌈n / tile.n⌉ and ⌈m / tile.m⌉ times, in runs that are as long as `across` says of each of
    them (see `grid_of`): a run costs as much time as RUN bytes. `whole_rows`: the tile is as wide as C.
    """

    def cost(part: Stage) -> float:
        runs = (part.k if across[0] else part.m) * item, (part.n if across[1] else part.k) * item
        times = -(-n // part.n), -(-m // part.m)
        return times[0] * m * k * (1 + RUN / runs[0]) + times[1] * k * n * (1 + RUN / runs[1])

    found: list[Stage] = []
    for tile in _tiles(m, n, whole_rows):
        part = _deepest(tile, k, max(1, LEAST_RUN // item), fits)
        if part is not None:
            found.append(part)
        if len(found) == TRIED:
            break
    return min(found, key=cost, default=None)


def _deepest(tile: tuple[int, int], k: int, least: int, fits: Callable[[Stage], bool]) -> Stage | None:
    """That tile with the most of k that `fits`, in nearly equal parts."""
    if not fits(Stage(*tile, min(k, least))):
        return None
    few, many = 1, -(-k // least)  # parts: so few need not fit, so many do
    while few < many:
        middle = (few + many) // 2
        if fits(Stage(*tile, even(k, -(-k // middle)))):
            many = middle
        else:
            few = middle + 1
    part = Stage(*tile, even(k, -(-k // many)))
    return part if fits(part) else Stage(*tile, min(k, least))


def smallest(m: int, k: int, n: int, item: int, whole_rows: bool = False) -> Stage:
    """The smallest to be advised: with smaller tiles A and B are read for most of the time."""
    columns = n if whole_rows else min(n, ADVISED)
    return Stage(max(1, min(m, ADVISED)), max(1, columns), min(k, max(1, LEAST_RUN // item)))


def grid_of(ranks: int, across: tuple[bool, bool]) -> tuple[int, int]:
    """One column of ranks, or one row: whichever lets each of them read longer runs of the files.

    `across` says of A and of B whether a file has its rows together. A rank reads runs as long as its block:

        A by rows       k, a column     k / ranks, a row       B by rows       n           n / ranks
        A by columns    m / ranks       m                      B by columns    k / ranks   k

    k is the shortest, so that it is not to be shared.
    """
    column_shares, row_shares = not across[1], across[0]
    return (1, ranks) if column_shares and not row_shares else (ranks, 1)


def even(length: int, size: int) -> int:
    """The size of nearly equal parts of `length`, none of which is larger than `size`, rounded up as far."""
    parts = -(-length // max(1, size))
    equal = -(-length // max(1, parts))
    return max(1, min(length, size, -(-equal // MULTIPLE) * MULTIPLE))


def _tiles(m: int, n: int, whole_rows: bool) -> Iterator[tuple[int, int]]:
    """From the largest to the smallest."""
    longer = m if whole_rows else max(m, n)
    for count in range(1, MOST_TILES + 1):
        side = -(-max(1, -(-longer // count)) // MULTIPLE) * MULTIPLE
        yield even(m, side), max(1, n) if whole_rows else even(n, side)
