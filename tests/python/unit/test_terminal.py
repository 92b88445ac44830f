"""Words on narrow terminals: numbers stay with their units, and rows without room become lines."""

from __future__ import annotations

from rich.cells import cell_len
from tilewise.lab.report.table import Column, Table, text_columns
from tilewise.lab.report.terminal import Screen


def test_a_number_keeps_its_unit() -> None:
    screen = Screen()
    screen.pairs([("memory", "50.0 MiB on a node, of 20.7 GiB that are free, 5 % of 1 rank × 2 threads")])
    for width in range(25, 60):
        lines = screen.text(width).splitlines()
        assert all(cell_len(line) <= width for line in lines)
        for whole in ("50.0 MiB", "20.7 GiB", "5 %", "1 rank", "2 threads"):
            assert sum(whole in line for line in lines) == 1


def test_what_is_longer_than_a_line_stays_whole() -> None:
    screen = Screen()
    screen.pairs([("result", "/a/path/of/many/folders/without/a/blank.npy (10×10)")])
    assert "/a/path/of/many/folders/without/a/blank.npy" in screen.text(25)


def test_a_row_without_room_becomes_lines() -> None:
    table = Table("t", "Table", [*text_columns("name", "how it is stored"), Column("memory", "MiB")])
    table.add("/a", "in chunks of 10×10", 3)
    table.add("/b", "in one piece", 25)
    screen = Screen()
    screen.table(table)
    assert screen.text(24).splitlines() == [
        "Table",
        "",
        "name              /a",
        "how it is stored  in chunks of 10×10",
        "memory            3 MiB",
        "",
        "name              /b",
        "how it is stored  in one piece",
        "memory            25 MiB",
    ]
    assert "/a    in chunks of 10×10       3" in screen.text(60).splitlines()
