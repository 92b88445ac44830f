"""index.sqlite beside points.jsonl: used while it is fresh, made anew when it is not, missed by nobody."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from pathlib import Path

import pytest
from conftest import InProcess, Tilewise
from studies import Runner, run
from test_study_query import COUNT, STUDY, answer, entry, write
from tilewise.study import index

BESIDE = {"points.jsonl", "study.toml", "environment.json", "points.lock", "index.sqlite"}


def kept() -> Path:
    return Path("r") / "index.sqlite"


@pytest.fixture
def studied(here: InProcess, tmp_path: Path) -> InProcess:
    run(tmp_path / "r", STUDY, Runner())
    return here


def test_the_index_is_used_and_never_stale(studied: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def count(folder: str = "r") -> int:
        (row,) = answer(studied, COUNT, folder)
        return int(row["n"])

    assert count() == 14
    written = kept().stat().st_mtime_ns
    assert count() == 14 and kept().stat().st_mtime_ns == written
    with sqlite3.connect(kept()) as base:  # what only the index says is what is answered: it is used
        base.execute("DELETE FROM launches WHERE rowid > 5")
    base.close()
    assert count() == 5
    points = Path("r/points.jsonl")
    with points.open("a") as file:
        file.write(json.dumps(entry()) + "\n")
    assert count() == 15
    told = points.stat()
    points.write_text(points.read_text().replace('"done"', '"DONE"'))  # as long as before, but later
    os.utime(points, ns=(told.st_atime_ns, told.st_mtime_ns + 1_000_000))
    assert answer(studied, "SELECT 1 FROM launches WHERE status = 'done'") == []
    write("r/more", entry())
    Path("r/more/points.jsonl").rename("r/points.node2.jsonl")
    assert count() == 16
    os.utime(kept(), ns=(1, 1))  # clocks of files tick in milliseconds
    assert count() == 16 and kept().stat().st_mtime_ns == 1
    monkeypatch.setattr(index, "_SCHEMA", index._SCHEMA + 1)
    assert count() == 16 and kept().stat().st_mtime_ns != 1


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 5000, None])
def test_a_damaged_index_is_made_anew(studied: InProcess, content: bytes | None) -> None:
    (before,) = answer(studied, COUNT)
    kept().write_bytes(kept().read_bytes()[:8192] if content is None else content)
    assert answer(studied, COUNT) == [before]
    base = sqlite3.connect(kept())
    assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    base.close()


def test_a_torn_line_is_left_out_with_a_note(studied: InProcess) -> None:
    with Path("r/points.jsonl").open("a") as file:
        file.write('{"hash": "h", "poi')
    for _ in range(2):  # from the points, and from the index
        done = studied("study", "query", "r", "SELECT count(*) FROM launches", "--csv", "-")
        assert done.stdout == "count(*)\n14\n"
        assert done.stderr == "tilewise: note: points.jsonl, line 15 is no entry and was left out\n"


def test_several_at_once(fake: Tilewise, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    run(folder, STUDY, Runner())
    words = ("study", "query", "r", COUNT, "--csv", "-")
    for rows in (14, 15, 16):
        children = [fake.start(*words) for _ in range(4)]
        said = [child.communicate(timeout=150) for child in children]
        assert said == [(f"n\n{rows}\n", "")] * 4
        with (folder / "points.jsonl").open("a") as file:
            file.write(json.dumps(entry()) + "\n")
    assert {path.name for path in folder.iterdir()} == BESIDE


def test_a_folder_that_moves_takes_its_index_along(studied: InProcess) -> None:
    with Path("r/points.jsonl").open("a") as file:
        file.write('{"torn')
    studied("study", "query", "r", COUNT)
    written = kept().stat().st_mtime_ns
    Path("r").rename("elsewhere")
    done = studied("study", "query", "elsewhere", COUNT, "--csv", "-")
    assert done.stdout == "n\n14\n" and " points.jsonl, line 15" in done.stderr
    assert Path("elsewhere/index.sqlite").stat().st_mtime_ns == written


def test_while_points_come_and_indexes_go(studied: InProcess) -> None:
    """An index opened before another one took its name still answers; the next one knows the new points."""
    index.open_index("r").base.close()
    old = index.open_index("r")  # now from the file
    with Path("r/points.jsonl").open("a") as file:
        file.write(json.dumps(entry()) + "\n")
    new = index.open_index("r")
    sql = "SELECT count(*) FROM launches"
    assert [each.base.execute(sql).fetchone() for each in (old, new)] == [(14,), (15,)]
    old.base.close()
    new.base.close()


def test_a_folder_that_cannot_be_written(studied: InProcess) -> None:
    Path("r").chmod(0o555)
    try:
        if os.access("r", os.W_OK):
            pytest.skip("root may write everywhere")
        assert answer(studied, COUNT) == [{"n": 14}]
        assert not kept().exists()
    finally:
        Path("r").chmod(0o755)


def test_a_full_disk(studied: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(index, "replace", full)
        assert answer(studied, COUNT) == [{"n": 14}]
    assert not kept().exists()
    kept().mkdir()  # and something else has the name
    assert answer(studied, COUNT) == [{"n": 14}]
    assert list(kept().iterdir()) == [] and not list(Path("r").glob(".tilewise-*"))


def test_a_folder_with_an_odd_name(here: InProcess) -> None:
    name = "a?mode=rwc&x#y%20 'z\""
    write(name, entry())
    for _ in range(2):  # made, and opened again
        assert answer(here, COUNT, name) == [{"n": 1}]
    with sqlite3.connect(Path(name) / "index.sqlite") as base:
        base.execute("DELETE FROM launches")
    base.close()
    assert answer(here, COUNT, name) == [{"n": 0}]
    assert {path.name for path in Path(name).iterdir()} == {"points.jsonl", "index.sqlite"}


def test_no_points_yet(here: InProcess) -> None:
    write("r")
    assert answer(here, "SELECT count(*) AS n, max(status) AS s FROM launches") == [{"n": 0, "s": None}]
    assert here("study", "query", "r").stdout.startswith("r: table launches, 0 rows")
