"""This build's results beside another one's, such as that of the commit before: random jobs, bit by bit.

`make bench-bits OTHER=/path/to/other/.venv/bin/tilewise` runs 200 products, transpositions, stencils and
decompositions on 1 to 4 ranks by both, and exits with 1 where a file that they wrote differs.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness import BIN, NotRun, run, say

DTYPES = ("float64", "float64", "float32", "complex128", "complex64", "int64", "uint64")


def job(dice: random.Random) -> str:
    """Words of a random job; OUT stands for what it writes."""
    ranks = dice.randint(1, 4)
    words = dice.choice((multiply, multiply, transpose, stencil, svd))(dice)
    return f"{words} -n {ranks} -t {dice.randint(1, 2)} --verify off"


def multiply(dice: random.Random) -> str:
    """A product, some of few columns, some of Strassen's, some symmetric."""
    dtype = dice.choice(DTYPES)
    m, k, n = (dice.choice((1, 7, 20, 64, 100, 257, 600, 900)) for _ in range(3))
    a = f"random:{m}x{k}:{dtype}:{dice.randint(1, 99)}"
    kernel = dice.choice(("fast", "fast", "tiles", "plain", "strassen"))
    if kernel == "strassen" and dtype not in ("float32", "float64"):
        kernel = "fast"
    if dice.random() < 0.2 and kernel != "strassen":
        return f"multiply {a} {a} --transpose-a -o OUT.npy --kernel {kernel}"
    algorithm = dice.choice(("auto", "cannon", "summa"))
    return f"multiply {a} random:{k}x{n}:{dtype}:7 -o OUT.npy --kernel {kernel} --algorithm {algorithm}"


def transpose(dice: random.Random) -> str:
    """A transposition of any type by any algorithm."""
    dtype = dice.choice((*DTYPES, "uint8", "int16", "float16"))
    algorithm = dice.choice(("swap", "gather", "reread", "staged"))
    shape = f"{dice.randint(1, 900)}x{dice.randint(1, 900)}"
    return f"transpose random:{shape}:{dtype}:{dice.randint(1, 99)} -o OUT.npy --algorithm {algorithm}"


def stencil(dice: random.Random) -> str:
    """Some sweeps with any weights and boundary."""
    dtype = dice.choice(("float32", "float64"))
    shape = f"{dice.randint(16, 700)}x{dice.randint(16, 700)}"
    weights = dice.choice(("star5", "star9", "box3"))
    boundary = dice.choice(("zero", "fixed", "periodic", "reflect", "mirror", "nearest"))
    kernel = dice.choice(("fast", "fast", "plain"))
    steps = dice.randint(1, 30)
    return (
        f"stencil random:{shape}:{dtype}:{dice.randint(1, 99)} -o OUT.npy --weights {weights} "
        f"--boundary {boundary} --kernel {kernel} --steps {steps}"
    )


def svd(dice: random.Random) -> str:
    """A decomposition by any algorithm."""
    algorithm = dice.choice(("jacobi", "jacobi", "local", "two_stage", "tall", "randomized", "serial"))
    rows, columns = sorted((dice.randint(20, 400), dice.randint(8, 400)), reverse=True)
    if algorithm == "two_stage":
        columns = rows
    dtype = dice.choice(("float64", "float64", "float32"))
    more = " --components 5" if algorithm == "randomized" else ""
    if algorithm == "tall":
        rows, columns = 20 * rows, min(columns, 60)
    seed = dice.randint(1, 99)
    return f"svd random:{rows}x{columns}:{dtype}:{seed} -o OUT --algorithm {algorithm}{more}"


def written(program: Path, words: str, folder: Path, kernels: str) -> dict[str, str]:
    """What the job wrote: a checksum for each file, or why it could not run."""
    folder.mkdir()
    swapped = [word.replace("OUT", str(folder / "OUT")) for word in words.split()]
    try:
        run([program, *swapped, "-q"], **({"TILEWISE_KERNELS": kernels} if kernels else {}))
    except NotRun as reason:
        return {"refused": str(reason).rpartition("tilewise: ")[2]}
    files = (file for file in sorted(folder.rglob("*")) if file.suffix == ".npy")
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def main() -> int:
    """Runs the jobs by both builds, and prints those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the other build's tilewise")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels", default="", help="TILEWISE_KERNELS for both")
    asked = parser.parse_args()
    dice = random.Random(asked.seed)
    different = refused = 0
    for number in range(asked.jobs):
        words = job(dice)
        with tempfile.TemporaryDirectory(prefix="tilewise-bits-") as made:
            ours, theirs = (
                written(program, words, Path(made) / name, asked.kernels)
                for name, program in (("this", BIN / "tilewise"), ("other", asked.other))
            )
        refused += "refused" in ours
        if ours != theirs:
            different += 1
            say(f"  {number}: {words}")
            for name in sorted(set(ours) | set(theirs)):
                if ours.get(name) != theirs.get(name):
                    say(
                        f"      {name}: {ours.get(name, 'missing')[:40]} | {theirs.get(name, 'missing')[:40]}"
                    )
    print(f"{asked.jobs} jobs, {refused} refused by this build, {different} with other results")
    return 1 if different or refused > asked.jobs // 5 else 0


if __name__ == "__main__":
    sys.exit(main())
