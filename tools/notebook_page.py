"""Runs the tutorial's notebook and writes it as a page of Markdown with its outputs and pictures.

docs/tutorial/notebook.py ──jupytext, a kernel──▶ docs/tutorial/notebook.md, docs/pictures/tutorial/*.png
"""

from __future__ import annotations

import base64
import os
import pathlib
import re
import tempfile
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "docs/tutorial/notebook.py"
PAGE = NOTEBOOK.with_suffix(".md")
PICTURES = ROOT / "docs/pictures/tutorial"
_HEAD = "<!-- Written by `make notebook` from notebook.py, which is what to edit. -->\n"
_CELL_SECONDS = 300


def cells() -> list[Any]:
    """The cells of the notebook, without outputs."""
    import jupytext  # type: ignore[import-not-found, import-untyped, unused-ignore]

    return list(jupytext.read(NOTEBOOK).cells)


def executed(folder: str) -> list[Any]:
    """The cells with their outputs, run in `folder`; raises nbclient's CellExecutionError where one fails."""
    import jupytext  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import nbclient  # type: ignore[import-not-found, import-untyped, unused-ignore]

    notebook = jupytext.read(NOTEBOOK)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OPENBLAS_", "TILEWISE_"))}
    client = nbclient.NotebookClient(
        notebook, timeout=_CELL_SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    client.execute(env={**kept, "XDG_CACHE_HOME": folder, "IPYTHONDIR": folder})
    return list(notebook.cells)


def page_of(done: list[Any], folder: str) -> tuple[str, list[bytes]]:
    """The page of executed cells, with paths relative to `folder`, and its pictures as PNG."""
    parts, pictures = [_HEAD], []
    for cell in done:
        parts.append(input_of(cell))
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                pictures.append(base64.b64decode(data["image/png"]))
                title = re.sub(r"^Plot\(['\"](.*)['\"]\)$", r"\1", data["text/plain"])
                path = os.path.relpath(PICTURES / _name(len(pictures)), PAGE.parent)
                parts.append(f"![{title}]({path})\n")
            else:
                parts += _words(output, data)
    return "\n".join(parts).replace(f"{folder}/", ""), pictures


def input_of(cell: Any) -> str:
    """What the page has of a cell itself: code as a block of Python, words as they are."""
    return f"```python\n{cell.source}\n```\n" if cell.cell_type == "code" else f"{cell.source}\n"


def _words(output: Any, data: Any) -> Iterator[str]:
    """An output as Markdown; nothing for one that has vanished."""
    if "text/markdown" in data:
        broken = re.sub(r" {2}\n(?!\s*\n|$)", "\\\\\n", data["text/markdown"])
        yield re.sub(r"\s*\n\s*\n", "\n\n", broken).strip() + "\n"
        return
    text = output.get("text") or "\n".join(output.get("traceback", ())) or data.get("text/plain", "")
    text = re.sub(r"\x1b\[[0-9;]*m", "", text).strip("\n")
    if text:
        yield f"```text\n{text}\n```\n"


def _name(number: int) -> str:
    return f"notebook-{number}.png"


def main() -> None:
    """Writes the page and its pictures; those of an older page are removed."""
    with tempfile.TemporaryDirectory() as made:
        folder = os.path.realpath(made)
        text, pictures = page_of(executed(folder), folder)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob(_name(0).replace("0", "*")):
        old.unlink()
    for number, picture in enumerate(pictures, 1):
        (PICTURES / _name(number)).write_bytes(picture)
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} and {len(pictures)} pictures")


if __name__ == "__main__":
    main()
