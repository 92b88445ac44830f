"""The tutorial's notebook runs, and its page says what the notebook says."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

for needed in ("ipykernel", "nbclient", "jupytext"):
    pytest.importorskip(needed, reason=f"{needed} is not installed")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
try:
    import notebook_page
finally:
    sys.path.pop(0)


def test_the_notebook_runs(tmp_path: Path) -> None:
    done = notebook_page.executed(str(tmp_path))
    outputs: list[Any] = [output for cell in done for output in cell.get("outputs", ())]
    assert [output.ename for output in outputs if output.output_type == "error"] == ["UsageError"] * 2
    assert (tmp_path / "AT.npy").stat().st_size > 1 << 20 and not (tmp_path / "C.npy").exists()
    page, pictures = notebook_page.page_of(done, str(tmp_path))
    assert len(pictures) == 2 and all(len(each) < 100_000 for each in pictures)
    assert "| compute |" in page and "relative error" in page and str(tmp_path) not in page


def test_the_page_is_that_of_the_notebook() -> None:
    page = notebook_page.PAGE.read_text(encoding="utf-8")
    rest, again = page, "the page is out of date: make notebook"
    for cell in notebook_page.cells():
        _, found, rest = rest.partition(notebook_page.input_of(cell))
        assert found, f"{again}\n{cell.source}"
    code = re.findall(r"^```python\n(.*?)\n```", page, re.MULTILINE | re.DOTALL)
    assert code == [cell.source for cell in notebook_page.cells() if cell.cell_type == "code"], again


def test_its_pictures_are_there_and_small() -> None:
    page = notebook_page.PAGE.read_text(encoding="utf-8")
    named = {(notebook_page.PAGE.parent / path).resolve() for path in re.findall(r"!\[.+\]\((.+)\)", page)}
    assert named == set(notebook_page.PICTURES.glob("*.png"))
    assert all(path.stat().st_size <= 100_000 for path in named)
