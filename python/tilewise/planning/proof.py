"""The rule by which `auto` verifies a result: a stated, simple estimate says that it costs under 5 %."""

from __future__ import annotations

import msgspec

from tilewise.launch.constants import constants

WORTH = 0.05
_START = 0.15  # seconds until ranks run
_FLOPS = 50e9  # a core, each second
_NUMBERS = 1e9  # real numbers a second that a check goes over on one core, and a third of complex ones
_BUSY = 4  # cores that memory keeps busy, as a rule
_FILES = 2e9  # bytes a second from and to files


def fast_share(numbers: float, dtype: str, file_bytes: float, flops: float, cores: int) -> float:
    """The part of the whole time that the fast check takes, which goes over so many `numbers` in memory."""
    rate = _NUMBERS / 3 if dtype.startswith("complex") else _NUMBERS
    check = numbers / (rate * min(cores, _BUSY))
    whole = _START + flops / (_FLOPS * cores) + file_bytes / _FILES
    return check / (whole + check)


def choose(wanted: str, share: float, warnings: list[str]) -> str:
    """`off`, `fast` or `serial`; adds a warning when `auto` leaves the check away."""
    if wanted != "auto":
        return wanted
    if share < WORTH:
        return "fast"
    warnings.append(
        f"the result is not verified: that would take about {share:.0%} of the time; --verify fast forces it"
    )
    return "off"


class Patches(msgspec.Struct, frozen=True):
    """The worker's rule for a stencil's fast check, which sweeps cells again."""

    patch_side: int  # rows and columns of a patch that is computed again
    points_swept_again: int  # or fewer of them, times sweeps: then all are swept again
    points_per_patch_point: int  # of one in so many goes into patches, but two are always looked at

    @property
    def share(self) -> float:
        """Share of all work that goes into patches."""
        return 1 / self.points_per_patch_point


def patches() -> Patches:
    """That of the worker that jobs will be given to."""
    return constants("stencil", Patches)


_PLAIN, _SWEPT = 0.6e9, 10e9  # cells a second on a core, of the plain kernel and of the fast one


def patches_share(steps: int, radius: int, points: float, cores: int) -> float:
    """The part of the whole time that it takes to sweep patches again, with all cells that they depend on.

    `points`: numbers of the matrix, for each of the `steps`. Two patches are always looked at: at the last
    corner, where squares grow by `radius` with every sweep back from the last one, and where ranks meet, or
    in the middle, where they grow on both sides, by twice that.
    """
    rule = patches()
    if points <= rule.points_swept_again:
        return 0.0
    side = rule.patch_side
    always = 0.0
    for grows in (radius, 2 * radius):
        always += min(points, ((side + grows * steps) ** 3 - side**3) / (3 * grows))
    check = max(rule.share * points, always) / (_PLAIN * cores)
    return check / (_START + points / (_SWEPT * cores) + check)
