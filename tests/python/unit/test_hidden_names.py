"""Hidden names: whose files they are, which output they belong to, and which of them are swept."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest
from tilewise.base import journal, owner
from tilewise.base.owner import Owner, hidden, new_owner, owner_of, part_path
from tilewise.files.sweep import foreign, sweep

LATER = -60.0  # seconds since a boot that is yet to come, so that all files are older


def changed(me: Owner, **fields: object) -> Owner:
    return msgspec.structs.replace(me, **fields)


def test_owners() -> None:
    me = new_owner()
    assert owner_of(me.identity) == me and me.is_me and not me.is_dead()
    assert owner_of("1234") is None
    for other in (changed(me, pid=999_999_999), changed(me, pid=9_999_999_999), changed(me, started=7)):
        assert owner_of(other.identity) == other and other.is_dead() and not other.is_me
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        assert file.read().replace("-", "").startswith(me.boot) and len(me.boot) == 16


def test_a_process_that_may_not_be_looked_at_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of other users where /proc hides them."""
    monkeypatch.setattr(owner, "_started", lambda pid: None)
    other = changed(new_owner(), pid=os.getppid(), started=7)
    assert not other.is_dead()


@pytest.mark.parametrize("own_disk", [True, False])
def test_another_boot_may_be_that_of_a_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_disk: bool
) -> None:
    """A clone has this machine's name, and on a shared folder its files; a boot before this one has none."""
    clone = changed(new_owner(), boot="0123456789abcdef", pid=999_999_999)
    part = Path(part_path(str(tmp_path / "C.npy"), clone.identity))
    part.touch()
    sweep(str(tmp_path), own_disk)
    assert part.exists()
    (warning,) = foreign(str(tmp_path / "C.npy"), own_disk)
    assert warning.startswith(f"{part} is of pid 999999999 on ") and "if that job no longer runs" in warning
    assert foreign(str(tmp_path / "C"), own_disk) == []
    monkeypatch.setattr(time, "clock_gettime", lambda clock: LATER)
    sweep(str(tmp_path), own_disk)
    assert part.exists() != own_disk


def test_names() -> None:
    me = new_owner()
    for base in ("C.npy", "a.b-c", f"x.{me.identity}.part", "name\nwith a line"):
        found = hidden(os.path.basename(part_path(f"/x/{base}", me.identity, "0.state")))
        assert found is not None and (found.base, found.owner, found.ending) == (base, me, "0.state")
        assert not found.cut
    long = hidden(os.path.basename(part_path("/x/" + 120 * "é" + ".npy", me.identity)))
    assert long is not None and long.cut and (120 * "é").startswith(long.base)
    assert hidden("C.npy") is None and hidden(f".{me.identity}.part") is None


@pytest.mark.parametrize(
    ("one", "other"), [("C.raw", "C.raw.npy"), ("run1", "run10"), ("C", "C.npy"), ("C.npy", "D.npy")]
)
def test_a_journal_belongs_to_one_name(tmp_path: Path, one: str, other: str) -> None:
    part = Path(part_path(str(tmp_path / one), new_owner().identity))
    folder = Path(journal.folder_of(str(part)))
    folder.mkdir()
    part.touch()
    (folder / journal.HEADER).touch()
    (folder / "0-0.log").write_text("a line\n")
    assert journal.beside(str(tmp_path / one)) == [str(folder)]
    assert journal.beside(str(tmp_path / other)) == []


def test_logs_that_bear_others_names_leave_no_hole(tmp_path: Path) -> None:
    """Pieces of one start lie apart; where they do not, what a rectangle holds cannot be counted."""

    def lines(*blocks: str, before: bytes = b"") -> bytes:
        words = [before + block.encode() + b" 00ff " for block in blocks]
        return b"".join(b"%s%016x\n" % (each, journal._check(each)) for each in words)

    (tmp_path / "0-0.log").write_bytes(lines("0 4 0 4", "4 8 0 4"))
    (tmp_path / "1-0.log").write_bytes(lines("0 4 0 4", "0 4 4 8"))
    assert len(journal.pieces(str(tmp_path))) == 4
    (tmp_path / "1-1.log").write_bytes(lines("2 6 2 6", "0 4 0 4", "4 6 0 8"))  # was 0-1.log
    blocks = [piece.block for piece in journal.pieces(str(tmp_path)) if piece.start == 1]
    assert blocks == [(0, 4, 0, 4), (0, 4, 4, 8), (4, 6, 0, 8)]
    state = lines("0 4 0 8", "0 4 0 8", before=b"1 7 ") + lines("1 7 whole")
    (tmp_path / "0-0.state.log").write_bytes(state)
    assert [piece.block for piece in journal.saved(str(tmp_path))[0].pieces] == [(0, 4, 0, 8)]


def test_an_old_folder_of_a_long_name_is_not_named_otherwise(tmp_path: Path) -> None:
    """It was put aside by a job that died; what its whole name was is not known."""
    dead = changed(new_owner(), pid=999_999_999).identity
    for name in ("short", 230 * "n"):
        (tmp_path / (os.path.basename(part_path(f"/x/{name}", dead)) + ".old")).mkdir()
    sweep(str(tmp_path), own_disk=True)
    assert sorted(len(each.name) > 200 for each in tmp_path.iterdir()) == [False, True]
    assert (tmp_path / "short").is_dir()
