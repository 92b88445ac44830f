"""How Sphinx makes the site: pages of docs/, Markdown files at the root and in bench/; `make docs` runs it.

The pages are plain Markdown. The site's navigation is the lists of docs/index.md: each heading with a list of
links to pages becomes a part of the sidebar, a folder all of its pages. A page that is in none of them is an
error, as is a dead link.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]

project = "tilewise"
author = "the tilewise authors"
version = release = re.findall(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[0]
language = "en"
root_doc = "docs/index"
include_patterns = ["*.md", "bench/*.md", "docs/**.md"]
exclude_patterns = [".venv", "build", "results"]  # which would be walked through for nothing
highlight_language = "text"
extensions = ["myst_parser"]
nitpicky = True

myst_heading_anchors = 4  # as forges make them, so that the same links work there

html_theme = "furo"
html_title = "tilewise"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_use_index = False  # of what pages declare for one: nothing
html_show_search_summary = False  # it would fetch pages, which browsers refuse where there is no server
html_static_path = ["site/static"]
html_js_files = [("accessible.js", {"defer": "defer"})]
templates_path = ["site/templates"]
html_extra_path = ["site/index.html"]
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


def navigation(text: str) -> str:
    """The tables of contents, as MyST has them, that the lists of a page stand for."""
    parts = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        links = re.findall(r"^\* \[([^\]]+)\]\(([^):#]+)\)", body, re.MULTILINE)
        pages = [f"{page}*" if page.endswith("/") else f"{title} <{page[:-3]}>" for title, page in links]
        if pages:
            options = [":hidden:", ":glob:", f":caption: {heading}"]
            parts.append("\n".join(["```{toctree}", *options, "", *pages, "```"]))
    return "\n\n".join(parts)


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """Adds the navigation to the landing page."""
    if page == root_doc:
        source[0] += f"\n\n{navigation(source[0])}\n"


def unlink_folders(app: Sphinx, page: nodes.document) -> None:
    """Takes links to folders of the repository away and leaves their text: a site has no page of a folder."""
    for link in list(page.findall(addnodes.pending_xref)):
        if (Path(page["source"]).parent / link["reftarget"]).is_dir():
            link.replace_self(link.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects the two; tells Sphinx that pages may be read and written at once."""
    app.connect("source-read", add_navigation)
    app.connect("doctree-read", unlink_folders)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
