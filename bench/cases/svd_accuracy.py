"""How exact the decomposition is: singular values of a graded matrix, and errors found from the files."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy
from harness import Row, Setting, alternate, compare, say
from peers import lapack_svd

from cases.svd_side import (
    TWO_RANKS,
    TWO_THREADS,
    decomposed,
    errors,
    lapack,
    ours,
    relative,
    reported,
    stored,
    written,
)

ONE = 1e-15  # errors are told in this unit, so that a table of ratios can hold them
WAYS = {"2 ranks": TWO_RANKS, "2 threads": TWO_THREADS}
SHAPES = {
    "random": (512, 512),
    "graded": (512, 512),
    "deficient": (512, 512),
    "repeated": (513, 513),
    "tall": (4096, 256),
    "wide": (200, 1500),
    "zero": (256, 256),
}


def graded(setting: Setting) -> list[Row]:
    """Every singular value beside arithmetic of 64 bits, whose own error shows beside 113 bits; time."""
    n = 64 if setting.quick else 1024
    small, path = stored(setting, "graded", 64, 64), stored(setting, "graded", n, n)
    exact = relative(_sigma("extended", small), _sigma("quadruple", small))
    say(f"    the reference for n={n}")
    reference = _sigma("extended", path)
    rows = [_error("64², the reference beside 113 bits", exact, 0)]
    for name in ("gejsv", "gesdd"):
        rows.append(
            _error(f"graded {n}², {name}: worst singular value", relative(_sigma(name, path), reference), 0)
        )
    for way, how in WAYS.items():
        what = f"graded {n}², {way}: worst singular value"
        rows += reported(what, what, _values, setting, path, what, how, reference)
    return rows + reported("svd-graded", "graded: time", _time, setting, path, n)


def _sigma(side: str, path: Path) -> list[float]:
    return list(lapack_svd.measure(side, path, 2, 0, 1)["sigma"])


def _values(
    setting: Setting, path: Path, what: str, how: tuple[object, ...], reference: list[float]
) -> list[Row]:
    said = decomposed(setting, path, *how)["result"]
    row = _error(what, relative(written(setting)[1], reference), 1e-12)
    row.note += f"; {said['sweeps']} sweeps, from {said['start_used']}; {said['fallback']}"
    return [row]


def _time(setting: Setting, path: Path, n: int) -> list[Row]:
    sides = {way: ours(setting, path, 1, *how) for way, how in WAYS.items()}
    peers = {name: lapack(setting, path, name, 0, 1) for name in ("gejsv", "gesdd")}
    samples = alternate({**sides, **peers}, setting.rounds)
    rows = []
    for way in sides:
        for peer in peers:
            bound = "at least" if peer == "gejsv" else ""
            row = Row(f"svd-graded-{peer}-{way}-{n}", f"graded {n}², {way}: faster than {peer}", bound, 1)
            row.samples = {way: samples[way], peer: samples[peer]}
            row.note = " and ".join(f"{statistics.median(values):.4g} s" for values in row.samples.values())
            rows.append(compare(row, samples[peer], samples[way]))
    return rows


def accuracy(setting: Setting) -> list[Row]:
    """The worst of residual and both orthogonalities, as the record has them and as NumPy finds them."""
    rows = []
    for name, shape in SHAPES.items():
        size = (max(8, shape[0] // 8), max(8, shape[1] // 8)) if setting.quick else shape
        for way, how in WAYS.items():
            what = f"{name} {size[0]}x{size[1]}, {way}: worst of residual and orthogonality"
            rows += reported(what, what, _proof, setting, name, size, what, how)
    return rows


def _proof(
    setting: Setting, name: str, size: tuple[int, int], what: str, how: tuple[object, ...]
) -> list[Row]:
    path = stored(setting, "random" if name in ("tall", "wide") else name, *size)
    record = decomposed(setting, path, *how, "--verify", "fast")
    recomputed = errors(numpy.load(path), *written(setting))
    said = {key: record["result"][key] for key in ("residual", "orthogonality_u", "orthogonality_v")}
    # The zero matrix may have no relative residual; nothing else may be missing.
    told = {key: 0.0 if value is None and name == "zero" else float(value) for key, value in said.items()}
    row = _error(what, float(numpy.max([*recomputed.values(), *told.values()])), 1e-13)
    row.note = f"recomputed {_listed(recomputed)}; record {_listed(told)}"
    return [row]


def _error(what: str, error: float, target: float) -> Row:
    """An error as a row; one that is not a number misses every target."""
    name = "svd-" + what.replace(":", "").replace(", ", "-").replace(" ", "-")
    row = Row(name, what, "at most" if target else "", target / ONE, unit=" · 1e-15")
    row.ratio, row.note = error / ONE, f"{error:.1e}"
    return row


def _listed(values: dict[str, float]) -> str:
    return ", ".join(f"{value:.1e}" for value in values.values())
