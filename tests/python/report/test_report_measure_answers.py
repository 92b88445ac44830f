"""What `tilewise measure` prints first: the answers, marked with what disturbed them, each footnote once."""

from __future__ import annotations

import msgspec
import pytest
from measurements import files, node, ping, whole, wrap
from shown import printed
from tilewise.lab.measurement.result import Level
from tilewise.lab.report import measure_files, measure_messages, measure_node
from tilewise.lab.report.measure import measure_tables


def test_no_rate_of_reading_stands_for_one_of_writing() -> None:
    """Writes are the same whatever a reading finds, and are measured with a warm cache alone."""
    cold = [one for one in files("mapped", (2,), (128000, 1000000), cache="cold") if one.series == "read"]
    lines = files("mapped", (2,), (128000, 1000000)) + cold
    skipped = files("root", (2,), (16000000,), cache="direct")[2]
    skipped.summary, skipped.skipped = None, "no O_DIRECT"
    fastest = measure_files.fastest(wrap([*lines, skipped]))
    assert fastest is not None and [row[0].text for row in fastest.rows] == ["warm", "cold", "bypassed"]
    assert [cell.text for cell in fastest.rows[1][2:4]] == ["", ""] and fastest.rows[1][4].value
    assert [fastest.rows[2][place].text for place in (2, 4)] == ["not run", "not run"]
    assert any(note.endswith("no O_DIRECT") for note in fastest.notes)


def test_the_fastest_way_to_write_has_the_rate_after_a_pause_beside_it() -> None:
    lines = files(ranks=(1, 2))
    without = measure_files.fastest(wrap(lines))
    assert without is not None and "after a pause" not in [column.title for column in without.columns]
    new = next(one for one in lines if one.series == "write_new" and one.ranks == 2)
    rested = msgspec.structs.replace(new, series="write_rested")
    fastest = measure_files.fastest(wrap([*lines, rested]))
    assert fastest is not None
    place = [column.title for column in fastest.columns].index("after a pause")
    assert [row[place].value for row in fastest.rows] == [None, rested.rate()]
    assert fastest.rows[1][place + 1].value == max(
        one.rate() or 0 for one in lines if (one.series, one.ranks) == ("read", 2)
    )
    assert any("gives them back" in note for note in fastest.notes)


def test_files_name_the_cache_that_they_met_and_whether_writes_were_flushed() -> None:
    """Whatever cache was asked for: a strategy may go past it, and a file may have left it."""
    lines = files("root", (2,), (1000000,)) + files("uncached", (2,), (1000000,))
    lines += files("positioned", (2,), (1000000,)) + files("mapped", (2,), (1000000,), cache="direct")
    for one in lines[:6]:
        one.notes = [f"{one.name} moves all blocks of a rank in one call, which opens the file too"]
    for one in lines[3:6]:
        one.notes.append("uncached bypasses the page cache: its reads are neither warm nor cold")
    left = "before a read only 12 % of a file was in the page cache: these reads are not warm"
    lines[8].notes = [left]
    table = measure_files.strategies(wrap(lines))[0]
    assert [row[1].text for row in table.rows] == ["warm", "bypassed", "not warm"]
    signs = dict(note.split(" ", 1)[::-1] for note in table.notes if note.split(" ")[0] in "*†‡")
    assert list(signs) == [
        "moves all blocks of a rank in one call, which opens the file too",
        "its reads are neither warm nor cold",
        "these reads are not warm",
    ]
    assert [row[0].mark for row in table.rows] == ["*", "*†", "‡"]
    assert "warm" not in table.title and table.title.endswith("writes not flushed")
    flushed = measure_files.rank_block(wrap(files("uncached", sync=True)))
    assert "cache bypassed, writes flushed" in flushed[0].title


def test_one_screen_has_the_answers() -> None:
    text = printed(measure_tables(whole()))
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= 50
    for words in ("Messages, one way", "Files: the fastest", "Memory", "Arithmetic", "not here: socket"):
        assert words in text
    for note in ("disk has 2.0 GB free", "busy", "every table: -v; a page with figures: --html FILE"):
        assert note in text


@pytest.mark.parametrize("kind", ["ping", "file", "memory", "compute"])
def test_one_kind_is_answered_in_fifteen_lines(kind: str) -> None:
    """Latency and bandwidth by level; caches by ranks; levels and types by threads; nothing besides."""
    few = whole(("core", "socket", "node"), (1, 3))
    few.kinds, few.warnings = [kind], []
    few.lines = [one for one in few.lines if one.kind in (kind, "memory", "collective")]
    text = printed(measure_tables(few))
    assert len(text.splitlines()) <= 18 and "Collectives" not in text
    assert ("Memory" in text) == (kind == "memory")  # others are compared with it
    told = printed(measure_tables(few, verbose=True))
    assert "Every line" in told and len(told.splitlines()) > len(few.lines)


def test_answers_are_the_best_of_their_rows() -> None:
    lines = node() + files() + files("uncached", (2,), (1000000,))
    memory, compute = (
        ask(wrap(lines)) for ask in (measure_node.memory_by_level, measure_node.compute_by_type)
    )
    assert memory is not None and compute is not None
    assert [row[0].text for row in memory.rows] == ["L1, 32 KiB", "L2, 1 MiB", "L3, 33 MiB", "memory"]
    copies = [one for one in lines if (one.kind, one.name, one.threads) == ("memory", "copy", 1)]
    assert memory.rows[0][1].value == max(one.rate() or 0 for one in copies[:2])
    assert memory.rows[3][1].value == copies[-1].rate()
    assert [row[0].text for row in compute.rows] == ["float32", "float64"]
    fastest = measure_files.fastest(wrap(lines))
    assert fastest is not None and "writes not flushed" in fastest.title
    assert [row[0].text for row in fastest.rows] == ["warm"] * 3 + ["bypassed"]
    read = [one for one in lines if (one.kind, one.series, one.ranks) == ("file", "read", 1)]
    assert fastest.rows[0][4].value == max(one.rate() or 0 for one in read)


def test_a_footnote_is_printed_once_and_means_the_same_everywhere() -> None:
    measurement = whole()
    for one in measurement.lines:
        one.labels = ["other programs busy (1.3 cores)" if one.bytes % 3 else "other programs busy (2 cores)"]
    for verbose in (False, True):
        rows = printed(measure_tables(measurement, verbose)).splitlines()
        assert sum(row.strip() == "* other programs busy" for row in rows) == 1


@pytest.mark.parametrize(("disturbed", "said"), [(5, False), (6, True), (23, True)])
def test_a_busy_machine_is_the_first_thing_said(disturbed: int, said: bool) -> None:
    lines = ping()
    for one in lines[:disturbed]:
        one.labels = ["other programs busy (1.2 cores)"]
    rows = printed(measure_tables(wrap(lines))).splitlines()
    first = " ".join(rows[:2])
    assert first.startswith(f"* Other programs busy: {disturbed} of 23 lines.")
    assert ("lower bounds" in first and "End the other programs and measure again." in first) == said
    assert any("ns*" in row for row in rows)


def test_disturbed_figures_carry_a_sign() -> None:
    lines = ping()
    lines[0].labels = ["busy"]
    table = measure_messages.ends(wrap(lines))
    assert table is not None and table.rows[0][4].mark == "*" and "* busy" in table.notes


def test_missing_levels_are_said() -> None:
    level = Level(name="node", missing="one host only")
    assert "not here: node" in printed(measure_tables(wrap([], levels=[level])))
    assert "one host only" in printed(measure_tables(wrap([], levels=[level]), verbose=True))
