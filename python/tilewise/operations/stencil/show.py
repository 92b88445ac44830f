"""Words about stencil sweeps."""

from __future__ import annotations

from typing import ClassVar

from tilewise.base.units import plural, rate_text, shape_text
from tilewise.files.dtypes import ITEMSIZE
from tilewise.launch.record import Record, RecordVariant
from tilewise.operations.show import Lines, MemoryTraffic, Show, number, numbers_of, reads_and_writes
from tilewise.operations.stencil.options import swept_type
from tilewise.planning.plan import Plan


class ShowStencil(Show):
    """Words for people."""

    methods: ClassVar[dict[str, str]] = {
        "fast": "patches, recomputed from the input",
        "serial": "plain sweeps on one rank",
    }

    def variant(self, variant: RecordVariant) -> list[str]:
        words = [variant.decomposition or ""] if variant.ranks > 1 else []
        words.append(f"depth {variant.depth}")
        words += [variant.halo] if variant.halo and variant.halo != "packed" else []
        if variant.tile is not None:
            words.append(f"{shape_text(*variant.tile)} at a time")
        return [*words, *(["reordered by MPI"] if variant.reorder else [])]

    def result(self, record: Record) -> Lines:
        """`128, the last one changed numbers by 9.5e-05 at most`."""
        result = record.result
        text = str(result.get("sweeps", ""))
        if result.get("passes"):
            text += f", in {plural(result['passes'], 'pass')} from file to file"
        if result.get("last_change") is not None:
            text += f", the last one changed numbers by {result['last_change']:.2g} at most"
        if result.get("non_finite"):
            text += f"; {plural(result['non_finite'], 'number')} of the result not finite"
        if result.get("held"):
            text += f"; {plural(result['held'], 'number')} clamped to the type's range"
        moved = result.get("moved_ranks")
        reordered = (
            []
            if moved is None
            else [("reordering", f"MPI moved {moved} of {plural(record.variant.ranks, 'rank')}")]
        )
        return [("sweeps", text), *reordered]

    def rate(self, record: Record) -> str:
        points, over = record.result.get("points_per_second"), record.result.get("fraction_of_copy")
        if not points:
            return ""
        return rate_text(points, "point/s") + (f", {over:.2f} × the memory-copy limit" if over else "")

    def traffic(self, record: Record) -> MemoryTraffic:
        """Bytes that its passes moved, by the model of the sweeps; several sweeps of a pass move as much as
        one.
        """
        if not record.outputs:
            return MemoryTraffic(0.0)
        output, result = record.outputs[0], record.result
        field = numbers_of(output) * ITEMSIZE[swept_type(output.dtype)]
        copy = number(result.get("copy_bytes_per_second")) or None
        return MemoryTraffic(number(result.get("model_bytes")), 2.0 * field if copy else 0.0, copy)

    def not_converged(self, record: Record, plan: Plan) -> tuple[str, str]:
        """Why sweeps that were to come to rest were given up."""
        assert plan.job.stencil is not None
        weights = plan.job.stencil.weights
        result = record.result
        sweep, lost = int(result.get("sweeps") or 0), int(result.get("non_finite") or 0)
        given, growth = int(result.get("input_non_finite") or 0), sum(map(abs, weights))
        if given:
            why = f"{plural(given, 'number')} of {record.inputs[0].path} were so in the input, and spread"
            advice = "replace them in the input with finite numbers"
        elif plan.job.stencil.boundary.endswith(("nan", "inf")):
            why = f"so is what lies outside, by --boundary {plan.job.stencil.boundary}, and it spread"
            advice = "take a finite number for what lies outside"
        elif growth > 1:
            why = f"the weights' magnitudes add up to {growth:.6g}, and over 1 sweeps may grow"
            advice = f"divide the weights by {growth:.6g}"
        else:
            why, advice = (
                "the input is close to the largest numbers of its type",
                "scale the input down",
            )
        return (
            f"the sweeps do not converge: after sweep {sweep}, {plural(lost, 'number')} of the result "
            f"were NaN or infinite ({why}); the result was discarded",
            f"{advice}; without --until-change all --steps run, and the result is kept",
        )

    def planned(self, plan: Plan) -> Lines:
        variant, stencil = plan.job.variant, plan.job.stencil
        assert stencil is not None
        side = 2 * stencil.radius + 1
        taps = sum(weight != 0 for weight in stencil.weights)
        what = f"{stencil.steps} with {taps} weights of {shape_text(side, side)}, boundary {stencil.boundary}"
        if stencil.until_change:
            what += f", until numbers change by less than {stencil.until_change:g}"
        rows = [("sweeps", f"{what}; computed in {plan.job.dtype}")]
        if plan.snapshots:
            rows.append(("snapshots", f"{len(plan.snapshots)}, every {stencil.snapshot_every} sweeps"))
        cut = f"{variant.decomposition} on a {shape_text(*variant.grid)} grid, depth {variant.depth}"
        halos = f", halos {variant.halo}" if variant.exchange != "none" else ""
        cut += ", whose places MPI gives to the ranks" if variant.reorder else ""
        if variant.tile != (0, 0):
            cut = f"{shape_text(*variant.tile)} at a time, {plural(variant.depth, 'sweep')} a pass"
        return [
            *rows,
            ("cut", cut),
            ("exchange", variant.exchange + halos),
            ("io", reads_and_writes(variant.read, variant.write)),
            ("verify", plan.job.verify),
        ]
