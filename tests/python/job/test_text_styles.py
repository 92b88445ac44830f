"""Texts as people have them: separators, decimal commas, column names, missing numbers, and what is lost."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import Done, InProcess, Tilewise, one_message

JOB = ("convert",)


def by_people(draw: random.Random, path: Path, separator: str, decimal: str, word: str | None) -> Any:
    """Writes a random text; its numbers as numpy.genfromtxt reads them, marks made plain for it."""
    rows, columns = draw.randrange(2, 40), draw.randrange(2, 9)
    end, quotes = draw.choice(("\n", "\r\n")), separator != " " and draw.random() < 0.3

    def field() -> str:
        if word is not None and draw.random() < 0.2:
            return draw.choice((word, "")) if separator != " " else word
        number = draw.choice(("%d", "%.3f", "%.17g", "%e")) % (draw.gauss(0, 1000))
        number = number.replace(".", decimal)
        return f'"{number}"' if quotes and draw.random() < 0.5 else draw.choice(("", " ")) + number

    lines = ["# by hand", *(separator.join(field() for _ in range(columns)) for _ in range(rows))]
    lines[1] = separator.join(["0" + decimal + "5"] * columns)  # what marks mean is plain to see
    if draw.random() < 0.5:
        lines.insert(1, separator.join(f"name{column}" for column in range(columns)))
    for _ in range(draw.randrange(3)):
        lines.insert(draw.randrange(3, len(lines)), draw.choice(("", "# between", "  ")))
    text = end.join(lines) + draw.choice(("", end))
    path.write_bytes(text.encode())
    plain = [line.replace('"', "").replace(decimal, ".") for line in text.splitlines() if "name" not in line]
    delimiter = None if separator == " " else separator
    read = numpy.genfromtxt(plain, delimiter=delimiter, filling_values=numpy.nan, ndmin=2)
    assert read.shape == (rows, columns)
    return numpy.where(read == -999, numpy.nan, read) if word == "-999" else read


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_any_style_is_read_and_written(tilewise: Tilewise, inside: InProcess, done: Done, ranks: int) -> None:
    draw = random.Random(ranks)
    for separator in ",;\t| ":
        decimal = "." if separator == "," else draw.choice(".,")
        word = draw.choice((None, "NA", "-999", "n/a"))
        kind = "txt" if separator == " " else draw.choice(("csv", "txt"))
        wanted = by_people(draw, tilewise.folder / f"A.{kind}", separator, decimal, word)
        flags = [f"--missing={word}"] * (word is not None) + [f"--separator={separator}"] * (
            separator == "\t"
        )
        done(f"A.{kind}", "-o", "A.npy", "-n", ranks, *flags, "--force")
        found = numpy.load(tilewise.folder / "A.npy")
        assert numpy.array_equal(found, wanted, equal_nan=True), (separator, decimal, word)
        shown = inside("show", f"A.{kind}", ":", *flags)
        assert "name" in shown.stderr or shown.stderr == ""
        assert numpy.array_equal(numpy.loadtxt(shown.stdout.splitlines(), ndmin=2), wanted, equal_nan=True)

        # And back in another style, which numpy reads when its marks are made plain.
        between, mark = draw.choice((";,", "|,", "\t.", ",.", " ,"))
        words = (f"--separator={between}", f"--decimal={mark}", "--missing=none", "--verify", "fast")
        record = done("A.npy", "-o", "B.csv", "-n", ranks, *words, "--force")
        assert record["verification"]["passed"] is True
        text = (tilewise.folder / "B.csv").read_text()
        assert ("none" in text) == numpy.isnan(wanted).any() and "nan" not in text
        plain = text.replace(between, "\t").replace(mark, ".").replace("none", "nan").splitlines()
        assert numpy.array_equal(numpy.loadtxt(plain, ndmin=2), wanted, equal_nan=True)
        done("B.csv", "-o", "A.npy", "-n", ranks, *words, "--force")
        assert numpy.array_equal(numpy.load(tilewise.folder / "A.npy"), wanted, equal_nan=True)


def test_empty_fields_stand_for_nan(tilewise: Tilewise, inside: InProcess, done: Done) -> None:
    """Also lines of nothing else: of tabs, which are no blanks then, and of a single column."""
    for matrix in ([[numpy.nan] * 3, [1, numpy.nan, 2.5]], [[numpy.nan], [4.0]]):
        numpy.save(tilewise.folder / "A.npy", matrix)
        for name in ("A.tsv", "A.csv"):
            done("A.npy", "-o", name, "--missing=", "--force")
            assert "nan" not in (tilewise.folder / name).read_text()
            done(name, "-o", "B.npy", "--missing=", "-n", 2, "--force")
            assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix, equal_nan=True)
            assert inside("info", name, "--missing=", "--stats").stdout.count("none") == 0


def test_what_float64_loses_is_told_alike_on_any_ranks(
    tilewise: Tilewise, inside: InProcess, done: Done
) -> None:
    draw = random.Random(5)
    numbers = (
        "1",
        "9007199254740992",
        "9007199254740993",
        "-18014398509481985",
        "123456789012345678901",
        "1e400",
    )
    lines = [[draw.choice(numbers) for _ in range(3)] for _ in range(400)]
    (tilewise.folder / "A.csv").write_text("a,b,c\n" + "\n".join(map(",".join, lines)) + "\n")
    places = [
        (row + 2, column + 1, word) for row, line in enumerate(lines) for column, word in enumerate(line)
    ]
    large = [place for place in places if place[2] == "1e400"]
    rounded = [
        place for place in places if place[2].lstrip("-").isdigit() and int(float(place[2])) != int(place[2])
    ]
    expected = [
        "A.csv: its first line is read as column names: a, b, c; --header-rows 1 confirms that",
        f"A.csv: {len(rounded)} integers beyond 2^53 were rounded to float64; the first is in line "
        f"{rounded[0][0]}, column {rounded[0][1]}; convert --dtype int64 keeps integers exact",
        f"A.csv: {len(large)} numbers too large for float64 became infinite; the first is in line "
        f"{large[0][0]}, column {large[0][1]}",
    ]
    for ranks, io in ((1, "auto"), (2, "root"), (3, "two_phase"), (4, "auto")):
        record = done("A.csv", "-o", "B.npy", "-n", ranks, "--io", f"{io}:auto", "--force")
        assert [said for said in record["warnings"] if said.startswith("A.csv")] == expected
    (tilewise.folder / "I.csv").write_text("1,0,0\n0,1,0\n0,0,1\n")
    result = inside("multiply", "A.csv", "I.csv", "-o", "C.npy", "-n", "2")
    assert all(f"tilewise: warning: {said}" in result.stderr for said in expected)
    shown = inside("show", "A.csv", ":")
    assert shown.stderr.splitlines() == [f"tilewise: warning: {said}" for said in expected]
    stats = inside("info", "A.csv", "--stats").stdout
    assert all(said.partition(": ")[2] in stats for said in expected)


def test_int64_is_exact_where_it_is_asked_for(tilewise: Tilewise, inside: InProcess, done: Done) -> None:
    values = numpy.array([[2**53 + 1, -(2**63)], [2**63 - 1, 7]])
    numpy.savetxt(tilewise.folder / "A.csv", values, "%d", delimiter=";")
    record = done("A.csv", "-o", "B.npy", "--dtype", "int64", "-n", 2)
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), values)
    assert record["warnings"] == []
    (tilewise.folder / "A.csv").write_text("1,2\n3,\n")
    result = inside("convert", "A.csv", "-o", "B.npy", "--dtype", "int64", "--missing", "NA", "--force")
    assert "line 2, column 2: a missing number, for which int64 has no nan" in one_message(result, 2)


@pytest.mark.parametrize(
    ("text", "flags", "place", "advice"),
    [
        ("1;2\n3;x\n", (), 'line 2, column 2: "x" is not', ""),
        ("# c\n\n1;2\n4;1.5.5\n", (), 'line 4, column 2: "1.5.5" is not', ""),
        ("0,5;2\n1;1.5\n", ("--decimal", ","), 'line 2, column 2: "1.5" is not', ""),
        ('1,2\n"3,4",5\n', ("--decimal", "."), 'line 2, column 1: ""3,4"" is not', ""),
        ("x,y\n1,2\n5,NA\n", ("--missing", "NaN"), 'line 3, column 2: "NA" is not', ""),
        ("3,4\n5,1.#INF\n", (), 'line 2, column 2: "1.#INF" is not a number', "as inf and nan"),
        ("3;4\n5;-1.#IND0\n", (), 'line 2, column 2: "-1.#IND0" is not', "as inf and nan"),
        ("3,4\n5,6#c\n", (), 'line 2, column 2: "6#c" is not', "a comment begins a line"),
        ("3,4\n5,6\n#N/A,7\n", (), 'line 3, column 1: "#N/A" is not', "write nan"),
        ("3,4\n\f\n5\f,6 #c\n(7),8\n", (), 'line 4, column 1: "(7)" is not', ""),
        ("3,4\n5,nan(ind)\n", (), 'line 2, column 2: "nan(ind)" is not', ""),
        ("4,5\n1,2\n3,4,5\n6\n", (), "line 3: found 3 numbers, expected 2", ""),
        ("1.5,2\n3,\n", (), "line 2, column 2: an empty field", "--missing ''"),
        ("1.5,2,3\n3,,5\n", (), "line 2, column 2: an empty field", "--missing ''"),
        ("1.5,2\n3,4\n5\n", (), "line 3: found 1 number", ""),
    ],
)
def test_mistakes_have_their_place(
    tilewise: Tilewise, inside: InProcess, text: str, flags: tuple[str, ...], place: str, advice: str
) -> None:
    """The ranks say the same of a text as `show`."""
    (tilewise.folder / "A.csv").write_text(text)
    for words in (("convert", "A.csv", "-o", "B.npy", "-n", "3"), ("show", "A.csv")):
        result = inside(*words, *flags)
        message = one_message(result, 2)
        assert f"A.csv: {place}" in message and advice in message
    assert tilewise.files() == {"A.csv"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("convert", "A.npy", "-o", "B.mtx", "--separator", ";"), "--separator makes no sense"),
        (("convert", "A.npy", "-o", "B.csv", "--header-rows", "1"), "--header-rows makes no sense"),
        (("show", "A.npy", "--decimal", ","), "--decimal makes no sense"),
        (("info", "A.npy", "--missing", "NA"), "--missing makes no sense"),
        (("convert", "A.csv", "-o", "B.npy", "--header-rows", "9"), "no numbers behind the lines"),
        (("convert", "A.csv", "-o", "B.npy", "--separator", "5"), "cannot separate numbers"),
        (("convert", "A.csv", "-o", "B.npy", "--separator", ""), "expects one character"),
        (("convert", "A.csv", "-o", "B.npy", "--decimal", ";"), "--decimal ';' is unknown"),
        (("convert", "A.csv", "-o", "B.npy", "--missing", "#N/A"), "comment mark"),
        (("convert", "A.csv", "-o", "B.npy", "--missing", "a,b"), "has the separator in it"),
        (("convert", "A.npy", "-o", "B.csv", "--separator", ",", "--decimal", ","), "both separator and"),
        (("convert", "A.npy", "-o", "B.txt", "--missing", ""), "cannot be told from blanks"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tilewise: Tilewise, inside: InProcess, words: tuple[str, ...], said: str
) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.eye(2))
    (tilewise.folder / "A.csv").write_text("1.5,2\n3,4\n")
    result = inside(*words)
    assert said in one_message(result, 2)
    assert tilewise.files() == {"A.npy", "A.csv"}


def test_reading_and_writing_may_differ(tilewise: Tilewise, inside: InProcess, done: Done) -> None:
    (tilewise.folder / "A.csv").write_text("x;y\n1,234;5\n")
    done("A.csv", "-o", "B.csv", "--separator", ";:|", "--decimal", ",:.", "--header-rows", "1")
    assert (tilewise.folder / "B.csv").read_text() == "x|y\n1.234|5\n"
