"""Adds files whose headers lie to those that are cut short."""

from __future__ import annotations

import struct
import zipfile
import zlib

import h5py
from malformed_files import (
    CASES,
    HUGE,
    book_of,
    case,
    classic,
    damaged,
    flipped,
    h5,
    image,
    mat,
    mat_7_3,
    npy,
    npz,
    numbers,
    packed_mat,
    petsc,
    png,
    swapped,
    tagged,
    tensor,
    tensors,
    tiff,
    zipped,
)

__all__ = ["CASES"]

# npy: headers that lie
for text in (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -64), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999, 1), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
    f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({'1, ' * 3000}), }}",
    "{'descr': '|O', 'fortran_order': False, 'shape': (2, 4), }",
    "{'descr': '<U9', 'fortran_order': False, 'shape': (2, 4), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9223372036854775808), }",
    "{'descr': '<f8', 'fortran_order': 0, 'shape': (2, 2), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2.0, 2), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': [2, 4], }",
    "{'descr': '<f7', 'fortran_order': False, 'shape': (2, 4), }",
    "{'descr': ('<f8', (2,)), 'fortran_order': False, 'shape': (2, 2), }",
    "{'shape': (2, 4), }",
    "__import__('os').system('touch pwned')",
    "{" * 5000,
    "(" * 3000,
    "",
):
    body = text.encode().ljust(-(-(len(text) + 11) // 64) * 64 - 11) + b"\n"
    case(f"npy {text[:90]}", "x.npy", b"\x93NUMPY\x01\0" + struct.pack("<H", len(body)) + body + bytes(64))
for version in (2, 3):
    for length in (0xFFFFFFFF, 1 << 31, (8 << 20) + 1):
        case(
            f"npy version {version}, header of {length}",
            "x.npy",
            b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<I", length) + b"{" * 999,
        )
case("npz without arrays", "x.npz", zipped({}))
case("npz with text only", "x.npz", zipped({"readme.txt": b"hello"}))
case("npz whose array is cut", "x.npz", zipped({"a.npy": npy()[:-8]}))
case("npz whose array has more", "x.npz", zipped({"a.npy": npy() + b"x"}, compression=zipfile.ZIP_DEFLATED))
case(
    "npz whose array is cut and packed",
    "x.npz",
    zipped({"a.npy": npy()[:-8]}, compression=zipfile.ZIP_DEFLATED),
)
case("npz with an unknown compression", "x.npz", swapped(npz(True), b"\x08\x00", b"\x63\x00"))
case("npz without the asked member", "x.npz:b", npz(False))
case("npz with several", "x.npz", zipped({"a.npy": npy(), "b.npy": npy()}))
case("npz with a broken checksum", "x.npz", bytearray(npz(True)).replace(b"PK\x03\x04", b"PK\x03\x05"))
case("npz whose numbers were changed", "x.npz", lambda: flipped(npz(True), 300))
# bin, petsc, raw: extents
for rows, columns in ((-1, -432), (24, 19), (23, 18), (2**31 - 1, 2**31 - 1), (-24, 18), (0, 18), (24, 0)):
    case(f"bin {rows}×{columns}", "x.bin", struct.pack("<ii", rows, columns) + numbers().tobytes())
    case(f"petsc {rows}×{columns}", "x.petsc", petsc(rows=rows, columns=columns))
case("petsc, sparse", "x.petsc", petsc(kind=77))
case("petsc of unknown kind", "x.petsc", petsc(kind=-7))
case("petsc vector", "x.petsc", petsc(magic=1211214))
case("petsc with wide extents", "x.petsc", struct.pack(">qqqq", 1211216, 1 << 61, 1 << 61, -1) + bytes(99))
for member in (
    "",
    "24",
    "24x",
    "axb",
    "-1x5",
    "24x18:f9",
    "24x18:float64:x",
    "24x18:float64:-8",
    "24x18:float64:99999999999999999999",
    "24x18:float64:8",
    "24x18:float64:0:0",
    "24x18:float32",
    "9223372036854775808x1",
    "4611686018427387904x4",
    "24x18:<>float64",
    "24x18:object",
):
    case(f"raw as {member!r}", f"x.raw:{member}" if member else "x.raw", numbers().tobytes())
# safetensors
for what, head in {
    "nothing": b"",
    "no JSON": b"hello",
    "a list": [1, 2],
    "a number": 7,
    "deep nesting": b'{"a":' + b"[" * 100_000,
    "bad UTF-8": b'{"\xff\xfe": 1}',
    "no offsets": {"a": {"dtype": "F64", "shape": [24, 18]}},
    "a text as shape": {"a": tensor(shape="24x18")},
    "fractions": {"a": tensor(shape=[24.5, 18])},
    "negative extents": {"a": tensor(shape=[-24, -18])},
    "three dimensions": {"a": tensor(shape=[24, 9, 2])},
    "no dimension": {"a": tensor(shape=[], end=8)},
    "a shape too large": {"a": tensor(shape=[HUGE, HUGE])},
    "extents that overflow": {"a": tensor(shape=[1 << 32, 1 << 32, 0])},
    "a number beyond 64 bits": {"a": tensor(shape=[1 << 70, 1])},
    "thousands of dimensions": {"a": tensor(shape=[2] * 9000)},
    "offsets backwards": {"a": tensor(begin=3456, end=0)},
    "negative offsets": {"a": tensor(begin=-8, end=3448)},
    "offsets behind the end": {"a": tensor(end=999999)},
    "a gap": {"a": tensor(begin=8, end=3464)},
    "overlaps": {"a": tensor(), "b": tensor()},
    "an unknown type": {"a": tensor("Q4")},
    "BF16 of the wrong size": {"a": tensor("BF16")},
    "F8": {"a": tensor("F8_E4M3", [24, 144])},
    "the wrong size": {"a": tensor("F32")},
    "two matrices": {"a": tensor(shape=[24, 9], end=1728), "b": tensor(shape=[24, 9], begin=1728)},
    "no tensor": {"__metadata__": {"a": "b"}},
}.items():
    case(f"safetensors: {what}", "x.safetensors", tensors(head))
for length in (0, 1, 3456 * 2, 1 << 32, (1 << 63) + 5, (1 << 64) - 1):
    case(
        f"safetensors with a header of {length} bytes",
        "x.safetensors",
        tensors({"a": tensor()}, length=length),
    )
case("safetensors with more behind", "x.safetensors", tensors({"a": tensor()}, room=3457))
# MatrixMarket
for what, data in {
    "sparse": b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 5\n",
    "pattern": b"%%MatrixMarket matrix array pattern general\n2 2\n",
    "a vector": b"%%MatrixMarket vector array real general\n2\n1\n2\n",
    "short banner": b"%%MatrixMarket matrix array\n2 2\n1\n2\n3\n4\n",
    "unknown symmetry": b"%%MatrixMarket matrix array real odd\n2 2\n1\n2\n3\n4\n",
    "no banner": b"2 2\n1\n2\n3\n4\n",
    "no extents": b"%%MatrixMarket matrix array real general\n% only\n% comments\n",
    "words as extents": b"%%MatrixMarket matrix array real general\ntwo two\n1\n2\n3\n4\n",
    "three extents": b"%%MatrixMarket matrix array real general\n2 2 4\n1\n2\n3\n4\n",
    "negative extents": b"%%MatrixMarket matrix array real general\n-2 -2\n1\n2\n3\n4\n",
    "extents that overflow": b"%%MatrixMarket matrix array real general\n99999999999999 9999999999999\n1\n",
    "extents of thirty digits": b"%%MatrixMarket matrix array real general\n" + b"9" * 30 + b" 1\n1\n",
    "too few numbers": b"%%MatrixMarket matrix array real general\n9999 9999\n1\n2\n3\n4\n",
    "a symmetric oblong": b"%%MatrixMarket matrix array real symmetric\n2 3\n1\n2\n3\n4\n",
    "words as symmetric numbers": b"%%MatrixMarket matrix array real symmetric\n2 2\n1\nx\n3\n",
    "an endless line": b"%%MatrixMarket matrix array real general\n" + b"7" * 300_000,
    "endless comments": b"%%MatrixMarket matrix array real general\n" + b"%\n" * 4_300_000,
}.items():
    case(f"mtx: {what}", "x.mtx", data)
# text
for what, (name, text) in {
    "one blank": ("x.txt", b" "),
    "only a BOM": ("x.txt", b"\xef\xbb\xbf"),
    "column names and units": ("x.csv", b"time,place\ns,m\n1,2\n"),
    "an open quote": ("x.csv", b'"1","2\n"3","4"\n'),
    "a ragged first line": ("x.csv", b"1\n4,5\n6,7\n"),
    "an empty field": ("x.csv", b"1,,3\n4,5,6\n"),
    "a separator at the end": ("x.tsv", b"1\t2\t\n3\t4\t\n"),
    "thousands or decimal commas": ("x.csv", b"1,500;2,500\n"),
    "NUL bytes": ("x.txt", b"1 2\0 3\n"),
    "hexadecimal": ("x.txt", b"0x10 0x20\n"),
    "half a complex number": ("x.txt", b"(1+2j (3+4j)\n"),
    "words after numbers": ("x.txt", b"1 2 x\n"),
}.items():
    case(f"text: {what}", name, text)
# netpbm
for what, head in {
    "bilevel": b"P4\n8 8\n",
    "plain bilevel": b"P1\n8 8\n",
    "PAM": b"P7\nWIDTH 8\n",
    "no width": b"P5\n",
    "no height": b"P5 8\n",
    "no maximum": b"P5 8 8 #",
    "a word as width": b"P5 x 8 255\n",
    "a negative width": b"P5 -8 8 255\n",
    "no blank": b"P5 8 8 255X",
    "zero width": b"P5 0 8 255\n",
    "zero height": b"P5 8 0 255\n",
    "maximum 0": b"P5 8 8 0\n",
    "maximum 65536": b"P5 8 8 65536\n",
    "eleven digits": b"P5 99999999999 8 255\n",
    "extents that overflow": b"P6 9999999999 9999999999 65535\n",
    "a huge plain image": b"P3 99999 99999 255\n",
    "digits run together": b"P5" + b"9" * 4000,
    "endless comments": b"P5\n" + b"#\n" * 99_999,
    "words as values": b"P2 9 9 255 " + b"x " * 81,
    "fractions as values": b"P2 9 9 255 " + b"1.5 " * 81,
    "values too large": b"P2 9 9 255 " + b"256 " * 81,
    "negative values": b"P2 9 9 255 " + b"-1 " * 81,
}.items():
    case(f"netpbm: {what}", "x.pnm", head + bytes(8 * 8 - 1))
# TIFF and packed images
for tag, value in (
    (256, 0),
    (256, 2**32 - 1),
    (257, 0),
    (257, 2**32 - 1),
    (258, 77),
    (259, 50_001),
    (262, 5),
    (262, 9),
    (277, 60_000),
    (273, 2**32 - 1),
):
    case(f"tiff with tag {tag} = {value}", "x.tif", lambda tag=tag, value=value: tagged(tiff(), tag, value))  # type: ignore[misc]
    if tag not in (273, 259, 262, 258):
        case(
            f"packed tiff with tag {tag} = {value}",
            "x.tif",
            lambda tag=tag, value=value: tagged(tiff(compression="zlib"), tag, value),
        )  # type: ignore[misc]
case("a text called .png", "x.png", b"hello, world\n" * 9)
case("a PNG called .jpg", "x.jpg", image("PNG"))
case("a JPEG called .png", "x.png", image("JPEG"))
case("a PNG with enormous extents", "x.png", lambda: png(2**31 - 1, 2**31 - 1))
case("a PNG without width", "x.png", lambda: png(0, 5))
case("a PNG that is a bomb", "x.png", lambda: png(20_000, 20_000))
case("a PNG with changed numbers", "x.png", lambda: flipped(image("PNG"), 80, 60))
case("a JPEG of nothing", "x.jpg", b"\xff\xd8\xff\xd9")
# NetCDF and HDF5
case("nc of kind CDF-5", "x.nc", b"CDF\x05" + bytes(99))
case("nc of an unknown kind", "x.nc", b"CDF\x07" + bytes(99))
case("nc with too many dimensions", "x.nc", b"CDF\x01" + struct.pack(">iii", 0, 10, 2**31 - 1) + bytes(99))
case("nc with a negative count", "x.nc", b"CDF\x01" + struct.pack(">iii", 0, 10, -5) + bytes(99))
case("nc with a name of 2 GB", "x.nc", b"CDF\x01" + struct.pack(">iiii", 0, 10, 1, 2**31 - 1) + bytes(99))
case("nc without variables", "x.nc", b"CDF\x01" + bytes(28))
case(
    "nc whose dimension lies",
    "x.nc",
    lambda: swapped(classic(), struct.pack(">i", 24), struct.pack(">i", 2**31 - 1)),
)
case("nc without the member", "x.nc:b", classic())
case("h5 without the member", "x.h5:/b", h5())
case("h5 without datasets", "x.h5", lambda: book_of(lambda book: book.create_group("g")))
case("h5 with a cube", "x.h5", lambda: book_of(lambda book: book.create_dataset("c", (2, 3, 4), "f4")))
case(
    "h5 with 32 dimensions", "x.h5:c", lambda: book_of(lambda book: book.create_dataset("c", (1,) * 32, "f4"))
)
case("h5 with text", "x.h5:c", lambda: book_of(lambda book: book.create_dataset("c", data=[[b"a", b"b"]])))
case(
    "h5 with a huge dataset that is not there",
    "x.h5:c",
    lambda: book_of(lambda book: book.create_dataset("c", (2**31, 2**31), "f4", chunks=(9, 9))),
)
case(
    "h5 with a link outside",
    "x.h5:c",
    lambda: book_of(lambda book: book.__setitem__("c", h5py.ExternalLink("/etc/passwd", "/x"))),
)
case(
    "h5 with links in a circle",
    "x.h5:c",
    lambda: book_of(lambda book: book.__setitem__("c", h5py.SoftLink("/c"))),
)
# MATLAB: offsets are those of the only variable, a double of 24×18 called a
for what, at, word in (
    ("a variable of 4 GB", 132, 2**32 - 1),
    ("a variable of nothing", 132, 0),
    ("no variable", 128, 9),
    ("flags of 2 GB", 140, 2**31 - 1),
    ("an unknown class", 144, 99),
    ("a sparse class", 144, 5),
    ("complex numbers that are not there", 144, 6 | 0x800),
    ("extents of 2 GB", 156, 2**31 - 1),
    ("a negative extent", 160, 2**32 - 24),
    ("enormous extents", 160, 2**31 - 1),
    ("a dimension only", 156, 4),
    ("a name of 64 KB", 168, (2**16 - 1) << 16 | 1),
    ("numbers of an unknown type", 176, 77),
    ("numbers of a smaller type", 176, 1),
    ("numbers of 4 GB", 180, 2**32 - 8),
):
    data = mat()
    case(f"mat with {what}", "x.mat", data[:at] + struct.pack("<I", word) + data[at + 4 :])
case("mat of version 4", "x.mat", struct.pack("<iiiii", 0, 24, 18, 0, 2) + b"a\0" + numbers().tobytes())
case("mat without byte order", "x.mat", mat()[:126] + b"XX" + mat()[128:])
case("mat without the member", "x.mat:b", mat())
case("packed mat that is a bomb", "x.mat", lambda: packed_mat(zlib.compress(bytes(1 << 28), 9)))
case("packed mat with changed numbers", "x.mat", lambda: flipped(mat(do_compression=True), 260, 20))
case("packed mat of noise", "x.mat", packed_mat(bytes(i * 89 % 256 for i in range(999))))
case("packed mat in a packed mat", "x.mat", packed_mat(zlib.compress(mat(do_compression=True)[128:])))
case("mat 7.3 without the member", "x.mat:b", mat_7_3())
case(
    "mat 7.3 with changed chunks",
    "x.mat",
    lambda: flipped(mat_7_3(chunks=(24, 18), compression="gzip"), -99, 20),
)
case("h5 with changed chunks", "x.h5", lambda: damaged(h5(chunks=(5, 7), compression="gzip")))
