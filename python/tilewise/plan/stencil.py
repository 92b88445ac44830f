"""Plans stencil sweeps: type, decomposition, depth of halos, exchange, snapshots, proof and memory.

The stated rule. One rank with a thread for each core, or a rank for each memory domain or node; what was said
about ranks (`--exchange`, `--decomposition`, `--halo`) makes it a rank for each core. How the matrix is cut,
and how deep halos are, `plan/cut.py` says; halos of single numbers are one sweep deep. Exchange: `overlap`.
Numbers are computed in float32, and in float64 where they are float64 or integers of more than 16 bits.
"""

from __future__ import annotations

import math

import msgspec

from tilewise.errors import UsageError
from tilewise.files import format_name
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region, Source
from tilewise.files.target import Target, check_holds, check_planes
from tilewise.launch.job import Job, Stencil, Variant
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.plan import cut, io, need, proof, rule
from tilewise.plan.choices import Choices
from tilewise.plan.cut import Cut
from tilewise.plan.names import STENCIL
from tilewise.plan.plan import Plan, finish, new_id
from tilewise.plan.stencil_need import Files, stencil_need
from tilewise.plan.weights import Weights, require_held

CHECK_EVERY = 16
STEPS_MAX = 10**9
SNAPSHOTS_MAX = 10_000
_IN_FLOAT32 = ("float32", "int8", "int16", "uint8", "uint16")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be computed, and how far that is said; None where the plan decides."""

    steps: int
    weights: Weights
    boundary: str = "zero"
    decomposition: str | None = None
    depth: int | None = None
    halo: str | None = None
    snapshot_every: int | None = None
    until_change: float | None = None
    check_every: int | None = None
    order: str | None = None
    header: bool = False

    def check(self) -> None:
        """Raises UsageError for numbers that make no sense."""
        _between("--steps", self.steps, 0, STEPS_MAX)
        _between("--depth", self.depth, 1, 1_000_000)
        _between("--snapshot-every", self.snapshot_every, 1, STEPS_MAX)
        _between("--check-every", self.check_every, 1, STEPS_MAX)
        change = self.until_change
        if change is not None and not (change > 0 and math.isfinite(change)):
            raise UsageError(f"--until-change {change:g} makes no sense; it must be a number above 0")
        if self.check_every is not None and change is None:
            raise UsageError("--check-every makes no sense without --until-change", "--until-change 1e-6")
        if len(self.snapshots) > SNAPSHOTS_MAX:
            raise UsageError(
                f"--snapshot-every {self.snapshot_every} makes {len(self.snapshots)} files, more than "
                f"{SNAPSHOTS_MAX}",
                f"--snapshot-every {-(-self.steps // SNAPSHOTS_MAX)}",
            )

    @property
    def snapshots(self) -> range:
        """The sweeps behind which the state is kept."""
        every = self.snapshot_every
        return range(every, self.steps, every) if every else range(0)

    @property
    def stretch(self) -> int:
        """The most sweeps that are ever done without a snapshot or a look at the change in between."""
        found = max(1, self.steps)
        if self.snapshot_every:
            found = min(found, self.snapshot_every)
        if self.until_change:  # the sweep that is looked at is done by itself
            found = min(found, max(1, (self.check_every or CHECK_EVERY) - 1))
        return found

    @property
    def deep(self) -> int | None:
        """The depth that was asked for, as far as it is of use."""
        return None if self.depth is None else min(self.depth, self.stretch)


def plan_stencil(
    source: Region,
    target: Target,
    wanted: Wanted,
    choices: Choices,
    facts: Facts,
    joined: Join | None = None,
) -> Plan:
    """The plan for sweeping over `source` and writing the last state to `target`, or UsageError."""
    planes = source.planes if isinstance(source, Source) else 1
    dtype = compute_type(source)
    require_held(wanted.weights, dtype)
    check_planes(target, planes)
    check_holds(target, source.dtype)
    if choices.kernel == "blas":
        raise UsageError("--kernel blas makes no sense with stencil: no BLAS does sweeps", "--kernel fast")
    order = _order(source, target, wanted.order)
    what = Cut(
        rows=source.rows // planes,
        columns=source.columns,
        radius=wanted.weights.radius,
        by_rows=source.order == "C",
    )
    why: list[str] = []
    ranks, threads, nodes = _ranks(what, wanted, choices, facts, planes, joined, why)
    decomposition, grid = cut.decompose(what, ranks, wanted.decomposition, choices.grid, wanted.deep, why)
    # One by one, numbers cost so much that nobody wants more of them under way than one sweep takes.
    single = choices.kernel == "plain" if ranks == 1 else wanted.halo == "elementwise"
    best = 1 if single else cut.pass_sweeps(wanted.weights, dtype)
    depth = cut.choose_depth(what, grid, wanted.deep, wanted.stretch, best)
    read, write = io.fitting(choices, [source], target)
    variant = Variant(
        algorithm="sweeps",
        exchange="none",
        read=read,
        write=write,
        grid=grid,
        ranks=ranks,
        threads=threads,
        kernel=choices.kernel,
        remainder=choices.remainder,
        decomposition=decomposition,
        depth=depth,
    )
    exchange = _exchange(choices, ranks, facts, nodes, why)
    variant = msgspec.structs.replace(variant, exchange=exchange, halo=cut.choose_halo(wanted.halo, exchange))
    points = float(source.rows) * source.columns * wanted.steps
    verify = _verify(choices, wanted, points, ranks * threads, why)
    required = stencil_need(
        what,
        dtype,
        variant,
        verify,
        wanted.steps,
        Files(source=source, kind=format_name(target.name), order=order),
        nodes,
        again=ITEMSIZE[source.dtype] if choices.repeat + choices.warmup > 1 else 0,
        planes=planes,
    )
    need.require_fit(required, choices.memory, facts.memory_available, facts.shared_memory)
    job = Job(
        id=new_id(),
        command="stencil",
        inputs=[source],
        output=None,
        variant=variant,
        dtype=dtype,
        stencil=Stencil(
            steps=wanted.steps,
            radius=wanted.weights.radius,
            weights=list(wanted.weights.values),
            boundary=wanted.boundary,
            planes=planes,
            snapshot_every=wanted.snapshot_every or 0,
            until_change=wanted.until_change or 0.0,
            check_every=wanted.check_every or CHECK_EVERY,
        ),
        verify=verify,
    )
    given = {
        "decomposition": wanted.decomposition or choices.grid,
        "depth": wanted.depth,
        "halo": wanted.halo,
    }
    return finish(
        job=job,
        shape=(source.rows, source.columns),
        dtype=source.dtype,
        order=order,
        header=wanted.header,
        choices=choices,
        facts=facts,
        need=required,
        reasons=why,
        warnings=[],
        flops=2 * points * wanted.weights.taps,
        gemm=False,
        nodes=nodes,
        joined=joined is not None,
        choosable=("ranks", "threads", "decomposition", "exchange", "halo", "depth", "io"),
        also_fixed=[name for name, value in given.items() if value is not None],
        planes=planes,
        snapshots=list(wanted.snapshots),
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
            f"{source.name} holds float16, whose rounding would be all that is left after some sweeps",
            f"tilewise convert {source.name} -o A32.npy --dtype float32",
        )
    return "float32" if source.dtype in _IN_FLOAT32 else "float64"


def _order(source: Region, target: Target, wanted: str | None) -> str:
    """The output's order of storage: that of the input where the format has a choice."""
    if wanted is None and format_name(target.name) == "npy" and not source.generator:
        return source.order
    return io.order_of(target, wanted)


def _ranks(
    what: Cut,
    wanted: Wanted,
    choices: Choices,
    facts: Facts,
    planes: int,
    joined: Join | None,
    why: list[str],
) -> tuple[int, int, int]:
    """Ranks, threads and nodes; where the plan chooses, no more ranks than there are parts for."""
    about_ranks = wanted.decomposition is not None or wanted.halo is not None
    work = float(what.rows) * what.columns * planes * wanted.steps * wanted.weights.taps
    ranks, threads, nodes = rule.spread(choices, facts, work, why, joined=joined, all_cores=about_ranks)
    if choices.ranks is None and joined is None and choices.grid is None:
        most = cut.most_ranks(what, ranks, wanted.decomposition, wanted.deep)
        if most < ranks:
            why.append(f"no more than {most}: the matrix has no parts for {ranks}")
            ranks = most
    return ranks, threads, nodes


def _exchange(choices: Choices, ranks: int, facts: Facts, nodes: int, why: list[str]) -> str:
    """How halos travel; `none` on one rank, whatever was asked for."""
    if ranks == 1:
        if choices.exchange is not None:
            why.append(f"exchange none: there is one rank, so {choices.exchange} has nobody to exchange with")
        return "none"
    return rule.exchange(choices, STENCIL["sweeps"], math.inf, facts, nodes, why)


def _verify(choices: Choices, wanted: Wanted, points: float, cores: int, why: list[str]) -> str:
    if choices.verify != "auto":
        return choices.verify
    share = proof.patches_share(wanted.steps, wanted.weights.radius, points, cores)
    if share < proof.WORTH:
        return "fast"
    why.append(f"not verified: the check would take about {share:.0%} of the time; --verify fast does it")
    return "off"


def _between(flag: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise UsageError(f"{flag} {value} makes no sense; it must be a whole number from {low} to {high}")
