"""Text to numbers and back beside numpy and pandas, and the memory that conversions take."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from harness import BIN, NotRun, Row, Sample, Setting, alternate, compare, run, tilewise


class Dialect(NamedTuple):
    """How the numbers of a text are written."""

    what: str
    number: str = "%.17g"
    separator: str = ","
    quoted: bool = False
    columns: int = 0  # of a table of equally many numbers that is no square


DIALECTS = {
    "long": Dialect("17 digits"),
    "short": Dialect("2 decimals", "%.2f"),
    "integers": Dialect("whole numbers", "%d"),
    "blanks": Dialect("17 digits between blanks", separator=" "),
    "semicolons": Dialect("17 digits between semicolons", separator=";"),
    "quotes": Dialect("17 digits in quotes", quoted=True),
    "narrow": Dialect("17 digits, 3 columns", columns=3),
    "wide": Dialect("17 digits, 100000 columns", columns=100_000),
}
# What each of the peers calls it; `p` is a path, `s` a separator, `a` an array.
READ = {
    "numpy.loadtxt": ("numpy", "m.loadtxt(p, delimiter=None if s == ' ' else s, quotechar='\"')"),
    "pandas": ("pandas", "m.read_csv(p, sep=s, header=None, dtype='float64').to_numpy()"),
    "polars": ("polars", "m.read_csv(p, separator=s, has_header=False).to_numpy()"),
    "pyarrow": (
        "pyarrow.csv",
        "m.read_csv(p, m.ReadOptions(autogenerate_column_names=True), m.ParseOptions(delimiter=s))",
    ),
}
WRITE = {
    "numpy.savetxt": ("numpy", "a", "m.savetxt(p, a, fmt='%.17g', delimiter=',')"),
    "pandas": ("pandas", "m.DataFrame(a)", "a.to_csv(p, header=False, index=False)"),
    "polars": ("polars", "m.DataFrame(a)", "a.write_csv(p, include_header=False)"),
    "pyarrow": (
        "pyarrow.csv",
        "__import__('pyarrow').table({str(i): a[:, i] for i in range(a.shape[1])})",
        "m.write_csv(a, p, m.WriteOptions(include_header=False))",
    ),
}
TIMED = "t=time.perf_counter();{call};print(time.perf_counter()-t)"
MEMORY = 256 << 20


def _peer(module: str, prepare: str, call: str, *words: object) -> Sample | None:
    """The bare call in a process of its own; None where the peer is not installed."""
    try:
        run([sys.executable, "-c", f"import {module}"])
    except NotRun:
        return None
    script = f"import importlib,numpy,sys,time;m=importlib.import_module({module!r});{prepare};"
    return lambda: [float(run([sys.executable, "-c", script + TIMED.format(call=call), *words]))]


def _ours(setting: Setting, source: Path, target: str, *more: object) -> Sample:
    """The whole time of the ranks, the other file included."""
    how = ("-o", setting.work / target, "--force", *more)
    return lambda: [
        tilewise("convert", source, *how, record=setting.work / "r.json")["seconds"]["total"]["max"]
    ]


def _rows(
    name: str, what: str, sides: dict[str, Sample | None], bounds: dict[str, float], rounds: int
) -> list[Row]:
    """A row for each peer, whose bound is where we want to be."""
    samples = alternate({side: sample for side, sample in sides.items() if sample is not None}, rounds)
    rows = []
    for peer in list(sides)[1:]:
        bound = bounds.get(peer)
        row = Row(f"{name}-{peer}", f"speed, {what}, over {peer}", "at least" if bound else "", bound or 0.0)
        if peer in samples:
            row.samples = {"tilewise": samples["tilewise"], peer: samples[peer]}
            compare(row, samples[peer], samples["tilewise"])
        else:
            row.note = f"{peer} is not installed: pip install {peer}"
        rows.append(row)
    return rows


def texts(setting: Setting) -> list[Row]:
    """As many ranks as the plan wants; the peers' is the bare call, with the threads that each likes."""
    n = 500 if setting.quick else 2000
    binary, text = setting.work / "T.npy", setting.work / "T.txt"
    run(
        [
            BIN / "tilewise",
            "generate",
            "--kind",
            "normal",
            "-o",
            binary,
            "--shape",
            f"{n}x{n}",
            "-q",
            "--force",
        ]
    )
    run(
        [
            sys.executable,
            "-c",
            "import numpy,sys;numpy.savetxt(sys.argv[2],numpy.load(sys.argv[1]),'%.17g')",
            binary,
            text,
        ]
    )
    set_path = "p=sys.argv[1];s=' '"
    readers = {"tilewise": _ours(setting, text, "o.npy")} | {
        name: _peer(module, set_path, call, text) for name, (module, call) in READ.items()
    }
    take = "a=numpy.load(sys.argv[1]);p=sys.argv[2]"
    writers = {"tilewise": _ours(setting, binary, "o.csv")} | {
        name: _peer(module, f"{take};a={frame}", call, binary, setting.work / "p.csv")
        for name, (module, frame, call) in WRITE.items()
    }
    rounds = 2 * setting.rounds + 1
    return [
        *_rows(
            "text-read",
            f"reading {n}² numbers of text",
            readers,
            {"numpy.loadtxt": 10.0, "pandas": 1.5},
            rounds,
        ),
        *_rows("text-write", f"writing {n}² numbers as text", writers, {"numpy.savetxt": 20.0}, rounds),
    ]


def dialects(setting: Setting) -> list[Row]:
    """Reading on two ranks, however the numbers are written; the whole command as well."""
    n = 600 if setting.quick else 2400
    made = (
        "import numpy,sys;columns=int(sys.argv[2]);"
        "a=numpy.random.default_rng(1).normal(0,1000,(int(sys.argv[3]),columns));"
        "numpy.savetxt(sys.argv[1],a,sys.argv[4],sys.argv[5])"
    )
    rows = []
    for name, dialect in DIALECTS.items():
        columns = dialect.columns or n
        text = setting.work / f"{name}.csv"
        number = f'"{dialect.number}"' if dialect.quoted else dialect.number
        run([sys.executable, "-c", made, text, columns, n * n // columns, number, dialect.separator])
        prepare = f"p=sys.argv[1];s={dialect.separator!r}"
        peers: dict[str, Sample | None] = {
            peer: _peer(READ[peer][0], prepare, READ[peer][1], text) for peer in ("numpy.loadtxt", "polars")
        }
        sides = {"tilewise": _ours(setting, text, "o.npy", "-n", 2)} | peers
        bounds = {"numpy.loadtxt": 15.0, "polars": 5.0}
        rows += _rows(f"text-{name}", f"reading {n}² numbers, {dialect.what}", sides, bounds, setting.rounds)
        text.unlink()
    return rows


def memory(setting: Setting) -> list[Row]:
    """Peak memory of all ranks: conversions hold no block beyond their bands."""
    n = 2048 if setting.quick else 8192
    source = setting.work / "L.npy"
    run([BIN / "tilewise", "generate", "-o", source, "--shape", f"{n}x{n}", "-q"])
    rows = []
    for target, more in (
        ("L.h5", []),
        ("L2.npy", ["--order", "F", "--dtype", "float32"]),
        ("L.tiles", ["-n", "4"]),
        ("L.txt", ["-n", "2"]),
    ):
        record = tilewise(
            "convert", source, "-o", setting.work / target, "--force", *more, record=setting.work / "r.json"
        )
        peak = float(record["peak_rss_bytes"]["node_sum"])
        row = Row(
            f"memory-{target}", f"memory, {n * n * 8 >> 20} MiB to {target} {' '.join(more)}", "at most", 1.0
        )
        row.samples = {"peak": [peak], "allowed": [float(MEMORY)]}
        row.note = f"{peak / (1 << 20):.0f} of {MEMORY >> 20} MiB"
        rows.append(compare(row, [peak], [float(MEMORY)]))
    back = tilewise(
        "convert", setting.work / "L.txt", "-o", setting.work / "L3.npy", record=setting.work / "r.json"
    )
    peak = float(back["peak_rss_bytes"]["node_sum"])
    size = (setting.work / "L.txt").stat().st_size >> 20
    row = Row("memory-back", f"memory, the same from L.txt ({size} MiB)", "at most", 1.0)
    row.samples = {"peak": [peak], "allowed": [float(MEMORY)]}
    row.note = f"{peak / (1 << 20):.0f} of {MEMORY >> 20} MiB"
    return [*rows, compare(row, [peak], [float(MEMORY)])]
