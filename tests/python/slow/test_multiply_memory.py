"""What symmetric products hold in memory, against what their plans say."""

from __future__ import annotations

import pytest
from conftest import Tilewise
from memory import MemoryWatch
from oracle import record_of
from tilewise.planning import need


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("4000x3000", ("-n", 2)),
        ("4000x3000", ("-n", 2, "--exchange", "overlap")),
        ("4000x3000", ("-n", 4, "--grid", "2x2")),
        ("4000x3000", ("-n", 1, "-t", 2)),
        ("9000x2500", ("-n", 1, "-t", 2)),
        ("30000x700", ("-n", 2)),
    ],
)
def test_no_plan_promises_too_little(
    tilewise: Tilewise, shape: str, words: tuple[object, ...], dtype: str
) -> None:
    """Nor much too much: what is fixed is an allowance."""
    a = f"random:{shape}:{dtype}:1"
    threads = () if "-t" in words else ("-t", 1)
    with MemoryWatch() as watch:
        asked = ("multiply", a, a, "--transpose-a", "-o", "C.npy", *words, *threads)
        record = record_of(tilewise(*asked, "--verify", "fast", "--json", "-"))
    assert record["result"]["symmetric"]
    assert watch.most <= record["needed_bytes"]
    assert record["needed_bytes"] <= 1.3 * watch.most + record["variant"]["ranks"] * need.FIXED


@pytest.mark.parametrize(
    ("left", "right", "dtype", "words"),
    [
        ("6000x4000", "4000x6000", "float64", ("-n", 2)),
        ("20000x800", "800x1200", "complex128", ("-n", 2, "--grid", "1x2")),
        ("40000x800", "800x1200", "float32", ("-n", 2, "--grid", "1x2")),
    ],
)
def test_what_blas_packs_is_part_of_the_plan(
    tilewise: Tilewise, left: str, right: str, dtype: str, words: tuple[object, ...]
) -> None:
    a, b = f"random:{left}:{dtype}:1", f"random:{right}:{dtype}:2"
    with MemoryWatch() as watch:
        asked = ("multiply", a, b, "-o", "C.npy", *words, "-t", 1, "--verify", "off", "--json", "-")
        record = record_of(tilewise(*asked))
    assert watch.most <= record["needed_bytes"]
    assert record["needed_bytes"] <= 1.2 * watch.most + (64 << 20)
