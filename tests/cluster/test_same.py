"""Hosts that do not have the same worker, files, folder or memory: refused before any work, by name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy
import pytest
from cluster import Host
from test_jobs import STENCIL, Site, one_message, site, within  # noqa: F401 (a fixture)

MULTIPLY = ("multiply", "A.npy", "B.npy", "-o", "out/C.npy")


def _on(host: Host, *words: object) -> None:
    done = subprocess.run(
        host.command(words, Path("/")), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@contextmanager
def mounted(host: Host, at: Path, *words: object) -> Iterator[None]:
    """Something of `host` alone at `at`: what `mount words… at` puts there."""
    _on(host, "mount", *words, at)
    try:
        yield
    finally:
        _on(host, "umount", "-l", at)


@pytest.fixture
def second(site: Site) -> Host:  # noqa: F811
    """The host that has something of its own; the shared folder has `out`, empty."""
    folder = site.folder / "out"
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    host: Host = site.made.hosts[1]
    return host


def refused(site: Site, *words: object) -> str:  # noqa: F811
    """The one message of a job that is refused soon, and leaves nothing of itself anywhere."""
    before = sorted(path.name for path in site.folder.iterdir())
    with within(15):
        said = one_message(site(*words), 2)
    assert "node2" in said and "  try: " in said
    assert site.left_after(3) == []
    assert sorted(path.name for path in site.folder.iterdir()) == before
    assert list((site.folder / "out").iterdir()) == []
    return said


# ---- the worker ----------------------------------------------------------------------------------


@pytest.fixture
def program() -> Path:
    """The worker."""
    from tilewise.launch import worker

    path = worker.find()
    assert path is not None
    return Path(path)


def test_a_worker_that_is_missing(site: Site, second: Host, program: Path) -> None:  # noqa: F811
    with mounted(second, program.parent, "-t", "tmpfs", "none"):
        said = refused(site, *MULTIPLY)
    assert f"the worker is missing on node2: there is no {program}" in said
    assert "install tilewise on node2" in said


def _without_its_library(program: bytes) -> bytes:
    return program.replace(b"libmpi", b"libnil")


def _for_another_processor(program: bytes) -> bytes:
    machine = b"\xb7" if program[18:19] != b"\xb7" else b"\x3e"  # ARM's, or Intel's
    return program[:18] + machine + program[19:]


@pytest.mark.parametrize(
    ("change", "mode", "expected"),
    [
        (_without_its_library, 0o755, ("does not start on node2", "libnil")),
        (_for_another_processor, 0o755, ("does not start on node2",)),
        (bytes, 0o644, ("may not be executed on node2",)),
    ],
)
def test_a_worker_that_does_not_start(
    site: Site,  # noqa: F811
    second: Host,
    program: Path,
    tmp_path: Path,
    change: Callable[[bytes], bytes],
    mode: int,
    expected: tuple[str, ...],
) -> None:
    other = tmp_path / "worker"
    other.write_bytes(change(program.read_bytes()))
    other.chmod(mode)
    with mounted(second, program, "--bind", other):
        said = refused(site, *MULTIPLY)
    assert str(program) in said and all(words in said for words in expected)


def test_a_worker_of_another_version(site: Site, second: Host, program: Path, tmp_path: Path) -> None:  # noqa: F811
    from tilewise import __version__ as version

    mark = b"@(#)tilewise-worker "
    content = program.read_bytes()
    assert mark + version.encode() in content
    other = tmp_path / "worker"
    other.write_bytes(content.replace(mark + version[:1].encode(), mark + b"9"))
    other.chmod(0o755)
    with mounted(second, program, "--bind", other):
        said = refused(site, *MULTIPLY)
    assert f"the worker on node2 is of version 9{version[1:]}, that on node1 of version {version}" in said


def test_a_worker_that_is_missing_under_open_mpi(
    site: Site,  # noqa: F811
    second: Host,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its launcher starts the same shell; what waits on the first host, as in MPI's start, is ended."""
    mpiexec = shutil.which("mpiexec.openmpi")
    if mpiexec is None:
        pytest.skip("Open MPI is not installed")
    waiting = tmp_path / "bin" / "tilewise-worker"
    waiting.parent.mkdir()
    waiting.write_text('#!/bin/sh\n[ "$1" = --version ] || exec sleep 60\n')
    waiting.chmod(0o755)
    (waiting.parent / "build.json").write_text(json.dumps({"mpi": "site", "mpiexec": mpiexec}))
    monkeypatch.setitem(site.environment, "TILEWISE_WORKER", str(waiting))
    with mounted(second, waiting.parent, "-t", "tmpfs", "none"):
        said = refused(site, *MULTIPLY)
    assert f"the worker is missing on node2: there is no {waiting}" in said


# ---- the folder ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("transpose", "A.npy", "-o", "out/T.txt"),
        ("convert", "A.npy", "-o", "out/A.tiles"),
        ("svd", "A.npy", "-o", "out/D"),
        (*STENCIL, "-o", "out/S.npy", "--snapshot-every", 2),
    ],
    ids=lambda words: words[0],
)
def test_a_folder_that_each_host_has_for_itself(site: Site, second: Host, words: tuple[object, ...]) -> None:  # noqa: F811
    with mounted(second, site.folder / "out", "-t", "tmpfs", "none"):
        said = refused(site, *words)
    assert f"the folder {site.folder / 'out'} is not the same on node1 and node2" in said or (
        "A.tiles is not the same on node1 and node2" in said
    )
    assert "a folder that all hosts share" in said


def test_the_folder_that_a_job_is_started_in(site: Site, second: Host) -> None:  # noqa: F811
    inner = site.folder / "in" / "deep"
    inner.mkdir(parents=True, exist_ok=True)
    inputs = [site.folder / name for name in MULTIPLY[1:3]]
    words = site.words("multiply", *inputs, "-o", site.folder / "out" / "C.npy")
    with mounted(second, inner.parent, "-t", "tmpfs", "none"), within(15):
        said = one_message(site.made.run(words, inner, site.environment), 2)
    assert f"the job was started in {inner}, which node2 cannot enter: No such file or directory" in said


def test_a_folder_that_cannot_be_written_there(site: Site, second: Host) -> None:  # noqa: F811
    folder = site.folder / "out"
    with mounted(second, folder, "--bind", folder):
        _on(second, "mount", "-o", "remount,bind,ro", folder)
        said = refused(site, *MULTIPLY)
    assert "cannot be written on node2" in said and "Read-only file system" in said


def test_samples_of_a_folder_that_each_host_has_for_itself(site: Site, second: Host) -> None:  # noqa: F811
    with mounted(second, site.folder / "out", "-t", "tmpfs", "none"):
        result = site.made.run(
            site.words("measure", "file", "--folder", "out", "--block", "64KiB", "--launches", 1)[:-1],
            site.folder,
            site.environment,
        )
    assert "is not the same on node1 and node2" in one_message(result, 2)


# ---- the inputs ----------------------------------------------------------------------------------


def _like(path: Path, other: Path, content: bytes) -> Path:
    """`content` at `other`, with the time of `path`."""
    other.write_bytes(content)
    found = path.stat()
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
    return other


@pytest.mark.parametrize("name", ["A.npy", "A.txt", "A.h5", "A.tiles/*"])
def test_another_file_on_one_host(site: Site, second: Host, tmp_path: Path, name: str) -> None:  # noqa: F811
    if not (site.folder / name.removesuffix("/*")).exists():
        site.record("convert", "A.npy", "-o", name.removesuffix("/*"))
    path = max(site.folder.glob(name), key=lambda each: each.stat().st_size)
    content = path.read_bytes()
    middle = len(content) - 9
    changed = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    words = ("transpose", name.removesuffix("/*"), "-o", "out/T.npy")
    for other, expected in (
        (_like(path, tmp_path / "longer", content + b" "), f"{len(content)} bytes on node1"),
        (_like(path, tmp_path / "changed", changed), "with different contents"),
    ):
        with mounted(second, path, "--bind", other):
            said = refused(site, *words)
        assert f"{words[1]} is not the same file on node1 and node2: " in said and expected in said


def test_copies_want_the_same_time(site: Site, second: Host, tmp_path: Path) -> None:  # noqa: F811
    path = site.folder / "A.npy"
    copy = _like(path, tmp_path / "copy", path.read_bytes())
    with mounted(second, path, "--bind", copy):
        site.record(*MULTIPLY)
    (site.folder / "out" / "C.npy").unlink()
    os.utime(copy, (1e9, 1e9))
    with mounted(second, path, "--bind", copy):
        said = refused(site, *MULTIPLY)
    assert "last written at " in said and "at 2001-09-09 01:46:40.000 on node2 (UTC)" in said


def test_a_missing_input(site: Site, second: Host, tmp_path: Path) -> None:  # noqa: F811
    inputs = site.folder / "in"
    inputs.mkdir(exist_ok=True)
    numpy.save(inputs / "A.npy", numpy.ones((67, 53)))
    with mounted(second, inputs, "-t", "tmpfs", "none"):
        said = refused(site, "transpose", "in/A.npy", "-o", "out/T.npy")
        assert f"in/A.npy cannot be read on node2, as it can on node1: {inputs / 'A.npy'}" in said
        site.record("transpose", "in/A.npy", "-o", "out/T.npy", "--io", "root")  # only rank 0 reads


def test_ranks_that_exist_already(site: Site, second: Host, program: Path, tmp_path: Path) -> None:  # noqa: F811
    """Somebody else's mpiexec starts a front on each host; all end soon, and one says why."""
    mpiexec = Path(sys.executable).parent / "mpiexec"
    front = [sys.executable, "-m", "tilewise", *MULTIPLY]
    words = [mpiexec, "-launcher-exec", site.made.launcher, "-hosts", "node1,node2", "-n", 2, *front]
    other = _like(site.folder / "A.npy", tmp_path / "other", (site.folder / "A.npy").read_bytes()[::-1])
    with mounted(second, site.folder / "A.npy", "--bind", other), within(15):
        done = site.made.run(words, site.folder, site.environment)
    assert done.returncode == 2, done
    assert "A.npy is not the same file on node1 and node2" in done.stderr
    for host, expected in (
        (second, "tilewise: the worker is missing on node2, expected at"),
        (site.made.hosts[0], "tilewise: the worker program is missing, expected at"),
    ):
        with mounted(host, program.parent, "-t", "tmpfs", "none"), within(15):
            done = site.made.run(words, site.folder, site.environment)
        assert done.returncode != 0 and expected in done.stderr, done
    # What MPI leaves in shared memory when its launcher kills it is swept by the next front there.
    assert not [left for left in site.left_after(1) if "/dev/shm/" not in left]
    for host in site.made.hosts:
        for path in host.shared_memory.iterdir():
            path.unlink()
    assert list((site.folder / "out").iterdir()) == []


# ---- memory --------------------------------------------------------------------------------------


def test_too_little_memory_on_another_host(site: Site, second: Host, tmp_path: Path) -> None:  # noqa: F811
    little = tmp_path / "meminfo"
    little.write_text("MemTotal:  100000 kB\nMemAvailable:   50000 kB\n")
    with mounted(second, Path("/proc/meminfo"), "--bind", little):
        said = refused(site, *MULTIPLY)
    assert "of memory on node2 for 2 ranks, but 80 % of what is available there is" in said
