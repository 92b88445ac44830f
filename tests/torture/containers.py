"""Files with named arrays by their libraries, with all options of these: HDF5, NetCDF, MATLAB and Zarr."""

from __future__ import annotations

import ctypes
import itertools
import math
import zlib
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped,unused-ignore]
import numpy as np
import scipy.io  # type: ignore[import-untyped,unused-ignore]
from drawn import ALL, COMPLEX, MOST, ORDERS, TABLE, Draw, Kind, Made, Matrix, refused, sliced

VERSIONS = ("earliest", "v108", "v110", "v112", "v114", "latest")
FILTERS = {"deflate": 1, "shuffle": 2, "fletcher32": 3, "lzf": 32000, "szip": 4, "scaleoffset": 6}
UNFILTERED_EDGES = 2  # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS


def book(path: Path, draw: Draw) -> Any:
    """A new HDF5 file."""
    known = [each for each in VERSIONS if hasattr(h5py.h5f, f"LIBVER_{each.upper().replace('V108', 'V18')}")]
    version = draw.pick("libver", known)
    options: dict[str, Any] = {"userblock_size": draw.pick("userblock", (0, 0, 0, 0, 512, 2048))}
    options |= {"track_order": draw.maybe("track_order", 0.2)}
    if draw.maybe("pages", 0.1):
        options |= {"fs_strategy": "page", "fs_page_size": 4096, "fs_persist": True}
    return h5py.File(path, "w", libver=(version, "latest"), **options)


def number_type(draw: Draw) -> Any:
    """A type of HDF5 by h5py, or its low-level one with fewer bytes."""
    kind = draw.pick("type", (*ALL, *ALL, "bool", "enum", "odd bytes"))
    if kind == "enum":
        return h5py.h5t.py_create(h5py.enum_dtype({"A": 0, "B": 1, "C": 5}, basetype="i2"), logical=True)
    if kind == "odd bytes":
        odd = draw.pick("of", (h5py.h5t.STD_I32LE, h5py.h5t.STD_U64BE, h5py.h5t.STD_I64LE)).copy()
        odd.set_size(draw.pick("bytes", (3, 2) if odd.get_size() == 4 else (3, 5, 6, 7)))
        return odd
    return h5py.h5t.py_create(np.dtype(kind).newbyteorder(draw.pick("order", ORDERS)), logical=True)


def filters(properties: Any, draw: Draw, dtype: np.dtype[Any], chunk: int) -> list[str]:
    """Up to three filters, in any order, sometimes one of them twice."""
    drawn = draw.some(list(FILTERS)[:4], 3)
    if draw.maybe("numbers packed", 0.2):  # by filters that crash the library behind others
        drawn.insert(0, draw.dice.choice(list(FILTERS)[4:]))
    if draw.maybe("usual filters"):
        drawn = [each for each in ("shuffle", "deflate", "fletcher32") if each in drawn or each == "deflate"]
    values = {
        "deflate": (draw.dice.randrange(10),),
        "szip": (draw.dice.choice((133, 161)), draw.dice.choice((4, 8, 32))),
        "scaleoffset": (2, 0) if dtype.kind in "iu" else (0, 2),
        "lzf": (4, dtype.itemsize, chunk),
    }
    for name in drawn + drawn[-1:] * ("numbers packed" not in draw.drawn and draw.maybe("twice", 0.1)):
        properties.set_filter(FILTERS[name], h5py.h5z.FLAG_OPTIONAL, values.get(name, ()))
        draw.drawn.append(f"{name}{values.get(name, '')}")
    return [str(properties.get_filter(place)[0]) for place in range(properties.get_nfilters())]


def unfiltered_edges(properties: Any) -> None:
    """Has chunks at the edges stored without filters, which h5py itself has no word for."""
    maps = Path("/proc/self/maps").read_text().split()
    library = ctypes.CDLL(next(each for each in maps if "libhdf5-" in each or "libhdf5.so" in each))
    library.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
    if library.H5Pset_chunk_opts(properties.id, UNFILTERED_EDGES) < 0:
        raise ValueError("no chunk options")


def packed(chunk: bytes, item: int, filters_: list[str], mask: int) -> bytes:
    """A chunk as the filters that the mask does not skip leave it."""
    for place, number in enumerate(filters_):
        if not mask >> place & 1:
            if number == "2":
                chunk = np.frombuffer(chunk, "u1").reshape(-1, item).T.tobytes()
            else:
                chunk = zlib.compress(chunk)
    return chunk


def chunked(file: Any, shape: tuple[int, ...], number: Any, properties: Any, draw: Draw) -> Any:
    """A dataset in chunks, whole or in part, whose extents and single chunks may have changed since."""
    most = draw.pick("maxshape", [tuple(draw.dice.choice((each, each, each + 7, None)) for each in shape)])
    highest = [64 if end is None else end for end in most]
    chunks = tuple(min(end, draw.dice.choice((1, 2, 5, 8, 16, 33, 64))) for end in highest)
    properties.set_chunk(draw.pick("chunks", [chunks]))
    dtype, size = number.dtype, math.prod(chunks) * number.get_size()
    used = filters(properties, draw, dtype, size) if draw.maybe("filters", 0.7) else []
    if used and draw.maybe("unfiltered edges", 0.2):
        unfiltered_edges(properties)
    space = h5py.h5s.create_simple(shape, tuple(h5py.h5s.UNLIMITED if end is None else end for end in most))
    data = h5py.Dataset(h5py.h5d.create(file.id, b"x", number, space, properties))
    part = [slice(draw.dice.randrange(each + 1), None) for each in shape]
    place = tuple(part) if draw.maybe("partly written", 0.3) else ()
    data[place] = draw.numbers(data[place].shape, dtype)
    for _ in range(draw.dice.randrange(3) if most != shape else 0):
        new = tuple(draw.dice.randrange(1, (end or 60) + 1) for end in most)
        if math.prod(new) <= MOST and draw.maybe(f"resized to {new}"):
            data.resize(new)
    if set(used) <= {"1", "2"} and dtype.kind in "iuf" and draw.maybe("single chunks", 0.2):
        for corner in draw.some(list(itertools.product(*map(range, [0] * len(most), data.shape, chunks))), 4):
            mask = draw.dice.randrange(1 << len(used))
            chunk = draw.numbers(chunks, dtype).tobytes()
            data.id.write_direct_chunk(corner, packed(chunk, number.get_size(), used, mask), mask)
    return data


def h5(path: Path, draw: Draw) -> Made:
    """A dataset of HDF5 in any layout."""
    with book(path, draw) as file:
        shape = draw.shape(draw.pick("dimensions", (1, 2, 2, 2, 2, 2, 3, 4)))
        number = number_type(draw)
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        if draw.maybe("fill", 0.4):
            properties.set_fill_value(draw.numbers((1,), number.dtype))
        if draw.maybe("when allocated", 0.4):
            properties.set_alloc_time(draw.pick("at", (h5py.h5d.ALLOC_TIME_EARLY, h5py.h5d.ALLOC_TIME_LATE)))
        layout = draw.pick("layout", (*["chunks"] * 4, "contiguous", "compact", "external", "virtual"))
        if layout == "chunks":
            data = chunked(file, shape, number, properties, draw)
        elif layout == "virtual":
            data = virtual(file, path, shape, number.dtype, draw)
        else:
            if layout == "compact":
                properties.set_layout(h5py.h5d.COMPACT)
            elif layout == "external":
                external(properties, math.prod(shape) * number.get_size(), draw)
            space = h5py.h5s.create_simple(shape)
            data = h5py.Dataset(h5py.h5d.create(file.id, b"x", number, space, properties))
            if not draw.maybe("not written", 0.15):
                data[...] = draw.numbers(shape, number.dtype)
        short = "short raw file" in draw.drawn
        file["link"] = h5py.SoftLink("/x")
        word, index = sliced(data.shape, draw)
        member = draw.pick("member", ("x", "/link")) if word or draw.maybe("another") else "x"
        if draw.maybe("attribute", 0.05):
            data.attrs["scale_factor"] = 2.0
    if short:
        Path("numbers.raw").write_bytes(Path("numbers.raw").read_bytes()[:-1])
    read = refused if short else lambda: h5_read(path, "x", index)
    return Made(f"{path.name}:{member}{word}", read, warned="scale_factor" * ("attribute" in draw.drawn))


def h5_read(path: Path, member: str, index: tuple[Any, ...] = ()) -> Matrix:
    with h5py.File(path) as file:
        return np.asarray(file[member][index])


def external(properties: Any, size: int, draw: Draw) -> None:
    """Has the numbers lie in one or two raw files."""
    cut = draw.dice.randrange(size) if draw.maybe("two raw files", 0.3) else 0
    offset = draw.pick("offset", (0, 0, 24))
    for name, length in (("first.raw", cut), ("numbers.raw", size - cut)):
        if length:
            properties.set_external(name.encode(), offset, length)
            Path(name).write_bytes(bytes(offset + length))


def virtual(file: Any, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], draw: Draw) -> Any:
    """A dataset made of parts of others, of which one may be nowhere."""
    layout = h5py.VirtualLayout(shape, dtype)
    cut = draw.dice.randrange(shape[0] + 1)
    for name, rows in (("a", slice(cut)), ("b", slice(cut, shape[0]))):
        part = (len(range(*rows.indices(shape[0]))), *shape[1:])
        if not part[0] or draw.maybe(f"without {name}", 0.2):
            continue
        if draw.maybe(f"{name} elsewhere"):
            with h5py.File(f"{name}.h5", "w") as other:
                other[name] = draw.numbers(part, dtype)
            layout[rows] = h5py.VirtualSource(f"{name}.h5", name, part, dtype)
        else:
            file[name] = draw.numbers(part, dtype)
            layout[rows] = h5py.VirtualSource(".", name, part, dtype)
    fill = draw.numbers((), dtype) if draw.maybe("fill of the whole") else None
    return file.create_virtual_dataset("x", layout, fillvalue=fill)


def nc(path: Path, draw: Draw) -> Made:
    """A variable of NetCDF-4 by h5py, perhaps shorter than its unlimited dimension."""
    rows, columns = draw.shape(2)
    long = rows + draw.maybe("shorter than its dimension", 0.3) * 3
    dtype, options = draw.pick("type", ("i1", "i2", "i4", "f4", "f8", "u2", "i8")), dict[str, Any]()
    numbers, options["fillvalue"] = draw.numbers((rows, columns), dtype), draw.dice.randrange(100)
    if long > rows or draw.maybe("records"):
        options |= {"maxshape": (None, columns), "compression": draw.pick("packing", (None, "gzip"))}
    with h5py.File(path, "w", libver=draw.pick("libver", ("v108", "latest")), track_order=True) as file:
        for number, (name, extent) in enumerate((("t", long), ("c", columns))):
            limit = (None if name == "t" and "maxshape" in options else extent,)
            scale = file.create_dataset(name, (extent,), "f8", maxshape=limit, track_order=True)
            scale.make_scale(name)
            scale.attrs["_Netcdf4Dimid"] = np.int32(number)
        data = file.create_dataset("x", data=numbers, **options)
        for place, name in enumerate("tc"):
            data.dims[place].attach_scale(file[name])
        named, words = attributes(draw, np.dtype(dtype))
        data.attrs.update(named)
    more = np.full((long - rows, columns), options["fillvalue"], dtype)
    return Made(f"{path.name}:x", lambda: np.vstack((h5_read(path, "x"), more)), warned=words)


def attributes(draw: Draw, dtype: np.dtype[Any]) -> tuple[dict[str, Any], str]:
    """Attributes that say that the numbers mean others, and a pattern of the warning."""
    named = {"scale_factor": 0.5, "add_offset": 3.0} if draw.maybe("packed", 0.1) else {}
    unsaid = {"missing_value": dtype.type(1), "valid_range": np.array([0, 10], dtype), "_Unsigned": "true"}
    if draw.maybe("conventions", 0.1):
        key = draw.pick("attribute", list(unsaid)[: 3 if dtype.kind == "i" else 2])
        return {**named, key: unsaid[key]}, key
    return named, next(iter(named), "")


def classic(path: Path, draw: Draw) -> Made:
    """A variable of a classic file by scipy, fixed or of records, alone or beside others."""
    with scipy.io.netcdf_file(str(path), "w", version=draw.pick("version", (1, 2))) as file:
        shape = draw.shape(draw.pick("dimensions", (1, 2, 2, 2, 3)))
        records = draw.maybe("records")
        for axis, extent in enumerate(shape):
            file.createDimension(f"d{axis}", None if records and not axis else extent)
        names = tuple(f"d{axis}" for axis in range(len(shape)))
        for name in ["x", *draw.some(["y", "z"], 2)]:
            dtype = draw.pick(name, (">i1", ">i2", ">i4", ">f4", ">f8"))
            file.createVariable(name, np.dtype(dtype), names)[:] = draw.numbers(shape, dtype)
        draw.drawn.append(f"{list(file.variables)}")
    word, index = sliced(shape, draw)

    def read() -> Matrix:
        with scipy.io.netcdf_file(str(path), mmap=False) as file:
            return np.array(file.variables["x"][index or slice(None)])

    return Made(f"{path.name}:x{word}", read)


def mat(path: Path, draw: Draw) -> Made:
    """A variable of a MATLAB file by scipy, or of version 7.3 as MATLAB has h5py see it."""
    shape = draw.shape(draw.pick("dimensions", (1, 2, 2, 2, 3)))
    numbers = draw.numbers(shape, draw.pick("type", (*TABLE, *COMPLEX, "bool")))
    word, index = sliced(shape, draw)
    if draw.maybe("7.3", 0.3) and numbers.dtype.kind != "c":
        return newest_mat(path, np.atleast_2d(numbers), draw)
    book = {"x": numbers} | ({"y": np.ones((2, 2))} if draw.maybe("another") else {})
    form = draw.pick("format", ("5", "5", "5", "5", "4")) if len(shape) < 3 else "5"
    options = {"do_compression": form == "5" and draw.maybe("compressed"), "long_field_names": True}
    scipy.io.savemat(path, book, format=form, oned_as=draw.pick("oned_as", ("row", "column")), **options)
    return Made(f"{path.name}:x{word}", lambda: scipy.io.loadmat(path)["x"][index])


def newest_mat(path: Path, numbers: Matrix, draw: Draw) -> Made:
    """A dataset of HDF5 with the class of a variable, its axes the other way round."""
    classes = {"float64": "double", "float32": "single", "bool": "logical"}
    stored = numbers.T.astype("u1" if numbers.dtype.kind == "b" else numbers.dtype)
    options: dict[str, Any] = {"chunks": True, "compression": "gzip"} if draw.maybe("chunks") else {}
    with h5py.File(path, "w", userblock_size=512) as file:
        data = file.create_dataset("x", data=stored, **options)
        data.attrs["MATLAB_class"] = np.bytes_(classes.get(numbers.dtype.name, numbers.dtype.name))
        if numbers.dtype.kind == "b":
            data.attrs["MATLAB_int_decode"] = np.int32(1)
    with path.open("r+b") as head:
        head.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    word, index = sliced(numbers.shape, draw)
    return Made(f"{path.name}:x{word}", lambda: h5_read(path, "x").T[index])


def zarr_(path: Path, draw: Draw) -> Made:
    """An array of either version, packed, sharded or not, whole or in part."""
    import zarr
    from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ZstdCodec

    version: Any = draw.pick("version", (2, 3))
    shape = draw.shape(draw.pick("dimensions", (1, 2, 2, 2, 3)))
    dtype = np.dtype(draw.pick("type", (*ALL, "bool")))
    chunks = tuple(draw.dice.choice((1, 5, 16, 64, 200)) for _ in shape)
    while math.prod(-(-each // of) for each, of in zip(shape, chunks, strict=True)) > 300:
        chunks = tuple(2 * each for each in chunks)
    options: dict[str, Any] = {"chunks": draw.pick("chunks", [chunks]), "order": draw.pick("order", "CF")}
    fill = draw.pick("fill", (None, 0, 1))
    if version == 2:
        import numcodecs  # type: ignore[import-untyped,unused-ignore]

        codecs = [numcodecs.Blosc(each, 3, way) for each in ("lz4", "zstd") for way in (0, 1, 2)]
        codecs += [None, "auto", numcodecs.Zlib(1), numcodecs.GZip(9), numcodecs.BZ2(), numcodecs.LZ4()]
        options |= {"compressors": draw.pick("codec", codecs), "filters": None}
        if dtype.kind in "iu" and draw.maybe("delta", 0.2):
            options["filters"] = [numcodecs.Delta(dtype=dtype.str)]
        dtype = dtype.newbyteorder(draw.pick("bytes", ORDERS))
        options["chunk_key_encoding"] = {"name": "v2", "separator": draw.pick("separator", "./")}
    else:
        codecs = [None, None, "auto", GzipCodec(level=1), ZstdCodec(level=3, checksum=True), Crc32cCodec()]
        codecs += [BloscCodec(cname="lz4", shuffle="shuffle", typesize=dtype.itemsize)]
        options["compressors"] = draw.pick("codec", codecs)
        if dtype.itemsize > 1:
            options["serializer"] = BytesCodec(endian=draw.pick("endian", ("little", "big")))
        keys = draw.pick("keys", ("default", "v2"))
        options["chunk_key_encoding"] = {"name": keys, "separator": draw.pick("separator", "./")}
        if draw.maybe("shards", 0.2):
            options["shards"] = tuple(2 * each for each in chunks)
    array = zarr.create_array(path, shape=shape, dtype=dtype, zarr_format=version, fill_value=fill, **options)
    part = tuple(slice(draw.dice.randrange(each)) for each in shape)
    part = part if draw.maybe("partly written", 0.3) else ()
    array[part or ...] = draw.numbers(np.empty(shape)[part].shape, dtype)
    word, index = sliced(shape, draw)
    return Made(f"{path.name}{word}", lambda: np.asarray(zarr.open_array(path, mode="r")[index or ...]))


CONTAINERS = [
    Kind("h5", ".h5", h5, 15),
    Kind("nc 4", ".nc", nc),
    Kind("nc classic", ".nc", classic),
    Kind("mat", ".mat", mat, 3),
    Kind("zarr", ".zarr", zarr_, 4),
]
