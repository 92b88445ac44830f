"""Lines of numbers: shape, separator and header are found without parsing, however the lines are written."""

from __future__ import annotations

import re
from pathlib import Path

import numpy
import pytest
from format_files import check_target, loaded
from hypothesis import given
from hypothesis import strategies as st
from stopwatch import soon
from tilewise import files
from tilewise.base.errors import UsageError
from tilewise.files.formats import text_lines as lines
from tilewise.files.output import create
from tilewise.files.reading import binary, mapped
from tilewise.files.slices import rows_needed
from tilewise.files.style import LineRule, Style


def looked_at(tmp_path: Path, text: str | bytes, name: str = "a.txt") -> tuple[int, int, str]:
    """Rows, columns and separator of a file with this text."""
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    found = files.inspect(str(tmp_path / name))
    assert (found.encoding, found.line_numbers) == ("text", found.columns)
    with binary(found) as region:
        assert mapped(region).shape == (found.rows, found.columns)
    return found.rows, found.columns, found.separator


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", (1, 1, " ")),
        ("1\n", (1, 1, " ")),
        ("1 2 3\n4 5 6\n", (2, 3, " ")),
        ("1 2 3\n4 5 6", (2, 3, " ")),
        ("1 2 3\r\n4 5 6\r\n", (2, 3, " ")),
        ("1 2 3\r\n\r\n4 5 6\r\n\r\n", (2, 3, " ")),
        ("\ufeff1 2 3\n4 5 6\n", (2, 3, " ")),
        ("  1  2\t3  \n 4 5 6 \n", (2, 3, " ")),
        ("1 2 3  \n   \n\t\n  4 5 6\n  ", (2, 3, " ")),
        ("# a\n% b\n\n1 2 3 # c\n#d\n 4 5 6\f#e\n\f\n  # f\n%", (2, 3, " ")),
        (" " * 100 + "1 2 3\n" + "\t" * 70 + "\n" + " " * 64 + "4 5 6\n", (2, 3, " ")),
        ("1, 2, 3\n4, 5, 6\n", (2, 3, ",")),
        ("1;2;3\n4;5;6\n", (2, 3, ";")),
        ("1|2|3\n4|5|6\n", (2, 3, "|")),
        ('"1";"2.5" ; 3\n4;5;6\n', (2, 3, ";")),
        ("1,5 2,5 3\n4 5 6\n", (2, 3, " ")),
        ("1,5;2,25;3\n4;5;6\n", (2, 3, ";")),
        ("a;b;c\n1,5;2;3\n4;5;6\n", (2, 3, ";")),
        ('"a b" c d\n1 2 3\n4 5 6\n', (2, 3, " ")),
        ("nan inf -Infinity\n+1e5 .5 -2.e-3\n", (2, 3, " ")),
        ("2 3\n1 2 3\n4 5 6\n", (2, 3, " ")),
        ("2 3\n1,2,3\n4,5,6\n", (2, 3, ",")),
        ("2 3\n\n1 2 3\n# x\n4 5 6", (2, 3, " ")),
        ("1 1\n7\n", (1, 1, " ")),
        ("3 2\n1 2\n3 4\n5 6\n", (4, 2, " ")),
        ("1 2\n3 4\n", (2, 2, " ")),
        ("3 2\n1,2\n3,4\n5,6\n", (3, 2, ",")),
    ],
)
def test_lines_as_people_write_them(tmp_path: Path, text: str, expected: tuple[int, int, str]) -> None:
    assert looked_at(tmp_path, text) == expected


def test_where_both_readings_are_possible_a_note_says_so(tmp_path: Path) -> None:
    for text, said in (
        ("3 2\n1 2\n3 4\n5 6\n", "could also declare"),
        ("2 3\n1 2 3\n4 5 6\n", "read as the shape, 2×3"),
    ):
        (tmp_path / "a.txt").write_text(text)
        found = files.inspect(str(tmp_path / "a.txt"))
        assert said in (found.notes + found.warnings)[0]
    (tmp_path / "a.txt").write_text("1 2\n3 5\n")
    assert numpy.loadtxt(tmp_path / "a.txt").shape == (2, 2)


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (13, 11)])
@pytest.mark.parametrize(
    ("extension", "separator"), [("txt", " "), ("txt", ";"), ("csv", ","), ("tsv", "\t")]
)
def test_what_numpy_writes(
    tmp_path: Path, extension: str, separator: str, shape: tuple[int, int], dtype: str
) -> None:
    generator = numpy.random.default_rng(1)
    numbers = (generator.normal(size=shape) * 100).astype(dtype)
    if dtype == "complex128":
        numbers = numbers + 1j * generator.normal(size=shape)
    path = tmp_path / f"a.{extension}"
    numpy.savetxt(path, numbers, delimiter=separator, fmt="%d" if dtype == "int64" else "%.18e")
    source = files.inspect(str(path))
    assert source.dtype == ("complex128" if dtype == "complex128" else "float64")
    with binary(source) as region:
        assert numpy.array_equal(mapped(region), numbers)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "", "empty"),
        ("a.txt", "# nothing\n\n", "no numbers"),
        ("a.csv", "x,2\n1,2\n", "'x' in its first line"),
        ("a.csv", "x,y,z\n1,2\n", "'x' in its first line"),
        ("a.csv", "x,y\nm,s\n1,2\n", r"'m' in line 2, column 1 \(x\)"),
        ("a.tsv", "1,234\t5,678\n", "'1,234' in its first line"),
        ("a.csv", "1,NA\n2,3\n", "'NA' in its first line"),
        ("a.csv", "1,2,\n3,4,\n", "nothing between"),
        ("a.csv", "1:2\n3:4\n", "'1:2'"),
        ("a.txt", "1_000 2\n", "1_000"),
        ("a.txt", "1 2 3\n1 2\n", "3 numbers in its first line, but 2"),
        ("a.txt", "5 3\n1 2 3\n4 5 6\n", "declares 5×3"),
        ("a.txt", b"1 2\r3 4\r", "old Macs"),
        ("a.txt", b"1 2\n3 4\r", "old Macs"),
        ("a.txt", b"\x93NUMPY\x01\x00", "first line"),
        ("a.txt", b"\xff\xfe1\x00 \x002\x00\n\x00", "UTF-16,"),
        ("a.csv", "1,2\n".encode("utf-16-be"), "UTF-16BE"),
        ("a.csv", "1,2\n".encode("utf-32"), "UTF-32,"),
        ("a.txt", "1 2#c\n", "'2#c' in its first line"),
        ("a.csv", "(5),2\n3,4\n", r"'\(5\)' in its first line"),
    ],
)
def test_what_is_refused(tmp_path: Path, name: str, text: str | bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        looked_at(tmp_path, text, name)


def test_numbers_that_are_none_are_found_when_they_are_read(tmp_path: Path) -> None:
    for text in (
        "1 2\n3 x\n",
        "1 2\n3\n",
        "1 2\n3 4 5\n",
        "1 2 3\n4 5 6\n7\n",
        "5 6\n1 2\n3 4 5\n6\n",
        "5 6\n3 nan(ind)\n",
        "5j 6\n3 1_0j\n",
        "5 6\n3 4#\n",
        "#N/A 6\n3 4\n",
        "5 6\n#N/A 4\n",
    ):
        with pytest.raises(UsageError, match=r"a\.txt"):
            looked_at(tmp_path, text)


M = "\u2212"


@pytest.mark.parametrize(
    ("name", "text", "advice"),
    [
        ("a.txt", "***** *****\n1.0 2.0\n", "--missing='*****' reads such fields as nan"),
        ("a.csv", "NA\n1\n2\n", "--missing=NA reads"),
        ("a.csv", "NULL,-\n1,2\n", "--missing=NULL reads"),
        ("a.csv", "#N/A,#N/A\n1,2\n", "write nan in its place"),
        ("a.txt", f"{M}5 {M}6\n1 2\n", f"sed 's/{M}/-/g'"),
        ("a.txt", "0x10\n3\n4\n", ""),
        ("a.txt", "1.0-300\n2\n3\n", ""),
        ("a.txt", "1.5f 2.5f\n3 4\n", ""),
        ("a.csv", "1.234,5;2.000,5\n3,5;4,5\n", 'sed "s/[.]//g" removes the marks of thousands; --decimal ,'),
        ("a.csv", "1.299,99;2.399,50\n2,5;3,5\n", 'sed "s/[.]//g"'),
        ("a.csv", "$5,$6\n7,8\n", ""),
        ("a.csv", "12:30,12:45\n1,2\n", ""),
        ("a.csv", "2020-01-01,2020-02-01\n1,2\n", ""),
        ("a.csv", "1'234.5;1'234.6\n1;2\n", 'sed "s/[\']//g"'),
        ("a.csv", "1.#INF\n2\n", "sed 's/1"),
    ],
)
def test_a_first_line_that_may_be_numbers_is_not_dropped(
    tmp_path: Path, name: str, text: str, advice: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match="in its first line, but a number was expected") as refused:
        files.inspect(str(tmp_path / name))
    assert refused.value.advice.startswith(advice)
    assert refused.value.advice.endswith("--header-rows 1 skips a line of names")
    source = files.inspect(str(tmp_path / name), style=Style(header_rows=1))
    assert source.rows == text.count("\n") - 1 and not source.warnings


@pytest.mark.parametrize(
    "names",
    ["x1,x2", "col_1,Q1/2020", "1st,T=300K", "depth,5%", "NA,x", "e1,d2", "1h,1d", "a#1,b#2", "ff,5m"],
)
def test_column_names_are_dropped_with_a_warning(tmp_path: Path, names: str) -> None:
    (tmp_path / "a.csv").write_text(f"{names}\n1,2\n")
    source = files.inspect(str(tmp_path / "a.csv"))
    said = (
        f"its first line is read as column names: {names.replace(',', ', ')}; --header-rows 1 confirms that"
    )
    assert (source.rows, source.warnings, source.notes) == (1, (said,), ())


@given(
    st.lists(
        st.sampled_from([b"1 2", b" 1 2 ", b"", b"  ", b"# c", b"1 2 # c", b"%", b"\t", b" # 1 2"]),
        max_size=30,
    ),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
    st.integers(1, 40),
    st.integers(1, 30),
)
def test_counting_does_not_depend_on_where_a_chunk_ends(
    rows: list[bytes], end: bytes, last: bool, chunk: int, most: int
) -> None:
    import io

    text = end.join(rows) + (end if last else b"")
    is_data = [bool(row.strip()) and row.strip()[:1] not in (b"#", b"%") for row in rows]
    kept, lines.CHUNK = lines.CHUNK, chunk
    try:
        assert lines.count_data_lines(io.BytesIO(text), 0, "a.txt") == (sum(is_data), None)
        count, place = lines.count_data_lines(io.BytesIO(text), 0, "a.txt", most)
    finally:
        lines.CHUNK = kept
    assert count == min(most, sum(is_data))
    if place is not None:  # behind the last line that was counted
        head = text[:place].split(end)[:-1]
        assert sum(is_data[: len(head)]) == most and is_data[len(head) - 1] and head == rows[: len(head)]


BIG = (8 << 20) + 12345


@pytest.mark.parametrize(
    ("line", "ending"),
    [
        (b"1.5 -2\n", b""),
        (b"\n1\n# c\n \n\t%\n\t\n\v\f2\n!\n", b"  "),
        (b"1\r\n\r\n#\r\n  2\r\n" + b" " * 70_001 + b"3\n" + b" " * 70_001 + b"#\n", b"  7"),
        (b"1," * 3_000_001 + b"1\n", b"#"),
        (b" " * 6_000_000 + b"4\n\n", b"5"),
    ],
)
def test_the_program_counts_as_python_does(tmp_path: Path, line: bytes, ending: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"# head\n" + line * (BIG // len(line) + 1) + ending)
    with path.open("rb") as file, pytest.MonkeyPatch.context() as patch:
        for begin, rule in ((0, LineRule()), (7, LineRule(tabs=True)), (7, LineRule(comments=False))):
            counted = lines._counted_by_program(file, begin, "a.txt", rule)
            patch.setattr(lines, "_WORTH_A_PROCESS", 1 << 40)
            assert lines.count_data_lines(file, begin, "a.txt", None, rule) == (counted, None)
            patch.undo()


@pytest.mark.parametrize("place", [5, (4 << 20) - 1, 4 << 20, -1])
def test_line_ends_of_old_macs_are_found_in_large_files(tmp_path: Path, place: int) -> None:
    text = bytearray(b"1 2\n" * (BIG // 4 + 1))
    text[place] = ord("\r")
    if text[place - 1] == ord("\n") and place > 0:
        text[place - 1] = ord("1")
    (tmp_path / "a.txt").write_bytes(text)
    with pytest.raises(UsageError, match="old Macs"):
        files.inspect(str(tmp_path / "a.txt"))


@pytest.mark.parametrize(
    ("rows", "most"),
    [(":100", 100), ("7", 8), ("3:9", 9), ("3:9:2", 9), (" 2 : 5 ", 5)]
    + [
        (rows, None) for rows in ("", ":", "3:", "-2:", ":-1", "-1", "5:5", "9:3", "9:3:-1", "x:5", "1:2:3:4")
    ],
)
def test_rows_that_are_enough(rows: str, most: int | None) -> None:
    assert rows_needed(rows) == most


def test_long_lines_and_their_pieces(tmp_path: Path) -> None:
    numbers = numpy.random.default_rng(2).normal(size=(3, 70_001))
    for extension, separator in (("txt", " "), ("csv", ",")):
        numpy.savetxt(tmp_path / f"a.{extension}", numbers, delimiter=separator)
        assert (
            looked_at(tmp_path, (tmp_path / f"a.{extension}").read_bytes(), f"a.{extension}")[:2]
            == numbers.shape
        )


def test_lines_are_counted_fast(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"1.25 -3.5 7.125e-3\n" * 2_000_000)
    assert soon(1, lambda: files.inspect(str(tmp_path / "a.txt"))).rows == 2_000_000


def test_a_header_line_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    target = check_target(str(tmp_path / "a.csv"), False)
    region = create(target, (3, 4), "int8", "C", "id", header=True).region
    assert Path(region.path).read_bytes() == b"3 4\n" and region.offset == 4
    assert (region.separator, region.line_numbers, region.file_bytes) == (",", 4, -1)


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("integer symmetric", "1 99999999999999999999 3", "is beyond int64"),
        ("integer symmetric", "1 9223372036854775807 -9223372036854775808", (2**63 - 1, -(2**63))),
        ("integer symmetric", "1 1e3 9007199254740993", (1000, 2**53 + 1)),
        ("integer symmetric", "1 1.5 3", "is not a whole number"),
        ("integer symmetric", "1 1e99999999999999999999 3", "is not a whole number"),
        ("unsigned-integer symmetric", "1 18446744073709551615 3", (2**64 - 1, 3)),
        ("unsigned-integer symmetric", "1 18446744073709551616 3", "is beyond uint64"),
        ("unsigned-integer symmetric", "1 -1 3", "is beyond uint64"),
        ("integer general", "1 2 9223372036854775808 4", "is beyond int64"),
        ("integer skew-symmetric", "-9223372036854775808", "cannot hold 2^63"),
        ("real symmetric", "1 1e999 3", "became infinite; the first is in line 4"),
        ("real symmetric", "1 9007199254740993 3", "rounded to float64; the first is in line 4"),
        ("real symmetric", "1 2 1.#INF", '"1.#INF" is not a number'),
        ("real general", "1 2 3 #4", '"#4" is not a number'),
    ],
)
def test_matrix_market_is_exact_or_refused(
    tmp_path: Path, kind: str, text: str, found: str | tuple[int, int]
) -> None:
    numbers = text.replace(" ", "\n")
    (tmp_path / "a.mtx").write_text(f"%%MatrixMarket matrix array {kind}\n2 2\n{numbers}\n")
    if isinstance(found, tuple):
        assert loaded(tmp_path / "a.mtx")[1].tolist() == list(found)
        return
    with pytest.raises(UsageError, match=re.escape(found)):
        loaded(tmp_path / "a.mtx")


def test_petsc_says_what_its_size_leaves_open(tmp_path: Path) -> None:
    head = numpy.array([1211216, 3, 2, -1], ">i4").tobytes()
    for dtype, said in ((">f8", "single precision would have the same size"), (">c16", "")):
        (tmp_path / "a.petsc").write_bytes(head + numpy.arange(6).astype(dtype).tobytes())
        assert said in "".join(files.inspect(str(tmp_path / "a.petsc")).notes)
    (tmp_path / "a.petsc").write_bytes(head + numpy.arange(6).astype(">f4").tobytes())
    with pytest.raises(UsageError, match="size of 3×2 single-precision numbers") as refused:
        files.inspect(str(tmp_path / "a.petsc"))
    name = re.search("'raw:(.*)'", refused.value.advice)
    (tmp_path / "a.petsc").rename(tmp_path / "a.raw")
    assert name and loaded(f"{tmp_path / 'a.raw'}:{name[1]}").tolist() == [[0, 1], [2, 3], [4, 5]]
