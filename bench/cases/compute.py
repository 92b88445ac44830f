"""In memory: the compute phase beside numpy's matmul and beside ScaLAPACK's pdgemm."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from harness import NotRun, Row, Sample, Setting, alternate, compare, run, tilewise
from peers import pdgemm

PEERS = Path(__file__).resolve().parents[1] / "peers"


def ours(setting: Setting, n: int, repeat: int, *how: object) -> Sample:
    """Seconds of compute and exchange of each repetition, the slowest rank of each."""

    def sample() -> list[float]:
        output = setting.work / "C.npy"
        inputs = [f"random:{n}x{n}:float64:{seed}" for seed in (1, 2)]
        in_memory = ["--verify", "off", "--warmup", 1, "--repeat", repeat]
        record = tilewise(
            "multiply", *inputs, "-o", output, *how, *in_memory, record=setting.work / "record.json"
        )
        output.unlink()
        for fact in ("blas_kernel", "gemm_kernel"):
            setting.facts[f"tilewise_{fact}"] = record["environment"][fact]
        setting.facts["tilewise_mpi"] = record["environment"]["mpi_library"]
        return [one["compute"] + one["exchange"] for one in record["samples"]]

    return sample


def numpy_matmul(setting: Setting, n: int, repeat: int) -> Sample:
    def sample() -> list[float]:
        answer = json.loads(run([sys.executable, PEERS / "numpy_matmul.py", n, 1, repeat]))
        setting.facts["numpy"], setting.facts["numpy_kernel"] = answer["numpy"], answer["kernel"]
        return list(answer["seconds"])

    return sample


def scalapack(setting: Setting, n: int, repeat: int, ranks: int) -> Sample:
    key = f"pdgemm_{ranks}_ranks"
    best = pdgemm.tune(ranks, 2048 if setting.quick else 4096)
    setting.facts[key] = best.describe()

    def sample() -> list[float]:
        answer = pdgemm.measure(best, n, 1, repeat)
        setting.facts[f"{key}_kernel"] = answer["kernel"]
        return list(answer["seconds"])

    return sample


def two_cores(setting: Setting) -> list[Row]:
    """Two ranks, and one rank with two threads, beside numpy with two threads and pdgemm on two ranks."""
    rows = []
    for n in (2048,) if setting.quick else (4096, 8192):
        repeat = 2 if n > 4096 else 4
        sides: dict[str, Sample] = {
            "tilewise, 2 ranks": ours(setting, n, repeat, "-n", 2, "-t", 1),
            "tilewise, 2 threads": ours(setting, n, repeat, "-n", 1, "-t", 2),
            "numpy, 2 threads": numpy_matmul(setting, n, repeat),
        }
        note = ""
        try:
            sides["pdgemm, 2 ranks"] = scalapack(setting, n, repeat, 2)
        except NotRun as missing:  # a row that says so, not the end
            note = str(missing)
        samples = alternate(sides, setting.rounds)
        numpy = samples["numpy, 2 threads"]
        for side in ("2 ranks", "2 threads"):
            mine = samples[f"tilewise, {side}"]
            row = Row(f"numpy-{side[2:]}-{n}", f"speed, {side}, N={n}, over numpy", "at least", 0.97)
            rows.append(compare(row, numpy, mine))
            rows[-1].samples = {side: mine, "numpy": numpy}
        row = Row(f"pdgemm-2-{n}", f"speed, 2 ranks, N={n}, over pdgemm on 2", "at least", 1.10, note=note)
        rows.append(row)
        if not note:
            mine = samples["tilewise, 2 ranks"]
            compare(row, samples["pdgemm, 2 ranks"], mine)
            row.samples = {"tilewise": mine, "pdgemm": samples["pdgemm, 2 ranks"]}
    return rows


def four_ranks(setting: Setting) -> list[Row]:
    """Cannon's algorithm on four ranks that share two cores, beside pdgemm in the same position."""
    n = 2048 if setting.quick else 4096
    row = Row(f"pdgemm-4-{n}", f"speed, cannon on 4 ranks, N={n}, over pdgemm on 4", "at least", 1.15)
    samples = alternate(
        {
            "tilewise": ours(setting, n, 4, "-n", 4, "-t", 1, "--algorithm", "cannon"),
            "pdgemm": scalapack(setting, n, 4, 4),
        },
        setting.rounds,
    )
    row.samples = samples
    return [compare(row, samples["pdgemm"], samples["tilewise"])]
