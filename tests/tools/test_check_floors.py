"""The floor checker finds what it promises to find, and lets the real tree pass."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECKER = ROOT / "tools/check_floors.py"


def complaints(root: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(CHECKER), str(root)], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    return lines if done.returncode else []


def plant(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_tree_keeps_its_promises() -> None:
    assert complaints(ROOT) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "cpp/tilewise/grid/a.hpp",
            '// Cuts things.\n#include "tilewise/mpi/mpi.hpp"\n',
            "a.hpp:2: grid uses mpi",
        ),
        ("cpp/tilewise/kernel/a.cpp", '// Adds things.\n#include "tilewise/io/file.hpp"\n', "kernel uses io"),
        ("cpp/tilewise/svd/a.cpp", '// Adds things.\n#include "tilewise/multiply/summa.hpp"\n', "beside it"),
        ("cpp/tilewise/io/a.cpp", "// Reads things.\n#include <mpi.h>\n", "a.cpp:2: only cpp/tilewise/mpi/"),
        (
            "cpp/tilewise/attic/a.cpp",
            '// Keeps things.\n#include "tilewise/io/file.hpp"\n',
            "'attic' has no floor",
        ),
        ("cpp/tilewise/base/a.hpp", "#pragma once\n", "does not open with a sentence"),
        ("cpp/tilewise/base/a.hpp", f"// Draws things.\n// {'─' * 118}\n", "a.hpp:2: 121 columns"),
        (
            "python/tilewise/files/a.py",
            '"""Reads a thing."""\nfrom tilewise.cli import main\n',
            "files uses cli",
        ),
        (
            "python/tilewise/files/a.py",
            '"""Reads a thing."""\nfrom ..planning.rule import choose\n',
            "files uses planning",
        ),
        (
            "python/tilewise/launch/a.py",
            '"""Starts a thing."""\nfrom tilewise import lab\n',
            "launch uses lab",
        ),
        (
            "python/tilewise/launch/b.py",
            '"""Starts a thing."""\nimport ctypes\nctypes.CDLL(None).prctl(1, 9)\n',
            "b.py:3: only base/processes.py calls prctl",
        ),
        (
            "python/tilewise/lab/statistics/a.py",
            '"""Counts a thing."""\nfrom tilewise.lab.study.run import run\n',
            "statistics uses study",
        ),
        (
            "python/tilewise/launch/a.py",
            '"""Starts it."""\ndef f():\n    import tilewise.planning\n',
            "a.py:3: launch uses planning",
        ),
        ("python/tilewise/planning/a.py", "x = 1\n", "does not open with a sentence"),
        ("tests/a.py", '"""Tests a thing."""\n' + "x = 1\n" * 600, "601 lines"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, name: str, text: str, said: str) -> None:
    plant(tmp_path, name, text)

    found = complaints(tmp_path)

    assert len(found) == 1 and said in found[0]


def test_use_of_lower_floors_is_allowed(tmp_path: Path) -> None:
    plant(tmp_path, "cpp/tilewise/io/a.cpp", '// Reads things.\n#include "tilewise/mpi/mpi.hpp"\n')
    plant(tmp_path, "cpp/tilewise/mpi/mpi.hpp", "// Wraps things.\n#include <mpi.h>\n")
    plant(
        tmp_path,
        "python/tilewise/planning/a.py",
        '"""Plans it."""\nfrom ..files import npy\nfrom .b import c\n',
    )

    assert complaints(tmp_path) == []


def test_two_classes_of_one_name_are_found(tmp_path: Path) -> None:
    for folder in ("files", "launch"):
        text = '"""Holds a thing."""\n\n\nclass Piece:\n    """A thing."""\n'
        plant(tmp_path, f"python/tilewise/{folder}/a.py", text)

    (found,) = complaints(tmp_path)

    assert "launch/a.py:4: class Piece is also one of python/tilewise/files/a.py" in found
