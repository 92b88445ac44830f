"""Tables as other programs write them: read right, or refused with advice that works when it is followed.

pandas 2.3 wrote its texts; those of R, Excel, Fortran, MATLAB, gnuplot and others follow their manuals.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import Any, NamedTuple

import numpy
import pytest
from conftest import InProcess, Tilewise, one_message

JOB = ("convert",)
WITHOUT_CHILD = EVERY_CASE = True
NAN = numpy.nan
A = [[1.5, 4.0], [2.25, NAN], [-3.0, 6e-7]]
B = [[1.5, 4.0], [2.25, 7.0], [-3.0, 6e-7]]


class Case(NamedTuple):
    """A text, the numbers in it, and the advice that must be followed to get them."""

    what: str
    name: str
    text: str | bytes
    numbers: Any
    steps: tuple[str, ...] = ()
    said: str = ""  # in a warning


NA, EMPTY, DROP, SKIP = "--missing=NA", "--missing ''", "--index drop", "--header-rows 2"
INDEX = "has no name, is taken for an index"
CASES = [
    Case("pandas", "a.csv", ",alpha,beta\n0,1.5,4.0\n1,2.25,7.0\n2,-3.0,6e-07\n", B, said=INDEX),
    Case("pandas, nan", "a.csv", ",alpha,beta\n0,1.5,4.0\n1,2.25,\n2,-3.0,6e-07\n", A, (EMPTY,), INDEX),
    Case(
        "pandas, labels", "a.csv", ',alpha,beta\nr1,1.5,4.0\nr 2,2.25,7.0\n"r,3",-3.0,6e-07\n', B, (), INDEX
    ),
    Case("pandas, marks", "a.csv", ',a,b\n#1,1.5,4.0\n%2,2.25,7.0\n"a ""b"" # c",-3.0,6e-07\n', B, (), INDEX),
    Case("pandas, no index", "a.csv", "alpha,beta\n1.5,4.0\n2.25,7.0\n-3.0,6e-07\n", B, said="column names"),
    Case(
        "pandas, tabs", "a.tsv", "\talpha\tbeta\n0\t1.5\t4.0\n1\t2.25\tNA\n2\t-3.0\t6e-07\n", A, (NA,), INDEX
    ),
    Case(
        "pandas, decimal comma",
        "a.csv",
        ";alpha;beta\n0;1,5;4,0\n1;2,25;\n2;-3,0;6e-07\n",
        A,
        (EMPTY,),
        INDEX,
    ),
    Case("pandas, no names", "a.csv", ",0,1\n0,1.5,4.0\n1,2.25,7.0\n2,-3.0,6e-07\n", B, said=INDEX),
    Case("pandas, no names, nan", "a.csv", ",0,1\n0,1.5,4.0\n1,2.25,\n2,-3.0,6e-07\n", A, (EMPTY,), INDEX),
    Case(
        "pandas, dates",
        "a.csv",
        ",a,b\n2020-01-01,1.5,4.0\n2020-01-02,2.25,7\n2020-01-03,-3.0,6e-07\n",
        B,
        (),
        INDEX,
    ),
    Case(
        "pandas, quotes",
        "a.csv",
        '"","a","b"\n"0","1.5","4.0"\n"1","2.25",""\n"2","-3.0","6e-07"\n',
        A,
        (EMPTY,),
        INDEX,
    ),
    Case(
        "pandas, two levels of rows",
        "a.csv",
        ",,a,b\nx,1,1.5,4.0\nx,2,2.25,7.0\ny,1,-3.0,6e-07\n",
        B,
        (),
        "2 columns",
    ),
    Case(
        "pandas, two levels of names",
        "a.csv",
        ",a,a\n,x,y\n0,1.5,4.0\n1,2.25,7.0\n2,-3.0,6e-07\n",
        B,
        (SKIP,),
        INDEX,
    ),
    Case(
        "pandas, index with a name", "a.csv", "gene,a,b\ng1,1.5,4.0\ng2,2.25,7.0\ng3,-3.0,6e-07\n", B, (DROP,)
    ),
    Case(
        "pandas, other columns",
        "a.csv",
        ",a,when,b\n0,1.5,now,4.0\n1,2.25,,7\n2,-3.0,then,6e-07\n",
        B,
        ("a.csv:a,b",),
    ),
    Case(
        "pandas, truth",
        "a.csv",
        ",ok,a,b\n0,True,1.5,4.0\n1,False,2.25,7\n2,True,-3.0,6e-07\n",
        B,
        ("a.csv:a,b",),
    ),
    Case("pandas, no header", "a.csv", "g1,1.5,4.0\ng2,2.25,7.0\ng3,-3.0,6e-07\n", B, (DROP,)),
    Case(
        "pandas, to_string",
        "a.txt",
        "    alpha  beta\nr1   1.50  4.00\nr2   2.25  7.00\nr3  -3.00  6e-7\n",
        B,
        said=INDEX,
    ),
    Case("R, write.table", "a.txt", '"V1" "V2"\n"1" 1.5 4\n"2" 2.25 NA\n"3" -3 6e-07\n', A, (NA,), INDEX),
    Case("R, write.csv", "a.csv", '"","V1","V2"\n"1",1.5,4\n"2",2.25,NA\n"3",-3,6e-07\n', A, (NA,), INDEX),
    Case("R, write.csv2", "a.csv", '"";"V1";"V2"\n"1";1,5;4\n"2";2,25;NA\n"3";-3;6e-07\n', A, (NA,), INDEX),
    Case("R, no row names", "a.csv", '"V1","V2"\n1.5,4\n2.25,7\n-3,6e-07\n', B, said="column names"),
    Case(
        "R, factors",
        "a.csv",
        '"","kind","x","y"\n"1","a",1.5,4\n"2","b",2.25,7\n"3","a",-3,6e-07\n',
        B,
        ("a.csv:x,y",),
    ),
    Case(
        "Excel, UTF-8",
        "a.csv",
        "\ufefflabel,x,y\r\none,1.5,4\r\ntwo,2.25,7\r\nthree,-3,6.00E-07\r\n",
        B,
        (DROP,),
    ),
    Case(
        "Excel, German", "a.csv", "Größe;Länge\r\n1,5;4\r\n2,25;7\r\n-3;6,00E-07\r\n", B, said="column names"
    ),
    Case("Excel, errors", "a.csv", "x,y\r\n1.5,4\r\n2.25,#N/A\r\n-3,6.00E-07\r\n", A, ("write nan",)),
    Case("Excel, empty cells", "a.csv", "x,y\r\n1.5,4\r\n2.25,\r\n-3,6.00E-07\r\n", A, (EMPTY,)),
    Case(
        "Excel, Unicode text",
        "a.txt",
        "x\ty\r\n1,5\t4\r\n2,25\t7\r\n-3\t6e-7\r\n".encode("utf-16"),
        B,
        ("iconv",),
    ),
    Case("Excel, title", "a.csv", "Measured in May,\r\nx,y\r\n1.5,4\r\n2.25,7\r\n-3,6e-7\r\n", B, (SKIP,)),
    Case(
        "Fortran, list-directed",
        "a.txt",
        "   1.50000000       4.00000000    \n   2.25000000       7.00000000    \n"
        "  -3.00000000       6.00000000E-07\n",
        B,
    ),
    Case(
        "Fortran, D exponents",
        "a.txt",
        "  0.150D+01  0.400D+01\n  0.225D+01  0.700D+01\n -0.300D+01  0.600D-06\n",
        B,
    ),
    Case(
        "Fortran, no letter",
        "a.txt",
        "  0.15  0.400\n  0.2  0.1-300\n",
        [[0.15, 0.4], [0.2, 1e-301]],
        ("sed",),
    ),
    Case("MATLAB, writematrix", "a.csv", "1.5,4\n2.25,NaN\n-3,6e-07\n", A),
    Case("MATLAB, writetable", "a.csv", "Row,x,y\na,1.5,4\nb,2.25,7\nc,-3,6e-07\n", B, (DROP,)),
    Case(
        "MATLAB, save -ascii",
        "a.txt",
        "   1.5000000e+00   4.0000000e+00\n   2.2500000e+00   7.0000000e+00\n"
        "  -3.0000000e+00   6.0000000e-07\n",
        B,
    ),
    Case("MATLAB, complex", "a.csv", "1.5+2i,4\n0-1i,7\n", [[1.5 + 2j, 4], [-1j, 7]], ("sed",)),
    Case(
        "gnuplot, set table",
        "a.txt",
        "# Curve 0 of 1, 3 points\n# x y type\n 1.5 4  i\n 2.25 7  i\n-3 6e-7  i\n\n",
        B,
        ("a.txt:0,1",),
    ),
    Case("gnuplot, blocks", "a.txt", "# x y\n1.5 4\n2.25 7\n\n\n-3 6e-7 # end\n", B),
    Case(
        "Octave, save -text",
        "a.txt",
        "# name: A\n# type: matrix\n# rows: 3\n# columns: 2\n 1.5 4\n 2.25 NaN\n -3 6e-7\n",
        A,
    ),
    Case("Julia, writedlm", "a.txt", "1.5\t4.0\n2.25\t7.0\n-3.0\t6.0e-7\n", B),
    Case("numpy, savetxt with names", "a.txt", "# x y\n1.5e+00 4.0e+00\n2.25e+00 7e+00\n-3e+00 6e-07\n", B),
    Case(
        "labels, decimal comma", "a.csv", "day;x\n2020-01-01;1,5\n2020-01-02;2,25\n", [[1.5], [2.25]], (DROP,)
    ),
    Case("pandas, a column, decimal comma", "a.csv", ";x\na;1,5\nb;2,25\n", [[1.5], [2.25]], (), INDEX),
    Case("R, write.csv2 of a column", "a.csv", '"";"x"\n"a";1,5\n"b";2,25\n', [[1.5], [2.25]], (), INDEX),
    Case("labels and numbers, blanks", "a.txt", "name x\na 1,5\nb 2,25\n", [[1.5], [2.25]], (DROP,)),
    Case("labels and numbers, tab", "a.tsv", "name\tx\na\t1,5\nb\t2,25\n", [[1.5], [2.25]], (DROP,)),
    Case(
        "a title with blanks",
        "a.csv",
        "t [s];U [V]\n0,5;1,5\n1,0;2,25\n",
        [[0.5, 1.5], [1, 2.25]],
        said="t [s], U [V]",
    ),
    Case("years above labels", "a.csv", ",2019,2020\na,1.5,4\nb,2.25,7\nc,-3,6e-7\n", B, (), INDEX),
    Case("years above numbers", "a.csv", ",2019,2020\n0,1.5,4\n1,2.25,7\n2,-3,6e-7\n", B, (), INDEX),
    Case(
        "pandas, counted names",
        "a.csv",
        "0,1,2\n1.5,4,0\n2.25,7,0\n",
        [[0, 1, 2], [1.5, 4, 0], [2.25, 7, 0]],
        (),
        "could also have names",
    ),
    Case(
        "a year above numbers",
        "a.csv",
        ",2019\n0,1.5\n1,2.25\n",
        [[1.5], [2.25]],
        ("--header-rows 1",),
        INDEX,
    ),
    Case(
        "years, and missing numbers", "a.csv", ",2019,2020\n0,1.5,4\n1,2.25,\n2,-3,6e-7\n", A, (EMPTY,), INDEX
    ),
    Case("SQL, null", "a.csv", "id,x,y\na,1.5,4\nb,2.25,NULL\nc,-3,6e-07\n", A, (DROP, "--missing=NULL")),
]


@pytest.mark.parametrize("case", CASES, ids=[case.what for case in CASES])
def test_it_is_read_right_or_the_advice_works(tilewise: Tilewise, inside: InProcess, case: Case) -> None:
    path = tilewise.folder / case.name
    path.write_bytes(case.text if isinstance(case.text, bytes) else case.text.encode())
    name, flags, steps = case.name, [], []
    for _ in range(len(case.steps) + 1):
        ended = inside("convert", name, "-o", "out.npy", *flags)
        if ended.returncode == 0:
            break
        assert ended.returncode == 2, ended.stderr
        advice = ended.stderr.splitlines()[-1].removeprefix("  try: ")
        words = shlex.split(advice)
        if advice.startswith("write nan in its place"):
            steps.append("write nan")
            path.write_text(path.read_text().replace("#N/A", "nan"))
        elif words[0] in ("sed", "iconv"):
            steps.append(words[0])
            command = advice.partition(" writes ")[0].partition(" converts ")[0].partition(" removes ")[0]
            path.write_bytes(
                subprocess.run(
                    command, shell=True, input=path.read_bytes(), capture_output=True, check=True
                ).stdout
            )
        elif "columns to take" in advice:
            name = advice.rpartition(" ")[2]
            steps.append(name)
        else:
            flag = words[:1] if "=" in words[0] else words[:2]
            flags += flag
            steps.append(" ".join(advice.split()[: len(flag)]))
    assert ended.returncode == 0, ended.stderr
    assert steps == list(case.steps)
    assert case.said in ended.stderr
    found = numpy.load(tilewise.folder / "out.npy")
    assert numpy.array_equal(found, numpy.array(case.numbers), equal_nan=True)
    shown = inside("show", name, *flags)  # which parses by itself
    numbers = numpy.loadtxt(re.sub(r"\\s\\+\\s", "+", shown.stdout).splitlines(), ndmin=2, dtype=found.dtype)
    assert numpy.allclose(numbers, found, rtol=1e-4, equal_nan=True)


def test_a_long_table_with_labels(tilewise: Tilewise, inside: InProcess) -> None:
    """A header longer than what is looked at, labels with marks, and each rank reads its own lines."""
    rng = numpy.random.default_rng(5)
    numbers = rng.standard_normal((300, 9000)).round(3)
    names = [f"sample {column}" for column in range(9000)]
    lines = ["," + ",".join(names)]
    for row, line in enumerate(numbers):
        lines.append(f"{'#%'[row % 2]}{row},{','.join(map(repr, line.tolist()))}")
    (tilewise.folder / "A.csv").write_text("\n".join(lines))
    for ranks, words in ((3, ()), (2, ("--rows", "100:200"))):
        ended = inside("convert", "A.csv", "-o", "A.npy", "--force", "-n", ranks, *words, "--header-rows", 1)
        assert ended.returncode == 0 and INDEX in ended.stderr
        wanted = numbers[100:200] if words else numbers
        assert numpy.array_equal(numpy.load(tilewise.folder / "A.npy"), wanted)
    wanted = numbers[:, [7, 8999]]
    assert inside("transpose", f"A.csv:{names[7]},{names[-1]}", "-o", "T.npy", "-n", 2).returncode == 0
    assert numpy.array_equal(numpy.load(tilewise.folder / "T.npy"), wanted.T)
    shown = inside("info", f"A.csv:{names[7]},{names[-1]}", "--stats", "--json", "-")
    facts = json.loads(shown.stdout)
    assert facts["shape"] == [300, 2] and facts["statistics"]["max"] == wanted.max()


def test_names_of_columns_go_through(tilewise: Tilewise, inside: InProcess) -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    (tilewise.folder / "A.csv").write_text(',"a, b",c d,"e""f"\nx,1,2,3\ny,4,5,6\n')
    said = "a, b", "c d", 'e"f'
    for source, made, words in (
        ("A.csv", "A.parquet", ()),
        ("A.parquet", "B.csv", ("--header-rows", 1)),
        ("B.csv", "C.csv", ("--header-rows", 1, "--columns", "1:")),
        ("B.csv", "D.feather", ("--columns", "1:")),
    ):
        assert inside("convert", source, "-o", made, *words).returncode == 0
    assert pyarrow.read_table(tilewise.folder / "A.parquet").column_names == list(said)
    assert (tilewise.folder / "B.csv").read_text() == '"a, b","c d","e""f"\n1,2,3\n4,5,6\n'
    assert (tilewise.folder / "C.csv").read_text() == '"c d","e""f"\n2,3\n5,6\n'
    shown = json.loads(inside("info", "D.feather", "--json", "-").stdout)
    assert [each["member"] for each in shown["members"]] == list(said[1:])
    assert inside("convert", "C.csv", "-o", "E.csv:x,y").returncode == 0
    assert (tilewise.folder / "E.csv").read_text() == "x,y\n2,3\n5,6\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("A.csv:z", "has no column z"),
        ("A.csv:b,a", "twice, or not in the sequence of the file\n  try: A.csv:a,b"),
        ("A.csv:a,a", "twice"),
        ("A.csv:when", "'now' in line 2, column 3 (when)"),
        ("A.csv[:,3:]", "[:,3:] takes no columns: A.csv has 3 columns"),
        ("A.csv:a,b[:,2:]", "[:,2:] takes no columns: A.csv has 2 columns"),
        ("A.csv:4", "has no column 4"),
        ("D.csv:x", "has several columns called x\n  try: their places: D.csv:0,2"),
        ("B.csv:4", "has no column 4"),
    ],
)
def test_columns_that_cannot_be_taken(tilewise: Tilewise, inside: InProcess, name: str, said: str) -> None:
    (tilewise.folder / "A.csv").write_text("a,b,when\n1,2,now\n")
    (tilewise.folder / "B.csv").write_text("1,2,3\n")
    (tilewise.folder / "D.csv").write_text("x,y,x\n1,2,3\n")
    assert said in one_message(inside("convert", name, "-o", "C.npy"), 2)


@pytest.mark.parametrize(
    ("name", "words", "wanted"),
    [
        ("A.csv[:,1:]", (), [[1, 2, 3], [4, 5, 6]]),
        ("A.csv[1:,2:3]", (), [[5]]),
        ("A.csv", ("--columns", "1:3"), [[1, 2], [4, 5]]),
        ("A.csv", ("--columns", "-1", "--rows", "0"), [[3]]),
        ("A.csv:x,z[:,1:]", (), [[3], [6]]),
        ("B.csv", ("--columns", ":2"), [[1, 2], [4, 5]]),
        ("B.csv[:,1:]", ("--columns", "1:"), [[3], [6]]),
        ("B.csv[:,1:]", ("--index", "keep"), [[1, 2, 3], [4, 5, 6]]),
        ("C.csv[:,1:]", (), [[1, 2, 3], [4, 5, 6]]),
        ("C.csv", ("--columns", "2:"), [[2, 3], [5, 6]]),
    ],
)
def test_ranges_of_columns_pass_over_words(
    tilewise: Tilewise, inside: InProcess, name: str, words: tuple[str, ...], wanted: list[list[float]]
) -> None:
    (tilewise.folder / "A.csv").write_text("label,x,y,z\na,1,2,3\nb,4,5,6\n")
    (tilewise.folder / "B.csv").write_text(",x,y,z\n7,1,2,3\n8,4,5,6\n")
    (tilewise.folder / "C.csv").write_text("a,1,2,3\nb,4,5,6\n")
    ended = inside("convert", name, "-o", "out.npy", "-n", 2, *words)
    assert ended.returncode == 0, ended.stderr
    assert numpy.array_equal(numpy.load(tilewise.folder / "out.npy"), wanted)


def test_names_that_are_numbers_are_not_taken_for_numbers_in_silence(
    tilewise: Tilewise, inside: InProcess
) -> None:
    (tilewise.folder / "A.csv").write_text("country,2019,2020\nAT,1,2\nDE,4,5\n")
    advice = one_message(inside("convert", "A.csv", "-o", "B.npy"), 2)
    assert "--index drop" in advice and "--header-rows 1" in advice
    for words, wanted in (
        (("A.csv", "--index", "drop", "--header-rows", 1), [[1, 2], [4, 5]]),
        (("A.csv:2020,", "--index", "drop"), None),
        (("A.csv:2019,2020",), [[1, 2], [4, 5]]),
        (("A.csv", "--index", "drop"), [[2019, 2020], [1, 2], [4, 5]]),
    ):
        ended = inside("convert", *words, "-o", "B.npy", "--force")
        if wanted is None:
            assert ended.returncode == 2
            continue
        assert ended.returncode == 0, ended.stderr
        assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), wanted)
        assert ("its first line is read as numbers" in ended.stderr) == (len(wanted) == 3)


def test_info_lists_the_columns_of_a_table(tilewise: Tilewise, inside: InProcess) -> None:
    (tilewise.folder / "A.csv").write_text("id,a,b\nx,1,NA\ny,2,3\nz,4,5\nz,6,7\n")
    facts = json.loads(inside("info", "A.csv", "--json", "-").stdout)
    assert [(each["member"], each["dtype"], each["layout"]) for each in facts["members"]] == [
        ("id", "text", "as x, y, z, …"),
        ("a", "float64", "as 1, 2, 4, …"),
        ("b", "float64", "as NA, 3, 5, …"),
    ]
    (tilewise.folder / "B.csv").write_text("1,2\n3,4\n")
    assert "members" not in json.loads(inside("info", "B.csv", "--json", "-").stdout)
