"""The reference pages name what the program has: every name, field and exit code; and no link is dead."""

import re
from pathlib import Path

import msgspec
import pytest
from tilewise.base import errors
from tilewise.cli import page_of
from tilewise.files.formats import FORMATS, format_of
from tilewise.files.generated import KINDS
from tilewise.lab.measurement import request as measured
from tilewise.lab.measurement.result import Measurement
from tilewise.launch.record import Record
from tilewise.operations.stencil.options import DECOMPOSITIONS
from tilewise.operations.stencil.weights import BOUNDARIES
from tilewise.operations.svd.options import ALGORITHMS as SVD
from tilewise.operations.svd.options import INNERS, STARTS
from tilewise.operations.transpose.options import ROOT_WRITES
from tilewise.planning.names import KERNELS, VERIFY

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def page(name: str) -> str:
    return (ROOT / "docs/reference" / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    return re.split(r"^## ", text.split(f"## {heading}")[1], flags=re.MULTILINE)[0]


def first_column(text: str) -> list[str]:
    return re.findall(r"^\| `([\w:]+)` \|", text, re.MULTILINE)


NAMES = {
    "multiply.md": {
        "Kernels": KERNELS,
        "Verification": VERIFY,
    },
    "transpose.md": {
        "How rank 0 writes": ROOT_WRITES,
        "Verification": VERIFY,
    },
    "svd.md": {
        "Algorithms": [*SVD, *STARTS, *INNERS],
        "Verification": VERIFY,
    },
    "stencil.md": {
        "Decompositions": DECOMPOSITIONS,
        "Boundaries": BOUNDARIES,
        "Verification": VERIFY,
    },
    "generate.md": {"Kinds": KINDS},
    "measure.md": {
        "Kinds": [*measured.KINDS, "all"],
        "Levels": measured.LEVELS,
        "Messages": [*measured.EXCHANGES, *measured.PATTERNS],
        "Collectives": measured.COLLECTIVES,
        "Files": [*measured.LAYOUTS, *measured.CACHES, *measured.CHECKS, *measured.BUFFERS],
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_lists_every_name(name: str) -> None:
    for heading, names in NAMES[name].items():
        said = first_column(section(page(name), heading))
        assert [each for each in names if each not in said] == [], heading
        if name not in ("stencil.md", "measure.md"):  # which explain other words in the same tables
            assert sorted(said) == sorted(names), heading


def format_rows() -> dict[str, list[str]]:
    """The cells behind the first one of the table of formats, by extension."""
    rows = re.findall(r"^\| (`\..*) \|$", section(page("formats.md"), "Formats"), re.MULTILINE)
    cells = [row.split(" | ") for row in rows]
    return {extension: rest for first, *rest in cells for extension in re.findall(r"`(\.\w+)`", first)}


def test_formats_lists_every_extension() -> None:
    assert sorted(format_rows()) == sorted(FORMATS)


@pytest.mark.parametrize("extension", FORMATS)
def test_formats_says_what_is_behind_the_colon_and_whether_it_is_written(extension: str) -> None:
    member, _, written = format_rows()[extension]
    facts = format_of(f"A{extension}")

    assert member.startswith(facts.member or "–")
    assert (written == "–") == (not facts.numbers)


def fields(kind: type) -> set[str]:
    """The names of a struct's fields and of the structs inside it."""
    found: set[str] = set()
    for field in msgspec.structs.fields(kind):
        found.add(field.name)
        for inner in (field.type, *getattr(field.type, "__args__", ())):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                found |= fields(inner)
    return found


def test_pages_name_every_field() -> None:
    for text, kind in ((page("record.md"), Record), (section(page("measure.md"), "JSON"), Measurement)):
        words = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`|\{[^}]+\}", text))))
        assert fields(kind) - words == set()


def test_the_page_of_measure_lists_every_flag_and_no_other() -> None:
    said = set(re.findall(r"^\| (`-.*?) \|", section(page("measure.md"), "Flags"), re.MULTILINE))
    listed = {flag for cell in said for flag in re.findall(r"--[a-z][a-z-]+", cell)}

    assert listed == {each.name for each in page_of("measure").arguments.flags.values()}


def test_the_exit_codes_are_those_of_the_errors() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", page("exit-codes.md"), re.MULTILINE)}
    raised = {kind.exit_code for kind in vars(errors).values() if hasattr(kind, "exit_code")}

    assert codes == raised | {0}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)

    dead = [link for link in links if "://" not in link and not (path.parent / link).exists()]

    assert dead == []
