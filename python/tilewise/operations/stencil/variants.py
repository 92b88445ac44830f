"""Plans stencil sweeps: type, decomposition, depth of halos, exchange, snapshots, proof and memory.

The stated rule. One rank with a thread for each core, or a rank for each memory domain or node; what was
said about ranks (`--exchange`, `--decomposition`, `--halo`, `--reorder`) makes it a rank for each core. How
the matrix is cut, and how deep halos are, `cut.py` says; halos of single numbers are one sweep deep. The
exchange is `overlap`.
Numbers are computed in float32, and in float64 where they are float64 or integers of more than 16 bits.
"""

from __future__ import annotations

import math

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import duration_text
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region, Source
from tilewise.files.states import state_region
from tilewise.files.target import Target, check_holds, check_planes
from tilewise.launch import job
from tilewise.launch.job import Variant
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.operations.stencil import cut
from tilewise.operations.stencil.boundary import for_worker
from tilewise.operations.stencil.cut import Cut
from tilewise.operations.stencil.larger import at_once, larger_than_memory
from tilewise.operations.stencil.need import Files, stencil_need
from tilewise.operations.stencil.options import ALGORITHMS, CHECK_EVERY, Stencil, swept_type
from tilewise.operations.stencil.weights import Weights, parse_weights, require_held
from tilewise.planning import io, proof, rule
from tilewise.planning.need import Need, with_unpacking
from tilewise.planning.plan import Plan, plan_of, variant_of
from tilewise.planning.where import Spread

SWEPT_PER_SECOND = 1e9  # points of a field, by one core: to foresee roughly how long sweeps take


def plan_stencil(
    source: Region,
    target: Target,
    options: Stencil,
    facts: Facts,
    joined: Join | None = None,
) -> Plan:
    """The plan for sweeping over `source` and writing the last state to `target`, or UsageError."""
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
    why: list[str] = []
    spread = _ranks(what, options, weights, facts, planes, joined, why)
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
        io.fitting(options, [source], target),
        grid,
        "sweeps",
        decomposition=decomposition,
        depth=depth,
        reorder=options.reorder,
    )
    exchange = _exchange(options, facts, spread, how)
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

    state = state_region((what.rows, what.columns), dtype, source.order)
    states: list[Region] = []

    def over(variant: Variant, limit: int) -> int:
        need = with_unpacking(need_of(variant), [source], variant, spread.on_node)
        return (need.node if spread.sure else need.rank) - limit

    larger = larger_than_memory(what, options, variant, verify, facts, target.format.text, over, then)
    if larger is not None:
        variant, passes = larger
        states = [state] * min(2, passes - 1)
    why += [*(how if larger is None else []), *then]
    required = need_of(variant)
    payload = job.Stencil(
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
        options,
        facts,
        spread,
        variant,
        [source],
        required,
        why,
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


def _ranks(
    what: Cut,
    options: Stencil,
    weights: Weights,
    facts: Facts,
    planes: int,
    joined: Join | None,
    why: list[str],
) -> Spread:
    """Ranks, threads and where they are; where the plan chooses, no more ranks than there are parts for."""
    about_ranks = options.decomposition is not None or options.halo is not None or options.reorder
    work = float(what.rows) * what.columns * planes * options.steps * weights.taps
    spread = rule.spread(options, facts, work, why, joined=joined, all_cores=about_ranks)
    if options.ranks is None and joined is None and options.grid is None:
        most = cut.most_ranks(what, spread.ranks, options.decomposition, options.deep)
        if most < spread.ranks:
            why.append(f"no more than {most}: the matrix has no parts for {spread.ranks}")
            fewer = msgspec.structs.replace(options, ranks=most, threads=spread.threads)
            return rule.spread(fewer, facts, work, [])
    return spread


def _exchange(options: Stencil, facts: Facts, spread: Spread, why: list[str]) -> str:
    """How halos travel; `none` on one rank, whatever was asked for."""
    if spread.ranks == 1:
        if options.exchange is not None:
            why.append(
                f"exchange none: there is one rank, so {options.exchange} has no partner to exchange with"
            )
        return "none"
    return rule.exchange(options, ALGORITHMS["sweeps"], math.inf, facts, spread, why)[0]


def _verify(options: Stencil, radius: int, points: float, cores: int, why: list[str]) -> str:
    if options.verify != "auto":
        return options.verify
    share = proof.patches_share(options.steps, radius, points, cores)
    if share < proof.WORTH:
        return "fast"
    why.append(f"not verified: the check would take about {share:.0%} of the time; --verify fast forces it")
    return "off"
