"""The worker built on Debian's Open MPI: the same products, the same manners when a rank dies."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy
import pytest
from conftest import Tilewise, environment, one_message
from oracle import (
    assert_product,
    matrix,
    nothing_left,
    processes_in,
    record_of,
    save,
    ways_to_multiply,
)
from tilewise.operations import options_of
from tilewise.planning.choices import exchanges_of
from tilewise.planning.names import ONE_FILE, ONLY_READ

ROOT = Path(__file__).resolve().parents[3]
WORKER = Path(os.environ.get("TILEWISE_OPENMPI_WORKER", ROOT / "build" / "openmpi" / "tilewise-worker"))
WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy")
NEWER = "partitioned"  # Open MPI 4 has no partitioned messages


@pytest.fixture
def open_mpi(tmp_path: Path) -> Tilewise:
    """The command with the worker on Open MPI, in a folder with A.npy (37×29) and B.npy (29×31)."""
    if not os.access(WORKER, os.X_OK):
        pytest.skip(f"there is no worker on Open MPI at {WORKER}")
    if shutil.which("mpiexec.openmpi") is None:
        pytest.skip("Open MPI is not installed")
    save(tmp_path, matrix((37, 29), seed=1), matrix((29, 31), seed=2))
    return Tilewise(tmp_path, environment(tmp_path, TILEWISE_WORKER=str(WORKER)))


def check(run: Tilewise) -> None:
    assert_product(run.folder / "C.npy", matrix((37, 29), seed=1), matrix((29, 31), seed=2))


@pytest.mark.parametrize(("algorithm", "exchange", "ranks", "io"), ways_to_multiply(NEWER))
def test_a_variant(open_mpi: Tilewise, algorithm: str, exchange: str | None, ranks: int, io: str) -> None:
    how = ["--exchange", exchange] if exchange else []
    record = record_of(
        open_mpi(*WORDS, "-n", ranks, "--algorithm", algorithm, *how, "--io", io, "--json", "-")
    )
    check(open_mpi)
    assert "Open MPI" in record["environment"]["mpi_library"]
    assert record["variant"]["ranks"] == ranks and record["verification"]["passed"] is True
    assert open_mpi.files() == {"A.npy", "B.npy", "C.npy"}


@pytest.mark.parametrize("exchange", ["one_sided_fence", "one_sided_lock", "shared"])
def test_layers_do_not_share_their_windows(open_mpi: Tilewise, exchange: str) -> None:
    """Open MPI may give windows of two groups of ranks the same memory; not always, so several times."""
    for _ in range(4):
        result = open_mpi(*WORDS, "-n", 4, "--algorithm", "replicated", "--exchange", exchange, "--force")
        assert result.returncode == 0, result.stderr
        check(open_mpi)


@pytest.mark.parametrize("shape", [(1, 7, 5), (2, 3, 1), (0, 4, 3), (3, 0, 2), (5, 1, 1)])
def test_shapes(open_mpi: Tilewise, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    left, right = matrix((m, k), "float32", 1), matrix((n, k), ">c16", 2, "F")
    save(open_mpi.folder, left, right)
    ways, written = list(ONE_FILE), [name for name in ONE_FILE if name not in ONLY_READ]
    for turn in (sum(shape), sum(shape) + 3):
        io = f"{ways[turn % len(ways)]}:{written[(turn + 1) % len(written)]}"
        result = open_mpi(*WORDS, "-n", 3, "--transpose-b", "--force", "--io", io)
        assert result.returncode == 0, (io, result.stderr)
        assert_product(open_mpi.folder / "C.npy", left, right.T)


def test_conversions(open_mpi: Tilewise) -> None:
    """A text and tiles there and back, and every way of reading and writing on a 2×2 grid."""
    matrix_ = numpy.load(open_mpi.folder / "A.npy")
    for ranks, name in ((3, "D.txt"), (2, "D.tiles"), (4, "D.mtx")):
        result = open_mpi("convert", "A.npy", "-o", name, "-n", ranks, "--verify", "fast", "-q")
        assert result.returncode == 0, result.stderr
        assert open_mpi("convert", name, "-o", "E.npy", "-n", 5 - ranks, "--force", "-q").returncode == 0
        assert numpy.array_equal(numpy.load(open_mpi.folder / "E.npy"), matrix_)
    for io in ONE_FILE:
        how = ("-n", 4, "--grid", "2x2", "--io", io, "--order", "F", "--force", "-q")
        result = open_mpi("convert", "A.npy", "-o", "E.npy", *how)
        assert result.returncode == 0, (io, result.stderr)
        assert numpy.array_equal(numpy.load(open_mpi.folder / "E.npy"), matrix_), io


@pytest.mark.parametrize("exchange", [each for each in exchanges_of(options_of("stencil")) if each != NEWER])
def test_stencils(open_mpi: Tilewise, exchange: str) -> None:
    """Every exchange gives the bits of one rank's plain sweeps."""
    words = ("stencil", "A.npy", "--steps", 5, "--boundary", "periodic", "--force", "-q", "-o")
    assert open_mpi(*words, "one.npy", "-n", 1, "--kernel", "plain").returncode == 0
    result = open_mpi(*words, "S.npy", "-n", 4, "--grid", "2x2", "--depth", 2, "--exchange", exchange)
    assert result.returncode == 0, result.stderr
    folder = open_mpi.folder
    assert (folder / "S.npy").read_bytes() == (folder / "one.npy").read_bytes()


@pytest.mark.parametrize(
    "exchange", [each for each in exchanges_of(options_of("transpose")) if each != NEWER]
)
def test_transpositions(open_mpi: Tilewise, exchange: str) -> None:
    for algorithm in ("gather", "swap"):
        how = ("-n", 3, "--algorithm", algorithm, "--exchange", exchange, "--force", "-q")
        result = open_mpi("transpose", "A.npy", "-o", "T.npy", *how)
        assert result.returncode == 0, result.stderr
        turned = numpy.load(open_mpi.folder / "T.npy")
        assert numpy.array_equal(turned, numpy.load(open_mpi.folder / "A.npy").T)


def test_an_exchange_of_a_newer_standard(open_mpi: Tilewise) -> None:
    """Done where the library has it, else refused with a name of one that is there."""
    result = open_mpi(
        "transpose", "A.npy", "-o", "T.npy", "-n", 3, "--algorithm", "swap", "--exchange", NEWER
    )
    if result.returncode:
        assert (
            NEWER in one_message(result, 2) and "Open MPI" in result.stderr and "nonblocking" in result.stderr
        )
    else:
        assert numpy.array_equal(
            numpy.load(open_mpi.folder / "T.npy"), numpy.load(open_mpi.folder / "A.npy").T
        )


def test_silence(open_mpi: Tilewise) -> None:
    result = open_mpi(*WORDS, "-n", 3, "-q")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_generate(open_mpi: Tilewise) -> None:
    for io in ONE_FILE:
        result = open_mpi(
            "generate", "-o", "G.npy", "--shape", "7x9", "--kind", "ramp", "-n", 3, "--io", io, "--force"
        )
        assert result.returncode == 0, result.stderr
        assert numpy.array_equal(numpy.load(open_mpi.folder / "G.npy"), numpy.arange(63.0).reshape(7, 9))


@pytest.mark.parametrize(
    ("ranks", "fault"),
    [(1, "kill:0:compute"), (2, "kill:1:exchange"), (4, "kill:2:output"), (3, "throw:1:compute")],
)
@pytest.mark.parametrize("exchange", ["overlap", "one_sided_fence"])
def test_a_rank_that_dies(open_mpi: Tilewise, ranks: int, fault: str, exchange: str) -> None:
    open_mpi.environment["TILEWISE_FAULT"] = fault
    with nothing_left(open_mpi, 6, settle=3):
        said = one_message(
            open_mpi(*WORDS, "--force", "-n", ranks, "--algorithm", "summa", "--exchange", exchange), 1
        )
    assert "SIGKILL" in said or "told to fail" in said


@pytest.mark.parametrize(("fault", "code"), [("fail:1", 1), ("element", 3), ("hang:1:compute", 1)])
def test_other_faults(open_mpi: Tilewise, fault: str, code: int) -> None:
    open_mpi.environment["TILEWISE_FAULT"] = fault
    limit = ("--timeout", 3) if "hang" in fault else ()
    with nothing_left(open_mpi, 7, settle=3):
        one_message(open_mpi(*WORDS, "--force", "-n", 3, *limit), code)


def test_ranks_that_open_mpi_started(open_mpi: Tilewise) -> None:
    open_mpi.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    launcher = (shutil.which("mpiexec.openmpi"), "--oversubscribe", "-n", 3)
    result = open_mpi(*WORDS, before=launcher)
    assert result.returncode == 0, result.stderr
    check(open_mpi)
    assert result.stdout.count("total ") == 1 and "3 ranks" in result.stdout
    with nothing_left(open_mpi, 5, settle=3):
        result = open_mpi("multiply", "A.npy", "A.npy", "-o", "C.npy", "--force", before=launcher)
    assert result.returncode == 2 and result.stderr.count("do not fit") == 1
    assert not processes_in(open_mpi.folder)
