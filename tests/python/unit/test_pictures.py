"""Pictures as planes, one above the other: which colours are taken, and how they come back out of files."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy
import pytest
import tifffile
from format_files import colours, grey, planes_of
from PIL import Image
from tilewise import files
from tilewise.base.errors import RunError, UsageError
from tilewise.files.output import Outputs, create
from tilewise.files.target import Target, check_planes, find_target

Array = numpy.ndarray[Any, numpy.dtype[Any]]
ALL = (1, 2, 3, 4)


def written(name: Path, picture: Array) -> None:
    """Writes planes as the worker does, into the part file, and gives it its name."""
    rows, columns, planes = picture.shape
    target = find_target(str(name), colours=True)
    output = create(target, (planes * rows, columns), picture.dtype.name, "C", "id", planes=planes)
    stacked = numpy.ascontiguousarray(numpy.moveaxis(picture, -1, 0))
    with open(output.region.path, "r+b") as file:
        file.seek(output.region.offset)
        file.write(stacked.astype(stacked.dtype.newbyteorder(output.region.byte_order[0])).tobytes())
    output.commit()


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P"])
def test_planes_of_a_png(tmp_path: Path, mode: str) -> None:
    picture = Image.fromarray(colours("uint8", 4)).convert("RGB" if mode == "P" else mode).convert(mode)
    path = tmp_path / "a.png"
    picture.save(path)
    shown = Image.open(path)
    expected = numpy.atleast_3d(numpy.asarray(shown.convert("RGB") if mode == "P" else shown))
    assert numpy.array_equal(planes_of(path), expected)
    assert files.inspect(str(path), planes=ALL).warnings == ()


def test_planes_of_a_jpeg(tmp_path: Path) -> None:
    Image.fromarray(colours("uint8", 3)).save(tmp_path / "a.jpg")
    Image.fromarray(colours("uint8", 3)).convert("CMYK").save(tmp_path / "b.jpg")
    for name in ("a.jpg", "b.jpg"):
        with Image.open(tmp_path / name) as shown:
            assert numpy.array_equal(planes_of(tmp_path / name), numpy.asarray(shown.convert("RGB")))


@pytest.mark.parametrize("planes", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize(
    "options",
    [{}, {"compression": "zlib", "tile": (16, 16)}, {"rowsperstrip": 5}, {"planarconfig": "separate"}],
)
def test_planes_of_a_tiff(tmp_path: Path, dtype: str, planes: int, options: dict[str, Any]) -> None:
    picture = colours(dtype, planes)
    stored = numpy.moveaxis(picture, -1, 0) if options.get("planarconfig") else picture
    kind = {"photometric": "rgb" if planes > 2 else "minisblack", "planarconfig": "contig", **options}
    extra = {"extrasamples": ["unassalpha"]} if planes in (2, 4) else {}
    tifffile.imwrite(tmp_path / "a.tif", stored, **kind, **extra)
    assert numpy.array_equal(planes_of(tmp_path / "a.tif"), picture)
    fewer = planes_of(tmp_path / "a.tif", (1, 3))
    assert fewer.shape[-1] == (3 if planes > 2 else 1)
    if planes > 2:
        assert numpy.array_equal(fewer, picture[..., :3])


def test_planes_of_a_tiff_with_a_palette(tmp_path: Path) -> None:
    Image.fromarray(colours("uint8", 3)).convert("P").save(tmp_path / "a.tif")
    shown = numpy.asarray(Image.open(tmp_path / "a.tif").convert("RGB"))
    assert numpy.abs(planes_of(tmp_path / "a.tif").astype(int) - shown).max() <= 1


@pytest.mark.parametrize("compression", ["tiff_lzw", "jpeg"])
def test_planes_that_pillow_packed(tmp_path: Path, compression: str) -> None:
    Image.fromarray(colours("uint8", 3)).save(tmp_path / "a.tif", compression=compression)
    shown = numpy.asarray(Image.open(tmp_path / "a.tif").convert("RGB"))
    assert numpy.abs(planes_of(tmp_path / "a.tif").astype(int) - shown).max() <= 2


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_planes_of_a_ppm(tmp_path: Path, dtype: str) -> None:
    picture = colours(dtype, 3)
    head = f"P6 17 21 {numpy.iinfo(dtype).max}\n".encode()
    (tmp_path / "a.ppm").write_bytes(head + picture.astype(picture.dtype.newbyteorder(">")).tobytes())
    text = " ".join(map(str, picture.ravel()))
    (tmp_path / "b.ppm").write_text(f"P3 17 21 {numpy.iinfo(dtype).max}\n{text}\n")
    for name in ("a.ppm", "b.ppm"):
        assert numpy.array_equal(planes_of(tmp_path / name), picture)
        assert planes_of(tmp_path / name, (1,)).shape[-1] == 1


def test_a_picture_of_many_panels(tmp_path: Path) -> None:
    """Wider than what is turned at a time, so that planes are written in several pieces."""
    picture = colours("uint16", 3, (700, 2111))
    for name in ("a.ppm", "a.tif"):
        written(tmp_path / name, picture)
        assert numpy.array_equal(planes_of(tmp_path / name), picture)


@pytest.mark.parametrize(
    ("name", "planes", "dtype"),
    [
        ("a.png", 2, "uint8"),
        ("a.png", 3, "uint8"),
        ("a.png", 4, "uint8"),
        ("a.ppm", 3, "uint8"),
        ("a.ppm", 3, "uint16"),
        ("a.tif", 2, "uint16"),
        ("a.tif", 3, "uint8"),
        ("a.tif", 4, "float32"),
        ("a.png", 1, "uint16"),
        ("a.png", 3, "uint16"),
        ("a.tif", 1, "float64"),
        ("a.pgm", 1, "uint16"),
    ],
)
def test_planes_come_back(tmp_path: Path, name: str, planes: int, dtype: str) -> None:
    picture = colours(dtype, planes)
    written(tmp_path / name, picture)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert numpy.array_equal(planes_of(tmp_path / name), picture)
    if name.endswith("tif"):
        other = numpy.atleast_3d(tifffile.imread(tmp_path / name))
    elif dtype == "uint16" and planes == 3:
        return  # Pillow would take it as 8 bits
    else:
        other = numpy.atleast_3d(numpy.asarray(Image.open(tmp_path / name)))
    assert numpy.array_equal(other, picture)


def test_a_jpeg_comes_back_roughly(tmp_path: Path) -> None:
    smooth = numpy.stack(
        [numpy.add.outer(numpy.arange(64), plane * numpy.arange(48)) for plane in range(3)], -1
    )
    written(tmp_path / "a.jpg", smooth.astype("uint8"))
    assert numpy.abs(planes_of(tmp_path / "a.jpg").astype(int) - smooth).max() <= 8


def test_what_is_lost_is_said(tmp_path: Path) -> None:
    for mode, own in (("LA", 2), ("RGB", 3), ("RGBA", 4)):
        path = str(tmp_path / f"{mode}.png")
        Image.fromarray(colours("uint8", own)).save(path)
        said = " ".join(files.inspect(path).warnings)
        assert ("grey value" in said, "transparency" in said) == (own > 2, own != 3)
        assert files.inspect(path, planes=(1, 3)).planes == (3 if own > 2 else 1)
        only_alpha = " ".join(files.inspect(path, planes=(1, 3)).warnings)
        assert "grey value" not in only_alpha and ("transparency" in only_alpha) == (own != 3)


def test_samples_that_are_no_colours(tmp_path: Path) -> None:
    """Of more than colours and one for transparency nothing goes unsaid."""
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, colours("uint8", 5), photometric="minisblack", planarconfig="contig")
    with pytest.raises(UsageError, match="has 5 samples per pixel"):
        files.inspect(str(path), planes=ALL)
    picture = colours("uint16", 6)
    tifffile.imwrite(path, picture, photometric="rgb", planarconfig="contig")
    source = files.inspect(str(path), planes=ALL)
    assert source.planes == 3 and "of its 6 samples" in " ".join(source.warnings)
    assert numpy.array_equal(planes_of(path), picture[..., :3])


def png(samples: Array, depth: int, kind: int, interlaced: bool, more: bytes = b"") -> bytes:
    """A picture of (rows, columns, samples) packed as it is, without filters, `more` before its numbers."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4) + name + body + zlib.crc32(name + body).to_bytes(4)

    def lines(part: Array) -> bytes:
        bits = part.reshape(len(part), -1, 1) >> numpy.arange(depth - 1, -1, -1) & 1
        packed = numpy.packbits(bits.astype("uint8").reshape(len(part), -1), axis=1)
        return b"".join(b"\0" + line.tobytes() for line in packed)

    first = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    passes = first if interlaced else [(0, 0, 1, 1)]
    parts = [samples[row::down, column::across] for row, column, down, across in passes]
    data = zlib.compress(b"".join(lines(part) for part in parts if part.size))
    extents = samples.shape[1].to_bytes(4) + samples.shape[0].to_bytes(4)
    head = chunk(b"IHDR", extents + bytes((depth, kind, 0, 0, interlaced)))
    numbers = chunk(b"IDAT", data[:20]) + chunk(b"IDAT", data[20:])
    return b"\x89PNG\r\n\x1a\n" + head + (more and chunk(more[:4], more[4:])) + numbers + chunk(b"IEND", b"")


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize(
    ("depth", "kind"),
    [*((bits, 0) for bits in (1, 2, 4, 8, 16)), *((16, kind) for kind in (2, 4, 6)), (8, 2)],
)
def test_samples_of_a_png_are_as_stored(
    tmp_path: Path, kind: int, depth: int, clear: bool, interlaced: bool
) -> None:
    """With all their bits, never scaled; one of the numbers, or colours, may stand for transparent points."""
    clear = clear and kind < 4
    dtype = "uint16" if depth == 16 else "uint8"
    picture = colours("uint16", {0: 1, 2: 3, 4: 2, 6: 4}[kind]) >> (16 - depth)
    key = picture[3, 4]
    path = tmp_path / "a.png"
    path.write_bytes(
        png(picture, depth, kind, interlaced, b"tRNS" + key.astype(">u2").tobytes() if clear else b"")
    )
    expected = picture.astype(dtype)
    if clear:
        seen = (picture != key).any(axis=2, keepdims=True) * numpy.iinfo(dtype).max
        expected = numpy.concatenate((expected, seen.astype(dtype)), axis=2)
    source = files.inspect(str(path), planes=ALL)
    assert source.dtype == dtype and numpy.array_equal(planes_of(path), expected)
    assert [f"up to {2**depth - 1} and are" in said for said in source.warnings] == [True] * (depth < 8)
    assert numpy.array_equal(planes_of(path, (1, 3)), expected[..., : 3 if kind in (2, 6) else 1])
    value = grey(expected) if kind in (2, 6) else expected[..., 0]
    assert numpy.array_equal(planes_of(path, (1,))[..., 0], value)


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_palettes_of_a_png(tmp_path: Path, depth: int) -> None:
    table = colours("uint8", 3, (1, 2**depth))[0]
    places = colours("uint8", 1) >> (8 - depth)
    for interlaced in (False, True):
        (tmp_path / "a.png").write_bytes(png(places, depth, 3, interlaced, b"PLTE" + table.tobytes()))
        assert numpy.array_equal(planes_of(tmp_path / "a.png"), table[places[..., 0]])


@pytest.mark.parametrize("planes", [1, 2, 3, 4])
def test_png_of_16_bits_of_another_library(tmp_path: Path, planes: int) -> None:
    imagecodecs = pytest.importorskip("imagecodecs", reason="imagecodecs is not installed")
    smooth = numpy.add.outer(numpy.arange(0, 9000, 150), numpy.arange(40)[:, None] * range(1, planes + 1))
    for picture in (smooth.astype("uint16"), colours("uint16", planes)):  # packed by other filters
        (tmp_path / "a.png").write_bytes(imagecodecs.png_encode(picture))
        assert numpy.array_equal(planes_of(tmp_path / "a.png"), picture)
        written(tmp_path / "b.png", picture)
        found = imagecodecs.png_decode((tmp_path / "b.png").read_bytes())
        assert numpy.array_equal(numpy.atleast_3d(found), picture)
        (tmp_path / "b.png").unlink()


def test_a_damaged_png_of_16_bits(tmp_path: Path) -> None:
    path, data = tmp_path / "a.png", png(colours("uint16", 3), 16, 2, False)
    for damaged in (data[:30], data[:60], data[:-30], data[:-18], data[:300] + b"~" + data[301:]):
        path.write_bytes(damaged)
        with pytest.raises(UsageError, match="damaged|not a readable .png"):
            planes_of(path)


@pytest.mark.parametrize(
    ("maximum", "written"), [(1, 255), (100, 255), (255, None), (256, 65535), (4095, 65535), (65535, None)]
)
def test_numbers_that_go_up_to_another_largest_one(tmp_path: Path, maximum: int, written: int | None) -> None:
    dtype = ">u2" if maximum > 255 else "u1"
    for name, kind, planes in (("a.pgm", "P5", 1), ("a.ppm", "P6", 3)):
        picture = numpy.minimum(colours("uint16", planes), maximum)
        path = tmp_path / name
        path.write_bytes(f"{kind} 17 21 {maximum}\n".encode() + picture.astype(dtype).tobytes())
        assert numpy.array_equal(planes_of(path), picture)
        said = files.inspect(str(path), planes=ALL).warnings
        assert said == () if written is None else f"up to {maximum}" in said[0] and str(written) in said[0]


def test_what_cannot_hold_colours(tmp_path: Path) -> None:
    for name, planes, said in (
        ("a.pgm", 3, "no colours"),
        ("a.npy", 3, "no colours"),
        ("a.ppm", 1, "colours only"),
    ):
        with pytest.raises(UsageError, match=said):
            check_planes(find_target(str(tmp_path / name), colours=True), planes)
    with pytest.raises(UsageError, match="read-only"):
        find_target(str(tmp_path / "a.ppm"))
    with pytest.raises(UsageError, match="without colours"):
        create(find_target(str(tmp_path / "a.ppm"), colours=True), (30, 10), "uint16", "C", "id", planes=1)
    assert list(tmp_path.iterdir()) == []


def made(*targets: Target) -> Outputs:
    outputs = Outputs()
    outputs.make(create(each, (3, 4), "float64", "C", "id") for each in targets)
    return outputs


def test_outputs_get_their_names_together(tmp_path: Path) -> None:
    targets = [find_target(str(tmp_path / name)) for name in ("out-000001.npy", "out-000002.npy", "out.npy")]
    outputs = made(*targets)
    assert len(outputs.claims) == 3 and not any(claim.stands() for claim in outputs.claims)
    outputs.keep([True, False])
    assert len(list(tmp_path.iterdir())) == 2
    outputs.commit()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out-000001.npy", "out.npy"]
    again = made(*targets)
    Path(again.result.part).unlink()
    with pytest.raises(RunError) as caught:
        again.commit(force=True)
    assert "was removed by another program" in caught.value.message
    assert not any(claim.stands() for claim in again.claims)


def test_a_snapshot_that_stays_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is done: what cannot be removed is worth a warning, and no reason to throw the result away."""
    targets = [find_target(str(tmp_path / name)) for name in ("out-000001.npy", "out-000002.npy", "out.npy")]
    outputs = made(*targets)
    stuck = outputs.named[1].part

    def unlink(path: str) -> None:
        raise PermissionError(path)

    with monkeypatch.context() as patch:
        patch.setattr("tilewise.files.output.os.unlink", unlink)
        said = outputs.keep([True, False])
    assert said == [f"{stuck}, which received no state, could not be removed"]
    outputs.commit()
    assert {path.name for path in tmp_path.iterdir()} == {"out-000001.npy", "out.npy", Path(stuck).name}


def test_parts_are_removed_where_one_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    targets = [find_target(str(tmp_path / name)) for name in ("out.npy", "there/x.npy")]
    (tmp_path / "there").rmdir()
    with pytest.raises((UsageError, RunError, OSError)):
        made(*targets)
    assert list(tmp_path.iterdir()) == []
