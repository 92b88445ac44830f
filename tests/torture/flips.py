"""Flips single bits of what a dead job has left, and looks whether the job that goes on finds each of them.

python tests/torture/flips.py --count 100
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from resumed import forget, held, inputs, words_of
from tilewise.base import journal
from tilewise.engine.journal import header_of
from tilewise.files.dtypes import ITEMSIZE

JOBS = {
    "multiply": "kill:0:output*9",
    "transpose": "kill:0:output*8",
    "stencil larger than memory": "kill:0:output*30",
}


def journal_of(folder: Path) -> Path:
    """The one that there is."""
    (found,) = folder.glob(".C*.journal")
    return found


def in_pieces(folder: Path, pick: random.Random) -> tuple[Path, int]:
    """A byte of a piece of the result that the log names, and the file that it is in."""
    beside = journal_of(folder)
    output = header_of(str(beside)).job.output
    assert output is not None
    rows, columns, item = output.rows, output.columns, ITEMSIZE[output.dtype]
    part = Path(journal.part_of(str(beside)))
    top, bottom, left, right = pick.choice(journal.pieces(str(beside))).block
    number = pick.randrange(top, bottom) * columns + pick.randrange(left, right)
    return part, part.stat().st_size - item * (rows * columns - number) + pick.randrange(item)


def in_state(folder: Path, pick: random.Random) -> tuple[Path, int]:
    """A byte of the newest state, and its file."""
    beside = journal_of(folder)
    path = Path(journal.slot_of(str(beside), journal.saved(str(beside))[0].slot))
    return path, pick.randrange(path.stat().st_size)


def flip(path: Path, byte: int, bit: int) -> None:
    """Flips a bit of a file."""
    with path.open("r+b") as file:
        file.seek(byte)
        (was,) = file.read(1)
        file.seek(byte)
        file.write(bytes([was ^ 1 << bit]))


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--tilewise", default=".venv/bin/tilewise")
    made.add_argument("--count", type=int, default=100, help="bits of each kind of job (%(default)s)")
    made.add_argument("--only", choices=list(JOBS))
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--json", type=Path)
    given = made.parse_args()
    tilewise, pick, missed = str(Path(given.tilewise).absolute()), random.Random(given.seed), 0
    counts: dict[str, int] = {}
    for name in [given.only] if given.only else JOBS:
        with tempfile.TemporaryDirectory(prefix="tilewise-flips-") as kept:
            folder, dead = Path(kept, "folder"), Path(kept, "dead")
            folder.mkdir()
            inputs(folder)
            untouched = set(os.listdir(folder))  # copies would have been touched since
            words = words_of(tilewise, name, 1)
            run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run
            run(words, cwd=folder, check=True, capture_output=True)
            wanted = held(folder)
            forget(folder)
            run(words, cwd=folder, env={**os.environ, "TILEWISE_FAULT": JOBS[name]}, capture_output=True)
            shutil.copytree(folder, dead, ignore=shutil.ignore_patterns(*untouched))
            found = 0
            for _ in range(given.count):
                forget(folder)
                shutil.copytree(dead, folder, dirs_exist_ok=True)
                place = in_state if name.startswith("stencil") else in_pieces
                flip(*place(folder, pick), pick.randrange(8))
                done = run([*words, "--resume", "--json", "-"], cwd=folder, capture_output=True, text=True)
                resumed = json.loads(done.stdout)["result"]["resumed"] if done.returncode == 0 else {}
                spoilt = resumed.get("spoilt_pieces", resumed.get("spoilt_checkpoints"))
                found += bool(spoilt) and held(folder) == wanted
            print(f"{name}: {found} of {given.count} flipped bits found, and the result right", flush=True)
            missed += given.count - found
            counts[name] = found
    if given.json:
        given.json.write_text(json.dumps({"flipped": given.count, "found": counts}, indent=1))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
