"""Options of `tilewise stencil`, and how halos can travel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec.structs import replace

from tilewise.base.declare import HOW, Flag, Value
from tilewise.base.errors import UsageError
from tilewise.files.formats import MATRIX, format_of
from tilewise.files.target import Target
from tilewise.machine.facts import Facts
from tilewise.operations.operation import HEADER, ORDER, OfOneInput
from tilewise.operations.stencil.weights import BOUNDARIES, NAMES, named_weights, parse_boundary
from tilewise.planning.names import DESCRIBED_ONCE, EXCHANGES, Algorithm, any_count, described, table

if TYPE_CHECKING:
    from tilewise.files.region import Region
    from tilewise.launch.job import Job
    from tilewise.launch.join import Join
    from tilewise.operations.operation import Inputs
    from tilewise.planning.plan import Plan

CHECK_EVERY = 16
STEPS_MAX = 10**9
BOUNDARY = Value("BOUNDARY", (), lambda: tuple(name.partition(":")[0] for name in BOUNDARIES))
WEIGHTS = Value("WEIGHTS", MATRIX.endings, lambda: tuple(NAMES))
SNAPSHOTS_MAX = 10_000
_IN_FLOAT32 = ("float32", "int8", "int16", "uint8", "uint16")
ALGORITHMS = table(
    Algorithm(
        "sweeps",
        "every element becomes a weighted sum of its neighbours",
        tuple(EXCHANGES),
        any_count,
        "any rank count",
    )
)
DECOMPOSITIONS = {
    "rows": "whole rows per rank",
    "columns": "whole columns per rank",
    "grid": "a rectangle per rank",
}
_MESSAGES = ("synchronous", "blocking", "nonblocking", "overlap")
# How a halo gets into messages, and the exchanges that can do it so.
HALOS = {
    "packed": tuple(EXCHANGES),
    "datatype": (*_MESSAGES, *DESCRIBED_ONCE, "collective"),
    "elementwise": _MESSAGES,
}


def swept_type(dtype: str) -> str:
    """The type that sweeps over numbers of type `dtype` are computed in."""
    return "float32" if dtype in _IN_FLOAT32 else "float64"


class Stencil(OfOneInput, frozen=True, kw_only=True):
    """Smooth, diffuse or filter a matrix, or each colour of an image, by sweeps of weighted sums.

    Examples:
        tilewise stencil A.npy -o B.npy --steps 200
            200 steps of heat flow.
        tilewise stencil photo.png -o smooth.png --steps 5 --weights box3 --boundary reflect
            Smooth a picture, colour by colour.
        tilewise stencil A.npy -o B.npy --steps 100000 --until-change 1e-6
            End when nothing changes any more.
    """

    algorithms: ClassVar[dict[str, Algorithm]] = ALGORITHMS
    halos: ClassVar[dict[str, tuple[str, ...]]] = HALOS
    exchange_words: ClassVar[dict[str, str]] = {
        "synchronous": "Ssend",
        "overlap": "the interior of the block is swept in slices while messages are in flight, then its rim",
        "persistent": "requests created once, started for every exchange",
        "partitioned": "the same with MPI 4's partitioned messages; an older library is refused",
        "collective": "a neighbourhood's Alltoallw",
        "one_sided_lock": "Rget under a lock",
        "shared": "read directly from the neighbour's memory, within one node, without messages",
    }
    blind: ClassVar[bool] = True
    colours: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    steps: Annotated[int, Flag("Number of sweeps over the matrix.", least=0, most=STEPS_MAX, common=True)]
    weights: Annotated[
        str,
        Flag(
            "star5 (centre 0.6, neighbours 0.1), star5:CENTRE,NEIGHBOUR, star9, box3, or a square "
            "matrix file with an odd side of at most 9.",
            value=WEIGHTS,
            common=True,
        ),
    ] = "star5"
    boundary: Annotated[
        str, Flag(f"Values outside the matrix: {described(BOUNDARIES)}.", value=BOUNDARY, common=True)
    ] = "zero"
    until_change: Annotated[
        float | None,
        Flag(
            "Stop once a sweep changes every element by less than X; exit code 3 on NaN or infinity.", above=0
        ),
    ] = None
    check_every: Annotated[
        int | None,
        Flag(
            "Check the change every N sweeps.",
            least=1,
            most=STEPS_MAX,
            needs="--until-change 1e-6",
            default=str(CHECK_EVERY),
        ),
    ] = None
    snapshot_every: Annotated[
        int | None,
        Flag(
            "Save the state every N sweeps, too, as B-000100.npy next to B.npy.",
            least=1,
            most=STEPS_MAX,
            excludes={"each": "slices are done one after another"},
        ),
    ] = None
    order: Annotated[str | None, ORDER] = None
    header: Annotated[bool, HEADER] = False
    decomposition: Annotated[
        str | None,
        Flag(f"{described(DECOMPOSITIONS)}.", HOW, choices=("auto", *DECOMPOSITIONS), default="auto"),
    ] = None
    depth: Annotated[
        int | None,
        Flag(
            "Sweeps per exchange, and per pass over memory.", HOW, least=1, most=1_000_000, default="planned"
        ),
    ] = None
    halo: Annotated[
        str | None,
        Flag(
            "packed: copied into one message; datatype: packed by MPI; elementwise: one per element.",
            HOW,
            choices=("auto", *HALOS),
            default="packed",
        ),
    ] = None

    reorder: Annotated[
        bool, Flag("Let MPI choose the block of each rank (MPI_Cart_create with reordering).", HOW)
    ] = False

    def check(self) -> None:
        super().check()
        named_weights(self.weights)  # a file is read when sweeps are planned
        parse_boundary(self.boundary)
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
        most = max(1, self.steps)
        if self.snapshot_every:
            most = min(most, self.snapshot_every)
        if self.until_change:  # the sweep that is looked at is done by itself
            most = min(most, max(1, (self.check_every or CHECK_EVERY) - 1))
        return most

    @property
    def deep(self) -> int | None:
        """The depth that was asked for, as far as it is of use."""
        return None if self.depth is None else min(self.depth, self.stretch)

    def inspect(self) -> Inputs:
        return [self.input(self.a, format_of(self.output).planes)]

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        from tilewise.operations.stencil.plan import plan_stencil
        from tilewise.planning.task import Task

        return plan_stencil(Task(self, inputs, target, facts, joined))

    @classmethod
    def differs(cls, was: Job, job: Job) -> str:
        def asked(job: Job) -> object:
            return job.stencil and replace(job.stencil, snapshot_every=0, snapshots=[], states=[])

        return "the sweeps were others" if asked(was) != asked(job) else ""

    @classmethod
    def sweeps(cls, job: Job) -> int | None:
        return job.stencil.steps if job.stencil else None

    def with_output(self, job: Job, output: Region, snapshots: list[Region], states: list[Region]) -> Job:
        assert job.stencil is not None
        return replace(job, output=output, stencil=replace(job.stencil, snapshots=snapshots, states=states))

    def what_fits(self, refused: Plan, joined: Join | None) -> str:
        from tilewise.operations.stencil.plan import what_fits

        return what_fits(self, refused)
