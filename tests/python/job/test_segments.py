"""Shared memory of dead ranks is swept; what any living process holds, and what is not MPI's, stays."""

from __future__ import annotations

import mmap
import os
import signal
import time
from pathlib import Path

import pytest
from conftest import Tilewise
from ranks import segments
from tilewise.launch import cleanup

pytestmark = pytest.mark.skipif(
    not os.path.isdir("/dev/shm"), reason="this system keeps shared memory elsewhere"
)


def test_what_is_swept(tmp_path: Path) -> None:
    """Old, new, open, mapped, not MPI's, a link."""
    dead = {"mpich_shm_1_0", "mpich_shar_tmpA", "ucx_shm_posix_1f"}
    for name in (
        *dead,
        "vader_segment.a",
        "vader_segment.b",
        "mpich_shm_open",
        "mpich_shm_mapped",
        "matrix.npy",
    ):
        (tmp_path / name).write_bytes(bytes(4096))
    (tmp_path / "mpich_shm_link").symlink_to(tmp_path / "matrix.npy")
    (tmp_path / "mpich_shm_folder").mkdir()
    with open(tmp_path / "mpich_shm_mapped", "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 4096)
    real = time.time
    with open(tmp_path / "mpich_shm_open", "r+b"), pytest.MonkeyPatch.context() as patch:
        swept = cleanup.sweep(str(tmp_path))
        assert {Path(path).name for path in swept} == dead
        patch.setattr(time, "time", lambda: real() + 61)
        assert {Path(path).name[:6] for path in cleanup.sweep(str(tmp_path))} == {"vader_"}
    mapped.close()
    assert len(cleanup.sweep(str(tmp_path))) == 2
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"matrix.npy", "mpich_shm_link", "mpich_shm_folder"}


def test_arrays_of_the_dead_are_swept(tmp_path: Path) -> None:
    living, lock = cleanup.new_folder(str(tmp_path))
    (Path(living) / "a.npy").write_bytes(bytes(64))
    assert cleanup.sweep(str(tmp_path)) == [] and os.listdir(living) == ["a.npy"]
    os.close(lock)  # as the system does for whoever dies
    assert cleanup.sweep(str(tmp_path)) == [living] and not os.path.exists(living)


def test_segments_of_somebody_else_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mpich_shm_1_0").touch()
    os.close(cleanup.new_folder(str(tmp_path))[1])
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert cleanup.sweep(str(tmp_path)) == []


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_next_start_sweeps(tilewise: Tilewise, ranks: int) -> None:
    """What a job left whose front was killed with it; a living job of the same user keeps its own."""
    dead, living = (Path(f"/dev/shm/mpich_shm_{os.getpid()}_{name}") for name in ("dead", "living"))
    try:
        with open(living, "wb"):
            dead.touch()
            words = ("generate", "-o", "A.npy", "--shape", "9x9", "-q", "-n", ranks)
            assert tilewise(*words).returncode == 0
            assert living.exists() and not dead.exists()
    finally:
        for path in (dead, living):
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("target", ["mpiexec", "hydra_pmi_proxy"])
def test_kills_while_mpi_starts_leave_nothing(tilewise: Tilewise, target: str) -> None:
    """Of the launcher, and of what stands between it and the ranks: as soon as it is there."""
    before = segments()
    child = tilewise.start("generate", "-o", "A.npy", "--shape", "9x9", "-q", "-n", 3)
    while child.poll() is None and not (found := below(child.pid, target)):
        pass
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 1 and "\n  try: " in said
    assert not (segments() - before) & _swept()


def below(pid: int, name: str) -> list[int]:
    """Pids of the processes of that name below `pid`."""
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True) if child.name() == name]
    except psutil.Error:
        return []


def test_a_front_killed_while_mpi_starts_leaves_nothing(tilewise: Tilewise) -> None:
    """Nor do the ranks that follow it, once no process of the job is left: nobody may ever start another."""
    before = segments()
    for _ in range(20):  # segments have a name for some milliseconds only
        child = tilewise.start("generate", "-o", "A.npy", "--shape", "9x9", "-q", "-n", 3)
        while child.poll() is None and segments() <= before:
            pass
        child.kill()
        _, said = child.communicate(timeout=60)  # the guardian holds its end until it has removed them
        assert said in ("", "tilewise: the job was killed; A.npy was not written\n")  # or was hardly started
        assert not (segments() - before) & _swept()


def _swept() -> set[str]:
    """What nobody held any more: others run jobs here, too."""
    return {Path(path).name for path in cleanup.sweep()}
