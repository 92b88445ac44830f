"""Options of `tilewise svd`, its algorithms, and which of them takes which option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec.structs import replace

from tilewise.base.declare import FOLDER, HOW, Flag
from tilewise.base.errors import UsageError
from tilewise.files.target import Target
from tilewise.machine.facts import Facts
from tilewise.operations.operation import OfOneInput
from tilewise.planning.choices import SEED_MAX
from tilewise.planning.names import Algorithm, any_count, described, table

if TYPE_CHECKING:
    from tilewise.files.folder import FolderFile
    from tilewise.files.region import Region
    from tilewise.launch.job import Job
    from tilewise.launch.join import Join
    from tilewise.operations.operation import Inputs
    from tilewise.planning.plan import Plan

ALGORITHMS = table(
    Algorithm(
        "jacobi",
        "one-sided block Jacobi: rotates columns until all are orthogonal",
        ("blocking", "nonblocking", "overlap", "one_sided_lock"),
        any_count,
        "any rank count",
    ),
    Algorithm(
        "randomized",
        "the K largest, by reading the file several times until each is accurate; the matrix is never in "
        "memory as a whole",
        (),
        any_count,
        "any rank count",
        "randomized --components 20",
    ),
    Algorithm("local", "LAPACK's `gesdd` (divide and conquer)", (), lambda n: n == 1, "1 rank only"),
    Algorithm(
        "two_stage",
        "full matrix to band to bidiagonal, divide and conquer, and back; on rank 0 with all cores of "
        "its node",
        (),
        any_count,
        "any rank count",
    ),
    Algorithm(
        "serial",
        "one-sided Jacobi on one thread, rotation by rotation; the base for speedups of `jacobi`",
        (),
        lambda n: n == 1,
        "1 rank only",
    ),
    Algorithm(
        "tall",
        "QR of panels of rows, in two readings of the file: all components of a matrix that is larger than "
        "memory and far longer one way than the other",
        (),
        any_count,
        "any rank count",
    ),
)
JACOBI, RANDOMIZED = ("jacobi",), ("randomized",)
BY_ROTATIONS = ("jacobi", "serial")  # until all columns are orthogonal
STREAMED = ("randomized", "tall")  # A is read in panels, and read again
STARTS = {
    "eigen": "from the eigenvectors of AᵀA if accurate enough, else as qr",
    "qr": "from a column-pivoted QR and an LQ of its triangle",
    "none": "from the columns of A",
}
INNERS = {
    "blocks": "pairs of column blocks, by matrix products",
    "rotations": "pairs of columns, one rotation each",
}
SWEEPS, OVERSAMPLE = 30, 10
_ROUNDING = 2.0**-52  # of float64: cosines are no more exact


class Svd(OfOneInput, frozen=True, kw_only=True):
    """Decompose a matrix: A = U · diag(s) · Vt. Writes each factor to a file in a new folder.

    Examples:
        tilewise svd A.npy -o svd
            Write all singular values and vectors to the new folder svd.
        tilewise svd A.npy -o svd --components 20
            Compute only the 20 largest singular values and their vectors.
        tilewise svd A.npy -o svd --values-only --algorithm jacobi -n 2
            Compute only values; small ones are as accurate as large ones.
    """

    algorithms: ClassVar[dict[str, Algorithm]] = ALGORITHMS
    exchange_words: ClassVar[dict[str, str]] = {
        "overlap": "pairs at the ends of a rank are solved first, and their blocks are in flight while the "
        "others are solved. This needs three pairs, so a rank has six blocks unless you set "
        "`--block-columns`",
        "one_sided_lock": "Put into the neighbour's window under a permanent lock, then a notification",
    }
    weighs: ClassVar[tuple[str, ...]] = ("hosts",)
    keeps: ClassVar[bool] = True
    several: ClassVar[bool] = True
    algorithms_of: ClassVar[dict[str, tuple[str, ...]]] = {"kernel": JACOBI, "remainder": JACOBI}

    output: Annotated[
        str,
        Flag("Output folder for U.npy, s.npy and Vt.npy.", short="-o", value=FOLDER, common=True),
    ]
    components: Annotated[
        int | None,
        Flag("Compute only the N largest singular values.", least=1, most=2**40, default="all", common=True),
    ] = None
    energy: Annotated[
        float | None,
        Flag(
            "Compute the fewest components with this share of the squared Frobenius norm, such as 0.99.",
            above=0,
            most=1,
            excludes={
                "components": "both set the number of components",
                "power": "the number of components is known only once they are exact",
                "each": "slices would have different numbers of components",
            },
            default="all",
        ),
    ] = None
    values_only: Annotated[
        bool,
        Flag("Write only s.npy, without vectors.", excludes={"scaled": "US.npy has vectors"}, common=True),
    ] = False
    scaled: Annotated[bool, Flag("Also write US.npy: U times diag(s).")] = False
    max_sweeps: Annotated[
        int | None,
        Flag("fail after N sweeps.", HOW, only=BY_ROTATIONS, least=1, most=10_000, default=str(SWEEPS)),
    ] = None
    tolerance: Annotated[
        float | None,
        Flag(
            "jacobi, serial: cosine below which two columns count as orthogonal. randomized: relative "
            "error of each singular value.",
            HOW,
            above=0,
            below=1,
            default="jacobi, serial: rounding; randomized: 1e-6, or 1e-4 for float32",
        ),
    ] = None
    off_squares: Annotated[
        float | None,
        Flag(
            "also stop when the sum of squares of the off-diagonal elements of AᵀA is below X.",
            HOW,
            above=0,
            only=BY_ROTATIONS,
            default="set by --tolerance",
        ),
    ] = None
    block_columns: Annotated[
        int | None,
        Flag(
            "columns per block.",
            HOW,
            only=JACOBI,
            least=1,
            most=2**31 - 1,
            default="two blocks per rank, more if memory is short",
        ),
    ] = None
    inner: Annotated[
        str | None, Flag(f"{described(INNERS)}.", HOW, only=JACOBI, choices=("auto", *INNERS), default="auto")
    ] = None
    start: Annotated[
        str | None, Flag(f"{described(STARTS)}.", HOW, only=JACOBI, choices=("auto", *STARTS), default="auto")
    ] = None
    power: Annotated[
        int | None,
        Flag(
            "run exactly N iterations.",
            HOW,
            only=RANDOMIZED,
            least=0,
            most=1000,
            default="as many as --tolerance needs",
        ),
    ] = None
    oversample: Annotated[
        int | None,
        Flag(
            "extra vectors per block, beyond the components.",
            HOW,
            only=RANDOMIZED,
            least=0,
            most=2**31 - 1,
            default=str(OVERSAMPLE),
        ),
    ] = None
    seed: Annotated[
        int | None,
        Flag("seed of the random numbers.", HOW, only=RANDOMIZED, least=0, most=SEED_MAX, default="0"),
    ] = None

    def check(self) -> None:
        super().check()
        tolerance = self.tolerance
        if tolerance is not None and tolerance < _ROUNDING:
            raise UsageError(
                f"--tolerance {tolerance:g} cannot be reached: float64 rounds at {_ROUNDING:.2g}",
                "omit it",
            )
        if self.kernel == "plain" and self.inner == "blocks":
            raise UsageError(
                "--kernel plain and --inner blocks contradict each other: plain uses single rotations",
                "--inner rotations",
            )
        turning = "--kernel plain" if self.kernel == "plain" else "--inner rotations"
        if self.start == "eigen" and (self.kernel == "plain" or self.inner == "rotations"):
            raise UsageError(
                f"--start eigen and {turning} contradict each other: rotations start from a QR", "--start qr"
            )

    def of_jacobi(self) -> list[str]:
        """Return the flags that were given and that `jacobi` has, but not all algorithms."""
        exchange = [f"--exchange {self.exchange}"] if self.exchange is not None else []
        return [*self.given_for("jacobi"), *exchange]

    def given(self) -> list[str]:
        """Names for the record of the choices of how that were made."""
        flags = ("off_squares", "block_columns", "inner", "start", "power", "oversample", "seed")
        return [flag.replace("_", "-") for flag in flags if getattr(self, flag) is not None]

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        from tilewise.operations.svd.plan import plan_svd
        from tilewise.planning.task import Task

        return plan_svd(Task(self, inputs, None, facts, joined))

    @classmethod
    def differs(cls, was: Job, job: Job) -> str:
        def asked(job: Job) -> object:
            """Choices on which the numbers of a state depend; ranks and threads are none."""
            plain = job.svd and replace(job.svd, u=None, s=None, vt=None, us=None)
            return job.variant.algorithm, job.variant.start, job.variant.inner, plain

        return "the decomposition was another" if asked(was) != asked(job) else ""

    @property
    def counts_late(self) -> bool:
        return self.energy is not None

    def with_files(self, job: Job, regions: dict[str, Region]) -> Job:
        places = {name.lower(): region for name, region in regions.items()}
        return replace(job, svd=replace(job.svd, **places)) if job.svd is not None else job

    def counted(self, pieces: list[FolderFile], result: dict[str, Any]) -> list[FolderFile]:
        count = result["components"]
        return [
            replace(piece, shape=(piece.shape[0], count))
            if piece.file in ("U.npy", "US.npy")
            else replace(piece, shape=(count, *piece.shape[1:]))
            for piece in pieces
        ]

    def what_fits(self, refused: Plan, joined: Join | None) -> str:
        from tilewise.operations.svd.plan import what_fits

        return what_fits(self, refused, joined)


def refuse_foreign_flags(algorithm: Algorithm, options: Svd) -> None:
    """Raise UsageError for flags that `algorithm` does not have, and where it needs another."""
    name = algorithm.name
    options.check_for(algorithm)
    if name in ("local", "two_stage", "tall") and options.tolerance is not None:
        raise UsageError(
            f"--tolerance makes no sense with {name}, which works to rounding", "--algorithm jacobi"
        )
    if name == "serial" and options.threads not in (None, 1):
        raise UsageError(
            f"serial works on 1 thread only, not on {options.threads}", "--algorithm jacobi, or -t 1"
        )
    if name in STREAMED and options.again:
        raise UsageError(
            f"--repeat and --warmup make no sense with {name}: no part of it runs in memory alone",
            "--algorithm jacobi",
        )
    if name == "randomized" and options.components is None and options.energy is None:
        raise UsageError("randomized needs the number of components", "--components 20, or --energy 0.99")
