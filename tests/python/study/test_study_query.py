"""`tilewise study query`: answers against points.jsonl itself, names, mistakes in SQL, where answers go."""

from __future__ import annotations

import csv
import io
import json
import math
import signal
import statistics
import uuid
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import InProcess, Tilewise, one_message, wait_for
from studies import Runner, run

STUDY = (
    'command = "multiply"\naxes.ranks = [1, 2, 4]\naxes.io = ["root", "positioned"]\n'
    'launches = 3\nlimits = ["ranks < 4"]\n'
)
COUNT = "SELECT count(*) AS n FROM launches"


def entry(**more: Any) -> dict[str, Any]:
    own = {"hash": uuid.uuid4().hex, "point": "p", "run": "main", "axes": {}, "status": "done"}
    return {**own, **more}


def write(folder: str, *entries: dict[str, Any]) -> Path:
    """A results folder with these entries; returns its points.jsonl."""
    path = Path(folder) / "points.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in entries), encoding="utf-8")
    return path


def answer(here: InProcess, sql: str, folder: str = "r") -> list[dict[str, Any]]:
    done = here("study", "query", folder, sql, "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.fixture
def studied(here: InProcess, tmp_path: Path) -> InProcess:
    run(tmp_path / "r", STUDY, Runner(factors=[1.0, 1 / 3, 1.7, 0.9]))
    return here


def test_figures_are_those_of_the_points(studied: InProcess) -> None:
    lines = [json.loads(line) for line in Path("r/points.jsonl").read_text().splitlines()]
    groups: dict[tuple[int, str], list[float]] = {}
    for each in lines:
        if each["status"] == "done":
            key = (each["axes"]["ranks"], each["axes"]["io"])
            groups.setdefault(key, []).append(each["record"]["seconds"]["total"]["max"])
    sql = (
        'SELECT Ranks, io, avg("seconds.total.max") AS mean, count(*) AS n FROM launches'
        " WHERE status = 'done' GROUP BY ranks, io ORDER BY ranks, io"
    )
    expected = [(*key, pytest.approx(statistics.fmean(groups[key]), rel=1e-14), 3) for key in sorted(groups)]
    assert [tuple(row.values()) for row in answer(studied, sql)] == expected
    done = studied("study", "query", "r", sql, "--csv", "-")
    header, *rows = csv.reader(io.StringIO(done.stdout))
    assert header == ["ranks", "io", "mean", "n"]
    assert [(int(a), b, float(c), int(d)) for a, b, c, d in rows] == expected
    (not_run,) = answer(studied, "SELECT count(*) AS n FROM launches WHERE status = 'not run'")
    assert not_run["n"] == sum(each["status"] == "not run" for each in lines) == 2


def test_every_value_and_the_listing(here: InProcess) -> None:
    record = {
        "whole": 2**60 + 1,
        "huge": 2**70,
        "part": 0.1,
        "mixed": 1,
        "truth": True,
        "none": None,
        "list": [1],
    }
    text = 'a "quote", a comma\nand a \x1b[31mline\x00end é'
    write(
        "r",
        entry(record={**record, "lines": None}, message=text),
        entry(record={"mixed": "one", "either": 2, "beyond": 10**400, "truth": False}),
        entry(record={"either": 2.5}, status="failed", exit_code=7),
    )
    names = ["whole", "huge", "part", "mixed", "truth", "none", "either", "beyond", "message", "exit_code"]
    one, two, three = answer(here, f"SELECT {', '.join(names)} FROM launches")
    assert one == {
        "whole": 2**60 + 1, "huge": float(2**70), "part": 0.1, "mixed": 1, "truth": 1, "none": None,
        "either": None, "beyond": None, "message": text, "exit_code": 0,
    }  # fmt: skip
    assert (two["mixed"], two["either"], two["truth"], three["either"], three["exit_code"]) == (
        "one",
        2,
        0,
        2.5,
        7,
    )
    (beyond,) = answer(here, "SELECT count(*) AS n FROM launches WHERE beyond > 1e308")
    assert beyond["n"] == 1
    done = here("study", "query", "r", "--json", "-")
    kinds = {row["column"]: (row["type"], row["example"]) for row in json.loads(done.stdout)}
    assert {name: kinds[name] for name in names} == {
        "whole": ("INTEGER", 2**60 + 1), "huge": ("INTEGER", float(2**70)), "part": ("REAL", 0.1),
        "mixed": ("", 1), "truth": ("BOOLEAN", 1), "none": ("", None), "either": ("REAL", 2.0),
        "beyond": ("INTEGER", None), "message": ("TEXT", text), "exit_code": ("INTEGER", 0),
    }  # fmt: skip
    assert "list" not in kinds
    shown = here("study", "query", "r").stdout.splitlines()
    assert shown[0] == "r: table launches, 3 rows, with these columns"
    assert [line.split() for line in shown if line.split()[:1] == ["part"]] == [["part", "REAL", "0.1"]]
    assert [line.split() for line in shown if line.split()[:1] == ["none"]] == [["none", "–"]]


def test_a_line_of_a_measurement_is_a_row(here: InProcess) -> None:
    lines = [{"bytes": 8, "summary": {"median": 2.0}}, {"bytes": 16, "summary": {"median": 3.0}}]
    write("r", entry(record={"lines": lines, "command": "measure"}, axes={"ranks": 2}))
    found = answer(here, 'SELECT bytes, "summary.median" AS m, ranks FROM launches WHERE bytes > 8')
    assert found == [{"bytes": 16, "m": 3.0, "ranks": 2}]


HOSTILE = [
    'a"b',
    "x); DROP TABLE launches; --",
    "`",
    "`n`",
    "[y]",
    "'",
    "",
    "order",
    "a.b c",
    "naïve ✓",
    "rowid",
]


def test_names_with_quotes(here: InProcess) -> None:
    write("r", entry(axes={name: number for number, name in enumerate(HOSTILE)}))
    for number, name in enumerate(HOSTILE):
        spelt = name.replace('"', '""')
        assert [list(row.values()) for row in answer(here, f'SELECT "{spelt}" FROM launches')] == [[number]]
    found = answer(here, "SELECT * FROM launches")[0]
    assert {name: found[name] for name in HOSTILE} == {name: number for number, name in enumerate(HOSTILE)}


def test_names_that_differ_in_case_only(here: InProcess) -> None:
    write("r", entry(axes={"A": 1, "a": 2, "a_2": 3, "Run": 4, "n\0l": 5}))
    done = here("study", "query", "r", 'SELECT a, a_2, a_3, run, run_2, "n?l" FROM launches', "--json", "-")
    assert json.loads(done.stdout) == [{"A": 1, "a_2": 3, "a_3": 2, "Run": 4, "run_2": "main", "n?l": 5}]
    assert done.stderr.splitlines() == [
        "tilewise: note: another column is called like 'a'; this one is 'a_3'",
        "tilewise: note: another column is called like 'run'; this one is 'run_2'",
    ]


def test_more_columns_than_a_table_takes(here: InProcess) -> None:
    write("r", entry(record={f"x{number}": number for number in range(2500)}))
    done = here("study", "query", "r", "SELECT x0, x1800 FROM launches", "--csv", "-")
    assert done.stdout == "x0,x1800\n0,1800\n"
    assert done.stderr.startswith("tilewise: note: 610 of 2510 columns are not in the table, from x1890 on")
    assert "x2499" in one_message_behind_notes(here("study", "query", "r", "SELECT x2499 FROM launches"))


def one_message_behind_notes(result: Any) -> str:
    assert result.returncode == 2
    return "".join(line for line in result.stderr.splitlines() if "note: " not in line)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM launches",
        "UPDATE launches SET run = 'x'",
        "INSERT INTO launches (run) VALUES ('a')",
        "WITH x AS (SELECT 1) INSERT INTO launches (run) SELECT 1",
        "DROP TABLE launches",
        "CREATE TABLE x (a)",
        "CREATE TEMP TABLE x (a)",
        "ATTACH 'x.db' AS x",
        "VACUUM INTO 'x.db'",
        "VACUUM",
        "PRAGMA query_only = OFF",
        "BEGIN",
    ],
)
def test_what_writes_is_refused(studied: InProcess, sql: str) -> None:
    assert "a query only reads the table" in one_message(studied("study", "query", "r", sql), 2)
    assert answer(studied, COUNT) == [{"n": 14}]
    assert not list(Path().glob("**/x.db")) and not list(Path("r").glob("index.sqlite-*"))


@pytest.mark.parametrize(
    ("sql", "said", "advice"),
    [
        ("SELECT sttus FROM launches", "no such column: sttus", '"status"'),
        ('SELECT "seconds.totl.max" FROM launches', "column: seconds.totl.max", '"seconds.total.max"'),
        ("SELECT seconds.total.max FROM launches", "no such column", 'quotes: [seconds.total.max]'),
        ("SELECT seconds.total.max.x FROM launches", "syntax error", ""),
        ("SELECT wall FROM launches", "no such column: wall", '"seconds.wall"'),
        ("SELECT qqqqq FROM launches", "no such column: qqqqq", "tilewise study query DIR"),
        ("SELECT 1 FROM launch", "no such table: launch", "the table is called launches"),
        ("SELEC 1", 'near "SELEC": syntax error', ""),
        ("SELECT 1; SELECT 2", "one statement at a time", ""),
        ("SELECT 'a", "unrecognized token", ""),
        ("SELECT ?", "bindings", ""),
        ("SELECT load_extension('x')", "not authorized", ""),
        ("SELECT CAST(x'ff' AS TEXT)", "Could not decode", ""),
        ("", "the query is empty", "SELECT"),
        ("/* nothing */", "the query is empty", "SELECT"),
    ],
)  # fmt: skip
def test_mistakes_in_sql(studied: InProcess, sql: str, said: str, advice: str) -> None:
    message = one_message(studied("study", "query", "r", sql), 2)
    assert said in message.splitlines()[0]
    assert advice in message.partition("\n")[2]


def test_texts_comments_and_quotes_stay_what_they_are(studied: InProcess) -> None:
    sql = """SELECT '"run"' AS "a ""b"" `c`", [run] AS d, `run` e, "run" -- "no column"
        /* "none" */ FROM "launches" WHERE "status" = 'done' AND 'it''s "' <> '' LIMIT 1"""
    assert answer(studied, sql) == [{'a "b" `c`': '"run"', "d": "main", "e": "main", "run": "main"}]
    assert list(answer(studied, 'SELECT max("seconds.total.max") FROM launches')[0]) == [
        'max("seconds.total.max")'
    ]


def test_columns_of_one_name_are_all_there(studied: InProcess) -> None:
    found = answer(studied, "SELECT run, run, 1 AS RUN, 1e999, x'0aff' FROM launches LIMIT 1")
    assert [list(row.items()) for row in found] == [
        [("run", "main"), ("run_2", "main"), ("RUN", 1), ("1e999", None), ("x'0aff'", "0aff")]
    ]
    done = studied("study", "query", "r", "SELECT 1e999, NULL, 1.0 / 3", "--csv", "-")
    (_, (inf, null, third)) = csv.reader(io.StringIO(done.stdout))
    assert math.isinf(float(inf)) and null == "" and float(third) == 1 / 3


def test_on_the_terminal(here: InProcess) -> None:
    write("r", entry(message="[red]one[/red]\ntwo\x1b[31m"), entry(seconds=1 / 3))
    shown = here(
        "study", "query", "r", "SELECT message, command_seconds AS s FROM launches"
    ).stdout.splitlines()
    assert next(line.split() for line in shown if line.strip()) == ["message", "s"]
    assert any(line.split() == [r"[red]one[/red]\ntwo\x1b[31m", "0"] for line in shown)
    assert any(line.split() == ["0.333333"] for line in shown)
    wide = "SELECT " + ", ".join(f"'{'x' * 50}' AS c{number}" for number in range(20))
    lines = here("study", "query", "r", wide).stdout.splitlines()
    assert lines[0] == "row 1" and lines[20].split() == ["c19", "x" * 50] and len(lines) == 21


def test_files_and_folders(studied: InProcess) -> None:
    Path("results/s/2026-01-01T00-00-00").mkdir(parents=True)
    Path("r").rename("results/s/2026-02-01T00-00-00")
    write("results/s/2026-01-01T00-00-00", entry())
    assert answer(studied, COUNT, "results/s") == [{"n": 14}]
    sql = "SELECT io, ranks FROM launches"
    words = ("study", "query", "results/s", sql)
    assert studied(*words, "--csv", "x.csv", "--json", "x.json").stdout == ""
    assert Path("x.csv").read_text() == studied(*words, "--csv", "-").stdout
    assert json.loads(Path("x.json").read_text()) == answer(studied, sql, "results/s")
    assert "both" in one_message(studied(*words, "--csv", "-", "--json", "-"), 2)
    points = "results/s/2026-02-01T00-00-00/points.jsonl"
    before = Path(points).read_bytes()
    assert "is also an input" in one_message(studied(*words, "--csv", points), 2)
    assert "is also an input" in one_message(studied(*words, "--csv", "y", "--json", "y"), 2)
    assert Path(points).read_bytes() == before and not Path("y").exists()
    assert "holds no results" in one_message(studied("study", "query", "results", sql), 2)
    assert "No such file" in one_message(studied("study", "query", "nope", sql), 2)


def test_ctrl_c_ends_a_query_without_end(fake: Tilewise, tmp_path: Path) -> None:
    run(tmp_path / "r", STUDY, Runner())
    sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored
    try:
        child = fake.start("study", "query", "r", sql)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        asking = psutil.Process(child.pid)
        wait_for(lambda: asking.cpu_times().user > 1)  # it asks by now; in any case it says the same
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 130 and said.startswith("tilewise: interrupted")


def test_lines_that_are_torn_are_left_out_with_a_note(studied: InProcess) -> None:
    with Path("r/points.jsonl").open("a") as file:
        file.write('{"hash": "h", "poi')
    before = {path.name for path in Path("r").iterdir()}
    done = studied("study", "query", "r", COUNT, "--csv", "-")
    assert done.stdout == "n\n14\n"
    assert done.stderr == "tilewise: note: points.jsonl, line 15 is not an entry and was left out\n"
    assert {path.name for path in Path("r").iterdir()} == before


def test_no_points_yet_in_a_folder_with_an_odd_name(here: InProcess) -> None:
    name = "a?mode=rwc&x#y%20 'z\""
    write(name)
    assert answer(here, "SELECT count(*) AS n, max(status) AS s FROM launches", name) == [{"n": 0, "s": None}]
    assert here("study", "query", name).stdout.startswith(f"{name}: table launches, 0 rows")
