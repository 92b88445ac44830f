"""Words about a decomposition: what was found, how, and how exact it is."""

from __future__ import annotations

import math
import os
from typing import Any, ClassVar

from tilewise.base.units import bytes_text, plural
from tilewise.launch.record import Record, RecordVariant
from tilewise.operations.show import Lines, Show
from tilewise.operations.svd.options import BY_ROTATIONS
from tilewise.planning.plan import Plan

_LOOSE = 1e-12  # a tolerance of cosines above which a proof may find vectors that are not orthogonal


class ShowSvd(Show):
    """Words for people."""

    methods: ClassVar[dict[str, str]] = {
        "probes": "random vectors times A, compared with its factors",
        "serial": "gesdd on one rank",
    }

    def method(self, record: Record) -> str:
        alone = len(record.outputs) == 1  # no vectors
        probed = record.verification is not None and record.verification.method == "probes"
        return "the sums of squares of A and s" if alone and probed else super().method(record)

    def variant(self, variant: RecordVariant) -> list[str]:
        blocks = [f"{variant.blocks} blocks"] if variant.algorithm == "jacobi" else []
        return [variant.algorithm, *blocks]

    def result(self, record: Record) -> Lines:
        result = record.result
        lines = [("values", values(result)), ("done by", done_by(record))]
        if record.variant.algorithm in BY_ROTATIONS:
            lines.append(("sweeps", sweeps(record)))
            if result.get("fallback"):
                lines.append(("instead", str(result["fallback"])))
        return [*lines, ("exact to", exact_to(record))]

    def where(self, record: Record) -> str:
        folder = os.path.dirname(record.outputs[0].path)
        return f"{folder}/ ({', '.join(os.path.basename(output.path) for output in record.outputs)})"

    def not_converged(self, record: Record, plan: Plan) -> tuple[str, str]:
        """Why a decomposition that ran out of sweeps or readings was discarded."""
        result, proof = record.result, record.verification
        if record.variant.algorithm == "randomized":
            reads, off = int(result.get("reads") or 0), float(result.get("sigma_error") or 0.0)
            looser = f"--tolerance {2 * off:.0e}, or " if 0 < off < 0.4 else ""
            return (
                f"after {plural(reads, 'reading')} singular values may be off by {off:.1e} of "
                f"themselves, allowed {result.get('tolerance'):.1e}; the result was discarded",
                f"{looser}--algorithm jacobi, or --no-verify to keep the result",
            )
        done = int(result.get("sweeps") or 0)
        numbers = ""
        if proof is not None and proof.error is not None and proof.tolerance is not None:
            numbers = f": off is {proof.error:.2e}, allowed {proof.tolerance:.2e}"
        return (
            f"the columns are not orthogonal after {plural(done, 'sweep')}{numbers}; "
            "the result was discarded",
            f"--max-sweeps {max(30, 2 * done)}, or --no-verify to keep the result",
        )

    def tolerated(self, plan: Plan) -> str:
        tolerance = plan.job.svd.tolerance if plan.job.svd is not None else 0.0
        if plan.job.svd is not None and plan.job.svd.off_squares:
            return f"no --off-squares: {plan.job.svd.off_squares:g} leaves columns that are not orthogonal"
        if tolerance <= _LOOSE or plan.job.variant.algorithm == "randomized":
            return ""
        return f"no --tolerance: {tolerance:g} leaves cosines of that size between columns"

    def planned(self, plan: Plan) -> Lines:
        variant, svd = plan.job.variant, plan.job.svd
        assert svd is not None
        rows = [("algorithm", variant.algorithm)]
        if variant.algorithm in BY_ROTATIONS:
            inner = f"{variant.inner}, start {variant.start}, {svd.max_sweeps} sweeps at most"
            rows.append(("ring", f"{variant.blocks} blocks of columns; pairs by {inner}"))
            if variant.algorithm == "jacobi":
                rows.append(("exchange", variant.exchange))
        elif variant.algorithm == "randomized":
            wide = f"{'at most ' if svd.energy else ''}{svd.components} + {svd.oversample}"
            how = plural(svd.power, "iteration") if svd.power >= 0 else "until each component is exact"
            panels = f"{bytes_text(svd.panel_bytes)} of A at a time"
            sketch = f"blocks of {wide} vectors, a space of at most {svd.basis}, {how}, seed {svd.seed}"
            rows.append(("sketch", f"{sketch}; {panels}"))
        elif variant.algorithm == "tall":
            panels = f"{bytes_text(svd.panel_bytes)} of A at a time"
            again = "one reading" if svd.values_only else "two readings, the second for the long factor"
            rows.append(("panels", f"{panels}, {again}"))
        return [*rows, ("io", f"{variant.read} in"), ("verify", plan.job.verify)]


def values(result: dict[str, Any]) -> str:
    """`20, from 31.4 down to 0.0021; rank 20`, or more where nobody has looked for more of them."""
    largest, smallest = result.get("sigma_max"), result.get("sigma_min")
    text = str(result.get("components", ""))
    if largest is not None and smallest is not None:
        text += f", from {largest:.6g} down to {smallest:.6g}"
    sampled = result.get("residuals") and result.get("error_estimate") is not None
    more = " or more" if sampled and result.get("rank") == result.get("components") else ""
    return text + (f"; rank {result['rank']}{more}" if result.get("rank") is not None else "")


def done_by(record: Record) -> str:
    """`jacobi: TSQR, eigenvectors of AᵀA, then sweeps, block by block`."""
    result, algorithm = record.result, record.variant.algorithm
    if algorithm == "local":
        return "local: LAPACK's gesdd in float64"
    if algorithm == "two_stage":
        return f"two_stage: {result.get('start') or ''}"
    if algorithm == "tall":
        return f"tall: {plural(_readings(record), 'reading')} of the file, {result.get('start') or ''}"
    if algorithm == "randomized":
        reads = plural(_readings(record), "reading")
        own = " and one to verify" if record.verification is not None else ""
        return f"randomized: {reads} of the file{own}"
    start = result.get("start") or ""
    how = "rotation by rotation" if record.variant.inner == "rotations" else "block by block"
    return f"{algorithm}: {start + ', then ' if start else ''}sweeps, {how}"


def _readings(record: Record) -> int:
    """Readings of the input that the decomposition took, without the proof's."""
    return int(record.result.get("reads") or 0) - (record.verification is not None)


def sweeps(record: Record) -> str:
    """`5, off 3.1e-16 at the end; 16 blocks of 64 columns; 60 messages and 15 MiB a sweep`."""
    result = record.result
    off = result.get("off_norm") or []
    parts = [f"{result.get('sweeps', 0)}" + (f", off {off[-1]:.1e} at the end" if off else "")]
    if not result.get("converged", True):
        parts[0] += ", NOT converged"
    least, most = (result.get("block_columns") or [0, 0])[:2]
    columns = plural(most, "column") if least == most else f"{least} to {most} columns"
    if record.variant.algorithm == "jacobi":
        parts.append(f"{record.variant.blocks} blocks of {columns}")
    if record.variant.ranks > 1:
        messages = plural(int(result.get("sweep_messages") or 0), "message")
        parts.append(f"{messages} and {bytes_text(int(result.get('sweep_bytes') or 0))} a sweep")
    return "; ".join(parts)


def exact_to(record: Record) -> str:
    """`residual 2.1e-15, U orthogonal to 4.0e-15, V to 3.9e-15`, or that nobody looked."""
    result = record.result
    if record.verification is None:
        return "not verified: neither residual nor orthogonality was computed"
    parts = []
    if result.get("residual") is not None:
        parts.append(f"residual {result['residual']:.1e}")
    for name in ("u", "v"):
        if result.get(f"orthogonality_{name}") is not None:
            parts.append(f"{name.upper()} orthogonal to {result[f'orthogonality_{name}']:.1e}")
    if result.get("sigma_error") is not None:
        parts.append(f"each value has a relative error of at most {result['sigma_error']:.1e}")
    if result.get("error_estimate") is not None:
        parts.append(f"these components leave {left_text(result)} of A's norm")
    return ", ".join(parts) or "singular values only: no vectors to check"


def left_text(result: dict[str, Any]) -> str:
    """`0.28471`, `about 3e-09` or `at most 1e-07`: as many digits as hold."""
    left, rounding = result["error_estimate"], result.get("error_rounding") or 0.0
    if rounding >= left:
        return f"at most {left:.1g}" if left > 0 else "nothing"
    digits = 15 if rounding == 0 else int(-math.log10(2 * rounding / left))
    return f"{left:.{min(digits, 6)}g}" if digits > 0 else f"about {left:.1g}"
