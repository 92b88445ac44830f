"""What `tilewise svd` refuses, and what it plans: algorithm, blocks, exchange, types and memory."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy
import pytest
from conftest import InProcess, Tilewise, one_message
from machines import GIB, facts
from tilewise.base.errors import UsageError
from tilewise.files.region import Source
from tilewise.operations.svd.options import ALGORITHMS as SVD
from tilewise.operations.svd.options import Svd
from tilewise.operations.svd.plan import LOCAL_MAX
from tilewise.planning.need import Need
from tilewise.planning.plan import Plan


@pytest.mark.parametrize(
    ("words", "said", "advice"),
    [
        (("--components", 5), "--components 5 is more than a 6×4 matrix has", "--components 4"),
        (("--tolerance", 1e-30), "--tolerance 1e-30 cannot be reached: float64 rounds at 2.2e-16", "omit"),
        (("--kernel", "plain", "--inner", "blocks"), "contradict", "--inner rotations"),
        (("--start", "eigen", "--inner", "rotations"), "--start eigen and --inner rotations", "--start qr"),
        (("--start", "eigen", "--kernel", "plain"), "--start eigen and --kernel plain", "--start qr"),
        (("--algorithm", "serial", "-n", 2), "serial works on 1 rank only", "--algorithm jacobi"),
        (("--algorithm", "serial", "-t", 2), "serial works on 1 thread only", "or -t 1"),
        (("--algorithm", "local", "-n", 2), "local works on 1 rank only", "--algorithm jacobi"),
        (("--algorithm", "local", "--kernel", "plain"), "--kernel plain makes no sense with local", "jacobi"),
        (
            ("--algorithm", "local", "--remainder", "last"),
            "--remainder last makes no sense with local",
            "jac",
        ),
        (("--algorithm", "randomized"), "number of components", "--components 20, or --energy 0.99"),
        (("--algorithm", "local", "--tolerance", 0.1), "--tolerance makes no sense with local", "jacobi"),
        (
            ("--power", 1, "--inner", "blocks"),
            "--inner blocks is for jacobi and --power 1 for randomized",
            "",
        ),
        (
            ("--algorithm", "randomized", "--components", 2, "--repeat", 2),
            "--repeat and --warmup make no sense with randomized",
            "--algorithm jacobi",
        ),
        (("--exchange", "blocking", "--algorithm", "local"), "blocking makes no sense with local", "jacobi"),
        (("-n", 4, "--grid", "2x2"), "4 ranks form one row", "--grid 1x4"),
        (("-n", 3, "--grid", "1x4"), "3 ranks form one row", "--grid 1x3"),
        (("--memory", "1MiB"), "of memory on a node, but --memory allows", ""),
        (("--io", "per_rank"), "expects a folder of tiles", ""),
        (("--order", "F"), "svd has no flag --order", ""),
    ],
)
def test_what_is_refused(
    here: InProcess, fake: Tilewise, words: tuple[object, ...], said: str, advice: str
) -> None:
    before = fake.files()

    message = one_message(here("svd", "A.npy", "-o", "svd/", *words), 2)

    assert said in message and advice in message
    assert fake.files() == before


@pytest.mark.parametrize(
    ("name", "array", "said", "advice"),
    [
        ("h.npy", numpy.ones((3, 3), "float16"), "h.npy holds float16", "--dtype float32"),
        ("e.npy", numpy.ones((0, 3)), "e.npy is 0×3: it has no numbers", ""),
        ("v.npy", numpy.ones((3, 3, 3)), "v.npy has 3 dimensions", "v.npy[0]"),
    ],
)
def test_matrices_that_are_refused(
    here: InProcess, fake: Tilewise, name: str, array: object, said: str, advice: str
) -> None:
    numpy.save(fake.folder / name, array)

    message = one_message(here("svd", name, "-o", "svd"), 2)

    assert said in message and advice in message and "svd" not in fake.files()


def planned(
    shape: tuple[int, int] = (3000, 2000),
    dtype: str = "float64",
    cores: int = 8,
    available: int = 64 * GIB,
    **options: Any,
) -> Plan:
    source = Source(
        path="",
        name="A",
        rows=shape[0],
        columns=shape[1],
        dtype=dtype,
        generator="random",
        format="generated",
    )
    told = Svd(a="A", output="svd", **options)
    told.check()
    machine = facts(cores=cores, cpus=cores, memory_available=available)
    plan = told.plan([source], None, machine, None)
    return plan.required(lambda: told.what_fits(plan, None))


def test_few_components_of_a_large_matrix_are_sampled() -> None:
    assert planned(components=20).job.variant.algorithm == "randomized"
    assert planned(components=60).job.variant.algorithm == "two_stage"  # eigenvectors of its space take long
    assert planned(components=20, shape=(900, 900)).job.variant.algorithm == "two_stage"  # and this is quick
    long = {"components": 5, "shape": (30_000, 400)}
    assert planned(**long).job.variant.algorithm == "randomized"
    assert planned(**long | {"components": 50}).job.variant.algorithm == "two_stage"
    assert planned(components=20, shape=(900, 900), available=100 << 20).job.variant.algorithm == "randomized"


def test_how_many_have_a_share_is_found_by_a_full_decomposition_where_it_fits() -> None:
    assert planned(energy=0.9).job.variant.algorithm == "two_stage"
    assert planned(energy=0.9, shape=(400, 300)).job.variant.algorithm == "local"
    small = planned(energy=0.9, available=110 << 20)
    assert small.job.variant.algorithm == "randomized" and small.job.svd is not None
    assert 1 < small.job.svd.components < 2000 and small.job.svd.energy == 0.9
    assert small.need.node <= 110 << 20 and any("at most" in reason for reason in small.reasons)


def test_small_matrices_go_to_lapack_unless_ranks_are_asked_for() -> None:
    most = LOCAL_MAX
    assert planned(shape=(most + most // 2, most)).job.variant.algorithm == "local"
    assert planned(shape=(most, most + most // 2)).job.variant.algorithm == "local"
    assert planned(shape=(most + 1, most + 1)).job.variant.algorithm == "two_stage"
    assert planned(shape=(50, 50), ranks=2).job.variant.algorithm == "jacobi"
    assert planned(shape=(50, 50), ranks=1000).job.variant.algorithm == "two_stage"  # they have no core each
    assert planned(shape=(most, most), ranks=2).job.variant.algorithm == "two_stage"
    assert planned(shape=(50, 50), ranks=1).job.variant.algorithm == "local"


@pytest.mark.parametrize(
    ("options", "algorithm"),
    [
        ({"exchange": "blocking"}, "jacobi"),
        ({"kernel": "plain"}, "jacobi"),
        ({"remainder": "last"}, "jacobi"),
        ({"max_sweeps": 3}, "jacobi"),
        ({"start": "qr"}, "jacobi"),
        ({"tolerance": 1e-9}, "jacobi"),
        ({"power": 1, "components": 3}, "randomized"),
        ({"seed": 1, "components": 3}, "randomized"),
    ],
)
def test_flags_that_one_algorithm_knows_decide_for_it(options: dict[str, Any], algorithm: str) -> None:
    plan = planned(shape=(50, 40), **options)

    assert plan.job.variant.algorithm == algorithm
    assert any(reason.startswith(f"{algorithm}: --") for reason in plan.reasons)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("columns", [1, 2, 5, 63, 128, 1000, 4096])
def test_a_rank_has_two_blocks_and_a_lone_one_four(ranks: int, columns: int) -> None:
    choices = {"ranks": ranks, "threads": 2, "algorithm": "jacobi"}

    variant = planned(shape=(columns, 5000), **choices).job.variant

    at_work = min(ranks, -(-columns // 16))  # narrower blocks are more messages than they are worth
    assert variant.blocks == (4 if at_work == 1 and columns >= 8 else 2 * at_work)
    assert variant.grid == (1, ranks)
    assert variant.exchange == ("none" if ranks == 1 else "nonblocking")
    assert (variant.start, variant.inner) == ("eigen", "blocks")


def test_blocks_that_are_asked_for() -> None:
    choices = {"ranks": 2, "threads": 1}
    assert planned(shape=(90, 90), **choices, block_columns=1).job.variant.blocks == 90
    assert planned(shape=(91, 91), **choices, block_columns=1).job.variant.blocks == 92
    assert planned(shape=(91, 91), **choices, block_columns=16).job.variant.blocks == 6
    assert planned(shape=(91, 91), **choices, block_columns=4000).job.variant.blocks == 4
    last = {"ranks": 2, "threads": 1, "remainder": "last"}
    for columns, blocks in ((50, 24), (51, 24), (7, 4), (2, 4)):  # of 2 columns, where there are so many
        assert planned(shape=(columns, 200), **last, block_columns=2).job.variant.blocks == blocks
    plain = planned(shape=(91, 91), ranks=2, threads=3, kernel="plain").job.variant
    assert (plain.blocks, plain.inner, plain.start) == (12, "rotations", "qr")


def test_the_serial_program_is_planned_as_one_pair_on_one_thread() -> None:
    plan = planned(algorithm="serial", off_squares=1e-9, max_sweeps=40)
    variant, svd = plan.job.variant, plan.job.svd
    assert (variant.ranks, variant.threads, variant.blocks) == (1, 1, 2)
    assert (variant.start, variant.inner, variant.exchange) == ("none", "rotations", "none")
    assert svd is not None and (svd.off_squares, svd.max_sweeps, svd.keep_small) == (1e-9, 40, False)


def test_columns_as_they_are_need_no_rows_of_a_tall_matrix() -> None:
    for shape in ((3000, 2000), (9000, 900)):
        choices = {"shape": shape, "ranks": 4, "threads": 1}
        plan = planned(**choices, start="none")
        assert plan.fallback is None and plan.job.variant.start == "none"
        assert plan.need.node > 8 * 2 * shape[0] * shape[1]  # as they are read, and as they are swept


def test_overlap_where_there_is_something_to_do_meanwhile() -> None:
    choices = {"ranks": 2, "threads": 1}
    assert planned(shape=(90, 90), **choices, block_columns=23).job.variant.exchange == "nonblocking"
    assert planned(shape=(90, 90), **choices, block_columns=8).job.variant.exchange == "overlap"
    asked = {"ranks": 2, "threads": 1, "exchange": "overlap"}
    variant = planned(shape=(90, 90), **asked).job.variant
    assert (variant.exchange, variant.blocks) == ("overlap", 12)
    assert planned(shape=(90, 90), **asked, block_columns=23).job.variant.blocks == 4


def test_one_rank_exchanges_nothing_whatever_is_asked() -> None:
    plan = planned(ranks=1, exchange="blocking")

    assert plan.job.variant.exchange == "none"
    assert any("no partner to exchange with" in reason for reason in plan.reasons)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float32", "float32"), ("float64", "float64"), ("int8", "float64"), ("uint64", "float64")],
)
def test_the_types_of_factors(dtype: str, expected: str) -> None:
    plan = planned(dtype=dtype, shape=(30, 20))

    assert plan.job.dtype == expected and {piece.dtype for piece in plan.pieces} == {expected}
    assert [(piece.file, piece.shape) for piece in plan.pieces] == [
        ("U.npy", (30, 20)),
        ("s.npy", (20,)),
        ("Vt.npy", (20, 20)),
    ]


def test_every_run_is_proved_unless_that_is_not_wanted() -> None:
    assert planned().job.verify == "fast"
    off = planned(verify="off").job
    assert off.verify == "off" and off.svd is not None and not off.svd.require_converged
    assert planned(verify="serial").job.verify == "serial"


@pytest.mark.parametrize("name", SVD)
def test_memory_grows_with_the_matrix_but_not_where_it_is_read_in_panels(name: str) -> None:
    def needed(rows: int, memory: int | None = None) -> int:
        choices = {"ranks": 1, "algorithm": name, "memory": memory}
        return planned(shape=(rows, 1000), dtype="float32", **choices, components=20).need.node

    small, large = needed(20_000), needed(200_000)
    if name == "randomized":
        assert large < 256 << 20 and needed(200_000, 256 << 20) <= 256 << 20
        assert large - small < 180_000 * 30 * 4 * 8  # rows of the sketch, a few times
        return
    if name == "tall":
        assert needed(200_000) == needed(20_000_000) and needed(200_000, 256 << 20) <= 256 << 20
        return
    assert large - small >= 180_000 * 1000 * 4
    with pytest.raises(UsageError, match="of memory on a node") as raised:
        needed(200_000, 256 << 20)
    assert "randomized" in raised.value.advice


def advice(memory: int, ranks: int | None = None, **wanted: object) -> str:
    choices = {"ranks": ranks, "threads": 1, "memory": memory, "algorithm": "jacobi"}
    with pytest.raises(UsageError, match=r"needs .* of memory on a node, but --memory allows") as raised:
        planned(shape=(3000, 1000), **choices, **wanted)
    return raised.value.advice


def least_memory(**options: Any) -> int:
    """The lowest cap at which a decomposition is not refused."""
    low, high = 0, 64 * GIB
    while high - low > 1:
        middle = (low + high) // 2
        try:
            planned(shape=(3000, 1000), memory=middle, **options)
            high = middle
        except UsageError:
            low = middle
    return high


def test_a_cap_takes_narrow_pairs() -> None:
    """By `qr`, which what starts by `eigen` may fall back to, wide ones take twice as much."""
    for start in ("eigen", "qr"):
        choices = {"ranks": 1, "threads": 1, "algorithm": "jacobi", "memory": 120 << 20}
        narrow = planned(shape=(2000, 1000), **choices, start=start)
        wide = planned(shape=(2000, 1000), ranks=1, threads=1, start=start)
        blocks = [
            plan.fallback.blocks if plan.fallback else plan.job.variant.blocks for plan in (narrow, wide)
        ]
        assert blocks == [4, 2]
        assert narrow.job.svd is not None
        assert narrow.job.svd.qr_blocks == (4 if start == "eigen" else 0)


def test_what_does_not_fit_says_what_would() -> None:
    """The smallest --memory, which plans are made with to find it, and what needs less."""
    one = least_memory(ranks=1, threads=1, algorithm="jacobi")
    two = least_memory(ranks=2, threads=1, algorithm="jacobi")
    enough = f"--memory {-(-one >> 20)}MiB"
    assert advice(one, ranks=2) == f"--memory {-(-two >> 20)}MiB, or -n 1"
    assert advice(one - 1).startswith(f"{enough}, or --algorithm randomized --components 20: ")
    assert (
        advice(one * 7 // 8, ranks=1, components=30).split(", or ")[1].startswith("--algorithm randomized: ")
    )
    assert advice(one // 2, components=990) == enough
    assert advice(10 << 20) == enough


def test_numbers_that_would_read_the_same_are_said_to_the_byte() -> None:
    choices = {"ranks": 1, "algorithm": "jacobi"}
    most = planned(**choices).need.node
    with pytest.raises(UsageError, match=f"needs {most} bytes of memory .* allows {most - 1} bytes"):
        planned(ranks=1, algorithm="jacobi", memory=most - 1)


def test_windows_take_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def needed(exchange: str, ranks: int = 4, **more: object) -> Need:
        choices = {"ranks": ranks, "threads": 1, "algorithm": "jacobi", "exchange": exchange}
        return planned(shape=(2000, 2000), **choices, **more).need

    one = 4 * 250 * (2000 + 2000) * 8  # two blocks from either side; eight blocks of 250 columns of X and V
    assert needed("one_sided_lock").shared == 4 * one
    assert needed("one_sided_lock", values_only=True).shared == 2 * one
    assert needed("blocking").shared == needed("one_sided_lock", ranks=1).shared == 0
    assert needed("one_sided_lock").node > needed("blocking").node
    small = facts(cores=8, cpus=8, shared_memory=one)
    monkeypatch.setattr(sys.modules[__name__], "facts", lambda **changes: small)
    with pytest.raises(UsageError, match="--exchange one_sided_lock needs .* in /dev/shm"):
        needed("one_sided_lock")


def test_what_the_worker_is_told(here: InProcess, fake: Tilewise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_JOB", str(fake.folder / "job.json"))
    words = ("-n", 1, "--algorithm", "jacobi", "--components", 3, "--max-sweeps", 7, "--tolerance", 1e-9)

    assert here("svd", "A.npy", "-o", "svd/", *words, "--scaled").returncode == 0

    job = json.loads((fake.folder / "job.json").read_text())
    svd = job["svd"]
    assert job["command"] == "svd" and job["output"] is None and job["stencil"] is None
    assert (svd["components"], svd["max_sweeps"], svd["tolerance"], svd["scaled"]) == (3, 7, 1e-9, True)
    shapes = {name: (svd[name]["rows"], svd[name]["columns"]) for name in ("u", "s", "vt", "us")}
    assert shapes == {"u": (6, 3), "s": (1, 3), "vt": (3, 4), "us": (6, 3)}
    assert svd["u"]["name"] == "svd/U.npy" and svd["u"]["order"] == "C" and svd["u"]["dtype"] == "float64"


def test_a_plan_is_printed(here: InProcess, fake: Tilewise) -> None:
    result = here("plan", "svd", "A.npy", "-o", "svd", "-n", 2)

    assert result.returncode == 0 and "svd" not in fake.files()
    for words in ("U.npy 6×4, s.npy 4, Vt.npy 4×4", "jacobi", "nonblocking", "verify", "2 ranks"):
        assert words in result.stdout
    sampled = here("plan", "svd", "random:9000x3000:float32", "-o", "svd", "--components", 20)
    assert (
        "blocks of 20 + 10 vectors, a space of at most 240, until each component is exact" in sampled.stdout
    )


def test_pictures_are_taken_as_grey(here: InProcess, fake: Tilewise) -> None:
    from PIL import Image

    Image.fromarray(numpy.zeros((8, 9, 3), "uint8")).save(fake.folder / "a.png")

    result = here("plan", "svd", "a.png", "-o", "svd")

    assert result.returncode == 0 and "grey value" in result.stdout and "U.npy 8×8" in result.stdout
