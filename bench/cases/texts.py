"""Text to numbers and back beside numpy and pandas, and the memory that conversions take."""

from __future__ import annotations

import sys
from pathlib import Path

from harness import BIN, NotRun, Row, Sample, Setting, alternate, compare, run, tilewise

READ = "import numpy,sys,time;t=time.perf_counter();numpy.loadtxt(sys.argv[1]);print(time.perf_counter()-t)"
WRITE = (
    "import numpy,sys,time;a=numpy.load(sys.argv[1]);t=time.perf_counter();"
    "numpy.savetxt(sys.argv[2],a,fmt='%.17g');print(time.perf_counter()-t)"
)
PANDAS = (
    "import pandas,sys,time;t=time.perf_counter();"
    "pandas.read_csv(sys.argv[1],sep=' ',header=None,dtype='float64').to_numpy();print(time.perf_counter()-t)"
)
MEMORY = 256 << 20


def texts(setting: Setting) -> list[Row]:
    """Our side is the whole time of the ranks, binary file included; the peers' is the bare call."""
    n = 500 if setting.quick else 2000
    binary, text = setting.work / "T.npy", setting.work / "T.txt"
    run([BIN / "tilewise", "generate", "--kind", "normal", "-o", binary, "--shape", f"{n}x{n}", "-q"])
    run([sys.executable, "-c", WRITE, binary, text])

    def peer(script: str, *words: object) -> Sample:
        return lambda: [float(run([sys.executable, "-c", script, *words]))]

    def ours(source: Path, target: str) -> Sample:
        def sample() -> list[float]:
            how = ("-o", setting.work / target, "--force")
            return [
                tilewise("convert", source, *how, record=setting.work / "r.json")["seconds"]["total"]["max"]
            ]

        return sample

    readers = {"tilewise": ours(text, "o.npy"), "numpy.loadtxt": peer(READ, text)}
    try:
        run([sys.executable, "-c", "import pandas"])
        readers["pandas"] = peer(PANDAS, text)
    except NotRun:
        pass
    samples = alternate(readers, 2 * setting.rounds + 1)
    rows = []
    for name, bound in (("numpy.loadtxt", 10.0), ("pandas", 1.5)):
        row = Row(f"text-read-{name}", f"speed, reading {n}² numbers of text, over {name}", "at least", bound)
        if name in samples:
            row.samples = {"tilewise": samples["tilewise"], name: samples[name]}
            rows.append(compare(row, samples[name], samples["tilewise"]))
        else:
            row.note = "pandas is not installed: pip install pandas"
            rows.append(row)
    writers = {
        "tilewise": ours(binary, "o.txt"),
        "numpy.savetxt": peer(WRITE, binary, setting.work / "p.txt"),
    }
    samples = alternate(writers, 2 * setting.rounds + 1)
    row = Row("text-write", f"speed, writing {n}² numbers as text, over numpy.savetxt", "at least", 10)
    row.samples = samples
    return [*rows, compare(row, samples["numpy.savetxt"], samples["tilewise"])]


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
