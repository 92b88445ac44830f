"""Full disks, folders that vanish or are read-only, inputs that change under a run of the real worker."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from conftest import Tilewise, one_message, wait_for
from disks import before_the_ranks, small_ext2, small_tmpfs
from oracle import nothing_left, processes_in, state_of
from stopwatch import soon, within
from tilewise.planning.names import ONE_FILE

WITHOUT_CHILD = True
WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "--force")


def test_a_disk_that_is_too_small(inputs: Tilewise, mount: Callable[..., Path]) -> None:
    folder = mount("-t", "tmpfs", "-o", "size=512k", "tmpfs")
    for ranks in (1, 3):
        result = inputs("multiply", "random:400x9", "random:9x400", "-o", folder / "C.npy", "-n", ranks)
        assert "disk" in one_message(result, 1)
        assert os.listdir(folder) == []


@pytest.mark.parametrize("io", ONE_FILE)
@pytest.mark.parametrize(("kind", "ranks"), [("tmpfs", 3), ("ext2", 1), ("ext2", 3)])
def test_a_disk_that_becomes_full(
    inputs: Tilewise, mount: Callable[..., Path], tmp_path: Path, kind: str, ranks: int, io: str
) -> None:
    """tmpfs refuses to reserve room; ext2 cannot reserve any, and is found full in the middle of writing."""
    folder = small_tmpfs(mount) if kind == "tmpfs" else small_ext2(mount, tmp_path)
    numpy.save(folder / "C.npy", numpy.ones((3, 3)))
    (folder / "filler").touch()
    before, names = state_of(folder / "C.npy"), sorted(os.listdir(folder))
    script = before_the_ranks(inputs, f"head -c 1200000 /dev/zero >'{folder}/filler'", ranks)
    words = ("multiply", "random:350x9", "random:9x350", "-o", folder / "C.npy", "--force")
    with within(6):
        result = inputs(*words, "-n", ranks, "--io", io, "--launcher", script)
    said = one_message(result, 1)
    assert "C.npy" in said and ("No space left on device" in said or "the disk may be full" in said)
    assert sorted(os.listdir(folder)) == names and state_of(folder / "C.npy") == before
    with within(2):
        wait_for(lambda: not processes_in(inputs.folder))


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_limit_on_the_size_of_files(tilewise: Tilewise, ranks: int) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    with nothing_left(tilewise, 10):
        words = ("multiply", "random:400x9", "random:9x400", "-o", "C.npy", "--force", "-n", ranks)
        child = tilewise.start(*words, preexec_fn=limited)
        out, err = child.communicate(timeout=150)
    one_message(subprocess.CompletedProcess([], child.returncode, out, err), 1)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_folder_that_may_not_be_written(inputs: Tilewise, mount: Callable[..., Path], ranks: int) -> None:
    folder = mount("-t", "tmpfs", "-o", "size=64k,ro", "tmpfs")
    words = ("multiply", "A.npy", "B.npy", "-o", folder / "C.npy", "-n", ranks)
    said = one_message(soon(2, lambda: inputs(*words)), 2)
    assert "cannot be written" in said
    for flag in ("--json", "--trace"):
        said = one_message(inputs(*WORDS, flag, folder / "side.json", "-n", ranks), 2)
        assert flag in said
    assert inputs.files() == {"A.npy", "B.npy"}


def test_an_output_folder_that_vanishes(inputs: Tilewise) -> None:
    folder = inputs.folder / "out"
    folder.mkdir()
    words = ("multiply", "random:1500x1500", "random:1500x1500", "-o", "out/C.npy")
    child = inputs.start(*words, "--kernel", "plain", "-n", 2, "-t", 1)
    wait_for(lambda: list(folder.iterdir()))
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    out, err = child.communicate(timeout=150)
    one_message(subprocess.CompletedProcess([], child.returncode, out, err), 1)
    assert not folder.exists()
    with within(2):
        wait_for(lambda: not processes_in(inputs.folder))


@pytest.mark.parametrize("io", ONE_FILE)
@pytest.mark.parametrize("ranks", [1, 3])
def test_an_input_that_shrinks_after_the_plan(inputs: Tilewise, io: str, ranks: int) -> None:
    script = before_the_ranks(inputs, "truncate -s 2000 A.npy", ranks)
    with nothing_left(inputs, 6):
        assert "A.npy" in one_message(inputs(*WORDS, "-n", ranks, "--io", io, "--launcher", script), 1)


@pytest.mark.parametrize("change", ["true", "mkfifo B.npy", "mkdir B.npy"])
@pytest.mark.parametrize("io", ["positioned", "mapped"])
def test_an_input_that_becomes_something_else(inputs: Tilewise, change: str, io: str) -> None:
    script = before_the_ranks(inputs, f"rm B.npy; {change}", 2)
    before = inputs.files()
    with within(5):
        result = inputs(*WORDS, "-n", 2, "--io", io, "--launcher", script, "--timeout", 100)
    assert "B.npy" in one_message(result, 1)
    assert inputs.files() | {"B.npy"} == before
    with within(2):
        wait_for(lambda: not processes_in(inputs.folder))
