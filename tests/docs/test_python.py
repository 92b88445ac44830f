"""The page about Python: its examples run as they stand, in order, and it names every function."""

import re
from pathlib import Path

import pytest
import tilewise

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/python.md"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(blocks) >= 5 and (tmp_path / "CT.npy").exists()


def test_every_function_is_named() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [
        name for name in tilewise.__all__ if f"{name}(" not in text and f"tilewise.{name}`" not in text
    ] == ["__version__"]
