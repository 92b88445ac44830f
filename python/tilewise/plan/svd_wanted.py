"""What `tilewise svd` is asked for beyond the flags of every job, checked, and which algorithm knows it."""

from __future__ import annotations

import msgspec

from tilewise.errors import UsageError
from tilewise.plan.choices import Choices
from tilewise.plan.names import Algorithm

SWEEPS, OVERSAMPLE = 30, 10
_SEED_MAX = 2**63 - 1
_ROUNDING = 2.0**-52  # of float64: cosines are no more exact


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be computed, and how far that is said; None where the plan decides."""

    components: int | None = None
    energy: float | None = None
    values_only: bool = False
    scaled: bool = False
    max_sweeps: int | None = None
    tolerance: float | None = None
    block_columns: int | None = None
    inner: str | None = None
    start: str | None = None
    power: int | None = None
    oversample: int | None = None
    seed: int | None = None

    def check(self, choices: Choices) -> None:
        """Raises UsageError for numbers that make no sense, alone or together."""
        _between("--components", self.components, 1, 2**40)
        _between("--max-sweeps", self.max_sweeps, 1, 10_000)
        _between("--block-columns", self.block_columns, 1, 2**31 - 1)
        _between("--power", self.power, 0, 1000)
        _between("--oversample", self.oversample, 0, 2**31 - 1)
        _between("--seed", self.seed, 0, _SEED_MAX)
        if self.energy is not None and not 0 < self.energy <= 1:
            raise UsageError(
                f"--energy {self.energy:.15g} makes no sense; it must be a number above 0, and 1 at most"
            )
        if self.energy is not None and self.components is not None:
            raise UsageError("--energy and --components contradict each other: both say how many there are")
        if self.energy is not None and self.power is not None:
            raise UsageError(
                "--energy and --power contradict each other: how many components there are is known only "
                "when these are exact",
                "--tolerance",
            )
        tolerance = self.tolerance
        if tolerance is not None and not 0 < tolerance < 1:
            raise UsageError(
                f"--tolerance {tolerance:g} makes no sense; it must be a number above 0 and below 1"
            )
        if tolerance is not None and tolerance < _ROUNDING:
            raise UsageError(
                f"--tolerance {tolerance:g} cannot be reached: float64 rounds at {_ROUNDING:.2g}",
                "leave it out",
            )
        if self.values_only and self.scaled:
            raise UsageError("--values-only and --scaled contradict each other: US.npy has vectors")
        if choices.kernel == "blas":
            raise UsageError(
                "--kernel blas makes no sense with svd: what is fast calls BLAS already", "--kernel fast"
            )
        if choices.kernel == "plain" and self.inner == "blocks":
            raise UsageError(
                "--kernel plain and --inner blocks contradict each other: plain is rotation by rotation",
                "--inner rotations",
            )
        turning = "--kernel plain" if choices.kernel == "plain" else "--inner rotations"
        if self.start == "eigen" and (choices.kernel == "plain" or self.inner == "rotations"):
            raise UsageError(
                f"--start eigen and {turning} contradict each other: rotations start from a QR", "--start qr"
            )

    def of_jacobi(self, choices: Choices) -> list[str]:
        """Flags that were given and that only `jacobi` knows."""
        given = {
            "--max-sweeps": self.max_sweeps,
            "--block-columns": self.block_columns,
            "--inner": self.inner,
            "--start": self.start,
            "--exchange": choices.exchange,
            "--kernel plain": "plain" if choices.kernel == "plain" else None,
            "--remainder last": "last" if choices.remainder == "last" else None,
        }
        return [flag for flag, value in given.items() if value is not None]

    def of_randomized(self) -> list[str]:
        """Flags that were given and that only `randomized` knows."""
        given = {"--power": self.power, "--oversample": self.oversample, "--seed": self.seed}
        return [flag for flag, value in given.items() if value is not None]

    def given(self) -> list[str]:
        """Names for the record of the choices of how that were made."""
        flags = ("block_columns", "inner", "start", "power", "oversample", "seed")
        return [flag.replace("_", "-") for flag in flags if getattr(self, flag) is not None]


def refuse_foreign_flags(algorithm: Algorithm, wanted: Wanted, choices: Choices) -> None:
    """Raises UsageError for flags that `algorithm` does not know, and for what it lacks."""
    name = algorithm.name
    # What is said of the exchange is said where that is chosen.
    jacobi = [flag for flag in wanted.of_jacobi(choices) if flag != "--exchange"]
    if name != "jacobi" and jacobi:
        raise UsageError(f"{jacobi[0]} makes no sense with {name}", "--algorithm jacobi")
    if name != "randomized" and wanted.of_randomized():
        raise UsageError(
            f"{wanted.of_randomized()[0]} makes no sense with {name}",
            "--algorithm randomized --components 20",
        )
    if name == "local" and wanted.tolerance is not None:
        raise UsageError(
            "--tolerance makes no sense with local, which works to rounding", "--algorithm jacobi"
        )
    if name != "randomized":
        return
    if wanted.components is None and wanted.energy is None:
        raise UsageError("randomized wants to know how many components", "--components 20, or --energy 0.99")
    if choices.repeat > 1 or choices.warmup > 0:
        raise UsageError(
            "--repeat and --warmup make no sense with randomized: nothing of it is in memory alone",
            "--algorithm jacobi",
        )


def _between(flag: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise UsageError(f"{flag} {value} makes no sense; it must be a whole number from {low} to {high}")
