"""Files that unpack to more than memory or disk hold, or than they said: refused, or read within the cap."""

from __future__ import annotations

import faulthandler
import functools
import gzip
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy
import pytest
from tilewise import files
from tilewise.base.errors import RunError, TilewiseError, UsageError
from tilewise.engine.decoder_check import checked
from tilewise.files import decoded as decoding
from tilewise.files import slices
from tilewise.files.formats import h5, npz
from tilewise.files.reading import rows_of

LARGE = 1 << 29  # bytes that a bomb unpacks to
SIDE = 1 << 13  # rows of doubles and columns, a matrix of that size
CAP = 256 << 20
FRONT = 200 << 20  # bytes of the front, of its libraries and of one rank, as they lie in memory
_BLOCK = 1 << 22


@functools.cache
def packed(size: int = LARGE, window: int = 15, head: bytes = b"") -> bytes:
    """`head` and zeros, `size` bytes of these, as one stream of zlib (gzip: 31, neither: -15)."""
    begin = zlib.compressobj(9, wbits=-15)
    first = begin.compress(head) + begin.flush(zlib.Z_FULL_FLUSH)
    again = zlib.compressobj(9, wbits=-15)
    block = again.compress(bytes(_BLOCK)) + again.flush(zlib.Z_FULL_FLUSH)
    body = first + block * (size // _BLOCK) + zlib.compressobj(9, wbits=-15).flush()
    if window < 0:
        return body
    sums = zlib.crc32(head) if window == 31 else zlib.adler32(head)
    for _ in range(size // _BLOCK):
        sums = (zlib.crc32 if window == 31 else zlib.adler32)(bytes(_BLOCK), sums)
    if window == 31:
        return b"\x1f\x8b\x08" + bytes(7) + body + struct.pack("<II", sums, len(head) + size & 0xFFFFFFFF)
    return b"\x78\xda" + body + struct.pack(">I", sums)


def test_bombs_are_what_they_say() -> None:
    assert zlib.decompress(packed(_BLOCK, 15, b"x")) == b"x" + bytes(_BLOCK)
    assert gzip.decompress(packed(_BLOCK, 31, b"x")) == b"x" + bytes(_BLOCK)


def _h5(path: Path, shape: tuple[int, int], chunk: tuple[int, int]) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as book:
        dataset = book.create_dataset("a", shape=shape, chunks=chunk, dtype="f8", compression="gzip")
        dataset.id.write_direct_chunk((0, 0), packed())


def chunk_h5(path: Path) -> None:
    _h5(path, (SIDE, SIDE), (SIDE, SIDE))


def lie_h5(path: Path) -> None:
    _h5(path, (100, 100), (100, 100))


def chunk_zarr(path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    zarr.create_array(path, shape=(SIDE, SIDE), chunks=(SIDE, SIDE), dtype="f8")[0, 0] = 1


def lie_zarr(path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    made = zarr.create_array(
        path, shape=(100, 100), chunks=(100, 100), dtype="f8", compressors=zarr.codecs.GzipCodec()
    )
    made[:] = 1
    (path / "c/0/0").write_bytes(packed(window=31))


def array_npz(path: Path) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({SIDE}, {SIDE}), }}\n".encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book, book.open("a.npy", "w") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        for _ in range(LARGE // _BLOCK):
            out.write(bytes(_BLOCK))


def variable_mat(path: Path) -> None:
    size = LARGE
    body = struct.pack("<IIIIII", 6, 8, 6, 0, 5, 8) + struct.pack("<iiII", SIDE, SIDE, 1, 1)
    body += b"a".ljust(8, b"\0") + struct.pack("<II", 9, size)
    stream = packed(size, 15, struct.pack("<II", 14, len(body) + size) + body)
    head = b"MATLAB 5.0".ljust(124) + b"\x00\x01IM"
    path.write_bytes(head + struct.pack("<II", 15, len(stream)) + stream)


def strip_tif(path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    zeros = numpy.broadcast_to(numpy.zeros(1, "u1"), (SIDE, 8 * SIDE))
    tifffile.imwrite(path, zeros, compression="zlib", rowsperstrip=SIDE)


def _table(path: Path, write: Callable[[object], object]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    column = pyarrow.array(numpy.zeros(LARGE // 8 // 32))
    write(pyarrow.table({f"c{number}": column for number in range(32)}))


def group_parquet(path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    _table(path, lambda table: parquet.write_table(table, path, row_group_size=LARGE))


def batch_feather(path: Path) -> None:
    feather = pytest.importorskip("pyarrow.feather")
    _table(path, lambda table: feather.write_feather(table, path, compression="zstd", chunksize=LARGE))


BOMBS = (
    *(chunk_h5, lie_h5, chunk_zarr, lie_zarr, array_npz, variable_mat, strip_tif),
    *(group_parquet, batch_feather),
)


# In a process of its own: what the one that starts it has counts as its child's, too.
_MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def command(folder: Path, *words: object) -> tuple[int, str, int]:
    """The exit code, what was said on standard error, and the most memory that a process of it had."""
    started = [sys.executable, "-P", "-m", "tilewise", *map(str, words)]
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *started],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / ".cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr, int(done.stdout) << 10


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[Path], None]], Path]:
    folder = tmp_path_factory.mktemp("bombs")

    @functools.cache
    def of(bomb: Callable[[Path], None]) -> Path:
        path = folder / bomb.__name__.replace("_", ".")
        bomb(path)
        return path

    return of


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_memory_holds_for_who_unpacks(
    bomb: Callable[[Path], None], made: Callable[[Callable[[Path], None]], Path], tmp_path: Path
) -> None:
    """What is a stream is read in parts, all else refused."""
    code, said, most = command(tmp_path, "norm", made(bomb), "--memory", CAP, "-n", 1)
    assert most < CAP + FRONT, f"{most >> 20} MiB"
    assert (code, said) == (0, "") or (code == 2 and said.startswith("tilewise: "))
    assert {path.name for path in tmp_path.iterdir()} <= {".cache"}
    assert len(list(made(bomb).parent.glob(".*"))) == 0


@pytest.mark.parametrize("words", [("show",), ("info", "--stats")], ids=" ".join)
@pytest.mark.parametrize("bomb", [lie_h5, lie_zarr], ids=lambda bomb: bomb.__name__)
def test_a_look_takes_what_the_file_justifies(
    bomb: Callable[[Path], None],
    words: tuple[str, ...],
    made: Callable[[Callable[[Path], None]], Path],
    tmp_path: Path,
) -> None:
    code, said, most = command(tmp_path, words[0], made(bomb), *words[1:])
    assert most < decoding._LEAST + FRONT, f"{most >> 20} MiB"
    assert code == 2 and said.startswith("tilewise: ")


@pytest.mark.parametrize("chunks", [None, (3000, 3000), (100, 3000)])
def test_what_was_never_written_is_not_read(tmp_path: Path, chunks: tuple[int, int] | None) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as book:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
        properties.set_fill_value(numpy.array(2.5, ">f4"))
        if chunks:
            properties.set_chunk(chunks)
        space = h5py.h5s.create_simple((3000, 3000))
        h5py.h5d.create(book.id, b"a", h5py.h5t.IEEE_F32BE, space, properties)
    source = files.inspect(str(path))
    assert not source.packed and "never written" in source.notes[-1]
    (row,) = rows_of(source, range(2999, 3000))
    assert (row == 2.5).all() and len(row) == 3000
    assert command(tmp_path, "convert", "a.h5", "-o", "b.npy", "-n", 2, "--memory", CAP)[0] == 0
    b = numpy.load(tmp_path / "b.npy", mmap_mode="r")
    assert b.shape == (3000, 3000) and (b[::997, ::991] == 2.5).all()


def test_large_chunks_that_are_not_packed_are_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    h5py = pytest.importorskip("h5py")
    a = numpy.arange(97 * 89.0).reshape(97, 89)
    with h5py.File(tmp_path / "a.h5", "w") as book:
        book.create_dataset("a", data=a, chunks=(97, 50))
        book.create_dataset("b", data=a, chunks=(97, 50), shuffle=True)
    monkeypatch.setattr(h5, "MOST_BYTES", 1000)
    monkeypatch.setattr(slices, "_PANEL", 2000)
    largest = {}
    with h5py.File(tmp_path / "a.h5") as book:
        for name, dataset in book.items():
            taken: list[int] = []
            plain = h5.reader(dataset, "float64")

            def reader(dataset, dtype, plain=plain, taken=taken):  # type: ignore[no-untyped-def]
                return lambda chosen: taken.append(plain(chosen).nbytes) or plain(chosen)

            with open(tmp_path / "out", "w+b") as out, monkeypatch.context() as patch:
                patch.setattr(h5, "reader", reader)
                h5.write_part(dataset, slices.part_of(dataset.shape, "a"), "float64", out)
            assert (numpy.fromfile(tmp_path / "out").reshape(a.shape) == a).all()
            largest[name] = max(taken)
    assert largest["a"] <= 2000 < largest["b"]


def small_npz(folder: Path) -> files.Source:
    numpy.savez_compressed(folder / "a.npz", a=numpy.ones((30, 20)))
    return files.inspect(str(folder / "a.npz"))


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"a.npz"}


def test_what_comes_out_is_what_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file never grows beyond that, and is gone afterwards."""
    source, sizes = small_npz(tmp_path), []

    def decode(source: files.Source, out: BinaryIO) -> None:
        try:
            while True:
                out.write(bytes(1 << 20))
        finally:
            sizes.append(os.fstat(out.fileno()).st_size)
            assert sizes == [source.all_bytes]

    monkeypatch.setattr(npz, "decode", decode)
    with pytest.raises(UsageError, match="holds more bytes of numbers, but its header promises 4800"):
        decoding.decoded(source, str(tmp_path), "id")
    assert left(tmp_path) == set()


@pytest.mark.parametrize("end", [os.abort, lambda: os.kill(os.getpid(), 11), lambda: bytearray(1 << 40)])
def test_who_dies_unpacking_is_not_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Callable[[], object]
) -> None:
    source = small_npz(tmp_path)

    def decode(*_: object) -> None:
        faulthandler.disable()  # which only these tests have
        end()

    monkeypatch.setattr(npz, "decode", decode)
    with pytest.raises(UsageError, match=r"a\.npz is not a readable \.npz file"):
        decoding.decoded(source, str(tmp_path), "id")
    assert left(tmp_path) == set()


def test_the_disk_is_asked_before_anything_is_unpacked(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "a.zarr", shape=(1 << 25, 1 << 25), chunks=(8, 8), dtype="f8")
    with pytest.raises(RunError, match="the disk is too full"):
        decoding.decoded(files.inspect(str(tmp_path / "a.zarr")), str(tmp_path), "id")


def test_the_comparison_of_chunks_is_held_too(
    made: Callable[[Callable[[Path], None]], Path], tmp_path: Path
) -> None:
    source = files.inspect(str(made(lie_h5)))
    assert source.chunks is not None
    try:
        (region,) = checked([source], CAP)
    except TilewiseError as error:
        assert "memory" in error.message
    else:
        assert region.chunks is not None  # a rank says what is wrong
