"""The jobs that are disturbed, small and large, and what numpy and scipy say their outputs must hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io  # type: ignore[import-untyped,unused-ignore]
import scipy.ndimage  # type: ignore[import-untyped,unused-ignore]
from numpy.typing import NDArray

COMMANDS = ["multiply", "transpose", "svd", "stencil", "convert", "generate"]
STRATEGIES = [
    "positioned",
    "mapped",
    "collective",
    "split_collective",
    "independent",
    "two_phase",
    "uncached",
]
STRATEGIES += ["root", "root_collective", "sieve", "per_rank"]

Matrix = NDArray[Any]
Check = Callable[[Path], str]  # what is wrong with an output; an empty string when nothing is


@dataclass
class Job:
    """One command line without its --force. `begun`: a folder with what an earlier start of it has left."""

    name: str
    words: list[str]
    inputs: list[str]
    outputs: dict[str, Check]
    begun: Path | None = None

    def going_on(self, begun: Path) -> Job:
        """The job that goes on with what lies there."""
        return replace(self, name=f"resumed {self.name}", words=[*self.words, "--resume"], begun=begun)


@cache
def matrix(name: str) -> Matrix:
    """The inputs: A and B take a moment; G, H and T long enough for a job to be struck in the midst of it.

    L to O are more than what a job needs for itself.
    """
    shapes = {"A": (101, 67), "B": (67, 53), "G": (1203, 701), "H": (701, 503), "T": (300, 220)}
    shapes |= {"L": (2100, 1900), "M": (1900, 2300), "N": (3001, 2900), "O": (100_000, 50)}
    return np.random.default_rng(ord(name)).standard_normal(shapes[name])


def swept(name: str, steps: int) -> Matrix:
    a, weights = matrix(name), np.array([[0, 0.1, 0], [0.1, 0.6, 0.1], [0, 0.1, 0]])
    for _ in range(steps):
        a = np.asarray(scipy.ndimage.correlate(a, weights, mode="constant"))
    return a


def read(path: Path) -> Matrix:
    """A matrix as numpy and scipy see it."""
    if path.suffix == ".npy":
        return np.asarray(np.load(path))
    if path.suffix == ".csv":
        return np.loadtxt(path, delimiter=",", ndmin=2)
    if path.suffix == ".mtx":
        return np.asarray(scipy.io.mmread(path))
    manifest = json.loads((path / "manifest.json").read_text())
    whole = np.full(manifest["shape"], np.nan, dtype=manifest["dtype"])
    for tile in manifest["tiles"]:
        whole[slice(*tile["rows"]), slice(*tile["columns"])] = np.load(path / tile["file"])
    return whole


def equals(wanted: Callable[[], Matrix], tolerance: float, path: Path) -> str:
    want, got = wanted(), read(path)
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    differ = int(np.count_nonzero(~(np.abs(got - want) <= tolerance * np.abs(want).max())))
    return f"{differ} of {want.size} numbers are wrong" if differ else ""


@cache
def singular_values(name: str) -> Matrix:
    return np.asarray(np.linalg.svd(matrix(name), compute_uv=False))


def decomposes(name: str, path: Path) -> str:
    u, s, vt = (np.load(path / f"{each}.npy") for each in ("U", "s", "Vt"))
    exact = singular_values(name)
    if not np.abs(s.ravel() - exact).max() <= 1e-9 * exact[0]:
        return "the singular values are wrong"
    return "" if np.abs(u * s.ravel() @ vt - matrix(name)).max() <= 1e-9 * exact[0] else "U s Vt is not A"


def streamed(command: str, io: str, ranks: str, more: list[str]) -> Iterator[Job]:
    """The same, of more than the memory that the job may take; of strategies only those that can."""
    inputs, least, *words = {
        "multiply": ["L M", "45"],
        "transpose": ["N", "58"],
        "stencil": ["L", "64", "--steps", "8", "--depth", "4", "--boundary", "zero"],
        "svd": ["O", "52", "--algorithm", "tall"],
    }[command]
    checks = {
        "multiply": partial(equals, lambda: matrix("L") @ matrix("M"), 1e-10),
        "transpose": partial(equals, lambda: matrix("N").T, 0),
        "stencil": partial(equals, partial(swept, "L", 8), 1e-10),
        "svd": partial(decomposes, "O"),
    }
    files = [f"{each}.npy" for each in inputs.split()]
    out = "out" if command == "svd" else "out.npy"
    words += [] if io == "auto" else ["--io", io]
    words += ["--memory", f"{int(least) * int(ranks)}MiB", *more, "-n", ranks]
    yield Job(
        f"streamed {command} {io} {ranks}",
        [command, *files, "-o", out, *words],
        files,
        {out: checks[command]},
    )


def jobs(command: str, io: str, ranks: str, more: list[str], long: bool) -> Iterator[Job]:
    """A command with a strategy (auto: none is asked for); `long`: for what strikes in the midst of it."""
    a, b, small = ("G", "H", "T") if long else ("A", "B", "A")
    plain = ["--kernel", "plain", "--threads", "1"] if long else []
    end = ".tiles" if io == "per_rank" else ".npy"

    def job(inputs: list[str], outputs: dict[str, Check], *words: str, name: str = command) -> Job:
        strategy = [] if io == "auto" else ["--io", io]
        first = next(iter(outputs))
        all_words = [command, *inputs, "-o", first, *words, *strategy, *more, "-n", ranks]
        return Job(f"{name} {io} {ranks}", all_words, inputs, outputs)

    if command == "multiply":
        product = partial(equals, lambda: matrix(a) @ matrix(b), 1e-10)
        yield job([a + end, b + end], {"out" + end: product}, *plain)
    elif command == "transpose":
        turned = partial(equals, lambda: matrix(a).T, 0)
        yield job([a + end], {"out" + end: turned}, *(["--verify", "serial"] if long else []))
    elif command == "svd":
        slowly = ["--algorithm", "jacobi", "--inner", "rotations"] if long else []
        yield job([small + ".npy"], {"out": partial(decomposes, small)}, *slowly)
    elif command == "stencil":
        steps, every = (300, 100) if long else (5, 2)
        names = {"out" + end: steps} | {f"out-{k:06d}{end}": k for k in range(every, steps, every)}
        outputs: dict[str, Check] = {
            each: partial(equals, partial(swept, small, k), 1e-10) for each, k in names.items()
        }
        words = ["--steps", str(steps), "--snapshot-every", str(every), "--boundary", "zero"]
        yield job([small + end], outputs, *words, *plain)
    elif command == "convert":
        pairs = (
            [".npy .tiles", ".tiles .npy"] if io == "per_rank" else [".npy .csv", ".csv .npy", ".npy .mtx"]
        )
        for source, target in map(str.split, pairs):
            same = partial(equals, lambda: matrix(a), 0)
            yield job([a + source], {"out" + target: same}, name=f"convert {source} {target}")
    else:
        rows, columns = matrix(a).shape
        ramp = partial(equals, lambda: np.arange(float(rows * columns)).reshape(rows, columns), 0)
        yield job([], {"out" + end: ramp}, "--shape", f"{rows}x{columns}", "--kind", "ramp")
