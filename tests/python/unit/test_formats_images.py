"""Images as matrices: grey ones in place where they are plain, colours by their grey value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
import tifffile
from format_files import check_target, colours, grey, loaded
from PIL import Image
from tilewise import files
from tilewise.base.errors import UsageError
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.output import create

Array = numpy.ndarray[Any, numpy.dtype[Any]]


def near(found: Array, expected: Array, by: int = 1) -> bool:
    return (
        found.dtype == expected.dtype and int(numpy.abs(found.astype(int) - expected.astype(int)).max()) <= by
    )


@pytest.mark.parametrize("mark", "<>")
@pytest.mark.parametrize("dtype", ITEMSIZE)
def test_plain_tiff_lies_in_place(tmp_path: Path, dtype: str, mark: str) -> None:
    numbers = numpy.arange(13 * 11).reshape(13, 11).astype(dtype)
    for shape in ((13, 11), (1, 143), (143, 1)):
        for big in (False, True):
            path = tmp_path / "a.tif"
            tifffile.imwrite(
                path, numbers.reshape(shape), byteorder=mark, bigtiff=big, photometric="minisblack"
            )
            source = files.inspect(str(path))
            assert not source.encoded and source.dtype == dtype
            assert numpy.array_equal(loaded(path), numbers.reshape(shape))


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "zlib"},
        {"compression": "zlib", "predictor": True},
        {"compression": "zlib", "tile": (16, 32)},
        {"tile": (16, 16)},
        {"rowsperstrip": 7, "compression": "zlib"},
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32"])
@pytest.mark.parametrize("mark", "<>")
def test_packed_tiff_is_decoded(tmp_path: Path, options: dict[str, Any], dtype: str, mark: str) -> None:
    numbers = numpy.arange(61 * 45).reshape(61, 45).astype(dtype)
    tifffile.imwrite(tmp_path / "a.tif", numbers, photometric="minisblack", byteorder=mark, **options)
    assert files.inspect(str(tmp_path / "a.tif")).packed
    assert numpy.array_equal(loaded(tmp_path / "a.tif"), numbers)


@pytest.mark.parametrize(
    "options", [{}, {"compression": "zlib", "tile": (16, 16)}, {"planarconfig": "separate"}]
)
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_coloured_tiff(tmp_path: Path, dtype: str, options: dict[str, Any]) -> None:
    for samples in (3, 4):
        picture = colours(dtype, samples)
        stored = numpy.moveaxis(picture, -1, 0) if options.get("planarconfig") else picture
        tifffile.imwrite(tmp_path / "a.tif", stored, photometric="rgb", **options)
        source = files.inspect(str(tmp_path / "a.tif"))
        assert any("grey value" in note for note in source.warnings)
        assert any("transparency" in note for note in source.warnings) == (samples == 4)
        assert numpy.array_equal(loaded(tmp_path / "a.tif"), grey(picture))


@pytest.mark.parametrize("compression", ["tiff_lzw", "packbits", "tiff_adobe_deflate", "jpeg"])
@pytest.mark.parametrize("mode", ["L", "RGB", "P"])
def test_tiff_that_pillow_packed(tmp_path: Path, compression: str, mode: str) -> None:
    if compression == "jpeg" and mode == "P":
        pytest.skip("JPEG has no palettes")
    image = Image.fromarray(colours()).convert(mode)
    image.save(tmp_path / "a.tif", compression=compression)
    assert near(loaded(tmp_path / "a.tif"), numpy.asarray(Image.open(tmp_path / "a.tif").convert("L")))


@pytest.mark.parametrize("compression", [None, "packbits", "group3", "group4", "tiff_lzw"])
@pytest.mark.parametrize("white", [0, 1])
def test_bits_are_0_and_1_however_they_are_packed(
    tmp_path: Path, compression: str | None, white: int
) -> None:
    """As stored: where 0 is white, a white point is 0."""
    bits = numpy.random.default_rng(1).integers(0, 2, (21, 19)).astype(bool)
    Image.fromarray(bits).save(tmp_path / "a.tif", compression=compression, tiffinfo={262: white})
    assert numpy.array_equal(loaded(tmp_path / "a.tif"), bits == white)
    assert any("0 is white" in note for note in files.inspect(str(tmp_path / "a.tif")).warnings) == (
        white == 0
    )


@pytest.mark.parametrize("white", [0, 1])
def test_white_may_be_0(tmp_path: Path, white: int) -> None:
    """Numbers of a page are the same whether tifffile or Pillow unpacks it."""
    numbers = colours(planes=1)[..., 0]
    for compression in ("packbits", "tiff_lzw"):
        image = Image.fromarray(numbers)
        image.save(tmp_path / "a.tif", compression=compression, tiffinfo={262: white})
        assert numpy.array_equal(loaded(tmp_path / "a.tif"), numbers if white else 255 - numbers)


@pytest.mark.parametrize("ending", ["lzw.tif", "packbits.tif", "jpg", "png"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_picture_is_read_as_stored(tmp_path: Path, ending: str, orientation: int) -> None:
    numbers = colours(planes=1, shape=(16, 8))[..., 0]
    path = tmp_path / f"a.{ending}"
    exif = Image.Exif()
    exif[274] = orientation
    if ending.endswith("tif"):
        compression = {"lzw.tif": "tiff_lzw", "packbits.tif": "packbits"}[ending]
        Image.fromarray(numbers).save(path, compression=compression, tiffinfo={274: orientation})
    else:
        numbers = numbers // 255 * 255 if ending == "png" else numpy.full_like(numbers, 128)
        Image.fromarray(numbers).save(path, exif=exif)
    assert near(loaded(path), numbers)
    warnings = files.inspect(str(path)).warnings
    assert [f"(orientation {orientation})" in note for note in warnings] == [True] * (orientation > 1)


def test_further_frames_are_told(tmp_path: Path) -> None:
    frames = [Image.fromarray(colours(planes=1)[..., 0] // shade) for shade in (1, 2, 3)]
    frames[0].save(tmp_path / "a.png", save_all=True, append_images=frames[1:])
    frames[0].save(tmp_path / "a.jpg", format="MPO", save_all=True, append_images=frames[1:])
    for name in ("a.png", "a.jpg"):
        assert files.inspect(str(tmp_path / name)).warnings == (
            "it has 3 frames, of which the first is taken",
        )
    assert numpy.array_equal(loaded(tmp_path / "a.png"), numpy.asarray(frames[0]))


def test_pages_are_named_by_number(tmp_path: Path) -> None:
    pages = numpy.arange(3 * 20, dtype="uint16").reshape(3, 4, 5)
    tifffile.imwrite(tmp_path / "a.tif", pages, photometric="minisblack")
    for page in range(3):
        assert numpy.array_equal(loaded(f"{tmp_path / 'a.tif'}:{page}"), pages[page])
    for name, said in (("a.tif", "3 pages"), ("a.tif:3", "no such page"), ("a.tif:x", "no such page")):
        with pytest.raises(UsageError, match=said):
            files.inspect(str(tmp_path / name))
    with pytest.raises(UsageError, match="one page only"):
        create(check_target(str(tmp_path / "new.tif:1"), False), (2, 2), "uint8", "C", "id")


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("kind", ["P2", "P3", "P5", "P6"])
def test_netpbm(tmp_path: Path, kind: str, dtype: str) -> None:
    picture = colours(dtype, shape=(13, 11))
    values = picture if kind in ("P3", "P6") else picture[..., 0]
    largest = numpy.iinfo(dtype).max
    head = f"{kind}# a comment\n 11\t13 # more\n# and more\n{largest}\n".encode()
    if kind in ("P2", "P3"):
        body = (
            b"\n".join(b" ".join(b"%d" % value for value in row.ravel()) + b" # end" for row in values)
            + b"\n"
        )
    else:
        body = values.astype(">u2" if dtype == "uint16" else "u1").tobytes()
    path = tmp_path / ("a.ppm" if kind in ("P3", "P6") else "a.pgm")
    path.write_bytes(head + body)
    assert files.inspect(str(path)).encoded == (kind != "P5")
    assert numpy.array_equal(loaded(path), grey(picture) if kind in ("P3", "P6") else values)
    with pytest.raises(UsageError, match="read-only"):
        check_target(str(tmp_path / "new.ppm"), False)


@pytest.mark.parametrize("blank", [" ", "\t", "\v", "\f", "\r", "\n", "#c\n", "#c\r"])
def test_blanks_of_netpbm(tmp_path: Path, blank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewise.files.formats.pgm._PANEL", 96)  # less than the text
    path, between = tmp_path / "a.pgm", blank.encode()
    head = b"P%d" + between + b"3" + between + b"40" + between + b"255" + between
    path.write_bytes(head % 2 + between.join(b"%d" % value for value in range(120)))
    assert loaded(path).ravel().tolist() == list(range(120))
    path.write_bytes(head % 5 + bytes(range(120)))
    assert loaded(path).ravel().tolist() == list(range(120))


@pytest.mark.parametrize(
    ("kind", "largest", "value"),
    [
        ("P2", 9, 10),
        ("P2", 255, 300),
        ("P2", 65535, 65536),
        ("P3", 255, 256),
        ("P6", 9, 10),
        ("P6", 300, 301),
    ],
)
def test_netpbm_above_its_largest_value(tmp_path: Path, kind: str, largest: int, value: int) -> None:
    """In P5, which ranks read where it lies, nothing looks for it."""
    values = [1, 2, 3, 4, value, 6]
    body = " ".join(map(str, values)).encode()
    if kind == "P6":
        body = numpy.array(values, ">u2" if largest > 255 else "u1").tobytes()
    (tmp_path / "a.ppm").write_bytes(f"{kind} {6 if kind == 'P2' else 2} 1 {largest}\n".encode() + body)
    with pytest.raises(UsageError, match=f"value {value}, but the largest in its header is {largest}"):
        loaded(tmp_path / "a.ppm")


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "I;16"])
def test_png_of_every_mode(tmp_path: Path, mode: str) -> None:
    picture = colours(shape=(13, 11))
    if mode == "I;16":
        numbers = colours("uint16", 1, (13, 11))[..., 0]
        image = Image.fromarray(numbers)
        expected = numbers
    else:
        image = Image.fromarray(picture).convert("P" if mode == "PA" else mode)
        expected = numpy.asarray(image.convert("RGB").convert("L")) // (255 if mode == "1" else 1)
    if mode == "PA":
        image.info["transparency"] = 3
    image.save(tmp_path / "a.png", **({"transparency": 3} if mode == "PA" else {}))
    source = files.inspect(str(tmp_path / "a.png"))
    assert source.encoded and source.dtype == expected.dtype
    assert near(loaded(tmp_path / "a.png"), expected)
    assert any("grey value" in note for note in source.warnings) == (mode in ("P", "PA", "RGB", "RGBA"))
    assert any("transparency" in note for note in source.warnings) == (mode in ("LA", "PA", "RGBA"))


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg(tmp_path: Path, mode: str) -> None:
    smooth = numpy.add.outer(numpy.arange(64), numpy.arange(48)).astype("uint8")
    image = Image.fromarray(smooth).convert(mode)
    image.save(tmp_path / "a.jpg", quality=95)
    assert near(loaded(tmp_path / "a.jpg"), smooth, 4)


@pytest.mark.parametrize(("name", "by"), [("a.jpg", 4), ("a.jpeg", 4), ("a.png", 0)])
def test_packed_images_are_written_at_the_end(tmp_path: Path, name: str, by: int) -> None:
    smooth = numpy.add.outer(numpy.arange(64), numpy.arange(48)).astype("uint8")
    output = create(check_target(str(tmp_path / name), False), (64, 48), "uint8", "C", "id")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f".{name}.id.part", f".{name}.id.part.raw"]
    assert output.region.encoding == "binary" and len(output.seals) == 2
    Path(output.region.path).write_bytes(smooth.tobytes())
    output.commit(sync=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert near(numpy.asarray(Image.open(tmp_path / name)), smooth, by)
    again = create(check_target(str(tmp_path / name), True), (2, 2), "uint8", "C", "id")
    assert again.discard() == [] and [path.name for path in tmp_path.iterdir()] == [name]


def test_an_image_that_could_be_an_attack_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("L", (200, 200)).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 30_000)
    with pytest.raises(UsageError, match="decompression bomb"):
        files.inspect(str(tmp_path / "a.png"))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 3_000)
    with pytest.raises(UsageError, match="decompression bomb"):
        files.inspect(str(tmp_path / "a.png"))
