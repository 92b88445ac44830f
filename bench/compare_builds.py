"""This build beside another one, such as that of the commit before: which cases became faster or slower.

`make bench-builds OTHER=/path/to/other/.venv/bin/tilewise` keeps results/builds.json. It exits with 1 where a
case became slower by more than 5 % and by more than its spread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness import BIN, ROOT, NotRun, Row, Sample, alternate, compare, environment, run, say, table
from tilewise.operations import options_of
from tilewise.operations.multiply.options import ALGORITHMS as MULTIPLY
from tilewise.planning.choices import exchanges_of

INPUTS = ("A", "F", "S", "OUT")  # what words name in the folder of the comparison
IN_MEMORY = ("compute", "exchange")
WHOLE = ("total",)
Case = tuple[str, str, tuple[str, ...]]  # name, words of the command, phases whose time counts


def cases(quick: bool) -> list[Case]:
    """Each operation in memory, by every exchange, and from file to file."""
    n, m = (256, 512) if quick else (2048, 4096)
    repeated = "--no-verify --warmup 1 --repeat 3"
    product = f"multiply random:{n}x{n}:float64:1 random:{n}x{n}:float64:2 -o OUT.npy {repeated}"
    sweeps = f"stencil random:{m}x{m}:float32:1 -o OUT.npy --steps 50 {repeated}"
    double = f"stencil random:{m}x{m}:float64:1 -o OUT.npy --steps 50 {repeated}"
    svd = f"svd random:{n // 4}x{n // 4}:float64:1 -o OUT {repeated}"
    turned = "transpose A.npy -o OUT.npy --no-verify"
    some: list[Case] = [
        ("multiply, 1 rank, 2 threads", f"{product} -n 1 -t 2", IN_MEMORY),
        ("multiply, 2 ranks", f"{product} -n 2 -t 1", IN_MEMORY),
        ("multiply, file to file", "multiply A.npy A.npy -o OUT.npy --verify off", WHOLE),
        ("multiply, file to file, float32", "multiply F.npy F.npy -o OUT.npy", WHOLE),
        ("transpose, planned", turned, WHOLE),
        ("transpose, gather", f"{turned} -n 4 -t 1 --algorithm gather", WHOLE),
        ("transpose, reread", f"{turned} -n 2 -t 1 --algorithm reread --io collective", WHOLE),
        ("transpose, staged", f"{turned} -n 2 -t 1 --algorithm staged", WHOLE),
        ("stencil, star5 float32", f"{sweeps} -n 1 -t 2", IN_MEMORY),
        ("stencil, star5 float64", f"{double} -n 1 -t 2", IN_MEMORY),
        ("stencil, star9 float32", f"{sweeps} -n 1 -t 2 --weights star9", IN_MEMORY),
        ("stencil, star9 float64", f"{double} -n 1 -t 2 --weights star9", IN_MEMORY),
        ("stencil, box3 float32", f"{sweeps} -n 1 -t 2 --weights box3", IN_MEMORY),
        ("stencil, one sweep a pass", f"{double} -n 1 -t 2 --depth 1", IN_MEMORY),
        ("stencil, plain float64", f"{double.replace('50', '5')} -n 1 -t 2 --kernel plain", IN_MEMORY),
        ("stencil, grid of 4 ranks", f"{sweeps} -n 4 -t 1 --decomposition grid", IN_MEMORY),
        ("stencil, file to file", "stencil A.npy -o OUT.npy --steps 10", WHOLE),
        ("svd, 1 rank, 2 threads", f"{svd} -n 1 -t 2", IN_MEMORY),
        ("svd, eigen, 2 ranks", f"{svd} -n 2 -t 1 --start eigen", IN_MEMORY),
        ("svd, qr, 2 ranks", f"{svd} -n 2 -t 1 --start qr", IN_MEMORY),
        ("svd, eigen, 4 ranks", f"{svd} -n 4 -t 1 --start eigen", IN_MEMORY),
        ("svd, qr, 4 ranks", f"{svd} -n 4 -t 1 --start qr", IN_MEMORY),
        ("svd, randomized", "svd A.npy -o OUT --components 20 -n 2 -t 1", WHOLE),
        ("svd, tall", f"svd random:{4 * n}x{n // 8}:float64:1 -o OUT -n 2 -t 1", WHOLE),
        ("svd, file to file", "svd S.npy -o OUT -n 2 -t 1", WHOLE),
    ]
    several = "-n 4 -t 1 --exchange"
    some += [
        (f"multiply, {name}, {exchange}", f"{product} {several} {exchange} --algorithm {name}", IN_MEMORY)
        for name in ("cannon", "summa")
        for exchange in MULTIPLY[name].exchanges
    ]
    for command, name, words, phases in (
        ("transpose", "transpose, swap", f"{turned} --algorithm swap", WHOLE),
        ("stencil", "stencil, rows", f"{sweeps} --decomposition rows --depth 2", IN_MEMORY),
        ("svd", "svd", f"{svd} --start qr", IN_MEMORY),
    ):
        some += [
            (f"{name}, {exchange}", f"{words} {several} {exchange}", phases)
            for exchange in exchanges_of(options_of(command))
        ]
    return some


def side(program: Path, folder: Path, words: str, phases: Sequence[str]) -> Sample:
    """Seconds of a repetition; of phases in memory, those of the slowest rank."""

    def sample() -> list[float]:
        record = folder / "record.json"
        swapped = [str(folder / word) if word.split(".")[0] in INPUTS else word for word in words.split()]
        run([program, *swapped, "--force", "-q", "--json", record])
        said = json.loads(record.read_text())
        if phases is WHOLE:
            return [float(said["seconds"]["total"]["max"])]
        return [sum(one[phase] for phase in phases) for one in said["samples"]]

    return sample


def compared(case: Case, programs: dict[str, Path], folder: Path, rounds: int) -> Row:
    """The case on both builds: how many times as fast this one is as the other."""
    name, words, phases = case
    say(f"  {name}")
    row = Row(name, name, "at least", 0.95)
    try:
        samples = alternate(
            {label: side(path, folder, words, phases) for label, path in programs.items()}, rounds
        )
    except NotRun as reason:
        row.note = str(reason)[-90:]
        return row
    row.samples = samples
    medians = [1e3 * statistics.median(samples[label]) for label in programs]
    row.note = "this {:.4g} ms, other {:.4g} ms".format(*medians)
    return compare(row, samples["other"], samples["this"])


def main() -> int:
    """Compares, prints the table, keeps the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the other build's tilewise")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="small matrices")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--keep", type=Path, default=ROOT / "bench/results/builds.json")
    asked = parser.parse_args()
    n = 256 if asked.quick else 4096
    with tempfile.TemporaryDirectory(prefix="tilewise-builds-") as made:
        folder = Path(made)
        for name, shape, dtype in (("A", n, "float64"), ("F", n, "float32"), ("S", n // 8, "float64")):
            words = ["-o", folder / f"{name}.npy", "--shape", f"{shape}x{shape}", "--dtype", dtype, "-q"]
            run([BIN / "tilewise", "generate", *words])
        programs = {"this": BIN / "tilewise", "other": asked.other}
        chosen = [case for case in cases(asked.quick) if asked.only in case[0]]
        rows = [compared(case, programs, folder, asked.rounds) for case in chosen]
        facts = environment(folder)
    print(table(rows))
    asked.keep.write_text(
        json.dumps({"environment": facts, "rows": [row.as_json() for row in rows]}, indent=1) + "\n"
    )
    slower = [row for row in rows if row.met is False and row.high is not None and row.high < 1]
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
