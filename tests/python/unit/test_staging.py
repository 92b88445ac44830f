"""What is staged has one name at a time, and leaves nothing behind where it fails."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from tilewise.base.errors import RunError
from tilewise.base.owner import new_owner
from tilewise.base.staging import Seal, Staged, replace, replace_or_fail
from tilewise.base.streams import is_stream


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_staged_file_is_hidden_until_it_takes_its_name(tmp_path: Path) -> None:
    goal = tmp_path / "C.npy"
    staged = Staged.beside(str(goal), "id", "C.npy", [".raw"])
    os.close(staged.make())
    Path(staged.part + ".raw").touch()
    staged.seals.append(Seal(staged.part, "C.npy"))
    staged.claim.inode = staged.seals[0].inode
    assert names(tmp_path) == [".C.npy.id.part", ".C.npy.id.part.raw"] and not staged.claim.stands()
    with pytest.raises(FileExistsError):
        staged.make()
    staged.take_name(new=True)
    assert staged.claim.stands()
    assert staged.discard() == [] and names(tmp_path) == ["C.npy"]  # what has its name keeps it


def test_a_new_file_takes_no_name_that_somebody_else_gave_meanwhile(tmp_path: Path) -> None:
    goal = tmp_path / "C.npy"
    staged = Staged.beside(str(goal), "id")
    with pytest.raises(FileExistsError), staged.or_none():
        os.close(staged.make())
        goal.write_text("theirs")
        staged.take_name(new=True)
    assert names(tmp_path) == ["C.npy"] and goal.read_text() == "theirs"


def test_content_is_replaced_at_once_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goal, link = tmp_path / "r.json", tmp_path / "link.json"
    link.symlink_to(goal)
    mask = os.umask(0o027)
    try:
        replace(link, b"old")
    finally:
        os.umask(mask)
    assert goal.read_bytes() == b"old" and link.is_symlink() and goal.stat().st_mode & 0o777 == 0o640

    def full(part: str, path: str) -> None:
        assert new_owner().identity.rpartition("-")[0] in part and Path(part).read_bytes() == b"new"
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(RunError, match=r"^--json r cannot be written: no space left$"):
        replace_or_fail(str(goal), b"new", "--json r")
    assert names(tmp_path) == ["link.json", "r.json"] and goal.read_bytes() == b"old"


@pytest.mark.parametrize("how", ["fifo", "descriptor", "link"])
def test_streams_are_written_and_never_replaced(tmp_path: Path, how: str) -> None:
    """A pipe, `/dev/fd/N`, and a link to either: what was written before stays before it."""
    content = bytes(100_000)
    source, target = os.pipe()
    path = Path(f"/dev/fd/{target}")
    if how == "fifo":
        path = tmp_path / "pipe"
        os.mkfifo(path)
    elif how == "link":
        path = tmp_path / "link"
        path.symlink_to(f"/proc/self/fd/{target}")
    assert is_stream(str(path)) and not is_stream(str(tmp_path / "C.npy"))
    before = names(tmp_path)
    got = bytearray()

    def read() -> None:
        with open(path if how == "fifo" else os.dup(source), "rb") as reader:
            while len(got) < len(content):
                got.extend(reader.read1())

    thread = threading.Thread(target=read)
    thread.start()
    replace(path, content)
    thread.join()
    assert got == content and names(tmp_path) == before
    os.close(source)
    os.close(target)


def test_an_open_file_is_a_stream(tmp_path: Path) -> None:
    with open(tmp_path / "out", "w+b") as file:
        file.write(b"before ")
        file.flush()
        replace(f"/dev/fd/{file.fileno()}", b"this")
        file.write(b" after")
    assert names(tmp_path) == ["out"] and (tmp_path / "out").read_bytes() == b"before this after"


def test_a_reader_that_leaves_is_no_failure(tmp_path: Path) -> None:
    source, target = os.pipe()
    os.close(source)
    replace(f"/dev/fd/{target}", bytes(1_000_000))
    os.close(target)
