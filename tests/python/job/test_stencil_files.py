"""`tilewise stencil` and its files: colours, formats, and all ways of reading and writing."""

from __future__ import annotations

import imagecodecs
import numpy
import pytest
import tifffile
from conftest import Done, Tilewise
from PIL import Image
from stencil_runs import numbers, result, save, swept
from tilewise.planning.names import IO

WITHOUT_CHILD = True
JOB = ("stencil", "--force")


def test_colours(tilewise: Tilewise, done: Done) -> None:
    generator = numpy.random.default_rng(2)
    for name, planes, dtype in (
        ("a.png", 3, "uint8"),
        ("a.png", 4, "uint8"),
        ("a.png", 3, "uint16"),
        ("a.tif", 3, "uint16"),
        ("a.tif", 4, "float32"),
        ("a.ppm", 3, "uint8"),
    ):
        deep = name == "a.png" and dtype == "uint16"  # which Pillow cuts to 8 bits
        picture = (generator.random((29, 33, planes)) * (50_000 if deep else 255)).astype(dtype)
        if name.endswith("tif"):
            tifffile.imwrite(
                tilewise.folder / name,
                picture,
                photometric="rgb",
                extrasamples=["unassalpha"] if planes == 4 else None,
            )
        elif deep:
            (tilewise.folder / name).write_bytes(imagecodecs.png_encode(picture))
        else:
            Image.fromarray(picture).save(tilewise.folder / name)
        output = f"b.{name[2:]}"
        for ranks in (1, 2):
            record = done(name, "-o", output, "--steps", 4, "--boundary", "reflect", "-n", ranks)
            assert record["outputs"][0]["shape"] == [29, 33] and record["outputs"][0]["planes"] == planes
            path = tilewise.folder / output
            read = tifffile.imread if name.endswith("tif") else imagecodecs.imread if deep else Image.open
            found = numpy.asarray(read(path))
            for plane in range(planes):
                expected = swept(picture[..., plane], "star5", "reflect", 4)
                slack = 1e-3 if dtype == "float32" else 0.5 + (2e-2 if deep else 1e-3)
                assert numpy.abs(found[..., plane] - expected).max() <= slack


def test_each_colour_ends_by_itself(tilewise: Tilewise, done: Done) -> None:
    """Channels of different roughness come to rest at different sweeps, as they do one by one."""
    picture = numbers((40, 44, 3), "float32") * numpy.array([1, 0.01, 10], "float32")
    tifffile.imwrite(tilewise.folder / "a.tif", picture, photometric="rgb")
    words = ("--steps", 200, "--boundary", "reflect", "--until-change", 0.02, "--check-every", 4)
    alone, sweeps, snapshots = [], [], []
    for plane in range(3):
        numpy.save(tilewise.folder / "A.npy", picture[..., plane])
        record = done("A.npy", "-o", "B.npy", *words, "--snapshot-every", 12)
        alone.append(result(tilewise))
        sweeps.append(record["result"]["sweeps"])
        snapshots.append(record["result"]["snapshots"])
    assert len(set(sweeps)) == 3 and max(sweeps) < 200
    for ranks in (1, 3):
        record = done("a.tif", "-o", "b.tif", *words, "--snapshot-every", 12, "-n", ranks)
        found = tifffile.imread(tilewise.folder / "b.tif")
        assert numpy.array_equal(found, numpy.stack(alone, -1))
        assert record["result"]["sweeps"] == max(sweeps)
        assert record["result"]["snapshots"] == max(snapshots, key=len)
        names = {name for name in tilewise.files() if name.startswith("b-")}
        assert names == {f"b-{sweep:06}.tif" for sweep in max(snapshots, key=len)}
        for sweep in max(snapshots, key=len):  # one that is at rest stays as it is while others go on
            state = tifffile.imread(tilewise.folder / f"b-{sweep:06}.tif")
            for plane in range(3):
                assert numpy.array_equal(state[..., plane], alone[plane]) == (sweep >= sweeps[plane])


def test_grey_where_the_output_has_no_colours(tilewise: Tilewise, done: Done) -> None:
    Image.fromarray(numbers((20, 60), "uint8").reshape(20, 20, 3)).save(tilewise.folder / "a.png")
    run = tilewise("stencil", "a.png", "-o", "b.npy", "--steps", 1)
    assert run.returncode == 0 and "grey value" in run.stderr
    assert result(tilewise, "b.npy").shape == (20, 20)
    run = tilewise("stencil", "a.png", "-o", "c.png", "--steps", 1)
    assert run.returncode == 0 and run.stderr == "" and "× 3 planes" in run.stdout


@pytest.mark.parametrize("io", IO)
def test_ways_of_touching_files(tilewise: Tilewise, done: Done, io: str) -> None:
    save(tilewise)
    done("A32.npy", "-o", "B.npy", "--steps", 6, "-n", 1, "--kernel", "plain")
    expected = (tilewise.folder / "B.npy").read_bytes()
    words = ("--steps", 6, "-n", 2, "--decomposition", "columns", "--io", io)
    if io != "per_rank":
        record = done("A32.npy", "-o", "B.npy", *words)
        assert io in record["variant"]["io"].split(":")
        assert (tilewise.folder / "B.npy").read_bytes() == expected
        return
    assert tilewise("convert", "A32.npy", "-o", "A.tiles").returncode == 0
    done("A.tiles", "-o", "B.tiles", *words)
    assert tilewise("convert", "B.tiles", "-o", "C.npy").returncode == 0
    assert (tilewise.folder / "C.npy").read_bytes() == expected


def test_formats(tilewise: Tilewise, done: Done) -> None:
    save(tilewise)
    numpy.savetxt(tilewise.folder / "A.csv", numbers(), delimiter=",")
    numpy.save(tilewise.folder / "big.npy", numbers().astype(">f8"))
    expected = swept(numbers(), "star5", "zero", 5)
    for source, target in (
        ("A.csv", "B.h5:/B"),
        ("big.npy", "B.tiles"),
        ("B.h5:/A", "B.txt"),
        ("A64.npy", "B.mtx"),
    ):
        if source.startswith("B"):
            assert tilewise("convert", "A64.npy", "-o", source).returncode == 0
        done(source, "-o", target, "--steps", 5, "-n", 2)
        assert tilewise("convert", target, "-o", "C.npy", "--force").returncode == 0
        assert numpy.allclose(result(tilewise, "C.npy"), expected, rtol=0, atol=1e-13)
    states = []
    for ranks in (1, 4):
        done("random:40x30:float32:5", "-o", "R.npy", "--steps", 8, "-n", ranks)
        states.append(result(tilewise, "R.npy"))
    assert numpy.array_equal(*states)


def test_thousands_of_snapshots(tilewise: Tilewise, done: Done) -> None:
    """The job is then longer than the pipe through which a launcher hands it on."""
    matrix = numbers((4, 5))
    numpy.save(tilewise.folder / "A.npy", matrix)
    words = ("--boundary", "periodic", "--weights", "star5")
    record = done("A.npy", "-o", "B.npy", "--steps", 2500, "--snapshot-every", 1, "-n", 2, *words)
    assert len(record["result"]["snapshots"]) == 2499
    for sweep in (1, 1000, 2499):
        found = numpy.load(tilewise.folder / f"B-{sweep:06}.npy")
        numpy.testing.assert_allclose(found, swept(matrix, "star5", "periodic", sweep), atol=1e-9)
