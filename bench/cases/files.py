"""From file to file: the whole command beside numpy scripts, and ways of reading beside the limit."""

from __future__ import annotations

import sys
from pathlib import Path

from harness import BIN, ROOT, Row, Sample, Setting, alternate, compare, run, tilewise, wall

PEERS = Path(__file__).resolve().parents[1] / "peers"
READERS = ("positioned", "root", "root_collective", "collective")


def inputs(setting: Setting, n: int) -> list[Path]:
    """Two n×n float64 files, made once."""
    paths = [setting.work / f"{name}-{n}.npy" for name in "AB"]
    for path, seed in zip(paths, (1, 2), strict=True):
        if not path.exists():
            run([BIN / "tilewise", "generate", "-o", path, "--shape", f"{n}x{n}", "--seed", seed, "-q"])
    return paths


def file_to_file(setting: Setting) -> list[Row]:
    """Whole processes: start, read, multiply, write, end; the old output is gone before, on every side."""
    n = 2048 if setting.quick else 8192
    a, b = inputs(setting, n)
    c = setting.work / "C.npy"

    def whole(*command: object) -> Sample:
        def sample() -> list[float]:
            c.unlink(missing_ok=True)
            return [wall(list(command))]

        return sample

    script = [sys.executable, PEERS / "numpy_files.py"]
    samples = alternate(
        {
            "tilewise": whole(BIN / "tilewise", "multiply", a, b, "-o", c),
            "numpy, memory maps": whole(*script, "maps", a, b, c),
            "numpy, load and save": whole(*script, "load", a, b, c),
        },
        2 * setting.rounds,
    )
    c.unlink()
    maps = Row("file-to-file", f"time, file to file, {n}², over numpy with memory maps", "at most", 0.90)
    load = Row("file-to-file-load", f"time, file to file, {n}², over numpy load, @, save", "", 0)
    rows = []
    for row, peer in ((maps, "numpy, memory maps"), (load, "numpy, load and save")):
        row.samples = {"tilewise": samples["tilewise"], peer: samples[peer]}
        rows.append(compare(row, samples["tilewise"], samples[peer]))
    return rows


def reading(setting: Setting) -> list[Row]:
    """A 2×2 split of one large file, read by four ranks; the limit reads one contiguous quarter a process."""
    n = 2048 if setting.quick else 8192
    a, _ = inputs(setting, n)
    header = a.stat().st_size - n * n * 8
    limit = ROOT / "build/bench/pread_limit"
    limit.parent.mkdir(parents=True, exist_ok=True)
    run(["c++", "-O2", "-std=c++20", "-pthread", PEERS / "pread_limit.cpp", "-o", limit])

    def contiguous(pages: str) -> Sample:
        return lambda: [float(run([limit, a, header, n * n * 8, 4, pages]))]

    def through(reader: str) -> Sample:
        def sample() -> list[float]:
            c = setting.work / "c.npy"
            thin = f"random:{n}x4:float64"  # needs no file, and makes the product cheap
            how = ["-n", 4, "-t", 1, "--grid", "2x2", "--algorithm", "summa", "--exchange", "nonblocking"]
            how += ["--io", f"{reader}:positioned"]
            record = tilewise(
                "multiply", a, thin, "-o", c, *how, "--verify", "off", record=setting.work / "r.json"
            )
            c.unlink()
            seconds = record["seconds"]["input"]
            return [seconds["file"]["max"] if reader == "positioned" else seconds["max"]]

        return sample

    contiguous("fresh")()  # brings the file into the page cache
    sides = {f"pread, {pages} pages": contiguous(pages) for pages in ("fresh", "touched")}
    sides |= {reader: through(reader) for reader in READERS}
    samples = alternate(sides, 3 * setting.rounds)
    rows = []
    for reader in READERS:
        what = f"time, --io {reader}, 2x2 of {n * n * 8 >> 20} MiB, over contiguous pread"
        row = Row(f"read-{reader}", what, "at most" if reader == "positioned" else "", 1.15)
        row.samples = {reader: samples[reader], "pread": samples["pread, fresh pages"]}
        rows.append(compare(row, samples[reader], samples["pread, fresh pages"]))
    row = Row("read-positioned-touched", "the same, positioned, over pread into warm memory", "", 0)
    row.samples = {"positioned": samples["positioned"], "pread": samples["pread, touched pages"]}
    return [*rows, compare(row, samples["positioned"], samples["pread, touched pages"])]
