"""The closing table: where the time went, at what rates, with how much memory, and what was verified."""

from __future__ import annotations

from tilewise.base.units import bytes_text, plural, rate_text, seconds_text, shape_text, share_text
from tilewise.lab.report.table import Cell, Table, number_columns, text_columns
from tilewise.lab.report.terminal import Screen
from tilewise.launch.record import RankSeconds, Record
from tilewise.operations import show_of

_BAR = 10  # characters of a whole bar: with it the table fits 80 columns
_LABEL = len("exchange")  # so that what stands under the phases begins where their numbers may


def explain(record: Record) -> Screen:
    """The closing table of `record`."""
    screen = Screen()
    screen.table(_phases(record))
    screen.pairs(closing_lines(record), _LABEL)
    return screen


def variant_line(record: Record) -> str:
    """`summa · shared · positioned · 1×2 grid · 2 ranks × 1 thread (plan)`."""
    variant, say = record.variant, show_of(record.command, record.variant.each)
    words = say.variant(variant)
    if variant.exchange != "none":
        words.append(variant.exchange)
    words.append(say.io(variant))
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
    """Seconds of each phase that took some, what was predicted, a share of the whole, and how fast it was."""
    seconds = record.seconds
    many = record.variant.ranks > 1
    table = Table("", "", text_columns("phase"))
    table.columns += number_columns(*(("min s", "mean s", "max s") if many else ("seconds",)))
    foreseen = record.predicted_seconds or {}
    table.columns += number_columns(*(["predicted"] if foreseen else []))
    table.columns += [*number_columns("share"), *text_columns("", "")]
    rows: list[tuple[str, RankSeconds, str]] = [
        ("input", seconds.input, _rate(record.rates.read_bytes_per_second, "B/s")),
        ("compute", seconds.compute, _arithmetic(record)),
        ("exchange", seconds.exchange, _exchanged(record)),
        ("output", seconds.output, _written(record)),
        ("verify", seconds.verify, ""),
    ]
    whole = seconds.total.mean
    for name, spread, note in rows:
        if spread.max > 0 or note:
            share = min(1.0, spread.mean / whole) if whole > 0 else 0.0
            bar = Cell("█" * round(share * _BAR), tone="bar")
            before = _foreseen(foreseen, name)
            table.add(f"{name:<{_LABEL}}", *_numbers(spread, many), *before, f"{share:.0%}", bar, note)
    outside = max(0.0, seconds.wall - seconds.total.max)
    sums = ("total", *_numbers(seconds.total, many), *_foreseen(foreseen, "total"))
    total = [Cell(text, tone="strong") for text in sums]
    table.add(*total, "", "", f"+ {seconds_text(outside)} s to start and end")
    return table


def _foreseen(foreseen: dict[str, float], phase: str) -> list[str]:
    """Prediction for a phase; nothing where there is none."""
    return [seconds_text(foreseen.get(phase, 0.0))] if foreseen else []


def closing_lines(record: Record) -> list[tuple[str, ...]]:
    """Lines under the phases: memory, check, how, result; each a label, words, and perhaps a tone."""
    memory = record.peak_rss_bytes
    where = "on the largest rank, " if record.variant.ranks > 1 else ""
    node = f"{bytes_text(memory.node_sum)} on the node" if record.variant.ranks > 1 else ""
    lines: list[tuple[str, ...]] = [("memory", f"{bytes_text(memory.max_rank)} {where}{node}".strip())]
    if record.verification is not None:
        lines.append(_verdict(record))
    lines.append(("how", variant_line(record)))
    say = show_of(record.command, record.variant.each)
    lines += say.result(record)
    if where := say.where(record):
        lines.append(("result", where))
    return lines


def _verdict(record: Record) -> tuple[str, str, str]:
    """`verified by Freivalds' check: error 8e-16 ≤ 3e-14`, or how much of the result was."""
    proof = record.verification
    assert proof is not None
    how = show_of(record.command, record.variant.each).method(record)
    bound = ""
    if proof.error is not None and proof.tolerance is not None:
        sign = "≤" if proof.passed else ">"
        bound = f": error {proof.error:.1e} {sign} {proof.tolerance:.1e}"
    if not proof.passed:
        return "check", f"WRONG according to {how}{bound}", "wrong"
    if proof.share <= 0:
        return "check", f"not verified: {how} found nothing it could check", "warning"
    if proof.share < 1:
        part = f"partly verified ({share_text(proof.share)} of the result) by {how}{bound}"
        return "check", part, "warning"
    if proof.unchecked:
        return "check", f"output verified by {how}{bound}; {proof.unchecked}", "warning"
    return "check", f"verified by {how}{bound}", "good"


def _numbers(spread: RankSeconds, many: bool) -> list[str]:
    values = (spread.min, spread.mean, spread.max) if many else (spread.max,)
    return [seconds_text(value) for value in values]


def _rate(value: float | None, unit: str) -> str:
    return rate_text(value, unit) if value else ""


def _written(record: Record) -> str:
    rate, written = record.rates.written_bytes_per_second, record.bytes.written
    return _rate(rate, "B/s") if rate or not written else f"{bytes_text(written)} while computing"


def _arithmetic(record: Record) -> str:
    if own := show_of(record.command, record.variant.each).rate(record):
        return own
    rate = record.rates.flops_per_second
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
        parts.append(f"{bytes_text(copied)} copied within the node")
    return ", ".join(parts)
