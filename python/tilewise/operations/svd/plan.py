"""The plan of a singular value decomposition: algorithm, ranks, blocks, start, exchange, proof and memory.

The stated rule. Ranks and threads as for products: one rank with a
thread for each core, or a rank for each memory domain or node. Blocks: two a rank; four on a lone one that
starts by `eigen`, for which narrow pairs do as well, and more for `qr` where memory is short. Exchange:
`overlap` where a rank has three pairs of blocks or more, and so something to do while those at its ends
travel, else `nonblocking`. Proof: `fast`, always, for it says how good the factors are and costs one more
reading of the file.

Algorithm: flags that only one algorithm knows decide for it. Else `randomized` where K components are
wanted and a full decomposition would not fit in memory, or would be long and cost more than `READINGS`
readings of the file with blocks of K + oversample vectors, and eigenvectors of their space in between. How
many readings it takes depends on the singular values, which nobody knows before: 3 where they fall fast, 20
to 40 where they hardly do; it goes on until all are exact. A full one is exact at once, and is taken where it
is short, and with `--energy`, where K is not known. Else `local` on one rank where min(M, N) is at most
`LOCAL_MAX`; above that, from `HIGH_LEAST` on where A is much longer one way, and on several ranks above
`SHARED_MAX` or where they share cores, `two_stage` for real numbers on one node where it fits in memory; and
`jacobi` for all others, and, once they are read, for matrices of which the others would lose small singular
values. Design: docs/design/svd.md.
"""

from __future__ import annotations

import contextlib
import os

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import bytes_text, duration_text, listing, plural, shape_text
from tilewise.files.folder import FolderFile
from tilewise.files.region import Region, unplaced
from tilewise.launch import environment, job
from tilewise.launch.job import Variant
from tilewise.launch.join import Join
from tilewise.operations.svd.memory import DOUBLE, full_bytes, most_components, svd_need, two_stage_bytes
from tilewise.operations.svd.options import (
    ALGORITHMS,
    BY_ROTATIONS,
    OVERSAMPLE,
    SWEEPS,
    Svd,
    refuse_foreign_flags,
)
from tilewise.operations.svd.shape import Shape, sizes
from tilewise.operations.svd.stages import shares_eigen
from tilewise.planning import io, need, rule, where
from tilewise.planning.names import Algorithm
from tilewise.planning.plan import Fallback, Plan, plan_of, variant_of
from tilewise.planning.task import Task
from tilewise.planning.where import Spread

PAIRS_TO_OVERLAP = 3  # of a rank: two at its ends, and one that is solved while their blocks travel
LEAST_COLUMNS = 8  # of a block: narrower ones are more steps and messages than they save computing
SWEEPS_FORESEEN, SWEPT_PER_SECOND = 60, 1e10  # multiplications over M·N·min(M, N), and those of one core
REAL = {"complex64": "float32", "complex128": "float64"}  # of singular values


def plan_svd(task: Task[Svd]) -> Plan:
    """The plan for decomposing the input, or UsageError: by `randomized` or `tall` where only they fit."""
    options = task.options
    shape = shape_of(task.source, options)
    algorithm = algorithm_of(task, shape)
    plan = _plan_by(task, algorithm)
    if plan.refusal is None or not _may_stream(algorithm, options):
        return plan
    needed = bytes_text(plan.need.node)
    sampled = options.components is not None and shape.number == DOUBLE and few(shape)
    instead = {"randomized": ""} if sampled else {}
    for name, what in {**instead, "tall": "; A is read twice, in panels"}.items():
        task = task.asking()
        task.why.append(f"{name}: {algorithm.name} would take {needed} of memory{what}")
        streamed = _plan_by(task, ALGORITHMS[name])
        if streamed.refusal is None:
            return streamed
    return plan


def _may_stream(algorithm: Algorithm, options: Svd) -> bool:
    """True if `tall` may take the place of what the rule took; what was asked for stays."""
    asked = options.algorithm is not None or options.of_jacobi() or options.tolerance is not None
    asked = asked or bool(options.checkpoint)
    return algorithm.name != "randomized" and not (asked or options.again or options.verify == "serial")


def _plan_by(task: Task[Svd], algorithm: Algorithm) -> Plan:
    """The plan with one of the algorithms, for which there are reasons."""
    options, source, why, room = task.options, task.source, task.why, task.room
    dtype = result_type(source)
    shape = shape_of(source, options)
    if algorithm.name in ("randomized", "two_stage") and shape.number > DOUBLE:
        raise _only_real(source, options, algorithm.name)
    refuse_foreign_flags(algorithm, options)
    spread = _ranks(task, shape, algorithm)
    ranks = spread.ranks
    variant = variant_of(
        options,
        spread,
        io.fitting(task),
        (1, ranks),
        algorithm.name,
    )
    if algorithm.name == "jacobi":
        variant = _blocks(variant, shape.least, options, why)
    elif algorithm.name == "serial":
        variant = msgspec.structs.replace(variant, blocks=2, start="none", inner="rotations")
    variant = msgspec.structs.replace(variant, exchange=_exchange(algorithm, options, variant, why))
    verify = "fast" if options.verify == "auto" else options.verify
    if options.energy is not None and algorithm.name == "randomized":
        shape = most_components(shape, source, dtype, variant, options, verify, room, spread.on_node)
        if shape.components < shape.least:
            why.append(f"{plural(shape.components, 'component')} at most: more would not fit in memory")

    def needs(start: str, blocks: int, algorithm: str = variant.algorithm) -> tuple[int, int, need.Need]:
        one = msgspec.structs.replace(variant, algorithm=algorithm, start=start, blocks=blocks)
        again = options.repeat + options.warmup > 1
        return svd_need(shape, source, dtype, one, options, verify, room, spread.on_node, again)

    fallback = None
    if algorithm.name == "jacobi":
        # Wide pairs need fewer sweeps but more memory; after `eigen` there is hardly anything left to turn.
        free = options.block_columns is None and options.exchange != "overlap"
        counts = [variant.blocks << more for more in range(4 if free else 1)]
        counts = [count for count in counts if count == variant.blocks or 2 * count <= shape.least]
        wide = "none" if variant.start == "none" else "qr"
        by_qr = next((count for count in counts if needs(wide, count)[2].node <= room), counts[-1])
        if variant.start == "eigen":
            fallback = Fallback(blocks=by_qr, need=needs("qr", by_qr)[2])
            blocks = max(variant.blocks, 4) if free and shape.least >= 8 else variant.blocks
        else:
            blocks = by_qr
        variant = msgspec.structs.replace(variant, blocks=blocks)
    elif algorithm.name in ("local", "two_stage") and options.algorithm is None:
        # What jacobi takes over; where that does not fit, they do what they can.
        pairs = 2 * ranks
        taken_over = Fallback(blocks=pairs, need=needs("qr", pairs, "jacobi")[2])
        fallback = taken_over if taken_over.need.node <= room else None
    panels, basis, required = needs(variant.start, variant.blocks)
    payload = job.SvdJob(
        components=options.components or (shape.components if options.energy is not None else 0),
        values_only=options.values_only,
        max_sweeps=SWEEPS if options.max_sweeps is None else options.max_sweeps,
        tolerance=options.tolerance or 0.0,
        off_squares=options.off_squares or 0.0,
        energy=options.energy or 0.0,
        power=-1 if options.power is None else options.power,
        oversample=OVERSAMPLE if options.oversample is None else options.oversample,
        basis=basis,
        seed=options.seed or 0,
        keep_small=algorithm.name not in BY_ROTATIONS and fallback is not None,
        require_converged=verify != "off",
        panel_bytes=panels,
        qr_blocks=fallback.blocks if fallback else 0,
        share_eigen=algorithm.name == "jacobi" and shares_eigen(shape, variant, spread.on_node),
        scaled=options.scaled,
    )
    keeps = algorithm.name == "jacobi" and not options.again
    if options.checkpoint and not keeps:
        because = (
            f"{algorithm.name} keeps nothing to resume from" if not options.again else "sweeps are repeated"
        )
        raise UsageError(f"--checkpoint makes no sense here: {because}", "--algorithm jacobi")
    every = options.checkpoint_every(
        SWEEPS_FORESEEN * shape.work / (SWEPT_PER_SECOND * ranks * spread.threads)
    )
    if keeps and every is not None:
        why.append(f"the state is kept every {duration_text(every)}, for --resume")
    pieces = _pieces(shape, options, dtype)
    flags = ("ranks", "threads", "algorithm", "io")
    return plan_of(
        task,
        spread,
        variant,
        required,
        compute_type=dtype,
        choosable=(*flags, "exchange", "block-columns", "start") if algorithm.name == "jacobi" else flags,
        warnings=environment.blas_warnings(os.environ, task.facts),
        flops=4.0 * (shape.number // DOUBLE) ** 2 * shape.rows * shape.columns * shape.least,
        gemm=False,
        also_fixed=options.given(),
        fallback=fallback,
        job={"verify": verify, "svd": payload},
        shape=pieces[0].rows_columns,
        dtype=dtype,
        pieces=pieces,
        state=_state(shape) if keeps else None,
        checkpoint=every,
    )


def _state(shape: Shape) -> Region:
    """State that is swept: for each column one of A, or of its triangle, and one of V."""
    dtype = "float64" if shape.number == DOUBLE else "complex128"
    return unplaced((shape.least, shape.most + shape.least), dtype)


def result_type(source: Region) -> str:
    """The type of the vectors; UsageError for numbers that have none."""
    if source.dtype.startswith("complex"):
        return source.dtype
    if source.dtype == "float16":
        raise UsageError(
            f"{source.name} holds float16, whose factors would be good to 3 digits",
            f"tilewise convert {source.name} -o A32.npy --dtype float32",
        )
    return "float32" if source.dtype == "float32" else "float64"


def _only_real(source: Region, options: Svd, name: str) -> UsageError:
    """That an algorithm, or a flag which only `randomized` knows, takes no complex numbers."""
    flags = options.given_for("randomized") if options.algorithm is None else []
    named = f"{listing(flags)} {'is' if len(flags) == 1 else 'are'} for randomized, which" if flags else name
    return UsageError(
        f"{source.name} holds {source.dtype}: {named} takes real numbers only; "
        "local and jacobi take complex ones",
        f"omit {listing(flags)}" if flags else "--algorithm jacobi",
    )


def shape_of(source: Region, options: Svd) -> Shape:
    """The extents of what is wanted; UsageError where there is not so much."""
    rows, columns = source.shape
    least = min(rows, columns)
    if least == 0:
        raise UsageError(f"{source.name} is {shape_text(rows, columns)}: it has no numbers to decompose")
    if options.components is not None and options.components > least:
        raise UsageError(
            f"--components {options.components} is more than a {shape_text(rows, columns)} matrix has",
            f"--components {least}, or omit it for all",
        )
    number = 2 * DOUBLE if source.dtype.startswith("complex") else DOUBLE
    return Shape(rows=rows, columns=columns, components=options.components or least, number=number)


def _ranks(task: Task[Svd], shape: Shape, algorithm: Algorithm) -> Spread:
    """Ranks, threads and where they are; UsageError where the algorithm or the grid does not take so many."""
    threads = 1 if algorithm.name == "serial" else task.options.threads
    asked = task.asking(algorithm=algorithm.name, threads=threads)
    options = asked.options
    work = shape.work
    if algorithm.name == "randomized":
        readings = READINGS if options.power is None else options.power + 2
        work = float(shape.rows) * shape.columns * shape.sampled(options) * 2 * readings
    spread = rule.spread(asked, work, all_cores=options.exchange is not None)
    task.why += asked.why
    ranks = spread.ranks
    if not algorithm.takes(ranks):
        raise UsageError(
            f"{algorithm.name} works on {algorithm.takes_text}, not on {ranks}", "--algorithm jacobi, or -n 1"
        )
    if options.grid not in (None, (1, ranks)):
        p, q = options.grid
        raise UsageError(
            f"--grid {p}x{q} makes no sense with svd: {plural(ranks, 'rank')} form one row",
            f"--grid 1x{ranks}",
        )
    return spread


def _exchange(algorithm: Algorithm, options: Svd, variant: Variant, why: list[str]) -> str:
    """How blocks travel; `none` on one rank, and where nothing travels."""
    asked = options.exchange
    if asked is not None and asked not in algorithm.exchanges:
        known = f"it takes {', '.join(algorithm.exchanges)}" if algorithm.exchanges else "it sends no blocks"
        raise UsageError(
            f"--exchange {asked} makes no sense with {algorithm.name}: {known}",
            "" if algorithm.exchanges else "--algorithm jacobi",
        )
    if not algorithm.exchanges:
        return "none"
    if variant.ranks == 1:
        if asked is not None:
            why.append(f"exchange none: there is one rank, so {asked} has no partner to exchange with")
        return "none"
    if asked is not None:
        return asked
    if variant.blocks >= PAIRS_TO_OVERLAP * 2 * variant.ranks:
        why.append("overlap: blocks at a rank's ends travel while others are solved")
        return "overlap"
    why.append("nonblocking: a rank has no pairs to solve while blocks travel")
    return "nonblocking"


def _blocks(variant: Variant, columns: int, options: Svd, why: list[str]) -> Variant:
    """The ring's blocks of `columns`, what the sweeps start from, and how pairs are solved.

    Two blocks are a pair. Where blocks are asked for, a rank has one at least, though some may be empty;
    else those ranks have one for which there are wide enough blocks.
    """
    inner = options.inner or ("rotations" if variant.kernel == "plain" else "blocks")
    fewest = variant.ranks
    if options.block_columns is not None and variant.remainder == "last":
        pairs = columns // (2 * options.block_columns)  # all but the last have so many columns, or more
    elif options.block_columns is not None:
        pairs = -(-columns // (2 * options.block_columns))
    elif options.exchange == "overlap" and variant.ranks > 1:
        pairs = PAIRS_TO_OVERLAP * variant.ranks
        why.append(f"{2 * PAIRS_TO_OVERLAP} blocks per rank: fewer leave nothing to overlap with")
    elif inner == "blocks":
        # The products of wide pairs keep all threads of a rank busy; some ranks have none.
        pairs = min(variant.ranks, -(-columns // (2 * LEAST_COLUMNS)))
        fewest = 1
    else:
        pairs = variant.ranks * variant.threads
        why.append("two blocks for each thread: each thread rotates one pair")
    pairs = max(fewest, min(pairs, -(-columns // 2)))
    start = options.start or ("eigen" if inner == "blocks" else "qr")
    return msgspec.structs.replace(variant, blocks=2 * pairs, start=start, inner=inner)


def _pieces(shape: Shape, options: Svd, dtype: str) -> list[FolderFile]:
    """The files of the folder."""
    k = shape.components
    values = FolderFile("s.npy", (k,), REAL.get(dtype, dtype))
    if options.values_only:
        return [values]
    left = FolderFile("U.npy", (shape.rows, k), dtype)
    scaled = [FolderFile("US.npy", left.shape, dtype)] if options.scaled else []
    return [left, values, FolderFile("Vt.npy", (k, shape.columns), dtype), *scaled]


# The shorter side up to which one rank takes gesdd, which is the fastest there; above it two stages are.
LOCAL_MAX = 512
SHARED_MAX = (
    256  # of a matrix whose columns several ranks share, each with a core: above, two stages are faster
)
HIGH_LEAST = 64  # columns of a matrix that is much longer one way, from which two stages are faster, too
LONG = 3e9  # M·N·min(M, N) from which a full decomposition for a few components is a waste: a second
FULL = 20  # operations of a full decomposition, over M·N·min(M, N)
FEWEST, READINGS, MOST = 3, 20, 40  # of the file, that `randomized` may take; READINGS it is expected to
READ = 30  # operations that could be done while a number is read
_EIGEN = 27  # operations of a space's eigenvectors, over the cube of its columns


def algorithm_of(task: Task[Svd], shape: Shape) -> Algorithm:
    """The algorithm that was asked for, that flags lead to, or that the rule picks."""
    options, facts, joined, room, why = task.options, task.facts, task.joined, task.room, task.why
    if options.algorithm is not None:
        return ALGORITHMS[options.algorithm]
    if options.resumed is not None:
        return ALGORITHMS[options.resumed.variant.algorithm]
    jacobi, randomized = options.of_jacobi(), options.given_for("randomized")
    if jacobi and randomized:
        raise UsageError(
            f"{jacobi[0]} is for jacobi and {randomized[0]} for randomized; they contradict each other"
        )
    if randomized:
        why.append(
            f"randomized: {listing(randomized)} {'requires' if len(randomized) == 1 else 'require'} it"
        )
        return ALGORITHMS["randomized"]
    if jacobi:
        why.append(f"jacobi: {listing(jacobi)} {'requires' if len(jacobi) == 1 else 'require'} it")
        return ALGORITHMS["jacobi"]
    if options.checkpoint and not options.again:
        why.append("jacobi: --checkpoint requires it, as the others keep nothing to resume from")
        return ALGORITHMS["jacobi"]
    if (options.components is not None or options.energy is not None) and shape.number == DOUBLE:
        pays = options.components is not None and few(shape)
        if (pays or options.energy is not None) and (full := full_bytes(shape)) > room:
            why.append(f"randomized: all components would take {bytes_text(full)} of memory")
            return ALGORITHMS["randomized"]
        if pays and shape.work >= LONG and is_faster(shape):
            why.append(
                f"randomized: {plural(shape.components, 'component')} of {shape.least}, for which some "
                "readings are expected to take less than all of them would"
            )
            return ALGORITHMS["randomized"]
    ranks = joined.size if joined is not None else options.ranks
    alone = ranks in (None, 1) and options.grid in (None, (1, 1))
    nodes = 1 if ranks == 1 else where.ground(options, facts, joined).count
    in_two = two_stage_bytes(shape, task.source, options, options.again, facts.cores)
    fits = in_two <= room and shape.number == DOUBLE and nodes == 1
    high = fits and shape.least >= HIGH_LEAST and is_high(shape.most, shape.least)
    if shape.least <= LOCAL_MAX and alone and options.tolerance is None and not high:
        why.append(
            "local: gesdd is faster for so few columns; jacobi takes over where rows or columns differ so "
            "much in scale that small singular values would be lost"
        )
        return ALGORITHMS["local"]
    if options.tolerance is not None:
        why.append("jacobi: --tolerance applies to it and to randomized")
        return ALGORITHMS["jacobi"]
    if shape.number > DOUBLE:
        why.append("jacobi: two_stage takes real numbers only")
    elif nodes > 1:
        why.append(f"jacobi: {plural(nodes, 'node')} share it")
    elif shape.least <= SHARED_MAX and not alone and (ranks or 1) <= facts.cores:
        why.append(f"jacobi: {plural(ranks or 1, 'rank')} share it")
    elif in_two > room:
        why.append(f"jacobi: two_stage would take {bytes_text(in_two)} of memory")
    else:
        fast = f"more than {LOCAL_MAX if alone else SHARED_MAX} columns"
        if (ranks or 1) > facts.cores:
            fast = "ranks without a core each"
        elif high:
            fast = "a matrix that is much longer one way"
        why.append(
            f"two_stage: the fastest for {fast}; jacobi takes over where rows or "
            "columns differ so much in scale that small singular values would be lost"
        )
        return ALGORITHMS["two_stage"]
    return ALGORITHMS["jacobi"]


def is_high(most: int, least: int) -> bool:
    """True if `two_stage` finds a triangle first, faster than LAPACK does; the sides of A are so long."""
    return 3 * most >= 5 * least


def few(shape: Shape) -> bool:
    """True if reading for the components that are wanted is expected to take less than all would."""
    block = shape.components + OVERSAMPLE
    return READINGS * (4 * block + READ) <= FULL * shape.least


def is_faster(shape: Shape) -> bool:
    """True if `randomized` is expected to take less time than a full decomposition that fits in memory.

    Operations of that are twice as fast, as its blocks are large.
    """
    block = shape.components + OVERSAMPLE
    reading = shape.rows * shape.columns * (4 * block + READ) + space_operations(block)
    return 2 * readings_of(shape.least, block) * reading <= FULL * shape.work


def readings_of(least: int, block: int) -> int:
    """Readings that `randomized` is expected to take; after so many blocks its space has all columns."""
    return min(READINGS, least // block + FEWEST + 1)


def space_operations(block: int) -> float:
    """Operations of `randomized` between two readings, for eigenvectors of its space."""
    return _EIGEN * float(min(sizes().basis_blocks * block, sizes().basis_columns)) ** 3


USUAL = 20  # components that are advised where none were asked for


def what_fits(options: Svd, refused: Plan, joined: Join | None) -> str:
    """Flags with which a job fits in memory, where `refused` does not; empty where nothing helps.

    The least memory with which it would be done as it was asked for, and what needs less.
    """
    source, ranks = refused.job.inputs[0], refused.job.variant.ranks
    shape = shape_of(source, options)
    components = options.components or USUAL
    task = Task(options, [source], None, refused.facts, joined)
    one = task.asking(ranks=1, exchange=None)
    sampled = task.asking(algorithm="randomized", components=None if options.energy else components)
    said = "" if options.components or options.energy else f" --components {components}"
    least = _smallest_memory(task)
    memory = f"--memory {least}MiB" if least else ""
    ways = [("-n 1", one)] if ranks > 1 and joined is None else []
    few_enough = few(msgspec.structs.replace(shape, components=components))
    if (few_enough or options.energy) and options.algorithm != "randomized" and shape.number == DOUBLE:
        ways.append((f"--algorithm randomized{said}: it reads the file in panels", sampled))
    for advice, asked in ways:
        with contextlib.suppress(UsageError):
            if plan_svd(asked).refusal is None:
                return f"{memory}, or {advice}" if memory else advice
    return memory


def _smallest_memory(task: Task[Svd]) -> int:
    """MiB with which the job would be done, as far as there is so much; 0 where there is not."""

    def fits(mebibytes: int) -> bool:
        with contextlib.suppress(UsageError):
            return plan_svd(task.asking(memory=mebibytes << 20)).refusal is None
        return False

    low, high = 0, task.facts.memory_available >> 20
    if not fits(high):
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
