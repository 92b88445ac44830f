"""Facts that pages state and the program decides: counts, limits, exit codes, errors, times and versions.

Numbers of things are not written down in prose. Where a page has one, a row of COUNTS says what it counts.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tilewise
from numpy.lib import format as npy
from tilewise.base import errors
from tilewise.engine.child import Ended
from tilewise.lab.study import shipped
from tilewise.operations import OPERATIONS, options_of
from tilewise.operations.svd.options import ALGORITHMS as SVD
from tilewise.planning.choices import CHECKPOINT_BEYOND, CHECKPOINT_EVERY, NO_PROOFS
from tilewise.planning.names import BOTH_WAYS, EXCHANGES, IO
from tilewise.planning.proof import WORTH

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import release  # noqa: E402

DOOR = (
    "README.md",
    "CHANGELOG.md",
    "docs/index.md",
    "docs/faq.md",
    "docs/comparison.md",
    "docs/benchmarks.md",
)
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    if "docs/design/" not in str(path)
)
NUMBERS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen"),
)
REPEATING = [name for name in shipped.names() if name not in ("quick", "scaling", "reports-simulated")]
# What is counted, and how many there are; None: a page of the door gives no number.
COUNTS: dict[str, int | None] = {
    "algorithms": None,
    "formats": None,
    "flags": None,
    "commands": None,
    "operations": None,
    "kernels": None,
    "boundaries": None,
    "exit codes": len({kind.exit_code for kind in vars(errors).values() if hasattr(kind, "exit_code")} | {0}),
    "exchanges": len(EXCHANGES),
    "kinds of exchange": len(EXCHANGES),
    "kinds of message": len(EXCHANGES),
    "I/O strategies": len(IO),
    "ways of reading": len(IO),
    "ways of writing": len(BOTH_WAYS),
    "built-in studies": len(REPEATING),
}
SQUARE, LONG = (16384, 16384), (1 << 21, 128)  # float64: 2 GiB each, in files that take no space
MEMORY = "256MiB"


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def counts(text: str) -> list[tuple[str, int]]:
    """What a text counts in words or digits, by the names of COUNTS."""
    names = "|".join(sorted(COUNTS, key=len, reverse=True))
    found = re.findall(rf"\b({'|'.join(NUMBERS)}|\d+)\s+({names})\b", text, re.IGNORECASE)
    return [
        (name, int(number) if number.isdigit() else NUMBERS.index(number.lower()) + 2)
        for number, name in found
    ]


@pytest.mark.parametrize("name", DOOR)
def test_a_count_at_the_door_is_that_of_the_program(name: str) -> None:
    assert [each for each in counts(text_of(name)) if COUNTS[each[0]] != each[1]] == []


def test_the_studies_of_the_reports_are_counted() -> None:
    page = text_of("docs/how-to/repeat-the-reports.md")

    assert ("built-in studies", len(REPEATING)) in counts(page)
    assert sorted(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)) == REPEATING


def rows() -> dict[str, tuple[str, str]]:
    """The table in the questions by command: files within --memory, and what --resume continues from."""
    found = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", text_of("docs/faq.md"), re.MULTILINE)
    return {command: (files, resumes) for command, files, resumes in found}


def test_the_questions_have_a_row_for_each_operation() -> None:
    assert list(rows()) == list(OPERATIONS)


@pytest.mark.parametrize("command", OPERATIONS)
def test_what_resumes_is_what_keeps(command: str) -> None:
    assert (rows()[command][1] != "–") == options_of(command).keeps


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., int]:
    """Exit code of a plan within a quarter of a GiB; S.npy is square and L.npy is long, of 2 GiB each."""
    folder = tmp_path_factory.mktemp("facts")
    for name, shape in (("S.npy", SQUARE), ("L.npy", LONG)):
        with open(folder / name, "wb") as out:
            npy.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
            out.truncate(out.tell() + 8 * shape[0] * shape[1])

    def code(*words: str) -> int:
        command = [sys.executable, "-m", "tilewise", "plan", *words, "--memory", MEMORY]
        return subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False).returncode

    return code


WORDS = {
    "multiply": ("S.npy", "S.npy"),
    "transpose": ("S.npy",),
    "stencil": ("S.npy", "--steps", "10"),
    "generate": ("--shape", "16384x16384"),
    "convert": ("S.npy",),
    "norm": ("S.npy",),
}


@pytest.mark.parametrize("command", WORDS)
def test_files_of_any_size_are_planned_within_memory(command: str, planned: Callable[..., int]) -> None:
    assert rows()[command][0].startswith("yes") and planned(command, *WORDS[command]) == 0


def test_svd_within_memory_needs_components_or_a_long_matrix(planned: Callable[..., int]) -> None:
    assert {*WORDS, "svd"} == {*OPERATIONS}
    assert rows()["svd"][0] == "with `--components`, or if one side is far longer than the other"
    assert [planned("svd", *words) for words in (("S.npy", "--components", "5"), ("L.npy",), ("S.npy",))] == [
        0,
        0,
        2,
    ]


def test_the_comparison_and_the_limits_except_svd_alone() -> None:
    cell = text_of("docs/comparison.md").split("| **tilewise** |")[1].split(" | ")[1]

    assert cell.startswith("yes, within `--memory`; only a [full SVD]")
    assert [name for name in OPERATIONS if name != "svd" and name in cell] == []
    assert all("* A full SVD" in text_of(name) for name in ("README.md", "CHANGELOG.md"))


@pytest.mark.parametrize("algorithm", SVD)
def test_only_the_algorithm_of_the_questions_has_checkpoints(
    algorithm: str, planned: Callable[..., int]
) -> None:
    words = (
        "svd",
        "random:64x64:float64",
        "--algorithm",
        algorithm,
        "--checkpoint",
        "5min",
        "--components",
        "5",
    )
    named = re.findall(r"`(\w+)`", rows()["svd"][1])

    assert (planned(*words, "-n", "1") == 0) == (algorithm in named)


def test_what_has_nothing_to_verify_is_said_to() -> None:
    table = re.findall(r"^\| (\[`.+?) \| (.+?) \|", text_of("docs/reference/verification.md"), re.MULTILINE)
    said = {name: default for cell, default in table for name in re.findall(r"`(\w+)`", cell)}

    assert set(said) == set(OPERATIONS)
    assert {name for name, default in said.items() if default == "nothing to verify"} == {
        name for name in OPERATIONS if options_of(name).proofs == NO_PROOFS
    }


# A sentence with a number, the number, and pages that have it at least once.
SENTENCES = {
    r"expected to take more than (\d+)": (
        CHECKPOINT_BEYOND / 60,
        ("docs/faq.md", "docs/reference/multiply.md"),
    ),
    r"(?:every|,|\|) (\d+) minutes(?: of work|,)": (
        CHECKPOINT_EVERY / 60,
        ("docs/how-to/resume-after-a-failure.md",),
    ),
    r"kept every (\d+) minutes": (CHECKPOINT_EVERY / 60, ("docs/faq.md",)),
    r"less than (\d+) % of the (?:time|run)": (100 * WORTH, ("docs/reference/verification.md",)),
    r"under (\d+) % of the run": (100 * WORTH, ()),
}


@pytest.mark.parametrize("pattern", SENTENCES)
def test_a_number_in_a_sentence_is_that_of_the_program(pattern: str) -> None:
    expected, needed = SENTENCES[pattern]
    found = {name: re.findall(pattern, text_of(name)) for name in PAGES}

    assert {
        name: values for name, values in found.items() if any(float(each) != expected for each in values)
    } == {}
    assert [name for name in needed if not found[name]] == []


def test_the_largest_simulation_is_that_of_its_study() -> None:
    axes = re.findall(r"ranks = \[([\d, ]+)\]", Path(shipped.path_of("scaling")).read_text(encoding="utf-8"))
    largest = f"{max(int(each) for axis in axes for each in axis.split(',')):,}"
    found = {name: re.findall(r"([\d,]+) \[?simulated\s+ranks", text_of(name)) for name in DOOR}

    assert {each for values in found.values() for each in values} == {largest}


def test_exit_codes_in_sentences_exist() -> None:
    known = {kind.exit_code for kind in vars(errors).values() if hasattr(kind, "exit_code")} | {0}
    found = {name: re.findall(r"exit code (\d+)", text_of(name), re.IGNORECASE) for name in PAGES}

    assert {name: codes for name, codes in found.items() if {*map(int, codes)} - known} == {}


def test_errors_of_the_python_page_are_those_that_exit_codes_stand_for() -> None:
    table = re.findall(
        r"^\| `tilewise\.(\w+)` \| .+ \| (\d+) \|$", text_of("docs/reference/python.md"), re.MULTILINE
    )
    public = {
        name
        for name in tilewise.__all__
        if isinstance(kind := getattr(tilewise, name), type) and issubclass(kind, errors.TilewiseError)
    }

    assert {name for name, _ in table} == public - {"TilewiseError"}
    for name, code in table:
        with pytest.raises(getattr(tilewise, name)) as raised:
            Ended(int(code), b"", "tilewise: why\n  try: this", 1.0).fail()
        assert (raised.value.exit_code, raised.value.advice) == (int(code), "this")


def test_the_version_is_one() -> None:
    release.agree(release.versions())
    assert "project(tilewise VERSION ${TILEWISE_VERSION} " in text_of("CMakeLists.txt")


def test_the_day_of_release_is_that_of_the_changelog() -> None:
    heading = re.search(r"^## \S+ \((.+)\)$", text_of("CHANGELOG.md"), re.MULTILINE)
    released = re.search(r"^date-released: (.+)$", text_of("CITATION.cff"), re.MULTILINE)

    assert heading is not None and heading[1] == (released[1] if released else "unreleased")
