"""Journals that somebody else planted, or that came out of an archive: going on writes nowhere else."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import Tilewise, mpiexec, one_message
from launchers import program
from tilewise.base import journal
from tilewise.base.owner import new_owner
from tilewise.files.sweep import sweep

WITHOUT_CHILD = True
ALONE = ("-o", "C.npy", "-n", 1, "-t", 1, "--checkpoint", "0.01s")
PIECES = ("multiply", "random:900x800:float64:1", "random:800x700:float64:2", *ALONE)
STATES = ("stencil", "random:301x277:float64:1", *ALONE, "--steps", 8000, "--kernel", "plain")
FAULTS = {PIECES: "kill:0:verify*4", STATES: "kill:0:output*4"}
USER = 4321

Words = tuple[object, ...]
_made: dict[Words, Path] = {}


@pytest.fixture
def left(tilewise: Tilewise, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Words], Path]:
    """Leaves what a job of these words leaves that dies in its midst; its journal."""

    def leave(words: Words) -> Path:
        if words not in _made:
            kept = tmp_path_factory.mktemp("kept")
            tilewise.environment["TILEWISE_FAULT"] = FAULTS[words]
            one_message(tilewise(*words), 1)
            del tilewise.environment["TILEWISE_FAULT"]
            for path in tilewise.folder.glob(".C*"):
                path.rename(kept / path.name)
            _made[words] = kept
        shutil.copytree(_made[words], tilewise.folder, dirs_exist_ok=True)
        (folder,) = tilewise.folder.glob(".C*.journal")
        return folder

    return leave


@pytest.fixture
def victim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("elsewhere") / "victim"


def rewrite(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes what the journal says of its job, with a checksum that fits."""
    path = folder / journal.HEADER
    said = json.loads(path.read_bytes().partition(b"\n")[0])
    change(said)
    text = json.dumps(said).encode()
    path.write_bytes(text + b"\n" + hashlib.sha256(text).hexdigest().encode() + b"\n")


def place_of(folder: Path, name: str) -> Path:
    return Path(journal.part_of(str(folder))) if name == "part" else folder / name


def ended(done: subprocess.CompletedProcess[str]) -> int:
    """How it ended: well, or with one message."""
    if done.returncode:
        one_message(done, done.returncode)
    assert done.returncode in (0, 1, 2)
    return done.returncode


@pytest.mark.parametrize("words", [PIECES, STATES])
def test_ones_own_goes_on_and_is_closed_to_others(
    tilewise: Tilewise, left: Callable[[Words], Path], words: Words
) -> None:
    folder = left(words)
    folder.chmod(0o777)
    descriptor = journal.hold(str(folder))
    assert descriptor is not None and folder.stat().st_mode & 0o777 == 0o755
    os.close(descriptor)
    assert ended(tilewise(*words, "--resume", "-q")) == 0
    assert tilewise.files() == {"C.npy"}


@pytest.mark.parametrize("words", [PIECES, STATES])
def test_what_another_user_planted(tilewise: Tilewise, left: Callable[[Words], Path], words: Words) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    folder = left(words)
    for path in (folder, *folder.iterdir(), *tilewise.folder.glob(".C*.part")):
        os.chown(path, USER, USER)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    for more in ((), ("--resume",), ("--resume", "--force")):
        said = one_message(tilewise(*words, *more), 2)
        assert "belongs to user 4321, and only that user can resume it" in said
    facts = json.loads(tilewise("info", folder.name, "--json", "-").stdout)
    assert facts["goes_on"] == "" and facts["owner"] == "user 4321"
    assert "belongs to user 4321" in tilewise("info", folder.name).stdout
    assert before == {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert ended(tilewise(*words, "--force", "-q")) == 0
    assert before == {path: path.stat().st_mtime_ns for path in folder.iterdir()}


@pytest.mark.parametrize("how", [os.symlink, os.link], ids=["link", "second name"])
@pytest.mark.parametrize(
    ("words", "name"),
    [
        *((PIECES, name) for name in ("part", "0-0.log", "1-0.log", "job.json", "stop")),
        *((STATES, name) for name in ("0.state", "1.state", "0-0.state.log", "1-0.state.log", "job.json")),
    ],
)
def test_a_link_is_not_followed(
    tilewise: Tilewise,
    left: Callable[[Words], Path],
    victim: Path,
    words: Words,
    name: str,
    how: Callable[[Path, Path], None],
) -> None:
    folder = left(words)
    place = place_of(folder, name)
    if place.exists():
        place.rename(victim)
    else:
        victim.write_text("mine")
    how(victim, place)
    held = victim.read_bytes()
    ended(tilewise(*words, "--resume", "-q"))
    assert victim.read_bytes() == held


def swapping(tilewise: Tilewise, pattern: str, victim: Path) -> str:
    """A launcher that puts a link to `victim` in the place of what the front has made."""
    swap = f'for made in {tilewise.folder}/{pattern}; do mv "$made" kept; ln -s {victim} "$made"; done'
    return str(program(tilewise.folder, "swap", f'{swap}\nexec {mpiexec()} "$@"'))


@pytest.mark.parametrize("io", ["positioned", "mapped", "uncached", "two_phase", "root", "root_collective"])
def test_ranks_write_through_no_link(tilewise: Tilewise, victim: Path, io: str) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.ones((300, 200)))
    victim.write_bytes(bytes(600_000))
    words = ("transpose", "A.npy", "-o", "C.npy", "-n", 2, "--io", f"positioned:{io}")
    said = one_message(tilewise(*words, "--launcher", swapping(tilewise, ".C*.part", victim)), 1)
    assert "could not be opened" in said and victim.read_bytes() == bytes(600_000)


def test_a_timeline_is_written_through_no_link(tilewise: Tilewise, victim: Path) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.ones((30, 20)))
    victim.write_bytes(b"mine")
    words = ("transpose", "A.npy", "-o", "C.npy", "-n", 2, "--trace", "t.json")
    said = one_message(tilewise(*words, "--launcher", swapping(tilewise, ".t.json.*", victim)), 1)
    assert "the timeline could not be written" in said and victim.read_bytes() == b"mine"


def test_ranks_keep_no_state_through_a_link(
    tilewise: Tilewise, left: Callable[[Words], Path], victim: Path
) -> None:
    folder = left(STATES)
    shutil.copytree(folder, victim)
    held = {path: path.read_bytes() for path in victim.iterdir()}
    launcher = swapping(tilewise, ".C*.journal", victim)
    assert "could not be opened" in one_message(tilewise(*STATES, "--resume", "--launcher", launcher), 1)
    assert {path: path.read_bytes() for path in victim.iterdir()} == held


@pytest.mark.parametrize("words", [PIECES, STATES])
def test_a_journal_that_is_a_link(
    tilewise: Tilewise, left: Callable[[Words], Path], victim: Path, words: Words
) -> None:
    folder = left(words)
    folder.rename(victim)
    folder.symlink_to(victim)
    held = {path: path.read_bytes() for path in victim.iterdir()}
    assert ended(tilewise(*words, "--resume", "-q")) == 0
    assert {path: path.read_bytes() for path in victim.iterdir()} == held
    assert ended(tilewise("info", folder.name)) == 2


def elsewhere(said: dict[str, Any], victim: Path, tiles: bool) -> None:
    """All paths that a journal may name, and more."""
    region = {"path": str(victim), "name": "x", "rows": 301, "columns": 277, "dtype": "float64"}
    tile = {"path": str(victim), "offset": 0, "rows": [0, 301], "columns": [0, 277]}
    said["slots"] = [region, region]
    said["job"]["journal"] = {"folder": str(victim.parent), "slots": [region, region]}
    said["job"]["trace"] = str(victim)
    if said["job"]["output"] is not None:
        said["job"]["output"] |= {"path": str(victim), "tiles": [tile] * tiles}


@pytest.mark.parametrize("tiles", [True, False])
@pytest.mark.parametrize("words", [PIECES, STATES])
def test_paths_elsewhere_are_not_taken(
    tilewise: Tilewise, left: Callable[[Words], Path], victim: Path, words: Words, tiles: bool
) -> None:
    victim.write_text("mine")
    folder = left(words)
    rewrite(folder, lambda said: elsewhere(said, victim, tiles))
    assert ended(tilewise(*words, "--resume", "-q")) == (2 if tiles and words == PIECES else 0)
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(
    "change",
    [
        {"output": None},
        {"rows": 1 << 40},
        {"offset": 1 << 40},
        {"file_bytes": 1 << 50},
        {"generator": "random", "encoding": "text"},
        {"steps": [1 << 40]},
    ],
)
def test_a_result_that_lies_otherwise_is_refused(
    tilewise: Tilewise, left: Callable[[Words], Path], change: dict[str, Any]
) -> None:
    folder = left(PIECES)

    def told(said: dict[str, Any]) -> None:
        if "output" in change:
            said["job"]["output"] = None
        else:
            said["job"]["output"] |= change

    rewrite(folder, told)
    assert "is of another job" in one_message(tilewise(*PIECES, "--resume"), 2)


@pytest.mark.parametrize(
    "change",
    [
        *({"stage": [number] * 3} for number in (0, -1, 1 << 62)),
        {"band_bytes": -1},
        {"inputs": []},
        {"variant": {"algorithm": "x"}},
        {"variant": {"ranks": 0, "grid": [0, 0]}},
    ],
)
def test_a_job_that_makes_no_sense(
    tilewise: Tilewise, left: Callable[[Words], Path], change: dict[str, Any]
) -> None:
    def told(said: dict[str, Any]) -> None:
        for key, value in change.items():
            said["job"][key] = said["job"][key] | value if isinstance(value, dict) else value

    rewrite(left(PIECES), told)
    assert ended(tilewise(*PIECES, "--resume", "-q")) in (0, 2)


@pytest.mark.parametrize("name", ["job.json", "0-0.state.log", "0.state"])
def test_nobody_waits_for_a_pipe(tilewise: Tilewise, left: Callable[[Words], Path], name: str) -> None:
    folder = left(STATES)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    ended(tilewise(*STATES, "--resume", "-q", timeout=60))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"x y z",
        b"0",
        b"0 whole",
        b"5 1 whole",
        b"0 1 whole zz",
        b"0 1 4 0 4 0 00ff",
        b"-1 4 0 4 00ff",
        b"0 99999999999999999999 0 4 00ff",
        b"0 1 0 99999999999999999999 0 4 00ff",
        b"1" * 5000,
    ],
)
def test_lines_that_nobody_wrote(tmp_path: Path, line: bytes) -> None:
    text = b"%s %016x\n" % (line, journal._check(line + b" "))
    for name in ("0-0.log", "0-0.state.log", f"{'9' * 5000}-0.log"[:200], "\u0663-0.log"):
        (tmp_path / name).write_bytes(text)
    assert journal.pieces(str(tmp_path)) == [] and journal.saved(str(tmp_path)) in ([], [])
    assert journal.starts(str(tmp_path)) == 1


def test_the_command_that_info_shows_is_only_ours(tilewise: Tilewise, left: Callable[[Words], Path]) -> None:
    folder = left(PIECES)
    for line, words in (
        ("tilewise norm A; touch x", ["norm", "A;", "touch", "x"]),
        ("rm '$(touch x)' `x`\n#", ["$(touch x)", "`x`"]),
        ("tilewise 'never closed", []),
    ):
        rewrite(folder, lambda said, line=line: said.update(line=line))
        shown = json.loads(tilewise("info", folder.name, "--json", "-").stdout)["goes_on"]
        done = subprocess.run(
            ["bash", "-c", f"tilewise() {{ printf '%s\\n' \"$@\"; }}\n{shown}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[: len(words)] == words and not done.stderr


@pytest.mark.parametrize("ending", ["journal", "part", "part.old"])
def test_what_is_swept_is_not_what_a_link_leads_to(tmp_path: Path, ending: str) -> None:
    mine, shared = tmp_path / "mine", tmp_path / "shared"
    mine.mkdir()
    shared.mkdir()
    numpy.save(mine / "A.npy", numpy.ones(3))
    (mine / journal.HEADER).touch()
    me = new_owner()
    dead = f"{me.host}-{me.place}-{me.boot}-999999999-1-{me.token}"
    (shared / f".C.{dead}.{ending}").symlink_to(mine)
    (shared / f".D.{dead}.journal").mkdir()
    (shared / f".D.{dead}.journal" / "thesis.tex").touch()
    sweep(str(shared))
    assert {path.name for path in mine.iterdir()} == {"A.npy", journal.HEADER}
    assert (shared / f".D.{dead}.journal" / "thesis.tex").exists()
