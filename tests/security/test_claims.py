"""What a file says is a claim: names that lead elsewhere, pipes that never answer, texts without an end."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import h5py
import numpy
import pytest
from conftest import Tilewise, one_message
from tilewise.base.errors import UsageError
from tilewise.files import inspect, unchanged
from tilewise.lab.report import timeline
from tilewise.lab.report.study_page import _within
from tilewise.lab.study import work
from tilewise.launch.events import MARK, split_line
from tilewise.machine import cluster, profile

DEEP = b"[" * 100_000


@pytest.mark.parametrize("name", ["../kept.npy", "/kept.npy", "manifest.json"])
def test_what_a_manifest_names_elsewhere_is_not_removed(tilewise: Tilewise, name: str) -> None:
    """An output folder is replaced by --force with what its manifest names."""
    numpy.save(tilewise.folder / "A.npy", numpy.ones((4, 3)))
    assert tilewise("svd", "A.npy", "-o", "F").returncode == 0
    kept = tilewise.folder / "kept.npy"
    kept.write_bytes(b"kept")
    manifest = tilewise.folder / "F" / "manifest.json"
    listing = json.loads(manifest.read_text())
    listing["files"][0]["file"] = str(kept) if name == "/kept.npy" else name
    manifest.write_text(json.dumps(listing))
    said = one_message(tilewise("svd", "A.npy", "-o", "F", "--force"), 2)
    assert "is not a manifest by tilewise" in said and kept.read_bytes() == b"kept"


@pytest.mark.parametrize("numbered", ["file", "dataset"])
@pytest.mark.parametrize("how", ["link", "raw file", "honest"])
def test_numbered_parts_of_a_virtual_dataset_are_in_its_folder(
    tmp_path: Path, numbered: str, how: str
) -> None:
    """A name with %b stands for a number: what it stands for is looked at as all other parts are."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    numpy.full((2, 2), 7.0).tofile(there / "raw")
    with h5py.File((there if how == "link" else here) / "part0.h5", "w") as book:
        if how == "raw file":
            book.create_dataset("x0", (2, 2), "f8", external=[(str(there / "raw"), 0, 32)])
        else:
            book["x0"] = numpy.full((2, 2), 7.0)
    if how == "link":
        (here / "part0.h5").symlink_to(there / "part0.h5")
    file, member = ("part%b.h5", "x0") if numbered == "file" else ("part0.h5", "x%b")
    space, one = h5py.h5s.create_simple((2, 2), (h5py.h5s.UNLIMITED, 2)), h5py.h5s.create_simple((2, 2))
    space.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), (2, 2), (2, 2))
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_virtual(space, file.encode(), member.encode(), one)
    with h5py.File(here / "a.h5", "w", libver="latest") as book:
        whole = h5py.h5s.create_simple((2, 2), (h5py.h5s.UNLIMITED, 2))
        h5py.h5d.create(book.id, b"v", h5py.h5t.NATIVE_DOUBLE, whole, properties)
    if how == "honest":
        assert (inspect(f"{here}/a.h5:v").rows, inspect(f"{here}/a.h5:v").columns) == (2, 2)
    else:
        with pytest.raises(UsageError, match="in another folder"):
            inspect(f"{here}/a.h5:v")


def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert unchanged.look(str(tmp_path / "pipe"), 0, 10) is None
    (tmp_path / "work").mkdir()
    os.mkfifo(tmp_path / "work" / work.OWNER)
    work.sweep(str(tmp_path))
    (tmp_path / "work" / work.OWNER).unlink()
    (tmp_path / "work" / work.OWNER).write_text(str(tmp_path / "pipe"))
    work.sweep(str(tmp_path))


def test_texts_nest_as_deep_as_they_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = b'{"event": "started", "ranks": [], "unknown": ' + DEEP
    assert split_line(MARK + event) == (MARK + event, None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "tilewise").mkdir()
    (tmp_path / "tilewise" / "profile.json").write_bytes(b'{"unknown": ' + DEEP)
    assert profile.load() == profile.Profile()
    Path(work.stamp_path(str(tmp_path / "a"))).write_bytes(b'{"unknown": ' + DEEP)
    assert work.read_stamp(str(tmp_path / "a")) is None


def test_a_spoilt_timeline_is_not_ours_to_replace(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.ones((4, 3)))
    spoilt = gzip.compress(b"{" * 1000)[:12] + b"spoilt"
    (tilewise.folder / "t.json.gz").write_bytes(spoilt)
    one_message(tilewise("norm", "A.npy", "--trace", "t.json.gz"), 2)
    assert (tilewise.folder / "t.json.gz").read_bytes() == spoilt


def test_timelines_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "_LARGEST", 1000)
    for name, data in (("a.json", b" " * 1001), ("a.json.gz", gzip.compress(b" " * 1001))):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UsageError, match="too large for a timeline"):
            timeline.read_timeline(tmp_path / name)
    for name in ("/etc/passwd", "../a.json", "a/../../b"):
        with pytest.raises(UsageError, match="not a file of these results"):
            _within(str(tmp_path), name)


@pytest.mark.parametrize("radical", ["0-99999," * 11 + "0", "²"])
def test_hosts_are_as_many_as_they_may_be(radical: str) -> None:
    text = f'<platform><cluster id="c" prefix="n" suffix="" radical="{radical}" speed="1Gf"/></platform>'
    with pytest.raises(UsageError, match="more than|no range of numbers"):
        cluster._described("c.xml", text)
