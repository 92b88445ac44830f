"""The plan of stencil sweeps: type, decomposition, depth of halos, exchange, snapshots, proof and memory.

The stated rule. One rank with a thread for each core, or a rank for each memory domain or node; what was
said about ranks (`--exchange`, `--decomposition`, `--halo`, `--reorder`) makes it a rank for each core. How
the matrix is cut, and how deep halos are, `cut.py` says; halos of single numbers are one sweep deep. The
exchange is `overlap`.
Numbers are computed in float32, and in float64 where they are float64 or integers of more than 16 bits.

A field that does not fit in memory is swept from file to file, tile by tile (`larger_than_memory`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import duration_text, listing, plural, shape_text, times_text
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import format_of
from tilewise.files.region import Region, Source, unplaced
from tilewise.files.target import Target, check_holds, check_planes
from tilewise.launch import job
from tilewise.launch.job import Variant
from tilewise.operations.stencil import cut
from tilewise.operations.stencil.cost import stencil_need
from tilewise.operations.stencil.cut import Cut, Field, Tiles, cheapest, pass_sweeps, smallest
from tilewise.operations.stencil.options import ALGORITHMS, CHECK_EVERY, Stencil, swept_type
from tilewise.operations.stencil.weights import Weights, for_worker, parse_weights, require_held
from tilewise.planning import io, proof, rule
from tilewise.planning.need import Files, Need, with_unpacking
from tilewise.planning.plan import Plan, plan_of, variant_of
from tilewise.planning.task import Task
from tilewise.planning.where import Spread

SWEPT_PER_SECOND = 1e9  # points of a field, by one core: to foresee roughly how long sweeps take


def plan_stencil(task: Task[Stencil]) -> Plan:
    """The plan for sweeping over the input and writing the last state to the target, or UsageError."""
    options, source, target, why = task.options, task.source, task.output, task.why
    planes = source.planes if isinstance(source, Source) else 1
    dtype = compute_type(source)
    weights = parse_weights(options.weights)
    require_held(weights, dtype)
    check_planes(target, planes)
    check_holds(target, source.dtype)
    order = _order(source, target, options.order)
    what = Cut(
        rows=source.rows // planes,
        columns=source.columns,
        radius=weights.radius,
        by_rows=source.order == "C",
        periodic=options.boundary == "periodic",
    )
    spread = _ranks(task, what, weights, planes)
    ranks, threads = spread.ranks, spread.threads
    how: list[str] = []  # of what is exchanged, and is not where the field does not fit in memory
    decomposition, grid = cut.decompose(what, ranks, options.decomposition, options.grid, options.deep, how)
    # One by one, numbers cost so much that nobody wants more of them under way than one sweep takes.
    single = options.kernel == "plain" if ranks == 1 else options.halo == "elementwise"
    best = 1 if single else at_once(options, dtype)
    depth = cut.choose_depth(what, grid, options.deep, options.stretch, best)
    variant = variant_of(
        options,
        spread,
        io.fitting(task),
        grid,
        "sweeps",
        decomposition=decomposition,
        depth=depth,
        reorder=options.reorder,
    )
    exchange = _exchange(task, spread, how)
    variant = msgspec.structs.replace(
        variant, exchange=exchange, halo=cut.choose_halo(options.halo, exchange)
    )
    points = float(source.rows) * source.columns * options.steps
    then: list[str] = []
    verify = _verify(options, weights.radius, points, ranks * threads, then)
    files = Files(source=source, kind=target.format, order=order)

    def need_of(variant: Variant) -> Need:
        return stencil_need(
            what,
            dtype,
            variant,
            verify,
            options.steps,
            files,
            spread.on_node,
            again=ITEMSIZE[source.dtype] if options.again else 0,
            planes=planes,
            at_once=best,
        )

    state = unplaced((what.rows, what.columns), dtype, source.order)
    states: list[Region] = []

    def taken(variant: Variant) -> int:
        return task.taken(need_of(variant), variant, spread)

    larger = larger_than_memory(task, what, variant, verify, taken, then)
    if larger is not None:
        variant, passes = larger
        states = [state] * min(2, passes - 1)
    why += [*(how if larger is None else []), *then]
    required = need_of(variant)
    payload = job.StencilJob(
        steps=options.steps,
        radius=weights.radius,
        weights=list(weights.values),
        boundary=for_worker(options.boundary, source.dtype),
        planes=planes,
        snapshot_every=options.snapshot_every or 0,
        until_change=options.until_change or 0.0,
        check_every=options.check_every or CHECK_EVERY,
    )
    seconds = points / (SWEPT_PER_SECOND * ranks * threads)
    every = options.checkpoint_every(seconds)
    keeps = planes == 1 and not options.again and options.steps > 1
    if options.checkpoint and not keeps:
        because = (
            "the colours of a picture are swept one after another" if planes > 1 else "sweeps are repeated"
        )
        raise UsageError(
            f"--checkpoint makes no sense here: {because if options.steps > 1 else 'it is one sweep'}"
        )
    if keeps and every is not None:
        why.append(f"the state is kept every {duration_text(every)}, for --resume")
    given = {
        "decomposition": options.decomposition or options.grid,
        "depth": options.depth,
        "halo": options.halo,
        "reorder": options.reorder or None,
    }
    return plan_of(
        task,
        spread,
        variant,
        required,
        compute_type=dtype,
        choosable=("ranks", "threads", "decomposition", "exchange", "halo", "depth", "io"),
        flops=2 * points * weights.taps,
        gemm=False,
        also_fixed=[name for name, value in given.items() if value is not None],
        job={"verify": verify, "stencil": payload},
        order=order,
        header=options.header,
        planes=planes,
        snapshots=list(options.snapshots),
        states=states,
        state=state if keeps else None,
        checkpoint=every,
    )


def compute_type(source: Region) -> str:
    """The type that sweeps over `source` are computed in; UsageError for what has none."""
    if source.dtype.startswith("complex"):
        raise UsageError(
            f"{source.name} holds {source.dtype}, but a stencil works on real numbers",
            "tilewise convert takes the real parts: --dtype float64",
        )
    if source.dtype == "float16":
        raise UsageError(
            f"{source.name} holds float16, whose rounding errors would dominate after a few sweeps",
            f"tilewise convert {source.name} -o A32.npy --dtype float32",
        )
    return swept_type(source.dtype)


def _order(source: Region, target: Target, wanted: str | None) -> str:
    """The output's order of storage: that of the input where the format has a choice, and says which."""
    kept = target.format.headed and source.order in target.format.orders
    if wanted is None and kept and not source.generator:
        return source.order
    return io.order_of(target, wanted)


def _ranks(task: Task[Stencil], what: Cut, weights: Weights, planes: int) -> Spread:
    """Ranks, threads and where they are; where the plan chooses, no more ranks than there are parts for."""
    options = task.options
    about_ranks = options.decomposition is not None or options.halo is not None or options.reorder
    work = float(what.rows) * what.columns * planes * options.steps * weights.taps
    spread = rule.spread(task, work, all_cores=about_ranks)
    if options.ranks is None and task.joined is None and options.grid is None:
        most = cut.most_ranks(what, spread.ranks, options.decomposition, options.deep)
        if most < spread.ranks:
            task.why.append(f"no more than {most}: the matrix has no parts for {spread.ranks}")
            return rule.spread(task.asking(ranks=most, threads=spread.threads), work)
    return spread


def _exchange(task: Task[Stencil], spread: Spread, why: list[str]) -> str:
    """The exchange of halos; `none` on one rank, whatever was asked for."""
    if spread.ranks > 1:
        asked = task.asking()
        chosen, _ = rule.exchange(asked, ALGORITHMS["sweeps"], math.inf, spread)
        why += asked.why
        return chosen
    if (named := task.options.exchange) is not None:
        why.append(f"exchange none: there is one rank, so {named} has no partner to exchange with")
    return "none"


def _verify(options: Stencil, radius: int, points: float, cores: int, why: list[str]) -> str:
    if options.verify != "auto":
        return options.verify
    share = proof.patches_share(options.steps, radius, points, cores)
    if share < proof.WORTH:
        return "fast"
    why.append(f"not verified: the check would take about {share:.0%} of the time; --verify fast forces it")
    return "off"


def what_fits(options: Stencil, refused: Plan) -> str:
    """The least memory to be advised for sweeps from file to file; empty where they cannot be done so."""
    job = refused.job
    source, stencil = job.inputs[0], job.stencil
    assert stencil is not None
    kind = format_of(options.output)
    if in_the_way := _in_the_way(options, job.verify):
        return in_the_way
    what = Cut(
        rows=source.rows // stencil.planes,
        columns=source.columns,
        radius=stencil.radius,
        by_rows=source.order == "C",
        periodic=stencil.boundary == "periodic",
    )
    least = smallest(_field(what, options), options.deep, kind.text)
    variant = _in_tiles(job.variant, what, least)
    need = stencil_need(
        what,
        job.dtype,
        variant,
        job.verify,
        stencil.steps,
        Files(source=source, kind=kind, order=refused.order),
        refused.spread.on_node,
        planes=stencil.planes,
        at_once=at_once(options, job.dtype),
    )
    need = with_unpacking(need, [source], variant, refused.spread.on_node)
    if need.node > refused.facts.memory_available:
        return ""
    return f"--memory {-(-need.node >> 20)}MiB, with which the field is swept part by part"


def at_once(options: Stencil, dtype: str) -> int:
    """Sweeps that the kernel does together with a part of the field."""
    return 1 if options.kernel == "plain" else pass_sweeps(parse_weights(options.weights), dtype)


def _in_the_way(options: Stencil, verify: str) -> str:
    """Flags to omit, so that a field larger than memory can be swept; empty where there are none."""
    given = {
        "--until-change": options.until_change,
        "--verify serial": verify == "serial",
        "--repeat and --warmup": options.again,
        "--each": options.each,
        "--decomposition": options.decomposition,
        "--grid": options.grid,
        "--exchange": options.exchange,
        "--halo": options.halo,
        "--io mapped": "mapped" in (options.io.read, options.io.write),
    }
    flags = [flag for flag, value in given.items() if value]
    return f"omit {listing(flags, 'and')}: a field larger than memory is swept without" if flags else ""


def _field(what: Cut, options: Stencil) -> Field:
    rows, columns = (what.rows, what.columns) if what.by_rows else (what.columns, what.rows)
    return Field(rows, columns, what.radius, options.steps, options.stretch)


def _in_tiles(variant: Variant, what: Cut, tiles: Tiles) -> Variant:
    """`variant` as it sweeps part by part: ranks share the stored rows, and exchange nothing."""
    rows = what.by_rows
    return msgspec.structs.replace(
        variant,
        exchange="none",
        between_nodes="",
        halo="packed",
        grid=(variant.ranks, 1) if rows else (1, variant.ranks),
        decomposition="rows" if rows else "columns",
        depth=tiles.depth,
        tile=(tiles.rows, tiles.columns) if rows else (tiles.columns, tiles.rows),
    )


def larger_than_memory(
    task: Task[Stencil],
    what: Cut,
    variant: Variant,
    verify: str,
    taken: Callable[[Variant], int],
    why: list[str],
) -> tuple[Variant, int] | None:
    """The variant and its passes where the field does not fit, but tiles of it do; None where all of it does.

    `taken`: bytes that a variant takes. The page cache does not count as memory that there is.
    """
    options, limit = task.options, task.limit
    if limit is None or _in_the_way(options, verify) or what.rows * what.columns == 0:
        return None
    if taken(variant) <= limit:
        return None
    field = _field(what, options)

    def over(tiles: Tiles) -> int:
        return taken(_in_tiles(variant, what, tiles)) - limit

    tiles = cheapest(field, options.deep, variant.ranks, task.output.format.text, over)
    if tiles is None:
        return None
    passes = field.passes(tiles.depth)
    chosen = _in_tiles(variant, what, tiles)
    why.append(
        f"{shape_text(*chosen.tile)} of the field are in memory at a time, for "
        f"{plural(tiles.depth, 'sweep')}: it is read and written {times_text(passes)}"
    )
    return chosen, passes
