"""Generated pages are what flags and headers say; every environment variable and every floor is listed."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_floors  # noqa: E402
import cpp_declarations  # noqa: E402
import reference_pages  # noqa: E402


@pytest.mark.parametrize("page", reference_pages.PARTS)
def test_a_page_is_what_its_tool_writes(page: str) -> None:
    text = (reference_pages.PAGES / page).read_text(encoding="utf-8")

    assert text == reference_pages.written(page), "run python tools/reference_pages.py"


def test_every_environment_variable_of_ours_is_listed() -> None:
    python = r"environ(?:\.get\(|\.pop\(|\[)\"(TILEWISE_\w+)\"|^PROGRESS = \"(TILEWISE_\w+)\""
    sources = [*(ROOT / "python").rglob("*.py"), *(ROOT / "cpp").rglob("*.cpp")]
    found = {
        name
        for source in sources
        for match in re.findall(
            python + r"|getenv\(\"(TILEWISE_\w+)\"", source.read_text(encoding="utf-8"), re.M
        )
        for name in match
        if name
    }
    page = (reference_pages.PAGES / "common-flags.md").read_text(encoding="utf-8")

    # How the front asks ranks to start MPI, where they show their phase, and whether they have numbers, is
    # between the two.
    own = {"TILEWISE_MPI_THREADS", "TILEWISE_PHASE", "TILEWISE_SIMULATED_NUMBERS"}
    assert set(re.findall(r"^\| `(TILEWISE_\w+)`", page, re.MULTILINE)) == found - own


def test_declarations_leave_out_bodies_and_what_is_private() -> None:
    header = """// Things.
#pragma once
namespace tilewise {

/// A thing. @note Collective.
class Thing : public Base {
public:
    explicit Thing(int size)
        : size_(size) {}
    int size() const { return size_; }

    struct State;  ///< not for users
    State& state() const;

private:
    int size_;
};

/// Twice as many.
inline int twice(int number) {
    return 2 * number;
}

template <class T> struct Pair {
    T first;  ///< of two
};

}  // namespace tilewise
"""

    assert cpp_declarations.opening(header) == "Things."
    assert list(cpp_declarations.declarations(header)) == [
        (
            "Thing",
            "A thing. **Collective.**",
            "class Thing : public Base {\npublic:\n    explicit Thing(int size);\n    int size() const;\n};",
        ),
        ("twice", "Twice as many.", "inline int twice(int number);"),
        ("Pair", "", "template <class T> struct Pair {\n    T first;  ///< of two\n};"),
    ]


def test_the_architecture_lists_every_floor() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    tables = [part for part in page.split("\n\n") if "from the ground" in part]

    said = [
        [set(re.findall(r"`([\w.]+)`", row.split("|")[1])) for row in table.splitlines()[2:]]
        for table in tables
    ]

    assert said == [check_floors.CXX_FLOORS, check_floors.PYTHON_FLOORS]
