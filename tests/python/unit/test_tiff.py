"""TIFF files by numbers that are not stored, by pictures that share a page, and by how they are packed."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy
import pytest
import tifffile
from format_files import colours, grey, loaded, planes_of
from PIL import Image
from tilewise import files
from tilewise.base.errors import UsageError
from tilewise.files import contents
from tilewise.files.formats import tiff_decode

Array = numpy.ndarray[Any, numpy.dtype[Any]]


def sparse(path: Path, numbers: Array, absent: Iterable[int], nodata: str | None, **options: Any) -> None:
    """Writes a page of which some strips or tiles are not stored."""
    tags = [] if nodata is None else [(42113, 2, 0, nodata, True)]
    options = {"photometric": "minisblack", **options}
    tifffile.imwrite(path, numbers, metadata=None, extratags=tags, **options)
    with tifffile.TiffFile(path, mode="r+") as book:
        for name in ("TileOffsets", "TileByteCounts", "StripOffsets", "StripByteCounts"):
            tag = book.pages[0].aspage().tags.get(name)
            if tag is not None:
                values = list(tag.value)
                for place in absent:
                    values[place] = 0
                tag.overwrite(values)


@pytest.mark.parametrize(
    ("dtype", "nodata", "number"),
    [
        ("int16", "-9999", -9999),
        ("uint8", "255", 255),
        ("uint8", "7.0", 7),
        ("uint64", str(2**64 - 1), 2**64 - 1),
        ("float32", "nan", numpy.nan),
        ("float32", "-3.4028234663852886e+38", numpy.finfo("float32").min),
        ("float64", "0,5", 0.5),
        ("complex64", "-9999", -9999),
        ("float32", "1e40", None),
        ("uint16", "-1", None),
        ("int32", "nan", None),
        ("int32", None, None),
    ],
)
def test_parts_of_a_tiff_that_are_not_stored(
    tmp_path: Path, dtype: str, nodata: str | None, number: float | None
) -> None:
    """They are the file's nodata value, for ranks and for the decoder; without one that fits they are 0."""
    path = tmp_path / "a.tif"
    whole = numpy.ones((40, 45), dtype)
    number_ = numpy.array(0 if number is None else number).astype(dtype)
    nan = bool(numpy.isnan(number_))
    expected = whole.copy()
    expected[16:32, :16] = number_
    sparse(path, whole, [3], nodata, tile=(16, 16), byteorder=">")
    source = files.inspect(str(path))
    assert source.chunks is not None and source.chunks.fill == number_.byteswap().tobytes().hex()
    assert numpy.array_equal(loaded(path), expected, equal_nan=nan)
    assert ("GDAL_NODATA" in " ".join(source.warnings)) == (nodata is not None and not nan)
    for shape, strip in (((3, 40, 45), 1), ((40, 45, 3), 0)):
        apart = "separate" if strip else "contig"
        sparse(path, numpy.ones(shape, dtype), [strip], nodata, photometric="rgb", planarconfig=apart)
        found = planes_of(path)
        absent = found[..., 1] if strip else found
        assert numpy.array_equal(absent, numpy.full_like(absent, number_), equal_nan=nan)
        assert not strip or (found[..., ::2] == 1).all()


def test_a_picture_of_which_nothing_is_stored(tmp_path: Path) -> None:
    for options in ({}, {"compression": "zlib"}, {"rowsperstrip": 7}):
        sparse(
            tmp_path / "a.tif",
            numpy.ones((21, 9), "int16"),
            range(3 if "rowsperstrip" in options else 1),
            "-5",
            **options,
        )
        assert (loaded(tmp_path / "a.tif") == -5).all()


@pytest.mark.parametrize("options", [{}, {"imagej": True}, {"byteorder": ">", "bigtiff": True}])
@pytest.mark.parametrize("shape", [(5, 8, 9), (2, 3, 8, 9), (5, 8, 9, 3)])
def test_pictures_of_one_page_are_named_by_number(
    tmp_path: Path, shape: tuple[int, ...], options: dict[str, Any]
) -> None:
    path = tmp_path / "a.tif"
    pictures = numpy.arange(numpy.prod(shape)).reshape(shape).astype("uint8" if shape[-1] == 3 else "uint16")
    kind = "rgb" if shape[-1] == 3 else "minisblack"
    tifffile.imwrite(path, pictures, truncate=True, photometric=kind, **options)
    assert len(tifffile.TiffFile(path).pages) == 1
    every = pictures.reshape(-1, *shape[-3:]) if kind == "rgb" else pictures.reshape(-1, 8, 9)
    assert [each.shape for each in contents(str(path))] == [picture.shape for picture in every]
    for number, picture in enumerate(every):
        expected = grey(picture) if kind == "rgb" else picture
        assert numpy.array_equal(loaded(f"{path}:{number}"), expected)
        assert numpy.array_equal(loaded(f"{path}[{number}]"), expected)
    for name, said in ((path, f"{len(every)} pages"), (f"{path}:{len(every)}", "no such page")):
        with pytest.raises(UsageError, match=said):
            files.inspect(str(name))


def test_pictures_that_only_the_description_has(tmp_path: Path) -> None:
    """Pages that were taken out of a stack, and stacks that are not alone in their file."""
    pictures = numpy.arange(360, dtype="uint16").reshape(5, 8, 9)
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, pictures[0], metadata=None, description=json.dumps({"shape": [5, 8, 9]}))
    assert "5 pictures" in files.inspect(str(path)).warnings[0]
    assert numpy.array_equal(loaded(path), pictures[0])
    with tifffile.TiffWriter(path) as book:
        for count in (5, 2, 1):
            book.write(pictures[:count] if count > 1 else pictures[0], truncate=count > 1)
    assert [len(files.inspect(f"{path}:{page}").warnings) for page in range(3)] == [1, 1, 0]


def test_luma_and_chroma_are_not_red_and_green(tmp_path: Path) -> None:
    picture = Image.fromarray(colours("uint8")).convert("YCbCr")
    for compression in (None, "tiff_lzw"):
        picture.save(tmp_path / "a.tif", compression=compression)
        with pytest.raises(UsageError, match="YCbCr"):
            files.inspect(str(tmp_path / "a.tif"))


def test_the_grey_value_is_rounded_once(tmp_path: Path) -> None:
    picture = colours("uint8").astype("float16")
    tifffile.imwrite(tmp_path / "a.tif", picture, photometric="rgb")
    exact = sum(weight * picture[..., k].astype(float) for k, weight in enumerate((0.299, 0.587, 0.114)))
    assert numpy.array_equal(loaded(tmp_path / "a.tif"), exact.astype("float16"))


def test_palettes_of_one_bit(tmp_path: Path) -> None:
    path, bits = tmp_path / "a.tif", numpy.random.default_rng(1).integers(0, 2, (9, 13)).astype("uint8")
    map_ = (320, 3, 6, (65535, 0, 257, 0, 0, 65535), True)  # two reds, two greens, two blues
    tifffile.imwrite(path, bits, bitspersample=1, photometric="minisblack", metadata=None, extratags=[map_])
    data = path.read_bytes()
    old, new = (struct.pack("<HHIH", 262, 3, 1, kind) for kind in (1, 3))
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))
    table = numpy.array([(255, 1, 0), (0, 0, 255)], "uint8")
    assert numpy.array_equal(loaded(path), grey(table)[bits])
    assert numpy.array_equal(planes_of(path), table[bits])


def test_the_same_bits_in_png_and_tiff(tmp_path: Path) -> None:
    bits = numpy.random.default_rng(1).integers(0, 2, (21, 19)).astype(bool)
    for name in ("a.png", "a.tif"):
        Image.fromarray(bits).save(tmp_path / name)
        assert numpy.array_equal(loaded(tmp_path / name), bits)
        assert any("go up to 1 " in said for said in files.inspect(str(tmp_path / name)).warnings)


@pytest.mark.parametrize("mark", "<>")
def test_pillow_where_the_library_lacks_a_codec(
    tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same numbers, or a refusal: of numbers of 32 bits it takes big endian for little."""
    pytest.importorskip("imagecodecs", reason="imagecodecs is not installed")
    table = numpy.random.default_rng(1).integers(0, 65536, (3, 256)).astype("uint16")
    made: dict[str, tuple[Array, dict[str, Any]]] = {
        "palette": (colours("uint8", 1)[..., 0], {"photometric": "palette", "colormap": table}),
        "rgb": (colours("uint8"), {"photometric": "rgb"}),
        "grey": (colours("uint16", 1)[..., 0], {}),
        "float": (colours("uint16", 1)[..., 0].astype("float32"), {}),
    }
    for name, (numbers, options) in made.items():
        path = tmp_path / f"{name}.tif"
        tifffile.imwrite(path, numbers, compression="lzw", byteorder=mark, predictor=True, **options)
        for planes in ((1,), (1, 2, 3, 4)):
            expected = planes_of(path, planes)
            with monkeypatch.context() as patch:
                patch.setattr(tiff_decode, "decode_segments", lacking)
                if name == "float" and mark == ">":
                    with pytest.raises(UsageError, match="packed in lzw, 32 bits"):
                        planes_of(path, planes)
                else:
                    assert numpy.array_equal(planes_of(path, planes), expected)


def lacking(*_: object) -> None:
    raise ImportError("requires the 'imagecodecs' package")


def test_packings_that_need_another_package(tmp_path: Path) -> None:
    """With it they are read as by the library; without it, the message says how they are packed."""
    pytest.importorskip("imagecodecs", reason="imagecodecs is not installed")
    whole = colours("uint16", 1)[..., 0]
    said = {}
    for packing in ("zstd", "jpegxl", "lerc", "webp", 10, 14, "tiff_lzw"):
        name = str(tmp_path / f"{packing}.tif")
        picture = whole >> (16 - packing) if isinstance(packing, int) else whole
        options: dict[str, Any] = {"compression": packing}
        if isinstance(packing, int):
            options = {"bitspersample": packing}
        elif packing in ("webp", "tiff_lzw"):
            picture = colours("uint8" if packing == "webp" else "uint16")
            options |= {"photometric": "rgb", "compression": packing[-4:].strip("_")}
        tifffile.imwrite(name, picture, **options)
        expected = tifffile.imread(name)
        assert numpy.array_equal(loaded(name), grey(expected) if expected.ndim == 3 else expected)
        said[name] = f"{packing} bits" if isinstance(packing, int) else f"packed in {options['compression']}"
    code = (
        "import sys; sys.modules['imagecodecs'] = None\n"
        "from tilewise import files\nfrom tilewise.files.reading import binary\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n        with binary(files.inspect(name)): print('read')\n"
        "    except files.UsageError as error: print(error.message, error.advice)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *said], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for line, (name, part) in zip(done.stdout.splitlines(), said.items(), strict=True):
        assert line.startswith(name) and part in line and line.endswith(" imagecodecs")
