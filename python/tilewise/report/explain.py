"""The closing table: where the time went, at what rates, with how much memory, and what was verified."""

from __future__ import annotations

import os

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewise.errors import clean
from tilewise.launch.record import Record, Spread
from tilewise.plan.names import ALGORITHMS
from tilewise.report.svd import svd_lines
from tilewise.units import bytes_text, plural, rate_text, seconds_text, shape_text, share_text

_BAR = 10  # characters of a whole bar: with it the table fits 80 columns


def explain(record: Record) -> RenderableType:
    """The closing table of `record`."""
    return Group(_phases(record), *closing_lines(record))


def variant_line(record: Record) -> str:
    """`summa · shared · positioned · 1×2 grid · 2 ranks × 1 thread (plan)`."""
    variant = record.variant
    read, _, write = variant.io.partition(":")
    generating = record.command == "generate"
    words = [variant.algorithm] if record.command in ALGORITHMS else []
    if record.command == "stencil":
        words = [variant.decomposition or ""] if variant.ranks > 1 else []
        words.append(f"depth {variant.depth}")
        words += [variant.halo or ""] if variant.halo not in (None, "packed") else []
    if record.command == "svd" and variant.algorithm == "jacobi":
        words += [f"{variant.blocks} blocks"]
    if variant.exchange != "none":
        words.append(variant.exchange)
    words.append(write if generating or read == write else f"{read} in, {write} out")
    if variant.ranks > 1:
        layers = f" × {variant.copies} copies" if variant.copies > 1 else ""
        words.append(f"{shape_text(*variant.grid)} grid{layers}")
    if variant.root_write is not None:
        words.append(f"rank 0 writes {variant.root_write}")
    if variant.kernel != "fast":
        words.append(f"{variant.kernel} kernel")
    words.append(f"{plural(variant.ranks, 'rank')} × {plural(variant.threads, 'thread')}")
    return f"{' · '.join(words)} ({record.chosen_by})"


def _phases(record: Record) -> Table:
    seconds = record.seconds
    many = record.variant.ranks > 1
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("phase")
    if many:
        table.add_column("min s", justify="right")
        table.add_column("mean s", justify="right")
    table.add_column("max s" if many else "seconds", justify="right")
    table.add_column("share", justify="right")
    table.add_column("", min_width=_BAR)
    table.add_column("")
    rows: list[tuple[str, Spread, str]] = [
        ("input", seconds.input, _rate(record.rates.read_bytes_per_second, "B/s")),
        ("compute", seconds.compute, _arithmetic(record)),
        ("exchange", seconds.exchange, _exchanged(record)),
        ("output", seconds.output, _written(record)),
        ("verify", seconds.verify, ""),
    ]
    whole = seconds.total.mean
    for name, spread, note in rows:
        if spread.max == 0 and not note:
            continue
        share = min(1.0, spread.mean / whole) if whole > 0 else 0.0
        table.add_row(name, *_numbers(spread, many), f"{share:.0%}", Text(_bar(share), "cyan"), note)
    outside = max(0.0, seconds.wall - seconds.total.max)
    note = f"+ {seconds_text(outside)} s to start and end"
    table.add_row(*[Text(cell, "bold") for cell in ("total", *_numbers(seconds.total, many))], "", "", note)
    return table


def closing_lines(record: Record) -> list[Text]:
    """What stands under the phases: memory, check, how, result; the first ten characters are the label."""
    memory = record.peak_rss_bytes
    where = "on the largest rank, " if record.variant.ranks > 1 else ""
    node = f"{bytes_text(memory.node_sum)} on the node" if record.variant.ranks > 1 else ""
    lines = [_line("memory", f"{bytes_text(memory.max_rank)} {where}{node}".strip())]
    if record.verification is not None:
        lines.append(_verdict(record))
    lines.append(_line("how", variant_line(record)))
    if record.command == "stencil":
        lines.append(_line("sweeps", sweeps(record)))
    if record.command == "svd":
        lines += [_line(label, text) for label, text in svd_lines(record)]
        names = ", ".join(os.path.basename(output.path) for output in record.outputs)
        lines.append(_line("result", f"{os.path.dirname(record.outputs[0].path)}/ ({names})"))
        return lines
    for output in record.outputs[:1]:
        colours = f" × {output.planes} planes" if output.planes > 1 else ""
        snapshots = plural(len(record.outputs) - 1, "snapshot")
        beside = f" and {snapshots} beside it" if len(record.outputs) > 1 else ""
        lines.append(
            _line("result", f"{output.path} ({shape_text(*output.shape)}{colours} {output.dtype}){beside}")
        )
    return lines


def sweeps(record: Record) -> str:
    """`128, the last one changed numbers by 9.5e-05 at most`."""
    result = record.result
    text = str(result.get("sweeps", ""))
    if result.get("last_change") is not None:
        text += f", the last one changed numbers by {result['last_change']:.2g} at most"
    if result.get("non_finite"):
        text += f"; {plural(result['non_finite'], 'number')} of the result not finite"
    if result.get("held"):
        text += f"; {plural(result['held'], 'number')} held to the type's range"
    return text


def _verdict(record: Record) -> Text:
    """`verified by Freivalds' check: error 8e-16 ≤ 3e-14`, or how much of the result was."""
    proof = record.verification
    assert proof is not None
    method = {
        "fast": "Freivalds' check",
        "freivalds": "Freivalds' check",
        "serial": "a plain product on one rank",
        "read_back": "checksums of the file, read back",
    }
    if record.command == "transpose":
        method = {
            "fast": "fingerprints of both files",
            "serial": "comparing both files, number by number, on one rank",
        }
    elif record.command == "stencil":
        method = {"fast": "patches, swept again from the input", "serial": "plain sweeps on one rank"}
    elif record.command == "svd":
        method = {
            "probes": "random vectors, sent through A and through its factors",
            "serial": "gesdd on one rank",
        }
        if len(record.outputs) == 1:
            method["probes"] = "the sums of squares of A and of s"
    how = method.get(proof.method, proof.method)
    bound = ""
    if proof.error is not None and proof.tolerance is not None:
        sign = "≤" if proof.passed else ">"
        bound = f": error {proof.error:.1e} {sign} {proof.tolerance:.1e}"
    if not proof.passed:
        return _line("check", f"WRONG, says {how}{bound}", "bold red")
    if proof.share <= 0:
        return _line("check", f"not verified: {how} could judge nothing", "yellow")
    if proof.share < 1:
        how = f"partly verified ({share_text(proof.share)} of the result) by {how}"
        return _line("check", how + bound, "yellow")
    return _line("check", f"verified by {how}{bound}", "green")


def _line(label: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"{label:<10}", "dim"), (clean(text), style))


def _numbers(spread: Spread, many: bool) -> list[str]:
    values = (spread.min, spread.mean, spread.max) if many else (spread.max,)
    return [seconds_text(value) for value in values]


def _bar(share: float) -> str:
    return "█" * round(share * _BAR)


def _rate(value: float | None, unit: str) -> str:
    return rate_text(value, unit) if value else ""


def _written(record: Record) -> str:
    rate, written = record.rates.written_bytes_per_second, record.bytes.written
    return _rate(rate, "B/s") if rate or not written else f"{bytes_text(written)} while computing"


def _arithmetic(record: Record) -> str:
    rate = record.rates.flops_per_second
    points = record.result.get("points_per_second") if record.command == "stencil" else None
    if points:
        over = record.result.get("fraction_of_copy")
        beside = f", {over:.2f} × what copying allows" if over else ""
        return rate_text(points, "point/s") + beside
    if not rate:
        return ""
    unit = "OP/s" if record.outputs and "int" in record.outputs[0].dtype else "FLOP/s"
    peak = f", {record.fraction_of_peak:.0%} of peak" if record.fraction_of_peak else ""
    return rate_text(rate, unit) + peak


def _exchanged(record: Record) -> str:
    moved = record.bytes.exchanged
    copied = record.bytes.copied_in_node
    parts = []
    if moved:
        parts.append(f"{bytes_text(moved)} in {plural(record.messages, 'message')}")
    if copied:
        parts.append(f"{bytes_text(copied)} copied in the node")
    return ", ".join(parts)
