"""Carries matrices in files by other programs through `tilewise convert`, and damages such files.

python tests/torture/formats.py [--trips 500] [--refused 300] [--only h5,tif] [--seed 1] [--json FILE]

A trip: another library writes a random matrix, the command converts it on one to three ranks to a random
format, that format's library reads it, and the numbers must be those that were written.
A damaged file: it is cut short, or bytes of it are changed. The command must refuse it with one message
(exit 2), or find what the library finds in it too; files are damaged until so many were refused.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from libraries import FORMATS, Kind, Matrix
from tilewise import files

LIMIT = 60  # seconds for one command
HEAD = 400  # bytes at the beginning that are changed more often than others


class Command:
    """Runs the installed command in a folder of its own."""

    def __init__(self, tilewise: str, folder: Path) -> None:
        self._tilewise, self.folder = tilewise, folder
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}

    def convert(self, name: str, target: str, ranks: int, *more: str) -> tuple[int | None, str]:
        """Exit status (None: it did not end) and what it said."""
        words = [self._tilewise, "convert", name, "-o", target, "-n", str(ranks), "--force", "-q", *more]
        run = subprocess.Popen(
            words,
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            said = run.communicate(timeout=LIMIT)[0]
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            return None, ""
        return run.returncode, said


def same(a: Matrix, b: Matrix) -> bool:
    """Whether all numbers are equal, NaNs too, whatever type they have."""
    return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def how_read(folder: Path, name: str) -> str:
    """How the numbers of a file reach the ranks."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        source = files.inspect(name)
    finally:
        os.chdir(here)
    if source.encoded:
        return "decoded by the front"
    if source.chunks is not None:
        return "unpacked by ranks"
    return "parsed by ranks" if source.encoding == "text" else "in place"


def matrix(kind: Kind, draw: random.Random) -> Matrix:
    """A random matrix that a file of this kind can hold."""
    shape = tuple(draw.choice((1, 2, 3, 17, 64, 130, 257)) for _ in "mn")
    if draw.random() < 0.1 and not kind.picture:
        shape = (1, draw.randrange(1, 2000)) if draw.random() < 0.5 else (draw.randrange(1, 2000), 1)
    dtype = np.dtype(draw.choice(kind.numbers))
    numbers = np.random.default_rng(draw.getrandbits(32))
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return numbers.integers(info.min, info.max, shape, dtype, endpoint=True)
    if dtype.kind == "c":
        return (numbers.standard_normal(shape) + 1j * numbers.standard_normal(shape)).astype(dtype)
    return (numbers.standard_normal(shape) * 10.0 ** draw.randrange(-3, 3)).astype(dtype)


def written(kind: Kind, folder: Path, draw: random.Random) -> tuple[str, Matrix]:
    """A file in `folder` by another library, its name for the command, and its numbers."""
    for each in folder.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    numbers = matrix(kind, draw)
    kind.write(folder / f"in{kind.ending}", numbers, draw)
    return f"in{kind.ending}" + kind.behind(numbers), numbers


def trip(kind: Kind, command: Command, draw: random.Random) -> tuple[str, str, str]:
    """How the file was read, the format of the output, and what is wrong; empty where nothing is."""
    name, numbers = written(kind, command.folder, draw)
    read = how_read(command.folder, name)
    fitting = [each for each in FORMATS if each.read and numbers.dtype.name in each.writes]
    back = draw.choice(fitting)
    target = f"out{back.ending}"
    code, said = command.convert(name, target, draw.randrange(1, 4))
    if code != 0:
        return read, back.ending, f"{name} to {target}: exit {code}: {said[:300]}"
    assert back.read is not None
    found = back.read(command.folder / target, numbers)
    return read, back.ending, "" if same(found, numbers) else f"{name} to {target}: other numbers"


def damage(path: Path, draw: random.Random) -> str:
    """Cuts a file short or changes some of its bytes; of a folder, one of its files."""
    if path.is_dir():
        path = draw.choice(sorted(each for each in path.rglob("*") if each.is_file()))
    data = bytearray(path.read_bytes())
    if draw.random() < 0.5 or len(data) < 2:
        end = draw.randrange(max(1, len(data)))
        path.write_bytes(data[:end])
        return f"cut from {len(data)} to {end} bytes"
    places = [
        draw.randrange(min(len(data), HEAD)) if draw.random() < 0.7 else draw.randrange(len(data))
        for _ in range(draw.choice((1, 1, 4)))
    ]
    for place in places:
        data[place] = draw.randrange(256)
    path.write_bytes(data)
    return f"bytes {places} changed"


def damaged(kind: Kind, command: Command, draw: random.Random) -> tuple[str, str]:
    """`refused`, `as the library reads it`, or what is wrong."""
    name, numbers = written(kind, command.folder, draw)
    path = command.folder / f"in{kind.ending}"
    before = {each.name for each in command.folder.iterdir()}
    how = f"{name} ({numbers.dtype} {numbers.shape}) {damage(path, draw)}"
    code, said = command.convert(name, "out.npy", draw.randrange(1, 4))
    left = {each.name for each in command.folder.iterdir()} - before
    messages = sum(line.startswith("tilewise: ") for line in said.splitlines())
    if code is None:
        return "HANG", how
    if "Traceback" in said or code not in (0, 2):
        return f"EXIT {code}", f"{how}: {said[-300:]}"
    if code == 2:
        wrong = "MESSAGES" if messages != 1 else "LEFT" if left else ""
        return wrong or "refused", f"{how}: {said[:300]}"
    found = np.load(command.folder / "out.npy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = numbers if kind.read is None else kind.read(path, numbers)
            agreed = same(found, theirs)
        except Exception as error:  # whatever a library says of a damaged file
            agreed, how = False, f"{how}; its library: {str(error)[:100]}"
    if agreed or same(found, numbers):
        return "as the library reads it", how
    return "not noticed" if kind.summed else "OTHER NUMBERS", how


def rounds(kinds: list[Kind], draw: random.Random) -> Iterator[Kind]:
    """Each kind in turn, in an order that changes."""
    while True:
        yield from draw.sample(kinds, len(kinds))


def table(counts: dict[str, Counter[str]], show: Callable[[str], None] = print) -> None:
    for kind, counted in sorted(counts.items()):
        show(f"{kind:28} " + ", ".join(f"{what} {n}" for what, n in sorted(counted.items())))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trips", type=int, default=500)
    parser.add_argument("--refused", type=int, default=300)
    parser.add_argument("--only", type=lambda words: words.split(","), help="these endings: h5,tif")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tilewise", default="tilewise", help="the command")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    kinds = [each for each in FORMATS if not given.only or each.ending[1:] in given.only]
    trips: dict[str, Counter[str]] = defaultdict(Counter)
    refusals: dict[str, Counter[str]] = defaultdict(Counter)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        command = Command(given.tilewise, Path(folder))
        turns = rounds(kinds, draw)
        for kind, _ in zip(turns, range(given.trips), strict=False):
            read, back, mistake = trip(kind, command, draw)
            trips[kind.name][(mistake and "WRONG") or read] += 1
            trips[f"to {back}"][(mistake and "WRONG") or "read back"] += 1
            wrong += [mistake] * bool(mistake)
        count = 0
        while count < given.refused:
            kind = next(turns)
            end, how = damaged(kind, command, draw)
            refusals[kind.name][end] += 1
            wrong += [f"{end}: {how}"] * end.isupper()
            count += end == "refused"
    print(f"{given.trips} trips")
    table(trips)
    print(f"{sum(map(Counter.total, refusals.values()))} damaged files, {count} refused")
    table(refusals)
    for each in wrong:
        print(f"wrong: {each}")
    if given.json:
        facts: dict[str, Any] = {"seed": given.seed, "trips": trips, "damaged": refusals, "wrong": wrong}
        given.json.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
