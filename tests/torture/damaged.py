"""Kills jobs that keep a journal, damages what is left or changes what was asked, and lets them go on.

Whatever was done: a job that goes on ends with the bytes of an undisturbed one, or refuses in one message.

python tests/torture/damaged.py --kills 300 --json damaged.json
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy
from flips import flip
from kills import find
from resumed import TARGETS, settled
from tilewise.base import journal

OUT = "C.raw.npy"
OFTEN = ["-t", "1", "--checkpoint", "0.01s"]
PLAIN = [*OFTEN, "--kernel", "plain"]
JOBS = {
    "multiply": ["multiply", "A.npy", "B.npy", "-o", OUT, *PLAIN, "--verify", "off"],
    "multiply tiles": ["multiply", "A.tiles", "B.npy", "-o", OUT, *PLAIN, "--verify", "off"],
    "transpose": ["transpose", "T.npy", "-o", OUT, "-t", "1", "--io", "positioned", "--verify", "off"],
    "stencil": ["stencil", "F.npy", "-o", OUT, *PLAIN, "--steps", "1000"],
    "svd": ["svd", "S.npy", "-o", "C", *OFTEN, "--start", "none", "--inner", "rotations", "--verify", "off"],
}
MEMORY = {1: "44MiB", 2: "88MiB"}  # of a transposition, so that it is done tile by tile
CHANGED = {
    "multiply": [["--transpose-a", "--transpose-b"]],
    "transpose": [["--order", "F"]],
    "stencil": [["--boundary", "mirror"], ["--weights", "box3"], ["--order", "F"]],
    "svd": [["--components", "5"], ["--tolerance", "1e-6"]],
}
Bytes = dict[str, bytes]


@dataclass
class Case:
    """A job that was killed: how it goes on, and what is left of it."""

    folder: Path
    words: list[str]
    pick: random.Random
    more: list[str] = field(default_factory=list)

    @property
    def journals(self) -> list[Path]:
        return sorted(self.folder.glob(".C*.journal"))

    @property
    def left(self) -> list[Path]:
        """Every file that a job that goes on may read, job.json more often than others."""
        inside = [path for each in self.journals for path in sorted(each.iterdir())]
        headers = [path for path in inside if path.name == "job.json"]
        return [*inside, *headers, *sorted(self.folder.glob(".C*.part"))]

    @property
    def inputs(self) -> list[Path]:
        """The files of the inputs."""
        named = [self.folder / word for word in self.words[1:3] if word.endswith((".npy", ".tiles"))]
        return [path for each in named for path in ([each] if each.is_file() else sorted(each.glob("*.npy")))]


def flipped(case: Case) -> None:
    for _ in range(case.pick.choice([1, 1, 3])):
        path = case.pick.choice([path for path in case.left if path.stat().st_size])
        flip(path, case.pick.randrange(path.stat().st_size), case.pick.randrange(8))


def truncated(case: Case) -> None:
    path = case.pick.choice(case.left)
    os.truncate(path, case.pick.choice([0, case.pick.randrange(path.stat().st_size + 1)]))


def longer(case: Case) -> None:
    with case.pick.choice(case.left).open("ab") as file:
        file.write(case.pick.randbytes(case.pick.choice([1, 100, 10_000])))


def removed(case: Case) -> None:
    case.pick.choice(case.left).unlink()


def exchanged(case: Case) -> None:
    """Two files of a journal take each other's names."""
    one, other = case.pick.sample(sorted(case.pick.choice(case.journals).iterdir()), 2)
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def renamed(case: Case) -> None:
    """A log bears the number of another start or rank; a part that of another job."""
    logs = [path for path in case.left if path.suffix == ".log"]
    path = case.pick.choice([*logs, *case.folder.glob(".C*.part")])
    if path.suffix == ".part":
        path.rename(path.with_name(path.name.replace("-", "-f", 1)))
    else:
        path.rename(path.with_name(f"{case.pick.randrange(3)}-{case.pick.randrange(3)}.{path.name[4:]}"))


def input_changed(case: Case) -> None:
    """One number, and the time is put back."""
    path = case.pick.choice(case.inputs)
    found = path.stat()
    flip(path, case.pick.randrange(128, found.st_size), case.pick.randrange(5))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def input_replaced(case: Case) -> None:
    """By a copy with another number, of the same time, as rsync does."""
    path = case.pick.choice(case.inputs)
    copy = path.with_name("copy")
    shutil.copy2(path, copy)
    flip(copy, case.pick.randrange(128, path.stat().st_size), case.pick.randrange(5))
    shutil.copystat(path, copy)
    copy.rename(path)


def flags_changed(case: Case) -> None:
    case.more = case.pick.choice(CHANGED[case.words[0]])


def neighbours(case: Case) -> None:
    """What is left is of an output whose name begins alike."""
    other = case.pick.choice(["C", "C.raw", "C.npy", "C.raw.npy.npy"])
    for path in [*case.journals, *case.folder.glob(".C*.part")]:
        _, _, rest = path.name.partition(case.words[case.words.index("-o") + 1])
        path.rename(path.with_name(f".{other}{rest}"))


def nothing(case: Case) -> None:
    """What a kill leaves is damage enough."""


HARM: list[Callable[[Case], None]] = [
    *(flipped, flipped, truncated, longer, removed, exchanged, renamed),
    *(input_changed, input_replaced, flags_changed, neighbours, nothing),
]


def inputs(folder: Path) -> None:
    pick = numpy.random.default_rng(1)
    a = pick.random((700, 600))
    numpy.save(folder / "A.npy", a)
    numpy.save(folder / "B.npy", pick.random((600, 700)))
    numpy.save(folder / "F.npy", pick.random((201, 177)))
    numpy.save(folder / "S.npy", pick.random((130, 110)))
    numpy.save(folder / "T.npy", pick.integers(0, 1 << 30, (1001, 2003), dtype=numpy.int32))
    (folder / "A.tiles").mkdir()
    tiles = [{"file": f"{i}.npy", "rows": [7 * i, 7 * i + 7], "columns": [0, 600]} for i in range(100)]
    for i, tile in enumerate(tiles):
        numpy.save(folder / "A.tiles" / str(tile["file"]), a[7 * i : 7 * i + 7])
    manifest = {"tilewise": 1, "shape": [700, 600], "dtype": "float64", "tiles": tiles}
    (folder / "A.tiles/manifest.json").write_text(json.dumps(manifest))


def killed(words: list[str], folder: Path, pick: random.Random) -> bool:
    """Starts a job and kills a process of it, mostly once it has kept something; whether it was in time."""
    front = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    begun = time.monotonic()
    patience = pick.choice([60, 60, 60, pick.uniform(0, 2)])  # seconds
    while front.poll() is None and time.monotonic() - begun < patience:
        if any(journal.is_kept(str(each)) for each in folder.glob(".C*.journal")):
            break
        time.sleep(0.005)
    time.sleep(pick.choice([0, pick.uniform(0, 0.1), pick.uniform(0, 0.3)]))
    pid = find(pick.choice(TARGETS), front.pid, pick) if front.poll() is None else None
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    code = front.wait(300)
    settled(folder)
    return code != 0


def held(folder: Path) -> Bytes:
    """The numbers under the output's name."""
    found = [folder / OUT, *(folder / "C").glob("*.npy")]
    return {path.name: path.read_bytes() for path in found if path.exists()}


def ended(words: list[str], folder: Path) -> tuple[int, str]:
    """Runs a command; its exit code, and what it said."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stderr


def judged(case: Case, code: int, said: str, wanted: Callable[[], Bytes]) -> str:
    """What became of a job that was to go on; begins with WRONG where that must not be."""
    lines = [line for line in said.splitlines() if line.startswith("tilewise: ")]
    if code == 0:
        return "right" if held(case.folder) == wanted() else "WRONG: exit 0 with other bytes"
    if "Traceback" in said or "internal error" in said or len(lines) != 1:
        return f"WRONG: exit {code}, {said[-500:]!r}"
    if held(case.folder):
        return f"WRONG: exit {code} over an output"
    if code != 2:
        return f"WRONG: exit {code}, {lines[0]}"
    code, said = ended([*case.words, *case.more, "--force", "-q"], case.folder)
    if code != 0 or held(case.folder) != wanted():
        return f"WRONG: --force behind it ends with {code}, {said!r}"
    return "refused"


KNOWN: dict[tuple[str, ...], Bytes] = {}


def one(tilewise: str, name: str, harm: Callable[[Case], None], base: Path, pick: random.Random) -> str:
    """One job, killed, damaged and gone on with; what became of it."""
    folder, ranks = base.with_name("case"), pick.choice([1, 1, 2])
    words = [*JOBS[name], "-n", str(ranks)]
    words += ["--memory", MEMORY[ranks]] if name == "transpose" else []
    command = [tilewise, *words]
    _copied(base, folder, words)
    while not killed(command, folder, pick):
        for path in (folder / OUT, folder / "C"):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if held(folder):
        return "too late"  # it was named before the front was killed
    case = Case(folder, words, pick)
    if not case.journals:
        return "nothing kept"
    try:
        harm(case)
    except (IndexError, ValueError):
        return "nothing to harm"

    def wanted() -> Bytes:
        key = (*command, *case.more)
        if key not in KNOWN or harm in (input_changed, input_replaced):
            KNOWN[key] = undisturbed()
        return KNOWN[key] if harm not in (input_changed, input_replaced) else KNOWN.pop(key)

    def undisturbed() -> Bytes:
        other = folder.with_name("undisturbed")
        _copied(folder, other, words)
        code, said = ended([*command, *case.more, "-q"], other)
        assert code == 0, said
        return held(other)

    case.words = command
    return judged(case, *ended([*command, *case.more, "--resume"], folder), wanted)


def _copied(base: Path, folder: Path, words: list[str]) -> None:
    """A new folder with the inputs of a command."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in words[1 : words.index("-o")]:
        (shutil.copytree if (base / name).is_dir() else shutil.copy)(base / name, folder / name)


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--tilewise", default=".venv/bin/tilewise")
    made.add_argument("--kills", type=int, default=300, help="jobs in all (%(default)s)")
    made.add_argument("--only", choices=list(JOBS))
    made.add_argument("--harm", choices=sorted({each.__name__ for each in HARM}))
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--json", type=Path)
    given = made.parse_args()
    tilewise, pick = str(Path(given.tilewise).absolute()), random.Random(given.seed)
    table: dict[str, collections.Counter[str]] = {}
    records, wrong = [], 0
    names = [given.only] if given.only else list(JOBS)
    harms = [each for each in HARM if given.harm in (None, each.__name__)]
    with (
        contextlib.suppress(KeyboardInterrupt),
        tempfile.TemporaryDirectory(prefix="tilewise-damaged-") as work,
    ):
        base = Path(work, "base")
        base.mkdir()
        inputs(base)
        for number in range(given.kills):
            turn, place = divmod(number, len(names))
            name, harm = names[place], harms[(turn + 5 * place) % len(harms)]
            end = one(tilewise, name, harm, base, pick)
            table.setdefault(harm.__name__, collections.Counter())[end.partition(":")[0]] += 1
            print(f"\r{number + 1} of {given.kills}, {wrong} wrong", end="", file=sys.stderr, flush=True)
            records.append({"job": name, "harm": harm.__name__, "end": end})
            if end.startswith("WRONG"):
                wrong += 1
                print(f"\n{number} {name}, {harm.__name__}: {end}", flush=True)
    print(file=sys.stderr)
    ends = sorted({end for counts in table.values() for end in counts})
    print(" " * 16 + "".join(f"{end:>16}" for end in ends))
    for row, counts in table.items():
        print(f"{row:16}" + "".join(f"{counts[end] or '.':>16}" for end in ends))
    print(f"{len(records)} kills, {wrong} wrong")
    if given.json:
        given.json.write_text(json.dumps(records, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
