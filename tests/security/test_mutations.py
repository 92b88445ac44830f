"""A sample of `make fuzz-mutations`, and that it sees what it looks for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "fuzz" / "mutations.py"
sys.path.insert(0, str(TOOL.parent))

import mutations  # noqa: E402


def test_a_sample(tmp_path: Path) -> None:
    words = [sys.executable, TOOL, "--count", "80", "greeting", "journal", "events"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.count("27 inputs, 0 findings") == 3, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("strace"), reason="there is no strace")
@pytest.mark.parametrize(("inside", "seen"), [(True, 0), (False, 1)])
def test_what_is_touched_outside_is_seen(tmp_path: Path, inside: bool, seen: int) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    made = (folder if inside else tmp_path) / "new"
    subprocess.run(mutations.traced(folder, ["touch", str(made)]), check=True)
    if not (folder / "trace").exists() or not (folder / "trace").stat().st_size:
        pytest.skip("nothing can be traced here")
    assert len(mutations.outside(folder, begun=True)) == seen


def test_changes_are_the_same_each_time() -> None:
    first = list(mutations.inputs("journal", 9, 1))
    assert first == list(mutations.inputs("journal", 9, 1)) != list(mutations.inputs("journal", 9, 2))
