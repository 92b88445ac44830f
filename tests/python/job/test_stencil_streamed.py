"""Fields that do not fit in memory: swept tile after tile, from file to file."""

from __future__ import annotations

import re
from typing import Any

import h5py
import numpy
import pytest
from conftest import InProcess, Tilewise, one_message
from memory import MemoryWatch
from oracle import record_of
from stencil_runs import BOUNDARIES, swept

M, N = 2300, 2100  # 18 MiB of float32, 37 of float64


def field(
    tilewise: Tilewise, dtype: str = "float32", order: str = "C", shape: tuple[int, int] = (M, N)
) -> Any:
    numbers = numpy.random.default_rng(11).standard_normal(shape).astype(dtype)
    if "int" in dtype:
        numbers = numpy.random.default_rng(11).integers(0, 200, shape, dtype)
    numpy.save(tilewise.folder / "A.npy", numpy.asarray(numbers, order=order))
    return numbers


def words(*more: object) -> list[object]:
    return ["stencil", "A.npy", "-o", "B.npy", "--force", *more, "--json", "-"]


def result(tilewise: Tilewise, name: str = "B.npy") -> Any:
    return numpy.load(tilewise.folder / name)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_bits_are_those_in_memory_and_scipy_says_the_same(
    tilewise: Tilewise, inside: InProcess, boundary: str
) -> None:
    numbers = field(tilewise)
    asked = ("--steps", 12, "--boundary", boundary, "--weights", "star9", "-t", 1)
    record_of(inside(*words(*asked, "-n", 1)))
    wanted = result(tilewise)
    close = numpy.abs(wanted - swept(numbers, "star9", boundary, 12)).max()
    assert close <= 1e-5 * numpy.abs(wanted).max()
    for ranks, cap in ((1, 64), (2, 124)):
        record = record_of(inside(*words(*asked, "-n", ranks, "--memory", f"{cap}MiB")))
        assert record["result"]["passes"] == 1 and record["variant"]["tile"][0] < M
        assert record["verification"]["passed"]
        assert numpy.array_equal(result(tilewise), wanted)


@pytest.mark.parametrize(("ranks", "cap"), [(1, "72MiB"), (2, "130MiB"), (3, "190MiB")])
def test_the_cap_is_kept(tilewise: Tilewise, inside: InProcess, ranks: int, cap: str) -> None:
    numbers = field(tilewise, "float64")
    with MemoryWatch() as watch:
        asked = ("--steps", 30, "-n", ranks, "-t", 1, "--memory", cap, "--verify", "fast")
        record = record_of(inside(*words(*asked)))
    assert watch.most <= int(cap.removesuffix("MiB")) << 20
    used = record["peak_rss_bytes"]["node_sum"]
    assert record["needed_bytes"] / 2.5 < used <= record["needed_bytes"] <= int(cap.removesuffix("MiB")) << 20
    assert record["variant"]["tile"] != [M, N] and record["verification"]["passed"]
    assert any("of the field are in memory at a time" in reason for reason in record["reasons"])
    assert numpy.abs(result(tilewise) - swept(numbers, "star5", "zero", 30)).max() < 1e-12
    assert not [path.name for path in tilewise.folder.iterdir() if "state" in path.name]


@pytest.mark.parametrize(("depth", "passes"), [(30, 1), (15, 2), (10, 3)])
def test_one_pass_reads_and_writes_once(
    tilewise: Tilewise, inside: InProcess, depth: int, passes: int
) -> None:
    field(tilewise)
    asked = ("--steps", 30, "--depth", depth, "-n", 1, "-t", 1, "--memory", "66MiB", "--verify", "off")
    record = record_of(inside(*words(*asked)))
    assert record["variant"]["tile"][1] == N and record["variant"]["depth"] == depth
    assert record["result"]["passes"] == passes
    assert record["bytes"]["useful"] == passes * 4 * M * N
    assert record["bytes"]["written"] == passes * 4 * M * N


KINDS = ["F", "turned", "float64", "uint8", "int32", "hdf5", "csv", "generated", "big"]
WAYS = {"positioned": 116, "independent": 116, "uncached": 180, "collective": 180, "root": 180}
WAYS |= {"sieve": 180, "two_phase": 180, "root_collective": 180, "split_collective": 180}
WAYS |= {"shared_pointer:positioned": 180, "ordered:root": 180}  # with what they stage


@pytest.mark.parametrize("kind", KINDS)
def test_formats(tilewise: Tilewise, inside: InProcess, kind: str) -> None:
    dtype = {"float64": "float64", "uint8": "uint8", "int32": "int32"}.get(kind, "float32")
    shape = (3000, 900) if kind == "csv" else (M, N)
    numbers = field(tilewise, dtype, "F" if kind in ("F", "turned") else "C", shape)
    name, output, flags = "A.npy", "B.npy", ["--order", "C"] if kind == "turned" else []
    if kind == "hdf5":
        name = "A.h5:/x"
        with h5py.File(tilewise.folder / "A.h5", "w") as file:
            file.create_dataset("x", data=numbers, chunks=(256, 256), compression="gzip", shuffle=True)
    elif kind == "csv":
        name, output = "A.csv", "B.csv"
        numpy.savetxt(tilewise.folder / name, numbers, delimiter=",", fmt="%.9g")
    elif kind == "generated":
        name, flags = f"random:{M}x{N}:float32", []
    elif kind == "big":
        numpy.save(tilewise.folder / "A.npy", numbers.astype(">f4"))
    asked = ["stencil", name, "-o", output, *flags, "--steps", 9, "-n", 1, "-t", 1, "--force", "--json", "-"]
    record_of(inside(*asked))
    wanted = (tilewise.folder / output).read_bytes()
    caps = {"float64": "80MiB", "int32": "80MiB", "hdf5": "96MiB", "csv": "112MiB", "turned": "72MiB"}
    record = record_of(inside(*asked, "--memory", caps.get(kind, "66MiB")))
    assert record["result"]["passes"] >= 1
    assert (tilewise.folder / output).read_bytes() == wanted


@pytest.mark.parametrize("io", WAYS)
def test_ways_to_read_and_write(tilewise: Tilewise, inside: InProcess, io: str) -> None:
    field(tilewise)
    asked = ("--steps", 9, "--depth", 3, "-n", 2, "-t", 1, "--io", io)
    record_of(inside(*words(*asked)))
    wanted = result(tilewise)
    record = record_of(inside(*words(*asked, "--memory", f"{WAYS[io]}MiB")))
    assert record["result"]["passes"] == 3
    assert numpy.array_equal(result(tilewise), wanted)


@pytest.mark.parametrize("ending", ["tiles", "zarr"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_folders_of_tiles(tilewise: Tilewise, inside: InProcess, ending: str, ranks: int) -> None:
    field(tilewise)
    folder = f"T.{ending}"
    assert tilewise("convert", "A.npy", "-o", folder, "-n", 3, "-q").returncode == 0
    asked = ("--steps", 9, "-n", ranks, "-t", 1, "--depth", 4, "--force", "--json", "-")
    record_of(inside("stencil", folder, "-o", "B.npy", *asked))
    wanted = result(tilewise)
    cap = f"{40 + 64 * ranks}MiB"
    record = record_of(inside("stencil", folder, "-o", f"U.{ending}", *asked, "--memory", cap))
    assert record["result"]["passes"] == 3 and record["variant"]["tile"] is not None
    assert tilewise("convert", f"U.{ending}", "-o", "C.npy", "-q").returncode == 0
    assert numpy.array_equal(result(tilewise, "C.npy"), wanted)


def test_colours_of_a_picture(tilewise: Tilewise, inside: InProcess) -> None:
    from PIL import Image

    pixels = numpy.random.default_rng(3).integers(0, 256, (1500, 2000, 3), "uint8")
    Image.fromarray(pixels).save(tilewise.folder / "A.ppm")
    asked = ("stencil", "A.ppm", "-o", "B.ppm", "--steps", 9, "--weights", "box3", "-n", 1, "-t", 1)
    flags = ("--depth", 5, "--snapshot-every", 4, "--force", "--json", "-")
    names = ("B.ppm", "B-000004.ppm", "B-000008.ppm")
    record_of(inside(*asked, *flags))
    wanted = [(tilewise.folder / name).read_bytes() for name in names]
    record = record_of(inside(*asked, *flags, "--memory", "63MiB"))
    assert record["result"]["passes"] == 3 and record["variant"]["tile"] is not None
    assert [(tilewise.folder / name).read_bytes() for name in names] == wanted


@pytest.mark.parametrize(("fault", "status"), [("throw:0:output", 1), ("kill:1:output", 1), ("element", 3)])
def test_nothing_is_left_of_what_fails(tilewise: Tilewise, fault: str, status: int) -> None:
    field(tilewise)
    before = tilewise.files()
    asked = ("stencil", "A.npy", "-o", "B.npy", "--steps", 9, "--depth", 3, "-n", 2, "--memory", "130MiB")
    tilewise.environment["TILEWISE_FAULT"] = fault
    one_message(tilewise(*asked, "--boundary", "periodic", "--verify", "fast"), status)
    assert tilewise.files() == before


def test_snapshots_end_passes(tilewise: Tilewise, inside: InProcess) -> None:
    field(tilewise)
    asked = ("--steps", 20, "--snapshot-every", 8, "-n", 1, "-t", 1)
    record_of(inside(*words(*asked)))
    wanted = [result(tilewise, name) for name in ("B-000008.npy", "B-000016.npy", "B.npy")]
    record = record_of(inside(*words(*asked, "--memory", "66MiB")))
    assert record["result"]["passes"] == 3 and record["result"]["snapshots"] == [8, 16]
    found = [result(tilewise, name) for name in ("B-000008.npy", "B-000016.npy", "B.npy")]
    assert all(map(numpy.array_equal, found, wanted))


def test_too_little_memory_is_told_what_would_do(tilewise: Tilewise) -> None:
    field(tilewise)
    asked = ("stencil", "A.npy", "-o", "B.npy", "--steps", 9, "-n", 2, "-t", 1)
    said = one_message(tilewise(*asked, "--memory", "9MiB"), 2)
    advised = re.search(r"try: --memory (\d+)MiB, with which the field is swept part by part", said)
    assert advised
    one_message(tilewise(*asked, "--memory", f"{int(advised[1]) - 1}MiB"), 2)
    assert tilewise(*asked, "--memory", f"{advised[1]}MiB", "-q").returncode == 0


def test_what_needs_all_of_the_field_is_refused(tilewise: Tilewise) -> None:
    field(tilewise)
    asked = ("stencil", "A.npy", "-o", "B.npy", "--steps", 9, "--memory", "70MiB", "-n", 1)
    for flags, said in (
        (("--until-change", "1e-3"), "--until-change"),
        (("--verify", "serial"), "--verify serial"),
        (("--repeat", 3), "--repeat and --warmup"),
        (("--io", "mapped"), "--io mapped"),
        (("--grid", "1x1"), "--grid"),
    ):
        message = one_message(tilewise(*asked, *flags), 2)
        assert "--memory allows" in message and f"omit {said}: a field larger than memory" in message
    assert not (tilewise.folder / "B.npy").exists()
