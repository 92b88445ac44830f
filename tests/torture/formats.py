"""Reads files by other libraries through `tilewise convert`, compares to the bit, and damages such files.

python tests/torture/formats.py [--files 5000] [--refused 300] [--only h5,tif] [--seed 1] [--json FILE]

A file: another library writes it with options drawn at random. The command reads it on one rank, and on three
ranks it writes the numbers in another format, which that format's library reads: they must be, to the bit,
those that the library reads in the file. Files that the command refuses are listed by message. `--files 1`
with `--only` and `--seed` as a line says them makes a file again.
A damaged file: it is cut short, or bytes of it are changed. The command must refuse it with one message
(exit 2), or find what the library finds in it too; files are damaged until so many were refused.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from drawn import Draw, Kind, Made, Matrix, refused, same, standard
from libraries import BACKS, FORMATS
from tilewise import files
from tilewise.cli import main as command_line

LIMIT = 60  # seconds for one command
HEAD = 400  # bytes at the beginning that are changed more often than others
TRIES = 50  # until a library takes all options together, or ranks start


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


def inside(words: list[str]) -> tuple[int, str, list[str]]:
    """Runs a command line in this process: its exit code, what it said, and its warnings of the file."""
    for _ in range(TRIES):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = command_line([*words, "--force", "-q", "--json", "-", f"--timeout={10 * LIMIT}"])
        if code == 130:
            raise KeyboardInterrupt
        if "not all ranks had started" not in errors.getvalue():  # as on a machine that is too busy
            break
    warned = json.loads(out.getvalue())["warnings"] if code == 0 else []
    return code, errors.getvalue(), [each for each in warned if each.startswith("in.")]


def how_read(name: str) -> str:
    """How the numbers of a file reach the ranks."""
    source = files.inspect(name)
    if source.encoded:
        return "decoded by the front"
    if source.chunks is not None:
        return "unpacked by ranks"
    return "parsed by ranks" if source.encoding == "text" else "in place"


def made_by(kind: Kind, draw: Draw) -> Made:
    """A file in the working folder by its library, which may refuse what is drawn first."""
    for _ in range(TRIES):
        for each in Path().iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        draw.drawn = []
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return kind.make(Path(f"in{kind.ending}"), draw)
    raise RuntimeError(f"{kind.name}: its library refuses whatever is drawn")


def expected(made: Made) -> tuple[Matrix | None, str]:
    """What the library reads; None where it refuses, and why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return standard(made.read()), ""
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"[:200]


def trip(kind: Kind, draw: Draw, brief: bool) -> tuple[str, str]:
    """How a file was read, or why it was refused, or in capitals what is wrong; and the details."""
    made = made_by(kind, draw)
    wanted, why = expected(made)
    types = "" if wanted is None else wanted.dtype.name
    texts = (".txt", ".csv", ".tsv") if made.flags else ()  # a flag would say how these are written, too
    fitting = [each for each, one in BACKS.items() if types in one.types and each not in texts] or [".npy"]
    own = kind.ending in fitting and draw.dice.random() < 0.5
    back = kind.ending if own else draw.dice.choice(fitting)
    ways = [(1, "out.npy"), (3, f"out{back}")]
    for ranks, target in [draw.dice.choice(ways)] if brief else ways:
        how = f"{made.name} {' '.join(made.flags)} to {target} on {ranks}"
        code, said, warned = inside(["convert", made.name, "-o", target, "-n", str(ranks), *made.flags])
        if code == 2 and said.count("tilewise: ") - said.count("tilewise: warning: ") == 1:
            return f"refused{' as by its library' * (wanted is None)}: {short(said, made.name)}", how
        if code:
            return f"EXIT {code}", f"{how}: {said[-300:]}"
        if wanted is None and made.read is not refused:
            return f"read, where its library fails: {short(why, made.name)}", how
        if (wanted is None or made.warned) and not re.search(made.warned or ".", " ".join(warned)):
            return "SILENT", f"{how}: {why or made.warned} not in {warned}"
        if wanted is not None:
            try:
                found = BACKS[Path(target).suffix].read(Path(target), wanted)
            except Exception as error:
                return "UNREADABLE", f"{how}: {error}"
            if not same(found, wanted):
                return "DIFFERENT", f"{how}: {difference(found, wanted)}"
    if wanted is None:
        return "warned", how
    return f"equal, {'parsed by ranks' if made.flags else how_read(made.name)}", how


def short(said: str, name: str) -> str:
    """A message without what differs from file to file."""
    said = said.rpartition("tilewise: ")[2].partition("\n")[0].replace(name, "FILE")
    return re.sub(r"[0-9]+", "N", said)[:150]


def difference(found: Matrix, wanted: Matrix) -> str:
    """How two matrices differ."""
    if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        return f"{found.dtype} {found.shape} instead of {wanted.dtype} {wanted.shape}"
    places = np.argwhere(~((found == wanted) | (np.isnan(found) & np.isnan(wanted))))
    some = [(*place, found[tuple(place)], wanted[tuple(place)]) for place in places[:2].tolist()]
    return f"{len(places)} of {wanted.size} numbers: {some}"


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


def damaged(kind: Kind, command: Command, draw: Draw) -> tuple[str, str]:
    """`refused`, `as the library reads it`, or what is wrong."""
    made = made_by(kind, draw)
    numbers, path = expected(made)[0], Path(f"in{kind.ending}")
    how = f"{made.name} {damage(path, draw.dice)}"
    before = {each.name for each in command.folder.iterdir()}
    code, said = command.convert(made.name, "out.npy", draw.dice.randrange(1, 4), *made.flags)
    left = {each.name for each in command.folder.iterdir()} - before
    messages = sum(line.startswith("tilewise: ") and "warning" not in line for line in said.splitlines())
    if code is None:
        return "HANG", how
    if "Traceback" in said or code not in (0, 2):
        return f"EXIT {code}", f"{how}: {said[-300:]}"
    if code == 2:
        wrong = "MESSAGES" if messages != 1 else "LEFT" if left else ""
        return wrong or "refused", f"{how}: {said[:300]}"
    found = np.load(command.folder / "out.npy")
    if any(each is not None and same(found, each) for each in (expected(made)[0], numbers)):
        return "as the library reads it", how
    return "not noticed" if kind.summed else "OTHER NUMBERS", how


def chosen(names: list[str] | None) -> list[Kind]:
    """The kinds of these names or endings, each as often as its weight says, well mixed."""
    kinds = [each for each in FORMATS if not names or each.name in names]
    kinds += [each for each in FORMATS if names and not kinds and each.ending[1:] in names]
    every = [each for each in kinds for _ in range(each.weight)]
    return random.Random(1).sample(every, len(every))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--refused", type=int, default=0)
    parser.add_argument("--only", type=lambda words: words.split(","), help="kinds, or else endings")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--brief", action="store_true", help="each file on one rank or on three, not on both")
    parser.add_argument("--tilewise", default="tilewise", help="the command, for damaged files")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    kinds, told = chosen(given.only), given.json and given.json.absolute()
    trips: dict[str, Counter[str]] = defaultdict(Counter)
    refusals: dict[str, Counter[str]] = defaultdict(Counter)
    wrong: list[str] = []
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    for key in [each for each in os.environ if each.startswith("OPENBLAS_")]:
        del os.environ[key]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number in range(given.files):
            kind, seed = kinds[number % len(kinds)], given.seed + number
            draw = Draw(seed)
            try:
                end, how = trip(kind, draw, given.brief)
            except KeyboardInterrupt:
                break
            trips[kind.name][end] += 1
            bad = end.split()[0].isupper()
            if bad or (trips[kind.name][end] == 1 and end.startswith(("refused: ", "read, "))):
                again = f"--only '{kind.name}' --seed {seed}: {', '.join(draw.drawn)}"
                print(f"{end}: {kind.name}: {how}\n  {again}", flush=True)
                wrong += [f"{end}: {how}: {again}"] * bad
        count, command = 0, Command(given.tilewise, Path(folder))
        while count < given.refused:
            seed = given.seed + given.files + sum(map(Counter.total, refusals.values()))
            draw = Draw(seed)
            kind = draw.dice.choice([each for each in kinds if not each.by_hand])
            end, how = damaged(kind, command, draw)
            refusals[kind.name][end] += 1
            wrong += [f"{end}: {how}"] * end.isupper()
            count += end == "refused"
    table(trips)
    print(f"{sum(map(Counter.total, refusals.values()))} damaged files, {count} refused")
    table(refusals)
    print(f"{sum(map(Counter.total, trips.values()))} files, {len(wrong)} wrong")
    if told:
        facts: dict[str, Any] = {"seed": given.seed, "files": trips, "damaged": refusals, "wrong": wrong}
        told.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    return 1 if wrong else 0


def table(counts: dict[str, Counter[str]]) -> None:
    """Prints how each kind of file ended, the most frequent first."""
    for kind, counted in sorted(counts.items()):
        print(f"{kind}: {counted.total()}")
        for end, number in counted.most_common():
            print(f"  {number:5} {end}")


if __name__ == "__main__":
    sys.exit(main())
