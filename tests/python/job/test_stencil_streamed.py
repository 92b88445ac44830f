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
    for ranks, cap in ((1, 64), (2, 116)):
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
WAYS |= {"sieve": 180, "two_phase": 180}  # with what they stage


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
