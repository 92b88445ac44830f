"""Ranks that somebody else's mpiexec started: they do the work, and end together whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import time

import numpy
import pytest
from conftest import Tilewise, mpiexec, one_message, wait_for
from oracle import assert_product, matrix, nothing_left, processes_in, record_of
from ranks import LONG
from stopwatch import within

WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy")


def under(ranks: int) -> tuple[object, ...]:
    return (mpiexec(), "-launcher", "fork", "-n", ranks)


@pytest.mark.parametrize(
    ("ranks", "algorithm"), [(2, "replicated"), (3, "summa"), (4, "cannon"), (6, "summa")]
)
def test_the_ranks_that_exist_do_the_work(inputs: Tilewise, ranks: int, algorithm: str) -> None:
    result = inputs(*WORDS, "--algorithm", algorithm, "--json", "r.json", before=under(ranks))
    assert result.returncode == 0, result.stderr
    assert_product(inputs.folder / "C.npy", matrix((31, 17), seed=1), matrix((17, 23), seed=2))
    assert result.stdout.count("total ") == 1 and result.stdout.count("result ") == 1
    assert f"{ranks} ranks × 1 thread" in result.stdout
    assert inputs.files() == {"A.npy", "B.npy", "C.npy", "r.json"}
    with within(1):
        wait_for(lambda: not processes_in(inputs.folder))


def test_a_folder_is_made_once(inputs: Tilewise) -> None:
    words = ("svd", "A.npy", "-o", "svd/", "--json", "r.json")
    result = inputs(*words, before=under(3))
    assert result.returncode == 0, result.stderr
    assert inputs.files() == {"A.npy", "B.npy", "svd", "r.json"}
    u, s, vt = (numpy.load(inputs.folder / f"svd/{name}.npy") for name in ("U", "s", "Vt"))
    assert numpy.allclose((u * s) @ vt, matrix((31, 17), seed=1), rtol=0, atol=1e-12)
    assert "already" in one_message(inputs("svd", "A.npy", "-o", "svd", before=under(3)), 2)


def test_the_record_on_standard_output_comes_once(inputs: Tilewise) -> None:
    record = record_of(inputs(*WORDS, "--json", "-", before=under(3)))
    assert record["variant"]["ranks"] == 3
    assert len({place["pid"] for place in record["placement"]}) == 3


def test_one_rank_under_a_launcher(inputs: Tilewise) -> None:
    result = inputs(*WORDS, "-q", before=under(1))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_generate_and_then_multiply(tilewise: Tilewise) -> None:
    words = ("generate", "-o", "A.npy", "--shape", "40x40", "-q")
    assert tilewise(*words, before=under(3)).returncode == 0
    both = numpy.load(tilewise.folder / "A.npy")
    result = tilewise("multiply", "A.npy", "A.npy", "-o", "C.npy", "-q", before=under(2))
    assert result.returncode == 0, result.stderr
    assert_product(tilewise.folder / "C.npy", both, both)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("multiply", "missing.npy", "B.npy", "-o", "C.npy", "--force"), "does not exist"),
        (("multiply", "B.npy", "B.npy", "-o", "C.npy", "--force"), "do not fit"),
        (WORDS, "exists already"),
        ((*WORDS, "--force", "-n", 2), "exist already"),
        ((*WORDS, "--force", "--algorithm", "cannon"), "square"),
        ((*WORDS, "--force", "--nonsense"), "--nonsense"),
        (("multiply",), ""),
        (("multipy", "A.npy"), "not a command"),
    ],
)
def test_a_wrong_request_lets_everybody_go(inputs: Tilewise, words: tuple[object, ...], said: str) -> None:
    with nothing_left(inputs, 5):
        assert said in one_message(inputs(*words, before=under(3)), 2)


@pytest.mark.parametrize(
    "words", [("--version",), ("multiply", "--help"), ("info", "A.npy"), ("plan", *WORDS)]
)
def test_what_is_no_job_is_said_once(inputs: Tilewise, words: tuple[str, ...]) -> None:
    alone = inputs(*words)
    together = inputs(*words, before=under(3))
    assert together.returncode == alone.returncode == 0
    assert len(together.stdout.splitlines()) == len(alone.stdout.splitlines())


def test_a_plan_is_for_the_ranks_that_exist(inputs: Tilewise) -> None:
    assert "3 ranks" in inputs("plan", *WORDS, before=under(3)).stdout


LATE = "import os, time\nleave = os._exit\nos._exit = lambda code: (time.sleep(0.5), leave(code))\n"


@pytest.mark.parametrize(
    "fault", ["throw:1:input", "throw:0:compute", "throw:2:exchange", "signal-11:1:output", "fail:1"]
)
def test_the_last_words_of_any_rank(inputs: Tilewise, fault: str) -> None:
    """They reach the front of rank 0, which says them once; no raw event comes to the terminal.

    The front takes long to end, so that a launcher that wants to kill it does.
    """
    (inputs.folder / "late").mkdir()
    (inputs.folder / "late/sitecustomize.py").write_text(LATE)
    paths = (str(inputs.folder / "late"), inputs.environment.get("PYTHONPATH", ""))
    inputs.environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    inputs.environment["TILEWISE_FAULT"] = fault
    rank = fault.split(":")[1]
    with nothing_left(inputs, 5, settle=3):
        result = inputs(*WORDS, "--force", before=under(3))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"tilewise: rank {rank} ") and result.stderr.count("\n") == 2
    assert "\n  try: " in result.stderr and "\x1e" not in result.stdout + result.stderr


@pytest.mark.parametrize("fault", ["kill:1:compute", "kill:0:output"])
def test_a_rank_that_dies(inputs: Tilewise, fault: str) -> None:
    """The launcher is not ours, and may add words of its own; the old output stays, and nothing hangs."""
    inputs.environment["TILEWISE_FAULT"] = fault
    with nothing_left(inputs, 5, settle=3):
        result = inputs(*WORDS, "--force", before=under(3))
    assert result.returncode != 0
    assert result.stderr.count("tilewise: ") == 1
    if fault == "kill:0:output":  # ours says so before it ends the others, whose launcher then ends it
        assert "SIGKILL" in result.stderr


def test_a_proof_that_fails(inputs: Tilewise) -> None:
    inputs.environment["TILEWISE_FAULT"] = "element"
    with nothing_left(inputs, 5, settle=3):
        result = inputs(*WORDS, "--force", before=under(3))
    assert result.returncode == 3 and result.stderr.count("verification") == 1


def test_an_interrupt(tilewise: Tilewise) -> None:
    with nothing_left(tilewise, 30, settle=3):
        child = tilewise.start(*LONG, before=under(2))
        wait_for(lambda: len(processes_in(tilewise.folder)) > 3)
        time.sleep(1.0)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert child.returncode != 0 and "Traceback" not in err


# ---- the wrong launcher --------------------------------------------------------------------------


@pytest.fixture
def open_mpi() -> tuple[object, ...]:
    """Open MPI's mpiexec on three ranks."""
    path = shutil.which("mpiexec.openmpi")
    if path is None:
        pytest.skip("Open MPI is not installed")
    return (path, "--oversubscribe", "-n", 3)


def test_another_librarys_launcher_is_recognised(inputs: Tilewise, open_mpi: tuple[object, ...]) -> None:
    inputs.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with within(5):
        result = inputs(*WORDS, before=open_mpi)
    assert result.returncode == 2
    ours = [line for line in result.stderr.splitlines() if line.startswith(("tilewise: ", "  try: "))]
    assert len(ours) == 2 and "another MPI library" in ours[0] and "mpiexec" in ours[1]
    assert inputs.files() == {"A.npy", "B.npy"}
    with within(3):
        wait_for(lambda: not processes_in(inputs.folder))


def test_another_librarys_launcher_named_by_the_user(inputs: Tilewise, open_mpi: tuple[object, ...]) -> None:
    """Refused before it starts anything."""
    launcher = f"{open_mpi[0]} --oversubscribe"
    with nothing_left(inputs, 8, settle=3):
        said = one_message(inputs(*WORDS, "--force", "-n", 3, "--launcher", launcher), 2)
    assert "Open MPI" in said and "MPICH" in said


def test_the_variables_of_an_outer_job_do_not_confuse_a_job_of_ours(inputs: Tilewise) -> None:
    """As in a shell that was opened within one rank of another job."""
    inputs.environment.update(
        PMI_RANK="0", PMI_SIZE="1", PMI_FD="77", MPI_LOCALNRANKS="1", HYDI_CONTROL_FD="78"
    )
    for ranks in (1, 2):
        result = inputs(*WORDS, "--force", "-q", "-n", ranks)
        assert result.returncode == 0, result.stderr
    assert os.path.exists(inputs.folder / "C.npy")
