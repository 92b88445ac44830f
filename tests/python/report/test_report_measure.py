"""The tables of a measurement: the right figures in the right places, short, narrow, and safe to print."""

from __future__ import annotations

import csv
import io
import json
import sys

import numpy
import pytest
from measurements import EVIL, EXCHANGES, collectives, files, hostile, line, node, ping, whole, wrap
from shown import printed
from tilewise.lab.measurement.result import Line, Model, PairMatrix
from tilewise.lab.report import measure_files, measure_messages, measure_node
from tilewise.lab.report.measure import everything, measure_tables
from tilewise.lab.report.measure_node import model_table
from tilewise.lab.report.render import as_csv, as_json, as_markdown
from tilewise.lab.report.table import (
    Cell,
    Column,
    Table,
    interval_text,
    number_columns,
    percent,
    quantity,
    significant,
    size_text,
    text_columns,
    time_text,
)
from tilewise.lab.report.terminal import Screen


def samples(line: Line) -> numpy.ndarray:
    return numpy.concatenate([numpy.asarray(launch) for launch in line.launches])


def median(line: Line) -> float:
    return float(numpy.median(samples(line)))


def number(cell: Cell) -> float:
    return float(cell.text.rstrip("×"))


def column(table: Table, title: str, unit: str | None = None) -> list[Cell]:
    place = next(
        place for place, one in enumerate(table.columns) if one.title == title and unit in (None, one.unit)
    )
    return [row[place] for row in table.rows]


def close(shown: float, true: float, part: float = 6e-3) -> bool:
    return abs(shown - true) <= part * abs(true)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.278113, "0.278"), (419.739, "420"), (62125.9, "62126"), (9.999, "10.0"), (0.00012345, "0.000123"),
     (0, "0"), (-3.14159, "-3.14"), (1e-9, "1.00e-09"),
     (float("nan"), "–"), (None, "–"), (float("inf"), "–")],
)  # fmt: skip
def test_numbers_have_three_figures(value: float | None, text: str) -> None:
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(4.19e-7, "419 ns"), (4.4867e-6, "4.49 µs"), (0.9999e-6, "1.00 µs"), (0.0625, "62.5 ms"),
     (78.9, "78.9 s"),
     (0.0, "0 s"), (3e-12, "0.00300 ns"), (float("nan"), "–")],
)  # fmt: skip
def test_times_take_the_unit_that_suits(value: float, text: str) -> None:
    assert time_text(value) == text


def test_sizes_read_as_they_were_asked_for() -> None:
    asked = {1: "1 B", 4096: "4 KiB", 128000: "128 kB", 16_000_000: "16 MB", 4 << 20: "4 MiB", 1000: "1 kB"}
    assert {size: size_text(size) for size in asked} == asked


def test_intervals_and_shares() -> None:
    assert interval_text(6.44e-7, 1.033e-6) == "644–1033 ns"
    assert percent(0.623) == "62 %" and percent(0.0049) == "0.49 %"


def test_report_one_by_level() -> None:
    lines = ping("core") + ping("node") + ping("socket")
    (table,) = measure_messages.per_byte(wrap(lines))
    assert [one.title for one in table.columns] == [
        "payload",
        "core",
        "mean",
        "socket",
        "mean",
        "node",
        "mean",
    ]
    assert len(table.rows) == 23
    for row in table.rows:
        size = int(row[0].value or 0)
        for place, level in ((1, "core"), (3, "socket"), (5, "node")):
            line = next(one for one in lines if one.level == level and one.bytes == size)
            assert close(number(row[place]), median(line) * 1e9 / size)
            assert close(number(row[place + 1]), float(samples(line).mean()) * 1e9 / size)


def test_report_one_has_a_table_for_each_number_of_pairs() -> None:
    tables = measure_messages.per_byte(wrap(ping(pairs=1) + ping(pairs=3)))
    assert [table.title.rpartition(", ")[2] for table in tables] == ["1 pair", "3 pairs"]


def test_one_level_puts_exchanges_beside_each_other() -> None:
    lines = [one for name in EXCHANGES for one in ping(name=name, sizes=4)]
    (table,) = measure_messages.per_byte(wrap(lines))
    assert [one.title for one in table.columns] == [
        "payload",
        *(title for name in EXCHANGES for title in (name, "mean")),
    ]
    assert "put, get: one operation" in table.title


def test_latency_is_half_a_round_trip_and_a_put_is_whole() -> None:
    lines = ping() + ping(name="put")
    table = measure_messages.ends(wrap(lines))
    assert table is not None
    send, put = column(table, "latency")
    assert send.value == pytest.approx(median(lines[0]) / 2)
    assert put.value == pytest.approx(median(lines[23]))
    fast = column(table, "bandwidth")[0]
    assert close(number(fast), 4 * 2**20 / (median(lines[22]) / 2) / 1e9)
    low, high = numpy.percentile(samples(lines[0]), [30, 70]) / 2
    assert column(table, "95 %")[0].text == interval_text(float(low), float(high))
    assert column(table, "share")[0].text == percent(lines[22].share)


def test_a_stream_is_one_way() -> None:
    stream = [
        line(1e-6 + 1e-10 * size, kind="ping", level="core", name="nonblocking", pattern="stream",
             series="stream", pairs=1, bytes=size, amount=float(size)) for size in (1, 1024)
    ]  # fmt: skip
    table = measure_messages.ends(wrap(stream))
    assert table is not None and table.rows[0][1].text == "nonblocking, stream"
    assert column(table, "latency")[0].text == ""  # the gap between two messages is no latency
    assert column(table, "bandwidth")[0].value == pytest.approx(1024 / median(stream[1]))
    assert measure_messages.per_byte(wrap(stream)) == []


def test_every_collective_ratio_has_both_times_beside_it() -> None:
    lines = collectives()
    table = measure_messages.collectives(wrap(lines))
    assert table is not None and len(table.rows) == 15
    for place, (library, loop, ratio) in enumerate(
        zip(column(table, "library"), column(table, "loop"), column(table, "loop/library"), strict=True)
    ):
        true = median(lines[2 * place]), median(lines[2 * place + 1])
        assert (library.value, loop.value) == pytest.approx(true)
        assert close(number(ratio), true[1] / true[0])


def test_pairs_are_latency_or_bandwidth_by_size() -> None:
    ranks, seconds = ["a", "b"], [[0.0, 4e-7], [5e-7, 0.0]]
    matrices = [PairMatrix(bytes=size, ranks=ranks, seconds=seconds) for size in (8, 1 << 20)]
    small, large = measure_messages.matrices(wrap([], matrices=matrices))
    assert small.rows[0][2].text == "0.400" and small.columns[1].unit == "µs"
    assert close(number(large.rows[1][1]), 2**20 / 5e-7 / 1e9) and large.columns[1].unit == "GB/s"
    assert small.rows[0][1].text == "·"


def test_report_four() -> None:
    lines = files()
    (table,) = measure_files.rank_block(wrap(lines))
    assert [cell.text for cell in column(table, "block")] == ["128 kB", "1 MB", "16 MB"] * 3
    write, over, read = (column(table, name, "time") for name in ("first write", "rewrite", "read"))
    for place in range(8):
        series = lines[3 * place : 3 * place + 3]
        amount = series[0].ranks * 64 * series[0].bytes
        for cells, one in zip((write, over, read), series, strict=True):
            assert cells[place].value == pytest.approx(median(one))
            assert cells[place].text == time_text(median(one))
        for name, one in zip(("first write", "rewrite", "read"), series, strict=True):
            assert close(number(column(table, name, "GB/s")[place]), amount / median(one) / 1e9)
        ratio = median(series[0]) / median(series[2])
        assert close(number(column(table, "read/write")[place]), ratio)
    assert write[8].text == "not run" and "needs 4.1 GB" in " ".join(table.notes)


def test_strategies_stand_beside_each_other() -> None:
    lines = files("positioned", (2,), (1000000,)) + files("mapped", (2,), (1000000,))
    (table,) = measure_files.strategies(wrap(lines))
    assert [row[0].text for row in table.rows] == ["positioned", "mapped"]
    assert close(number(table.rows[1][2]), lines[3].amount / median(lines[3]) / 1e9)
    assert measure_files.rank_block(wrap(lines)) == []


def test_memory_names_the_cache_that_holds_what_is_touched() -> None:
    table = measure_node.memory(wrap(node()))
    assert table is not None
    held = dict(
        zip(
            [cell.text for cell in column(table, "array")],
            [cell.text for cell in column(table, "in")],
            strict=True,
        )
    )
    # One array of 16 KiB fits 32 KiB, as two and three do on two threads, each with a first-level cache.
    assert (held["4 KiB"], held["16 KiB"], held["64 MiB"]) == ("L1", "L1 to L2", "memory")
    copies = [one for one in node() if one.name == "copy" and one.bytes == 1 << 24]
    caches = [("L1", 32768.0), ("L2", 1048576.0), ("L3", 34603008.0)]
    assert [measure_node.level_of(one, caches) for one in copies] == ["L3", "L3"]  # which threads share
    small = [one for one in node() if one.name == "copy" and one.bytes == 1 << 14]
    assert [measure_node.level_of(one, caches) for one in [*small, copies[0]]] == ["L1", "L1", "L3"]
    bare = measure_node.memory(wrap(node(), environment={}))
    assert bare is not None and [one.title for one in bare.columns][:2] == ["array", "copy"]


def test_compute_is_a_rate() -> None:
    every = node()
    lines = [one for one in every if one.kind == "compute" and one.dtype == "float64" and one.threads == 2]
    table = measure_node.compute(wrap(every))
    assert table is not None
    place = [(one.title, one.unit) for one in table.columns].index(("float64", "2 threads"))
    for row, one in zip(table.rows, lines, strict=True):
        assert close(number(row[place]), 2 * one.size**3 / median(one) / 1e9)


def test_model_shows_each_piece() -> None:
    table = model_table(whole().model)
    assert table is not None and len(table.rows) == 3
    assert [cell.text for cell in table.rows[0][1:]] == ["0 B", "400 ns", "3.57", "2.1 %", "13 %"]
    assert model_table(Model()) is None


def test_everything_fits_too() -> None:
    text = printed(measure_tables(whole(("core", "node"), (1, 3)), verbose=True))
    assert max(map(len, text.splitlines())) <= 80
    assert "Every line" in text and "Cost model" in text and "Disturbances during" in text


def test_a_pipe_gets_each_row_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    from tilewise.lab.report.terminal import show

    show(measure_tables(whole()))
    rows = capsys.readouterr().out.splitlines()
    assert any(row.startswith("core   nonblocking") and row.endswith("%") for row in rows)
    assert all(row == row.rstrip() for row in rows)


def test_hostile_words_are_words() -> None:
    for verbose in (False, True):
        text = printed(measure_tables(hostile(), verbose=verbose))
        assert "\x1b" not in text and "\x00" not in text and "nan" not in text
    assert "<script>" in text


def test_nothing_at_all() -> None:
    assert "0 lines" in printed(measure_tables(wrap([], environment={}, clock={})))
    assert everything(wrap([])) == []


def test_rich_reads_no_markup() -> None:
    table = Table("t", "[red]title[/red]", [Column("[b]x")])
    table.add("[link=http://a]here[/link]")
    screen = Screen()
    screen.table(table)
    text = printed(screen)
    assert "[red]title[/red]" in text and "[link=http://a]here[/link]" in text


def test_a_terminal_shows_columns_below_each_other_where_they_have_no_room() -> None:
    table = Table("t", "T", [*text_columns("what"), *number_columns("one", "two", "three", unit="s")])
    table.add("length", quantity(1.25), quantity(300.0), quantity(0.5))
    table.add("a", Cell("1", 1.0, mark="*"), quantity(None), Cell("not run"))
    table.notes = ["* busy"]
    screen = Screen()
    screen.table(table)
    assert screen.text().splitlines() == [
        "T",
        "          one  two    three",
        "what        s    s        s",
        "─" * 27,
        "length  1.25   300    0.500",
        "a       1   *       not run",
        "  * busy",
    ]
    narrow = screen.text(width=20).splitlines()
    assert max(map(len, narrow)) <= 20
    assert narrow[2:5] == ["what        s    s", "─" * 18, "length  1.25   300"]
    assert [line.split()[0] for line in narrow[6:10]] == ["three", "what", "─" * 15, "length"]


def test_labelled_lines_hang_together() -> None:
    screen = Screen()
    screen.pairs([("path", "a b " * 9), ("a longer label", "x")])
    assert screen.text(40).splitlines()[:2] == [
        f"path            {'a b ' * 6}".rstrip(),
        f"{' ' * 16}a b a b a b",
    ]
    assert screen.text().splitlines() == [f"path            {'a b ' * 9}".rstrip(), "a longer label  x"]


def test_csv_has_base_units_and_no_formulas() -> None:
    table = Table("t", "t", [Column("what", numbers=False), Column("rate", "GB/s")])
    table.add("=1+1", Cell("7.19", 7.19e9))
    rows = list(csv.reader(io.StringIO(as_csv(table))))
    assert rows == [["what", "rate (B/s)"], ["'=1+1", "7190000000.0"]]


def test_json_has_base_units_too() -> None:
    table = Table("t", "T", [*text_columns("what"), Column("rate", "GB/s")], notes=["n"])
    table.add("copy", Cell("7.19", 7.19e9))
    columns = [{"title": "what", "unit": ""}, {"title": "rate", "unit": "B/s"}]
    told = {"title": "T", "columns": columns, "rows": [["copy", 7.19e9]], "notes": ["n"]}
    assert json.loads(as_json(table)) == told


def test_markdown_keeps_its_columns() -> None:
    table = Table("t", "a|b", [Column("x", numbers=False)])
    table.add(EVIL)
    lines = as_markdown(table).splitlines()
    assert (
        lines[0] == "**a\\|b**" and lines[4].replace("\\|", "").count("|") == 2 and "\\<script\\>" in lines[4]
    )


def test_tables_need_no_plots_and_no_templates() -> None:
    """Printing must not wait for matplotlib or jinja2 to load."""
    import subprocess

    heavy = "{'matplotlib', 'scipy', 'jinja2'}"
    code = f"import sys, tilewise.lab.report.measure; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_blocks_are_counted_where_they_differ() -> None:
    lines = files(blocks=(128000,)) + files(blocks=(1000000,))
    for one in lines[9:]:
        one.blocks = 16
    (table,) = measure_files.rank_block(wrap(lines))
    assert [cell.text for cell in column(table, "block")][:2] == ["64 × 128 kB", "16 × 1 MB"]
    assert "blocks" not in table.title
