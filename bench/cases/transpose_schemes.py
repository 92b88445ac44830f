"""One-sided beside two-sided beside collective I/O: rank 0 gathers, partners swap, or nobody sends."""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from typing import Any

from harness import BIN, Row, Sample, Setting, alternate, compare, run, say, tilewise

SMALL = ((8, 16, 32, 64, 128), (16, 32, 64))  # sizes, ranks
LARGE = ((1024, 2048, 4096, 8192, 16384), (1, 2, 4, 16))
# Scheme: what it is called, and the flags that make it.
SCHEMES = {
    "gather, Send and Recv": ["gather", "blocking", "--root-write", "rows"],
    "gather, Window and Get": ["gather", "one_sided_fence", "--root-write", "view"],
    "swap, Send and Recv": ["swap", "blocking", "--io", "collective"],
    "swap, Window and Get": ["swap", "one_sided_fence", "--io", "collective"],
    "swap, shared window": ["swap", "shared", "--io", "positioned"],
    "reread": ["reread", "", "--io", "collective"],
}
FIRST = next(iter(SCHEMES))


def flags(scheme: str, ranks: int) -> list[str]:
    algorithm, exchange, *more = SCHEMES[scheme]
    named = ["--exchange", exchange] if exchange else []
    return ["-n", str(ranks), "-t", "1", "--algorithm", algorithm, *named, *more]


def schemes(setting: Setting) -> list[Row]:
    """A row for each size, rank count and scheme: its time over that of rank 0 gathering by Send and Recv.

    The time is from the first to the last barrier, both files cached, without the launch; matrices are int16.
    """
    rows: list[Row] = []
    for sizes, counts in (((8, 64), (4,)),) if setting.quick else (SMALL, LARGE):
        for n in sizes:
            a = setting.work / f"A-{n}.npy"
            made = ["-o", a, "--shape", f"{n}x{n}", "--dtype", "int16", "--force", "-q"]
            run([BIN / "tilewise", "generate", *made])
            for ranks in counts:
                say(f"  {n}x{n} on {ranks}")
                rows += _compared(setting, a, n, ranks)
            a.unlink()
    return rows


def _compared(setting: Setting, a: Path, n: int, ranks: int) -> list[Row]:
    b = setting.work / "B.npy"
    records: dict[str, list[dict[str, Any]]] = {}

    def side(scheme: str) -> Sample:
        def sample() -> list[float]:
            b.unlink(missing_ok=True)
            words = ["transpose", a, "-o", b, *flags(scheme, ranks)]
            record = tilewise(*words, record=setting.work / "record.json")
            records.setdefault(scheme, []).append(record)
            return [float(record["seconds"]["total"]["max"])]

        return sample

    samples = alternate({name: side(name) for name in SCHEMES}, setting.rounds)
    b.unlink()
    return [_row(n, ranks, name, samples, records[name]) for name in SCHEMES]


def _row(
    n: int, ranks: int, scheme: str, samples: dict[str, list[float]], records: list[dict[str, Any]]
) -> Row:
    """The ratio, and in the note what decides: the phases, what was sent, how often files were called."""
    many = " (oversubscribed)" if ranks > len(os.sched_getaffinity(0)) else ""
    row = Row(f"transpose-{n}-{ranks}-{scheme}", f"{n}² int16 on {ranks}{many}: {scheme}", "", 0)
    row.samples = {scheme: samples[scheme], FIRST: samples[FIRST]}

    def median(phase: str) -> float:
        return 1e3 * statistics.median(float(record["seconds"][phase]["max"]) for record in records)

    last = records[-1]
    row.note = (
        f"{median('total'):.2f} ms: input {median('input'):.2f}, turning {median('compute'):.2f}, "
        f"exchange {median('exchange'):.2f}, output {median('output'):.2f}; {last['messages']} messages, "
        f"{last['io_calls']} file calls, {last['ranks_working']} ranks working"
    )
    return compare(row, samples[scheme], samples[FIRST])
