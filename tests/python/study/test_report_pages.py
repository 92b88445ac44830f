"""The pages that repeat the reports row by row name only what studies have, and all claims of these."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tilewise.lab.study import shipped
from tilewise.lab.study.study import Study, read

FOLDER = Path(__file__).parents[3] / "docs" / "reports"
PAGES = {
    0: ("cannon-io", "io-strategies"),
    1: ("ping-levels", "svd-speedup"),
    2: ("transpose-one-two-sided",),
    3: ("stencil-scaling",),
    4: ("file-bandwidth",),
}
_NAMED = re.compile(r"`([a-z0-9-]+): ([^`]+)`")
_LEAST = 20  # characters: the beginning of a claim that is long enough to be no other


def page_of(report: int) -> Path:
    return FOLDER / f"report-{report}.md"


def rows_of(text: str) -> list[list[str]]:
    """The rows of its tables of three columns, without heads and rules."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in text.splitlines()]
    return [row for row in rows if len(row) == 3 and not set(row[1]) <= set("-: ")]


def names_of(study: Study) -> set[str]:
    """What a page may name: runs, tables, plots and claims."""
    file = study.file
    listed = [*study.runs, *file.tables, *file.plots]
    return {*(each.name for each in listed), *(claim.text for claim in file.claims)}


def is_there(name: str, known: set[str]) -> bool:
    """Whether it is one of them, or how one claim begins."""
    plain = name.removesuffix("…").removesuffix("...").strip()
    return plain in known or (len(plain) >= _LEAST and sum(each.startswith(plain) for each in known) == 1)


def unknown(text: str) -> list[str]:
    """What the tables of a page name and no shipped study has."""
    wrong = []
    for row in rows_of(text):
        for study, name in _NAMED.findall(" | ".join(row)):
            if study not in shipped.names():
                wrong.append(f"there is no study {study}")
            elif not is_there(name, names_of(read(shipped.path_of(study)))):
                wrong.append(f"{study} has no {name!r}")
    return wrong


def unnamed(text: str, studies: tuple[str, ...]) -> list[str]:
    """The claims of `studies` that no row names, whole or by their beginning."""
    named = [found for row in rows_of(text) for found in _NAMED.findall(" | ".join(row))]
    return [
        f"{study}: {claim.text}"
        for study in studies
        for claim in read(shipped.path_of(study)).file.claims
        if not any(of == study and is_there(name, {claim.text}) for of, name in named)
    ]


WRITTEN = [report for report in PAGES if page_of(report).exists()]


@pytest.mark.parametrize("report", WRITTEN)
def test_a_page_names_only_what_is_there(report: int) -> None:
    text = page_of(report).read_text(encoding="utf-8")
    assert rows_of(text) and unknown(text) == []


@pytest.mark.parametrize("report", PAGES if len(WRITTEN) == len(PAGES) else [])
def test_every_claim_of_a_study_stands_on_the_page_of_its_report(report: int) -> None:
    """From the day on which all five pages are there."""
    assert unnamed(page_of(report).read_text(encoding="utf-8"), PAGES[report]) == []


def test_pages_are_of_the_studies_that_ship() -> None:
    others = {"quick", "scaling", "reports-simulated"}  # which repeat no report row for row
    repeated = {*shipped.names()} - others
    assert {each for studies in PAGES.values() for each in studies} == repeated


def test_the_page_of_simulated_ranks_names_all_tables_of_its_study() -> None:
    text = (FOLDER / "simulated.md").read_text(encoding="utf-8")
    assert rows_of(text) and unknown(text) == []
    named = {name for row in rows_of(text) for _, name in _NAMED.findall(" | ".join(row))}
    assert {table.name for table in read(shipped.path_of("reports-simulated")).file.tables} <= named


def test_wrong_names_and_claims_left_out_are_found() -> None:
    claim = read(shipped.path_of("ping-levels")).file.claims[0].text
    row = "| table 1 | `ping-levels: nonsense`, `pong: x`, and `a flag` | as it is |\n"
    head = "| what the report has | what repeats it | remark |\n| --- | --- | --- |\n"
    assert unknown(head + row) == ["ping-levels has no 'nonsense'", "there is no study pong"]
    for told in (claim, f"{claim[:40]}…"):
        good = f"{head}| claim 1 | `ping-levels: {told}` | |\n"
        assert unknown(good) == []
        left = unnamed(good, ("ping-levels",))
        assert left and f"ping-levels: {claim}" not in left
