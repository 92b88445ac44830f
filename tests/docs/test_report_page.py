"""The page of `report` names every flag that the command has, and no others."""

import re
import subprocess
import sys
from pathlib import Path

from test_reference import page


def test_every_flag_is_listed_and_no_other() -> None:
    command = [str(Path(sys.executable).parent / "tilewise"), "report", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    flags = set(re.findall(r"^  (?:-[a-z], )?(--[a-z][a-z-]+)", done.stdout, re.MULTILINE)) - {
        "--help",
        "--version",
    }

    rows = re.findall(r"^\| (`-.*?) \|", page("report.md"), re.MULTILINE)
    assert {flag for row in rows for flag in re.findall(r"--[a-z][a-z-]+", row)} == flags
