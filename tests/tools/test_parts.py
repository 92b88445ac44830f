"""The parts of `make test` and `make check`: the list names tests that exist, and no test is in neither."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECK_ONLY = tomllib.loads((ROOT / "tests/check_only.toml").read_text(encoding="utf-8"))
CASES = """
import pytest
@pytest.mark.parametrize("case", range(3))
def test_cases(case): pass
def test_one(): pass
def test_long(): pass
"""


@pytest.mark.parametrize("name", CHECK_ONLY)
def test_the_list_names_what_there_is(name: str) -> None:
    file, _, test = name.partition("::")
    assert CHECK_ONLY[name] and (ROOT / file).is_file()
    assert not test or re.search(rf"^def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_both_parts_together_are_all(tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    shutil.copy(ROOT / "tests/conftest.py", folder)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (folder / "check_only.toml").write_text('"tests/test_a.py::test_long" = "long"\n')
    (folder / "test_a.py").write_text(CASES)
    (folder / "test_b.py").write_text(f"EVERY_CASE = True\n{CASES}")

    found = {}
    for part in ("sample", "rest"):
        words = [sys.executable, "-m", "pytest", "--co", "-q", "-p", "no:cacheprovider", "--part", part]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        found[part] = {line for line in done.stdout.splitlines() if "::" in line}

    cases = [f"test_cases[{case}]" for case in range(3)]
    assert found["sample"] == {
        *(f"tests/test_a.py::{name}" for name in (cases[0], "test_one")),
        *(f"tests/test_b.py::{name}" for name in (*cases, "test_one", "test_long")),
    }
    assert found["rest"] == {f"tests/test_a.py::{name}" for name in (*cases[1:], "test_long")}
