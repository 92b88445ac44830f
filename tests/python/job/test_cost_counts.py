"""Counts of the cost formulas against those of ranks, real and simulated: messages, bytes, operations."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator

import pytest
from conftest import InProcess
from tilewise.base import programs
from tilewise.cli import jobs
from tilewise.engine.prepare import prepare
from tilewise.launch.simulated import NAME
from tilewise.operations import options_of
from tilewise.operations.prediction import cost_of
from tilewise.planning.cost import Cost

SIMULATES = shutil.which("smpirun") is not None and programs.first(programs.places(NAME)) is not None
RATES = "12.5GB/s:1.5us:40GF/s:10GB/s"
REAL, MANY, PRIME = 4, 16, 61
_SORTS = ("", "overlap", "collective", "one_sided_lock", "persistent")
SHAPES = [(203, 157, 181), (3, 4000, 700), (5, 7, 3)]


def _cost(words: list[str]) -> Cost:
    asked = jobs.asked_of(words[0], words[1:])
    assert asked is not None
    output = prepare(asked.request)
    return cost_of(output.plan, output.target)


@pytest.fixture
def same(inside: InProcess) -> Callable[..., None]:
    """Runs a job and compares what was counted with the formulas."""

    def check(*words: object) -> None:
        arguments = [*map(str, words), "--force"]
        cost = _cost(arguments)
        ended = inside(*arguments, "-q", "--json", "-")
        assert ended.returncode == 0, ended.stderr
        record = json.loads(ended.stdout)
        assert cost.messages == record["messages"]
        assert cost.exchanged == record["bytes"]["exchanged"]
        assert cost.flops == record["flops"]

    return check


def _ways(command: str, many: int) -> Iterator[tuple[str, str, int]]:
    """Every way on a few real ranks; on `many` simulated ones an exchange of each sort."""
    for name, algorithm in options_of(command).algorithms.items():
        for exchange in algorithm.exchanges or ("",):
            yield name, exchange, REAL
            if exchange in _SORTS:
                yield name, exchange, many


def _how(algorithm: str, exchange: str, ranks: int) -> list[object]:
    simulated = ["--simulate", f"{ranks}x1:{RATES}"] if ranks > REAL else []
    return [
        "--algorithm",
        algorithm,
        *(["--exchange", exchange] if exchange else []),
        "-n",
        ranks,
        *simulated,
    ]


def _possible(ranks: int) -> None:
    if ranks > REAL and not SIMULATES:
        pytest.skip("simulated ranks need SimGrid and `make simulator`")


@pytest.mark.parametrize(
    ("algorithm", "exchange", "ranks"), [way for way in _ways("multiply", MANY) if way[0] != "local"]
)
def test_products(same: Callable[..., None], algorithm: str, exchange: str, ranks: int) -> None:
    _possible(ranks)
    for m, k, n in SHAPES if ranks == REAL else SHAPES[:2]:
        how = _how(algorithm, exchange, ranks)
        same("multiply", f"random:{m}x{k}", f"random:{k}x{n}", "-o", "C.npy", *how)


@pytest.mark.parametrize("algorithm", ["summa", "replicated"])
def test_products_on_a_prime_number_of_ranks(same: Callable[..., None], algorithm: str) -> None:
    _possible(PRIME)
    how = _how(algorithm, "overlap", PRIME)
    same(
        "multiply",
        "random:900x1700",
        "random:1700x600:complex128",
        "-o",
        "C.npy",
        *how,
        "--remainder",
        "last",
    )


@pytest.mark.parametrize(("algorithm", "exchange", "ranks"), list(_ways("transpose", PRIME)))
def test_transpositions(same: Callable[..., None], algorithm: str, exchange: str, ranks: int) -> None:
    _possible(ranks)
    for rows, columns in ((203, 157), (3, 50)):
        same("transpose", f"random:{rows}x{columns}", "-o", "T.npy", *_how(algorithm, exchange, ranks))


@pytest.mark.parametrize("ranks", [REAL, MANY])
@pytest.mark.parametrize(
    ("cut", "boundary"), list(itertools.product(("rows", "columns", "grid"), ("periodic", "zero")))
)
def test_stencils(same: Callable[..., None], cut: str, boundary: str, ranks: int) -> None:
    _possible(ranks)
    simulated = ["--simulate", f"{ranks}x1:{RATES}"] if ranks > REAL else []
    how = ["--steps", 7, "--decomposition", cut, "--boundary", boundary, "-n", ranks, *simulated]
    field = ("random:47x61", "-o", "S.npy")
    for depth, weights, exchange in (
        (1, "star5", "nonblocking"),
        (2, "star5", "overlap"),
        (1, "box3", "blocking"),
    ):
        same("stencil", *field, *how, "--depth", depth, "--weights", weights, "--exchange", exchange)
    same("stencil", *field, *how, "--weights", "star9", "--exchange", "persistent")


def test_halos_number_by_number(same: Callable[..., None]) -> None:
    same("stencil", "random:40x30", "-o", "S.npy", "--steps", 3, "-n", 2, "--halo", "elementwise")


def test_a_margin_wider_than_the_next_part(same: Callable[..., None]) -> None:
    how = ("--steps", 4, "-n", 4, "--boundary", "periodic", "--weights", "star9", "--exchange", "nonblocking")
    same("stencil", "random:9x40", "-o", "S.npy", *how, "--decomposition", "rows", "--depth", 1)
