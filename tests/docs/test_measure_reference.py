"""The page of `measure` names every flag, field and name that the command has, and no others."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_reference import fields, first_column, page, section
from tilewise.lab.measurement import request
from tilewise.lab.measurement.result import Measurement

PAGE = page("measure.md")


def flags_of_help(*words: str) -> set[str]:
    """The flags that the command's own help lists."""
    command = [str(Path(sys.executable).parent / "tilewise"), "measure", *words, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"--[a-z][a-z-]+", done.stdout)) - {"--help", "--version"}


def test_every_flag_is_listed_and_no_other() -> None:
    said = set(re.findall(r"^\| (`-.*?) \|", section(PAGE, "Flags"), re.MULTILINE))
    listed = {flag for cell in said for flag in re.findall(r"--[a-z][a-z-]+", cell)}

    assert listed == flags_of_help()


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("Kinds", [*request.KINDS, "all"]),
        ("Levels", request.LEVELS),
        ("Messages", [*request.EXCHANGES, *request.PATTERNS]),
        ("Collectives", request.COLLECTIVES),
        ("Files", [*request.LAYOUTS, *request.CACHES, *request.CHECKS, *request.BUFFERS]),
    ],
)
def test_every_name_is_listed(heading: str, names: list[str]) -> None:
    said = first_column(section(PAGE, heading))

    assert [name for name in names if name not in said] == []


def test_every_field_of_the_result_is_listed() -> None:
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", section(PAGE, "JSON")))))

    assert fields(Measurement) - words == set()
