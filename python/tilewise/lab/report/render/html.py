"""Pages and notebook cells as HTML, every word escaped; they need no network and no scripts."""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tilewise.base.errors import clean
from tilewise.base.staging import replace
from tilewise.lab.report.figures import style
from tilewise.lab.report.figures.inline import inline
from tilewise.lab.report.figures.style import Plot
from tilewise.lab.report.page import Drawing, FileNames, Page
from tilewise.lab.report.table import Table

_FOLDER = Path(__file__).parent.parent / "templates"
_RAISED = ("#f4f6f8", "#1f252d")  # behind figures and facts; light and dark


def write(page: Page, path: str | os.PathLike[str]) -> None:
    """Writes `page` into the file `path`; an older one is replaced as a whole. Raises OSError."""
    replace(path, html(page).encode())


def html(page: Page) -> str:
    """The page as text."""
    sides = [f"{style.variables(side)}--raised:{_RAISED[side]};" for side in (0, 1)]
    alive = any(isinstance(figure, Drawing) and figure.timeline for figure in page.figures())
    scripts = [_own_text("page.js"), *([_own_text("timeline.js")] if alive else [])]
    return _made(
        "page.html.j2",
        page=page,
        sections=[section for section in page.sections if not section.empty()],
        names=FileNames(),
        sides=[Markup(side) for side in sides],
        css=Markup(_own_text("page.css")),
        scripts=[Markup(script) for script in scripts],
        allowed=[Markup(f"'sha256-{_digest(script)}'") for script in scripts],
    )


def cell(title: str, words: Sequence[str], tables: Sequence[Table], warnings: Sequence[str]) -> str:
    """What a notebook shows: a title with `words` under it, plain tables, warnings."""
    return _made("cell.html.j2", title=title, words=words, tables=tables, warnings=warnings)


def _own_text(name: str) -> str:
    """A style sheet or script of ours, which a page contains."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def _made(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else clean(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    made.filters |= {"typed": _typed, "svg": _svg}
    return made


def _typed(words: str) -> list[str]:
    """Words and, at odd places, what stands between `backticks` in them: what one types."""
    return re.split(r"`([^`<>]+)`", words)


def _svg(figure: Plot | Drawing, name: str) -> Markup:
    """The drawing of `figure`, whose parts are named after `name`; what draws it escapes its words."""
    return Markup(inline(dataclasses.replace(figure, key=name)) if isinstance(figure, Plot) else figure.svg)


def _digest(script: str) -> str:
    """What a page's policy calls `script` by: no other may run in it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
