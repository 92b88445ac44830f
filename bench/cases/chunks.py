"""Packed HDF5 and TIFF to .npy on two ranks, beside each format's own library on one core."""

from __future__ import annotations

import sys
from pathlib import Path

from harness import NotRun, Row, Sample, Setting, alternate, compare, run, tilewise

# Few different chunks, each stored many times: packing takes far longer than unpacking.
MAKE_HDF5 = """
import h5py, numpy, sys, zlib
path, rows = sys.argv[1], int(sys.argv[2])
chunk, columns = 64, 4096
random = numpy.random.default_rng(1)
parts = [random.normal(size=(chunk, columns)).cumsum(axis=1).round(2) for _ in range(8)]
packed = [zlib.compress(part.view("u1").reshape(-1, 8).T.tobytes(), 4) for part in parts]
with h5py.File(path, "w") as book:
    how = {"chunks": (chunk, columns), "compression": "gzip", "shuffle": True}
    x = book.create_dataset("x", (rows, columns), "f8", **how)
    for at in range(0, rows, chunk):
        x.id.write_direct_chunk((at, 0), packed[at // chunk % 8])
"""
MAKE_TIFF = """
import imagecodecs, numpy, sys, tifffile
path, side = sys.argv[1], int(sys.argv[2])
random = numpy.random.default_rng(1)
walks = numpy.cumsum(random.integers(-2, 3, (8, 512, 512)), axis=2)
walks = [imagecodecs.delta_encode((walk + 999).astype("u2"), axis=-1) for walk in walks]
tiles = [imagecodecs.lzw_encode(walk) for walk in walks]
count = (side // 512) ** 2
tifffile.imwrite(path, (tiles[i % 8] for i in range(count)), shape=(side, side), dtype="u2", tile=(512, 512),
                 compression="lzw", predictor=True, photometric="minisblack")
"""
READ_HDF5 = """
import h5py, numpy, sys, time
begin = time.perf_counter()
numpy.save(sys.argv[2], h5py.File(sys.argv[1])["x"][:])
print(time.perf_counter() - begin)
"""
READ_TIFF = """
import numpy, sys, tifffile, time
begin = time.perf_counter()
numpy.save(sys.argv[2], tifffile.imread(sys.argv[1], maxworkers=1))
print(time.perf_counter() - begin)
"""


def chunks(setting: Setting) -> list[Row]:
    """Our side is the whole time of the ranks, the peers' that of their reading and writing."""
    rows, side = (4096, 4096) if setting.quick else (65536, 32768)
    cases = (
        ("hdf5", "h5", MAKE_HDF5, READ_HDF5, rows, f"{rows // 32} MiB of gzip-packed HDF5", "h5py"),
        ("tiff", "tif", MAKE_TIFF, READ_TIFF, side, f"{side * side >> 19} MiB of tiled LZW TIFF", "tifffile"),
    )
    found = []
    for name, ending, make, read, size, what, peer in cases:
        row = Row(
            f"chunks-{name}", f"speed, {what} to .npy on 2 ranks, over {peer} on one core", "at least", 1.8
        )
        path = setting.work / f"chunks.{ending}"
        try:
            run([sys.executable, "-c", make, path, size])
        except NotRun:
            row.note = f"{peer} or imagecodecs is not installed"
            found.append(row)
            continue
        found.append(_compared(setting, row, path, peer, read))
        path.unlink()
    return found


def _end(path: Path) -> bytes:
    with open(path, "rb") as file:
        file.seek(-(1 << 20), 2)
        return file.read()


def _compared(setting: Setting, row: Row, path: Path, peer: str, read: str) -> Row:
    ours, theirs = setting.work / "ours.npy", setting.work / "theirs.npy"

    def tilewise_side() -> list[float]:
        record = tilewise("convert", path, "-o", ours, "-n", 2, "--force", record=setting.work / "r.json")
        return [record["seconds"]["total"]["max"]]

    def peer_side() -> list[float]:
        theirs.unlink(missing_ok=True)
        return [float(run([sys.executable, "-c", read, path, theirs]))]

    sides: dict[str, Sample] = {"tilewise": tilewise_side, peer: peer_side}
    row.samples = alternate(sides, 2 * setting.rounds + 1)
    if _end(ours) != _end(theirs):
        row.note = "the numbers differ"
    ours.unlink()
    theirs.unlink()
    return compare(row, row.samples[peer], row.samples["tilewise"])
