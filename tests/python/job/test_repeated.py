"""`--repeat` and `--warmup`: the books are those of one repetition, whatever was repeated."""

from __future__ import annotations

import json
from typing import Any

import numpy
import pytest
from conftest import InProcess, Tilewise, one_message
from tilewise.operations.multiply.options import ALGORITHMS as MULTIPLY
from tilewise.operations.stencil.options import ALGORITHMS as STENCIL
from tilewise.operations.svd.options import ALGORITHMS as SVD
from tilewise.operations.transpose.options import ALGORITHMS as TRANSPOSE
from tilewise.planning.names import EXCHANGES

_OF_TIME = ("points_per_second", "gflops", "copy_bytes_per_second", "fraction_of_copy")


def books(record: dict[str, Any]) -> dict[str, Any]:
    """What a job moved, called and computed; nothing of how long that took."""
    told = {key: record[key] for key in ("bytes", "messages", "io_calls", "flops", "ranks_working")}
    return told | {key: value for key, value in record["result"].items() if key not in _OF_TIME}


@pytest.mark.parametrize("command", ["multiply", "transpose", "stencil", "svd"])
def test_repetitions_are_counted_once(tilewise: Tilewise, inside: InProcess, command: str) -> None:
    """Every algorithm and every exchange, on 2 and 4 ranks in turn."""
    generator = numpy.random.default_rng(5)
    numpy.save(tilewise.folder / "A.npy", generator.standard_normal((37, 23)))
    numpy.save(tilewise.folder / "B.npy", generator.standard_normal((23, 29)))
    words: dict[str, tuple[object, ...]] = {
        "multiply": ("A.npy", "B.npy", "-o", "C.txt"),
        "transpose": ("A.npy", "-o", "C.npy"),
        "stencil": ("A.npy", "-o", "C.npy", "--steps", 9, "--depth", 2, "--snapshot-every", 4),
        "svd": ("A.npy", "-o", "D"),
    }
    table = {"multiply": MULTIPLY, "transpose": TRANSPOSE, "stencil": STENCIL, "svd": SVD}[command]
    for place, (name, algorithm) in enumerate(table.items()):
        if name in ("staged", "randomized", "tall"):
            continue
        exchanges = [each for each in EXCHANGES if each in algorithm.exchanges] or [None]
        if len(table) > 1:  # half of them for one algorithm, the other half for the next
            exchanges = exchanges[place % 2 :: 2] or exchanges
        for at, exchange in enumerate(exchanges):
            ranks = next((n for n in (2 + 2 * (at % 2), 4, 1) if algorithm.takes(n)), 1)
            way = ("-n", ranks, *(("--exchange", exchange) if exchange and ranks > 1 else ()))
            way += ("--algorithm", name) if command != "stencil" else ()
            found = []
            for again in ((), ("--repeat", 3, "--warmup", 1)):
                ended = inside(command, *words[command], *way, *again, "--force", "-q", "--json", "r.json")
                assert ended.returncode == 0, ended.stderr
                found.append(json.loads((tilewise.folder / "r.json").read_text()))
            assert books(found[0]) == books(found[1]), (name, exchange, ranks)
            assert [len(record["samples"]) for record in found] == [1, 3]


def test_seconds_are_those_of_the_median_repetition(tilewise: Tilewise, inside: InProcess) -> None:
    for command, *more in (
        ("multiply", "random:300x300", "random:300x300"),
        ("stencil", "random:300x300", "--steps", 20),
        ("transpose", "random:300x300", "--algorithm", "reread"),
        ("svd", "random:90x60", "--algorithm", "local"),
    ):
        words = (command, *more, "-o", "C.npy" if command != "svd" else "D", "-n", 1, "--force", "-q")
        ended = inside(*words, "--repeat", 5, "--warmup", 1, "--json", "r.json", "--no-verify")
        assert ended.returncode == 0, ended.stderr
        record = json.loads((tilewise.folder / "r.json").read_text())
        middle = sorted(sample["compute"] + sample["exchange"] for sample in record["samples"])[2]
        seconds = record["seconds"]
        assert seconds["compute"]["max"] + seconds["exchange"]["max"] == pytest.approx(middle, rel=0.5)
        phases = ("input", "compute", "exchange", "output", "verify")
        assert sum(seconds[name]["max"] for name in phases) == pytest.approx(seconds["total"]["max"])


@pytest.mark.parametrize("command", ["convert", "generate"])
def test_nothing_in_memory_cannot_be_repeated(tilewise: Tilewise, inside: InProcess, command: str) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.zeros((3, 3)))
    words = ("A.npy",) if command == "convert" else ("--shape", "3x3")
    for flag in ("--repeat", "--warmup"):
        assert flag in one_message(inside(command, *words, "-o", "B.npy", flag, 2), 2)
