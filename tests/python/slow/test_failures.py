"""Runs of the real worker that cannot end well: ranks that die and hang, interrupts, wrong requests."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy
import pytest
from conftest import Tilewise, one_message, wait_for
from oracle import assert_product, matrix, nothing_left, processes_in
from ranks import LONG, at_work, interrupt, segments, workers
from stopwatch import soon, within
from tilewise.planning.names import ONE_FILE

WITHOUT_CHILD = True
WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "--force")


# ---- ranks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "rank", "phase"),
    [
        (1, 0, "input"),
        (1, 0, "output"),
        (2, 0, "compute"),
        (2, 1, "input"),
        (2, 1, "verify"),
        (3, 0, "output"),
        (3, 1, "exchange"),
        (3, 2, "compute"),
        (4, 3, "output"),
    ],
)
@pytest.mark.parametrize("fault", ["kill", "throw"])
def test_a_rank_that_dies(inputs: Tilewise, fault: str, ranks: int, rank: int, phase: str) -> None:
    inputs.environment["TILEWISE_FAULT"] = f"{fault}:{rank}:{phase}"
    with nothing_left(inputs, 5):
        result = inputs(
            *WORDS, "-n", ranks, "--exchange", "overlap", "--io", "collective", "--trace", "t.json.gz"
        )
        said = one_message(result, 1)
    assert result.stdout == ""
    assert "\n  try: " in said
    if fault == "kill":  # the launcher kills the others within microseconds, and SIGKILL leaves no words
        assert "SIGKILL" in said and "rank" in said
    else:
        assert "told to fail" in said and f"tilewise: rank {rank} on " in said


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, signal.SIGTERM])
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_rank_that_a_signal_ends(inputs: Tilewise, number: signal.Signals, ranks: int) -> None:
    """The launcher ends the others, and may name any of them; the rank's own words tell."""
    inputs.environment["TILEWISE_FAULT"] = f"signal-{number.value}:{ranks - 1}:compute"
    with nothing_left(inputs, 5):
        said = one_message(inputs(*WORDS, "-n", ranks), 1)
    assert (
        f"rank {ranks - 1} (pid" in said
        and f"({number.name})" in said
        and " in compute" in said
        and "\n  try: " in said
    )


@pytest.mark.parametrize(
    "exchange", ["synchronous", "persistent", "one_sided_fence", "one_sided_lock", "shared"]
)
def test_a_rank_that_dies_while_others_wait(inputs: Tilewise, exchange: str) -> None:
    inputs.environment["TILEWISE_FAULT"] = "kill:2:exchange"
    with nothing_left(inputs, 5):
        one_message(inputs(*WORDS, "-n", 4, "--algorithm", "cannon", "--exchange", exchange), 1)


@pytest.mark.parametrize("io", ONE_FILE)
@pytest.mark.parametrize("phase", ["input", "output"])
def test_a_rank_that_throws_while_files_are_moved(inputs: Tilewise, io: str, phase: str) -> None:
    inputs.environment["TILEWISE_FAULT"] = f"throw:1:{phase}"
    with nothing_left(inputs, 5):
        assert "told to fail" in one_message(inputs(*WORDS, "-n", 3, "--io", io), 1)


@pytest.mark.parametrize(("ranks", "rank"), [(1, 0), (2, 1), (3, 0), (4, 2)])
def test_a_failure_that_all_agree_on(inputs: Tilewise, ranks: int, rank: int) -> None:
    inputs.environment["TILEWISE_FAULT"] = f"fail:{rank}"
    with nothing_left(inputs, 5):
        said = one_message(inputs(*WORDS, "-n", ranks), 1)
    assert "told to fail in preparation" in said
    assert f"rank {rank}" in said or rank == 0


@pytest.mark.parametrize("force", [False, True])
def test_a_file_that_somebody_makes_while_ranks_work(tilewise: Tilewise, force: bool) -> None:
    words = ("multiply", "random:1500x1500", "random:1500x1500", "-o", "C.npy", "--kernel", "plain", "-n", 1)
    child = tilewise.start(*words, "-t", 1, *(["--force"] if force else []))
    wait_for(lambda: workers(tilewise))
    (tilewise.folder / "C.npy").write_text("mine")
    out, err = child.communicate(timeout=60)
    if force:
        assert child.returncode == 0 and numpy.load(tilewise.folder / "C.npy").shape == (1500, 1500)
        return
    said = one_message(subprocess.CompletedProcess([], child.returncode, out, err), 1)
    assert "C.npy" in said and "--force" in said
    assert (tilewise.folder / "C.npy").read_text() == "mine" and tilewise.files() == {"C.npy"}


def orphaned_segments() -> set[str]:
    """What MPI has in shared memory, and no living process has mapped."""
    named = segments()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            text = maps.read_text(errors="replace")
            named -= {name for name in named if f"/dev/shm/{name}\n" in text}
    return named


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="this system keeps shared memory elsewhere")
@pytest.mark.parametrize("how", ["interrupt", "kill", "hang"])
def test_no_shared_memory_is_left(inputs: Tilewise, how: str) -> None:
    before = orphaned_segments()
    if how == "interrupt":
        child = at_work(inputs, 3)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
    else:
        inputs.environment["TILEWISE_FAULT"] = f"{how}:2:compute"
        words = (*WORDS, "-n", 3, "--exchange", "shared", "--timeout", 3)
        assert inputs(*words).returncode == 1
    with within(2):
        wait_for(lambda: not processes_in(inputs.folder))
    wait_for(lambda: orphaned_segments() <= before)  # others run jobs here, too, and may be ending one


@pytest.mark.parametrize(
    ("ranks", "fault"), [(1, "hang:0:compute"), (2, "hang:1:input"), (3, "hang:0:output")]
)
def test_a_rank_that_hangs(inputs: Tilewise, ranks: int, fault: str) -> None:
    inputs.environment["TILEWISE_FAULT"] = fault
    with nothing_left(inputs, 5):
        said = one_message(inputs(*WORDS, "-n", ranks, "--timeout", 2), 1)
    assert "--timeout 2" in said and fault.rpartition(":")[2] in said and "\n  try: " in said


@pytest.mark.parametrize("command", ["generate", "multiply"])
def test_without_an_old_output_nothing_is_left(tilewise: Tilewise, command: str) -> None:
    tilewise.environment["TILEWISE_FAULT"] = "kill:1:output"
    what = ("random:9x9", "random:9x9") if command == "multiply" else ("--shape", "9x9")
    one_message(tilewise(command, *what, "-o", "C.npy", "-n", 2, "--json", "r.json", "--trace", "t.json"), 1)
    with within(2):
        wait_for(lambda: not processes_in(tilewise.folder))
    assert tilewise.files() == set()


# ---- signals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("ranks", [1, 3])
def test_an_interrupt_while_ranks_compute(tilewise: Tilewise, number: int, ranks: int) -> None:
    with nothing_left(tilewise, 30):
        child = at_work(tilewise, ranks)
        time.sleep(0.3)
        interrupt(tilewise, child, number)


def test_an_impatient_ctrl_c(tilewise: Tilewise) -> None:
    """To the whole group, as a terminal sends it, and again and again."""
    with nothing_left(tilewise, 30):
        child = at_work(tilewise, 2, start_new_session=True)
        for _ in range(5):
            os.killpg(child.pid, signal.SIGINT)
            time.sleep(0.02)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert len(err.splitlines()) == 1 and "Traceback" not in err


@pytest.mark.parametrize("wait", [0.05, 0.2, 0.35, 0.5])
def test_an_interrupt_at_any_moment_of_the_start(tilewise: Tilewise, wait: float) -> None:
    with nothing_left(tilewise, 30):
        child = tilewise.start(*LONG, "-n", 2)
        time.sleep(wait)
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=60)
    assert child.returncode in (130, -signal.SIGTERM)
    assert "Traceback" not in err


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_front_that_is_killed_takes_everything_along(tilewise: Tilewise, ranks: int) -> None:
    with nothing_left(tilewise, 30, settle=5):
        child = at_work(tilewise, ranks)
        child.kill()
        child.communicate(timeout=60)


# ---- requests ------------------------------------------------------------------------------------


def _bad(folder: Path) -> None:
    """One file for every way to be no matrix."""
    good = matrix((31, 17))
    numpy.save(folder / "short.npy", good)
    with open(folder / "short.npy", "r+b") as file:
        file.truncate(1000)
    numpy.save(folder / "long.npy", good)
    with open(folder / "long.npy", "ab") as file:
        file.write(b"more")
    lies = (folder / "short.npy").read_bytes().replace(b"(31, 17)", b"(99, 17)")
    (folder / "lies.npy").write_bytes(lies)
    numpy.save(folder / "object.npy", numpy.array([[{}, 1]], dtype=object), allow_pickle=True)
    numpy.save(folder / "cube.npy", numpy.zeros((2, 3, 4)))
    numpy.save(folder / "number.npy", numpy.zeros(()))
    numpy.save(folder / "text.npy", numpy.array([["a", "b"]]))
    (folder / "empty.npy").touch()
    (folder / "noise.npy").write_bytes(bytes(range(256)) * 8)
    (folder / "folder.npy").mkdir()
    os.mkfifo(folder / "pipe.npy")
    (folder / "gone.npy").symlink_to("nowhere.npy")


BAD = {
    "missing": (("missing.npy", "B.npy"), "does not exist"),
    "folder": (("folder.npy", "B.npy"), "folder"),
    "pipe": (("pipe.npy", "B.npy"), "pipe"),
    "dangling": (("gone.npy", "B.npy"), "link"),
    "truncated": (("short.npy", "B.npy"), "truncated"),
    "too long": (("long.npy", "B.npy"), "more data than its header"),
    "lying header": (("lies.npy", "B.npy"), "truncated"),
    "objects": (("object.npy", "B.npy"), "never unpickles"),
    "cube": (("cube.npy", "B.npy"), "3 dimensions"),
    "number": (("number.npy", "B.npy"), "a single number"),
    "text": (("text.npy", "B.npy"), "text"),
    "empty": (("empty.npy", "B.npy"), "empty"),
    "noise": (("noise.npy", "B.npy"), "not a readable .npy"),
    "shapes": (("A.npy", "A.npy"), "do not fit"),
    "memory": (("random:900000x900000", "random:900000x900000", "--repeat", 2), "memory"),
    "cap": (("A.npy", "B.npy", "--memory", "1MiB"), "--memory"),
    "cannon on 3": (("A.npy", "B.npy", "--algorithm", "cannon", "-n", 3), "square"),
    "unknown algorithm": (("A.npy", "B.npy", "--algorithm", "strassen"), "strassen"),
    "unknown exchange": (("A.npy", "B.npy", "--exchange", "pigeon"), "pigeon"),
    "unknown io": (("A.npy", "B.npy", "--io", "root:floppy"), "floppy"),
    "unknown flag": (("A.npy", "B.npy", "--colour", "red"), "--colour"),
    "no sense": (
        ("A.npy", "B.npy", "--algorithm", "local", "--exchange", "shared", "-n", 1),
        "makes no sense",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(inputs: Tilewise, name: str) -> None:
    _bad(inputs.folder)
    words, said = BAD[name]
    before = inputs.files()
    for ranks in (1, 4):
        own = () if "-n" in words else ("-n", ranks)
        request = ("multiply", *words, "-o", "C.npy", *own)
        result = soon(1, lambda request=request: inputs(*request))  # type: ignore[misc]
        message = one_message(result, 2)
        assert said in message and result.stdout == ""
        assert inputs.files() == before


def test_after_all_that_the_command_still_works(inputs: Tilewise) -> None:
    """A fault that names another rank, or a phase that is not, changes nothing."""
    for fault in ("kill:7:compute", "throw:0:nowhere"):
        inputs.environment["TILEWISE_FAULT"] = fault
        assert inputs(*WORDS, "-n", 2).returncode == 0
        assert_product(inputs.folder / "C.npy", matrix((31, 17), seed=1), matrix((17, 23), seed=2))
