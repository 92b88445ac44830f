"""The linter of English finds what it is for, and only in prose."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_prose  # noqa: E402

LONG = "word " * (check_prose.MAX_WORDS + 1)


def found(root: Path, name: str, text: str) -> list[str]:
    """The findings in a tree that has just this file."""
    path = root / name
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return check_prose.check(root)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("docs/a.md", "Fine.\n\nThe file is fine.\nNobody reads it.\n", "docs/a.md:3: 'Nobody'; say"),
        ("docs/a.md", "| a | it stands in the list |\n", "docs/a.md:1: 'stands in'; say"),
        ("docs/a.md", f"* Fine.\n* {LONG}\n", f"docs/a.md:2: {check_prose.MAX_WORDS + 1} words"),
        ("docs/a.md", "One; two; three.\n", "docs/a.md:1: 2 semicolons"),
        (
            "docs/design/a.md",
            "Short. What it costs is time.\n",
            "docs/design/a.md:1: a sentence opens with 'What",
        ),
        (
            "python/tilewise/a.py",
            'x = (\n    f"{a} the result is thrown away"\n)\n',
            "a.py:2: 'thrown away'; say",
        ),
        ("python/tilewise/a.py", '"""What it does."""\n', "a.py:1: a docstring opens with 'What'; say"),
        ("cpp/tilewise/a.cpp", '\nfail("it was thrown away");\n', "a.cpp:2: 'thrown away'; say"),
    ],
)
def test_bad_english_is_found_with_its_place(tmp_path: Path, name: str, text: str, said: str) -> None:
    (one,) = found(tmp_path, name, text)

    assert said in one


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "docs/a.md",
            "Short. Plain; and short.\n\n```\nnobody; nobody; nobody\n```\n\n`nobody` is a name.\n",
        ),
        ("docs/a.md", f"{LONG[:50]}.\n{LONG[:150]}.\n* {LONG[:150]}\n"),
        ("docs/design/a.md", f"{LONG}; one; two\n"),
        ("docs/a.md", "# What it costs\n\n**What does it cost?** Time.\n"),
        ("python/tilewise/a.py", '"""Nobody knows this."""\nx = {"nobody": 1}\n'),
        ("cpp/tilewise/a.cpp", '// "nobody has a comment"\n'),
    ],
)
def test_plain_english_and_code_are_left_alone(tmp_path: Path, name: str, text: str) -> None:
    assert found(tmp_path, name, text) == []


def test_a_rule_needs_what_to_say_instead(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("nobody\n", encoding="utf-8")

    with pytest.raises(ValueError, match=r"words\.txt: 'nobody' is not of the form"):
        check_prose.rules(path)
