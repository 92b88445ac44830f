"""What messages and files cost here by their size: fitted to measurements, for the tables and figures of one.

Plans go by a few rates instead, `tilewise.machine.terms`, which jobs correct.
"""

from __future__ import annotations

import bisect
import math

import msgspec


class CurvePiece(msgspec.Struct, frozen=True):
    """Seconds = `alpha` + `beta` × bytes, from `begin` to `end` bytes, both included (None: and so on)."""

    begin: float
    alpha: float
    beta: float
    end: float | None = None

    def seconds(self, size: float) -> float:
        """Of one operation on `size` bytes, whether or not that lies in it."""
        return self.alpha + self.beta * size


class FittedCurve(msgspec.Struct, frozen=True, kw_only=True):
    """Up to three pieces in order of `begin`, and how far they miss what was left out of the fit.

    `key` says what of: "ping/core/blocking", a message one way; "collective/core/bcast/library/2ranks"; or
    "file/positioned/read/2ranks", one call on one block by each rank at once. Errors are relative; None where
    nothing was left out.
    """

    key: str
    pieces: list[CurvePiece]
    median_error: float | None = None
    largest_error: float | None = None

    def seconds(self, size: float) -> float:
        """Of one operation on `size` bytes.

        Between two pieces, where the way changes at a size that was not measured, it runs evenly from one
        to the other, on logarithmic scales.
        """
        place = max(bisect.bisect_right([piece.begin for piece in self.pieces], size) - 1, 0)
        piece = self.pieces[place]
        if piece.end is None or size <= piece.end or place + 1 == len(self.pieces):
            return piece.seconds(size)
        after = self.pieces[place + 1]
        low, high = piece.seconds(piece.end), after.seconds(after.begin)
        if min(low, high) <= 0 or piece.end <= 0:
            return piece.seconds(size)
        part = math.log(size / piece.end) / math.log(after.begin / piece.end)
        return float(low * (high / low) ** part)


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """All that was fitted; None stands for what was not measured.

    `injection`: bytes a second that all pairs between two nodes get at most, together. `copy_rate`: bytes a
    second, read and written, of a copy on all cores. `labels` has what disturbed the measurement of a cost,
    by its key, or of one of these two, by its name; nothing for what was measured on a quiet machine.
    """

    costs: list[FittedCurve] = []
    injection: float | None = None
    copy_rate: float | None = None
    labels: dict[str, list[str]] = {}

    def cost(self, key: str) -> FittedCurve | None:
        """Of what `key` names; None where that was not measured."""
        return next((cost for cost in self.costs if cost.key == key), None)
