"""All components in two stages beside gesdd, and the largest ones beside scikit-learn and SciPy."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy
from harness import ROOT, NotRun, Row, Sample, Setting, alternate, compare, run
from peers import lapack_svd

from cases.svd_side import (
    TWO_RANKS,
    TWO_THREADS,
    decomposed,
    errors,
    in_memory,
    lapack,
    reported,
    stored,
    written,
)

SHAPES = {(2048, 2048): 0.55, (4096, 4096): 0.5, (6000, 2000): 0.0, (100_000, 300): 0.0}
QUICK = {(600, 600): 0.0, (1500, 300): 0.0}


def two_stages(setting: Setting) -> list[Row]:
    """Time over gesdd's on two threads and on two ranks, and errors beside gesdd's."""
    lapack_svd.build("tilewise-lapack-svd")
    rows = []
    for shape, target in (QUICK if setting.quick else SHAPES).items():
        name = f"{shape[0]}x{shape[1]}"
        rows += reported(f"svd-two-stage-{name}", name, _beside, setting, shape, name, target)
    return rows


def _beside(setting: Setting, shape: tuple[int, int], name: str, target: float) -> list[Row]:
    path = stored(setting, "random", *shape)

    def ours(how: tuple[object, ...]) -> Sample:
        return lambda: _of_rank_0(decomposed(setting, path, *how, "--no-verify", algorithm="two_stage"))

    ways = {"2 threads": TWO_THREADS, "2 ranks": TWO_RANKS}
    sides = {way: ours(how) for way, how in ways.items()}
    samples = alternate({**sides, "gesdd": lapack(setting, path, "gesdd", 0, 1)}, setting.rounds)
    found = errors(numpy.load(path), *written(setting))
    peer = lapack_svd.measure("gesdd", path, 2, 0, 1)
    rows = []
    for way in ways:
        row = Row(
            f"svd-two-stage-{name}-{way}",
            f"{name}, {way}: time over gesdd",
            "at most" if target else "",
            target,
        )
        row.samples = {way: samples[way], "gesdd": samples["gesdd"]}
        row.note = (
            f"residual {found['residual']:.1e}, gesdd {peer['residual']:.1e}; "
            f"orthogonality {max(found['U'], found['V']):.1e}, gesdd {peer['orthogonality']:.1e}"
        )
        rows.append(compare(row, samples[way], samples["gesdd"]))
    return rows


def _of_rank_0(record: dict[str, Any]) -> list[float]:
    """Seconds of each repetition: rank 0 computes, and for as long the others wait for it in an exchange."""
    return [max(one["compute"], one["exchange"]) for one in record["samples"]]


def top(setting: Setting) -> list[Row]:
    """The 50 largest of 20,000 x 5,000, to the accuracy that ours have."""
    shape, count = ((2000, 500), 10) if setting.quick else ((20_000, 5000), 50)
    path = _made(setting.work / "top.npy", shape)
    said: dict[str, Any] = {}

    def ours() -> list[float]:
        words = ("--components", count, "--no-verify")
        said.update(decomposed(setting, path, *TWO_THREADS, *words, algorithm="randomized"))
        return in_memory(said)

    def peer(name: str) -> Sample:
        def sample() -> list[float]:
            program = ROOT / "bench/peers/scipy_svd.py"
            said[name] = json.loads(run([sys.executable, program, path, count, name, said["wanted"], 1]))
            return list(said[name]["seconds"])

        return sample

    ours()
    said["wanted"] = _residual(setting, path)
    rows = []
    for name in ("randomized_svd", "svds"):
        row = Row(f"svd-top-{name}", f"{count} of {shape[0]}x{shape[1]}: faster than {name}", "at least", 3.0)
        try:
            samples = alternate({"tilewise": ours, name: peer(name)}, setting.rounds)
        except NotRun as reason:
            row.note = str(reason)
        else:
            row.samples = samples
            row.note = (
                f"{said['result']['reads']} readings, residual {said['wanted']:.1e}; "
                f"peer {said[name]['residual']:.1e}, n_iter {said[name]['iterations']}"
            )
            compare(row, samples[name], samples["tilewise"])
        rows.append(row)
    return rows


def _residual(setting: Setting, path: Path) -> float:
    """The largest difference of Av and σu, or of A'u and σv, over σ: one of them is 0 by construction."""
    u, s, vt = written(setting)
    a = numpy.load(path, mmap_mode="r")
    left, right = a @ vt.T - u * s, a.T @ u - vt.T * s
    return float((numpy.linalg.norm(numpy.vstack([left, right]), axis=0) / s).max())


def _made(path: Path, shape: tuple[int, int]) -> Path:
    """Singular values that fall like 1/j, above noise of a thousandth of the largest."""
    draw = numpy.random.default_rng(1)
    rank = shape[1] // 12
    left, right = draw.standard_normal((shape[0], rank)), draw.standard_normal((rank, shape[1]))
    size = (shape[0] * shape[1]) ** 0.5
    noise = draw.standard_normal(shape) * (1e-3 / (shape[0] ** 0.5 + shape[1] ** 0.5))
    numpy.save(path, (left / numpy.arange(1, rank + 1)) @ right / size + noise)
    return path
