"""Simulated ranks: every variant at counts that no machine here has, against numpy, formulas and itself."""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import Done, InProcess, Tilewise, one_message
from numpy.typing import NDArray
from tilewise.base import programs
from tilewise.launch.simulated import NAME
from tilewise.operations.multiply.options import ALGORITHMS as PRODUCTS
from tilewise.operations.svd.options import ALGORITHMS as DECOMPOSITIONS
from tilewise.operations.transpose.options import ALGORITHMS as TRANSPOSITIONS
from tilewise.planning.names import EXCHANGES, Algorithm

pytestmark = [
    pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid is not installed: no smpirun"),
    pytest.mark.skipif(
        programs.first(programs.places(NAME)) is None,
        reason="the worker for simulated ranks is not built. Try: make simulator",
    ),
]
JOB = ("multiply", "--force")
RATES = "12.5GB/s:1.5us:40GF/s:10GB/s"
SQUARE, PRIME = 16, 61
M, K, N = 203, 157, 181
STEPS = 7
PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/simulate-a-cluster.md"


def _variants(command: str, algorithms: dict[str, Algorithm]) -> Iterator[tuple[str, str, str, int]]:
    for name, algorithm in algorithms.items():
        ranks = next((count for count in (PRIME, SQUARE) if algorithm.takes(count)), 1)
        for exchange in (algorithm.exchanges or ("",)) if ranks > 1 else ():
            yield command, name, exchange, ranks


def _swept(field: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    for _ in range(STEPS):
        around = sum(numpy.roll(field, by, axis) for by in (1, -1) for axis in (0, 1))
        field = 0.6 * field + 0.1 * around
    return field


@pytest.fixture(scope="module")
def matrices(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("matrices")
    rng = numpy.random.default_rng(1)
    numpy.save(folder / "A.npy", rng.random((M, K)))
    numpy.save(folder / "B.npy", rng.random((K, N)))
    return folder / "A.npy", folder / "B.npy"


def _run(inside: InProcess, *words: object) -> None:
    ended = inside(*words, "--force", "-q")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("command", "algorithm", "exchange", "ranks"),
    [
        *_variants("multiply", PRODUCTS),
        *_variants("transpose", TRANSPOSITIONS),
        *_variants("svd", DECOMPOSITIONS),
        *(("stencil", "rows", exchange, PRIME) for exchange in EXCHANGES),
        *(("stencil", cut, "overlap", SQUARE) for cut in ("columns", "grid")),
    ],
)
def test_every_variant(
    inside: InProcess, matrices: tuple[Path, Path], command: str, algorithm: str, exchange: str, ranks: int
) -> None:
    if exchange in ("partitioned", "shared") or (exchange == "collective" and command == "stencil"):
        pytest.skip("SMPI lacks partitioned messages and graphs of neighbours, and has shared windows wrong")
    a, b = matrices
    how = [
        *(["--exchange", exchange] if exchange else []),
        "--simulate",
        f"{ranks}x1:{RATES}",
        "-n",
        ranks,
    ]
    left = numpy.load(a)
    if command == "multiply":
        _run(inside, command, a, b, "-o", "C.npy", "--algorithm", algorithm, *how)
        assert numpy.allclose(numpy.load("C.npy"), left @ numpy.load(b), rtol=1e-12)
    elif command == "transpose":
        _run(inside, command, a, "-o", "T.npy", "--algorithm", algorithm, *how)
        assert numpy.array_equal(numpy.load("T.npy"), left.T)
    elif command == "stencil":
        cut = ["--decomposition", algorithm, "--steps", STEPS, "--boundary", "periodic"]
        _run(inside, command, a, "-o", "S.npy", *cut, *how)
        assert numpy.allclose(numpy.load("S.npy"), _swept(left), rtol=1e-12)
    else:
        few = ["--components", 5] if algorithm == "randomized" else []
        _run(inside, command, a, "-o", "factors", "--algorithm", algorithm, *few, *how)
        found = numpy.load("factors/s.npy").ravel()
        assert numpy.allclose(found, numpy.linalg.svd(left, compute_uv=False)[: len(found)], rtol=1e-6)


def test_jacobi_shares_out_what_rank_0_would_do_alone(inside: InProcess, tmp_path: Path) -> None:
    """From four nodes and 512 columns on; 200 singular values are the same."""
    rng = numpy.random.default_rng(2)
    left, right = (numpy.linalg.qr(rng.standard_normal((rows, 513)))[0] for rows in (530, 513))
    sigma = numpy.concatenate([numpy.full(200, 5.0), numpy.linspace(4, 1, 313)])
    numpy.save(tmp_path / "A.npy", left * sigma @ right.T)
    how = ("--algorithm", "jacobi", "--simulate", f"7x1:{RATES}")
    _run(inside, "svd", tmp_path / "A.npy", "-o", "factors", *how)
    u, s, vt = (numpy.load(f"factors/{name}.npy") for name in ("U", "s", "Vt"))
    assert numpy.allclose(s.ravel(), sigma, rtol=1e-13)
    assert numpy.allclose(u * s @ vt, left * sigma @ right.T, atol=1e-12)


def _numberless(done: Done, n: int, ranks: int, *words: object) -> dict[str, Any]:
    square = f"random:{n}x{n}"
    cluster = ["--simulate", f"{ranks}x1:{RATES}", "-n", ranks]
    return done(square, square, "-o", "none", *cluster, "--exchange", "overlap", *words)


@pytest.mark.parametrize("ranks", [16, 64])
@pytest.mark.parametrize("algorithm", ["cannon", "summa"])
def test_what_ranks_receive(done: Done, algorithm: str, ranks: int) -> None:
    n, side = 1024, math.isqrt(ranks)
    record = _numberless(done, n, ranks, "--algorithm", algorithm)
    assert record["bytes"]["exchanged"] == 2 * (side - 1) * n * n * 8
    if algorithm == "cannon":
        assert record["messages"] == 2 * (side - 1) * ranks
    assert record["outputs"] == [] and record["verification"] is None
    assert record["seconds"]["compute"]["max"] == pytest.approx(2 * n**3 / ranks / 40e9, rel=1e-3)


def test_a_result_repeats_to_the_last_digit(done: Done) -> None:
    first, second = (_numberless(done, 2048, 25, "--algorithm", "summa") for _ in range(2))
    for record in (first, second):
        del record["seconds"]["wall"]
    assert first["seconds"] == second["seconds"]


def test_numbers_take_no_time(done: Done) -> None:
    """With numbers and without, the simulated course is the same."""
    without = _numberless(done, 512, 16, "--algorithm", "cannon")
    square = "random:512x512"
    cluster = ["--simulate", f"16x1:{RATES}", "-n", 16, "--exchange", "overlap", "--algorithm", "cannon"]
    with_numbers = done(square, square, "-o", "C.npy", *cluster, "--verify", "off")
    for what in ("compute", "exchange"):
        there, here = (record["samples"][0][what] for record in (with_numbers, without))
        assert there == pytest.approx(here, rel=1e-6, abs=1e-9)


def test_memory_shrinks_with_the_ranks(done: Done) -> None:
    few, many = (_numberless(done, 4096, ranks, "--algorithm", "cannon") for ranks in (16, 64))
    assert few["peak_rss_bytes"]["max_rank"] == 4 * many["peak_rss_bytes"]["max_rank"]


def test_records_say_what_was_simulated(done: Done) -> None:
    record = _numberless(done, 256, 4)
    assert record["environment"]["simulated"] == {
        "cluster": f"4x1:{RATES}",
        "hosts": 4,
        "cores": 1,
        "operations_per_second": 40e9,
        "bytes_per_second": 10e9,
        "numbers": False,
    }
    assert [place["host"] for place in record["placement"]] == [f"node-{rank}" for rank in range(4)]
    assert record["peak_flops"] is None and record["fraction_of_peak"] is None


def test_computing_is_timed_where_no_rate_is_given(done: Done, matrices: tuple[Path, Path]) -> None:
    record = done(*matrices, "-o", "C.npy", "--simulate", "4x1:1GB/s:5us", "-n", 4)
    assert record["seconds"]["compute"]["max"] > 0
    assert record["environment"]["simulated"]["operations_per_second"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--simulate", "there-is-none"), "there is no such file"),
        (("--simulate", "4x1:fast:1us"), "'fast' is not a number such as 12.5GB/s"),
        (("--simulate", "0x1:1GB/s:1us"), "at least one host"),
        (("--simulate", "4x1:1.2.3GB/s:1us"), "is not a number"),
        (("--simulate", "."), "there is no such file"),
        (("--simulate", f"4x1:{RATES}", "-o", "none", "--resume"), "nothing to keep"),
        (("--simulate", f"4x1:{RATES}", "-t", 2), "have one thread each"),
        (("--simulate", "4x1:1GB/s:1us", "-o", "none"), "needs to know how fast a core is"),
        (("--simulate", f"4x1:{RATES}", "-o", "none", "--verify", "fast"), "has no numbers"),
        (("-o", "none"), "has no extension"),
    ],
)
def test_refusals(inside: InProcess, words: tuple[object, ...], said: str) -> None:
    output = [] if "-o" in words else ["-o", "C.npy"]
    assert said in one_message(inside("multiply", "random:8x8", "random:8x8", *words, *output), 2)


@pytest.mark.parametrize("exchange", ["shared", "partitioned"])
def test_what_the_simulator_lacks(inside: InProcess, exchange: str) -> None:
    words = ("-o", "C.npy", "--simulate", f"1x4:{RATES}", "-n", 4, "--algorithm", "cannon")
    ended = inside("multiply", "random:8x8", "random:8x8", *words, "--exchange", exchange)
    assert "SMPI" in one_message(ended, 2)
    ended = inside("multiply", "random:8x8", "random:8x8", *words, "--force")
    assert ended.returncode == 0, ended.stderr


def test_without_numbers_no_file_is_read(inside: InProcess, matrices: tuple[Path, Path]) -> None:
    ended = inside("transpose", matrices[0], "-o", "none", "--simulate", f"4x1:{RATES}")
    assert "no file is read" in one_message(ended, 2)
    ended = inside("svd", "random:8x8", "-o", "none", "--simulate", f"4x1:{RATES}")
    assert "depends on its numbers" in one_message(ended, 2)


def test_a_platform_of_simgrid(inside: InProcess, tmp_path: Path) -> None:
    (tmp_path / "two.xml").write_text(
        "<?xml version='1.0'?><!DOCTYPE platform SYSTEM 'https://simgrid.org/simgrid.dtd'>"
        "<platform version='4.1'><zone id='z' routing='Full'><host id='left' speed='1Gf'/>"
        "<host id='right' speed='1Gf'/><link id='wire' bandwidth='1GBps' latency='10us'/>"
        "<route src='left' dst='right'><link_ctn id='wire'/></route></zone></platform>"
    )
    _run(inside, "multiply", "random:64x64", "random:64x64", "-o", "C.npy", "--simulate", "two.xml", "-n", 2)
    (tmp_path / "bad.xml").write_text("<platform")
    ended = inside("transpose", "random:8x8", "-o", "T.npy", "--simulate", "bad.xml")
    assert "no platform file" in one_message(ended, 2)


def test_a_network_as_it_was_measured(inside: InProcess) -> None:
    """One number of a message's seconds for ranks of one host, another for ranks of two."""
    near, far = (1e-6, 1e-6 + 2 * 4e6 / 4e9), (40e-6, 40e-6 + 2 * 4e6 / 100e6)  # there and back
    lines = [
        {"kind": "ping", "pattern": "roundtrip", "level": level, "pairs": 1, "bytes": size}
        | {"summary": {"minimum": seconds}}
        for level, both in (("core", near), ("node", far))
        for size, seconds in zip((0, 4_000_000), both, strict=True)
    ]
    Path("ping.json").write_text(json.dumps({"lines": lines}))
    square = "random:1024x1024"
    for cluster, latency, bandwidth in (("1x2", 0.5e-6, 4e9), ("2x1", 20e-6, 100e6)):
        words = ("--simulate", f"{cluster}:ping.json:40GF/s:10GB/s", "-n", 2, "--exchange", "nonblocking")
        ended = inside("transpose", square, "-o", "none", "--algorithm", "swap", *words, "-q", "--json", "-")
        record = json.loads(ended.stdout)
        each = record["bytes"]["exchanged"] / 2  # to the other rank, while as much comes back
        assert each == 1024 * 1024 * 8 / 4
        assert record["seconds"]["exchange"]["max"] == pytest.approx(latency + each / bandwidth, rel=0.02)


@pytest.mark.parametrize(
    "block", re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
)
def test_the_commands_of_the_page(tilewise: Tilewise, block: str) -> None:
    for line in block.splitlines():
        ended = tilewise(*shlex.split(line)[1:])
        assert ended.returncode == 0, ended.stderr
        if "study" in line:
            (told,) = tilewise.folder.glob("results/*/*/environment.json")
            assert f"simulated: 64x1:{RATES}" in told.read_text() and "failed" not in ended.stdout


def test_a_study_is_simulated_as_a_whole_or_not_at_all(here: InProcess, tmp_path: Path) -> None:
    runs = '[[runs]]\nname = "{}"\naxes.ranks = [1]\n{}\n'
    text = 'title = "t"\ncommand = "transpose"\nwords = ["random:8x8"]\noutput = "T.npy"\n'
    simulated = f'axes.simulate = ["4x1:{RATES}"]'
    (tmp_path / "mixed.toml").write_text(text + runs.format("a", simulated) + runs.format("b", ""))
    assert "takes two studies" in one_message(here("study", "run", "mixed.toml", "--dry-run"), 2)
    (tmp_path / "all.toml").write_text(text + runs.format("a", simulated))
    words = ("study", "run", "all.toml", "--dry-run", "--simulate", f"4x1:{RATES}")
    assert "says itself" in one_message(here(*words), 2)
