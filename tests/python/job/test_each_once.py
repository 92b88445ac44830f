"""Each operation by each algorithm with each exchange, each strategy and each format, once, against numpy.

The names come from the registry. `make test` runs all of these cases, and a few of tests elsewhere that have
many.
"""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from conftest import Tilewise
from oracle import matrix
from stencil_runs import swept
from svd_runs import assert_decomposed
from tilewise.files.formats import FORMATS, format_of
from tilewise.operations import OPERATIONS, options_of
from tilewise.planning.names import IO, ONLY_READ, Algorithm

WITHOUT_CHILD = EVERY_CASE = True
SHAPE = (31, 17)
A = matrix(SHAPE, seed=1)
B = matrix((17, 23), seed=2)
RANKS = (4, 3, 2, 1)
# Words of each operation besides its inputs and output.
WORDS: dict[str, tuple[str, ...]] = {
    "stencil": ("--steps", "3", "--weights", "star5"),
    "generate": ("--shape", "31x17"),
}


def ways(command: str) -> list[tuple[Algorithm, str]]:
    """Each algorithm of an operation with each exchange that it can use; one without any stands alone."""
    return [
        (algorithm, exchange)
        for algorithm in options_of(command).algorithms.values()
        for exchange in algorithm.exchanges or ("",)
    ]


def run(tilewise: Tilewise, command: str, output: str, *words: str) -> None:
    files = {"multiply": ("A.npy", "B.npy"), "generate": ()}.get(command, ("A.npy",))
    numpy.save(tilewise.folder / "A.npy", A)
    numpy.save(tilewise.folder / "B.npy", B)
    target = ("-o", output) if options_of(command).writes else ()
    ended = tilewise(command, *files, *target, *WORDS.get(command, ()), *words, "-t", "1")
    assert ended.returncode == 0, ended.stderr


def check(tilewise: Tilewise, command: str, output: str) -> None:
    """Compares what was written with numpy, scipy and LAPACK."""
    path = tilewise.folder / output
    if command == "svd":
        few = len(numpy.load(path / "s.npy"))
        assert_decomposed(path, A, components=few, exact=few == 17)
        return
    expected: dict[str, Any] = {
        "multiply": lambda: A @ B,
        "transpose": lambda: A.T,
        "stencil": lambda: swept(A, "star5", "zero", 3),
        "convert": lambda: A,
    }
    assert numpy.allclose(numpy.load(path), expected[command](), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("command", "algorithm", "exchange"),
    [(name, *way) for name in OPERATIONS for way in ways(name)],
    ids=lambda value: getattr(value, "name", value) or "none",
)
def test_an_algorithm_with_an_exchange(
    tilewise: Tilewise, command: str, algorithm: Algorithm, exchange: str
) -> None:
    ranks = next(count for count in RANKS if algorithm.takes(count))
    asked = (algorithm.example.replace("20", "5") or algorithm.name).split()
    chosen = ("--exchange", exchange) if exchange else ()

    output = "C" if options_of(command).several else "C.npy"

    run(tilewise, command, output, "--algorithm", *asked, *chosen, "-n", str(ranks))

    check(tilewise, command, output)


@pytest.mark.parametrize("name", IO)
def test_a_strategy(tilewise: Tilewise, name: str) -> None:
    numpy.save(tilewise.folder / "A.npy", A)
    ending = ".tiles" if name == "per_rank" else ".npy"
    written = "positioned" if name in ONLY_READ else name
    steps = ("A.npy", f"B{ending}", f"positioned:{written}"), (f"B{ending}", "C.npy", f"{name}:positioned")

    for source, target, io in steps:
        ended = tilewise("convert", source, "-o", target, "--io", io, "-n", "2")
        assert ended.returncode == 0, ended.stderr

    assert numpy.array_equal(numpy.load(tilewise.folder / "C.npy"), A)


# Colour images, .ppm among them, are written where one is read: test_stencil_files.
@pytest.mark.parametrize(
    "ending", [ending for ending in FORMATS if format_of(f"A{ending}").numbers and ending != ".ppm"]
)
def test_a_format(tilewise: Tilewise, ending: str) -> None:
    """There and back: small whole numbers, which every format holds, and JPEG nearly."""
    whole = numpy.arange(15.0).reshape(5, 3)
    numpy.save(tilewise.folder / "A.npy", whole)
    numbers = format_of(f"A{ending}").numbers
    dtype = "float64" if "float64" in numbers else "uint8"
    source = f"B.raw:5x3:{dtype}" if ending == ".raw" else f"B{ending}"

    for words in (
        ("A.npy", "-o", f"B{ending}", "--dtype", dtype),
        (source, "-o", "C.npy", "--dtype", "float64"),
    ):
        ended = tilewise("convert", *words)
        assert ended.returncode == 0, ended.stderr

    slack = 3 if ending in (".jpg", ".jpeg") else 0
    assert numpy.allclose(numpy.load(tilewise.folder / "C.npy"), whole, rtol=0, atol=slack)


@pytest.mark.parametrize("command", [name for name in OPERATIONS if not options_of(name).algorithms])
def test_an_operation_without_algorithms(tilewise: Tilewise, command: str) -> None:
    run(tilewise, command, "C.npy")

    if options_of(command).writes:
        assert numpy.load(tilewise.folder / "C.npy").shape == SHAPE
