"""The site: it builds without a warning, leads nowhere dead, needs no network, and reads well on a phone.

Its tools are those that `make docs` installs.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import site_checks

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))
import browser  # noqa: E402

TOOLS = ("sphinx", "furo", "myst_parser", "axe_core_python")
LACKING = [name for name in TOOLS if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"no {', '.join(LACKING)}: make docs installs them")
PHONE = 390  # pixels


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = ("--quiet", "--fail-on-warning", "--keep-going", "-c", "docs", "-d", folder / "doctrees")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words, ".", folder / "html"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def opened() -> Iterator[browser.Browser]:
    if browser.FOUND is None:
        pytest.skip("needs chromium, which is not installed")
    with browser.browser() as made:
        yield made


def pages(site: Path) -> list[Path]:
    """All pages but the one that only leads to the first."""
    return [path for path in sorted(site.rglob("*.html")) if path != site / "index.html"]


def test_every_page_is_there(site: Path) -> None:
    made = {str(path.relative_to(site).with_suffix("")) for path in pages(site)}

    sources = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    assert {str(path.relative_to(ROOT).with_suffix("")) for path in sources} <= made


def test_no_link_is_dead_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert site_checks.dead_links(site) == []


def test_pages_have_what_screen_readers_need(site: Path) -> None:
    faults = {
        str(path.relative_to(site)): found
        for path in site.rglob("*.html")
        if (found := site_checks.Page(path.read_text(encoding="utf-8")).faults)
    }

    assert faults == {}


def test_on_a_phone_everything_fits_and_can_be_read(site: Path, opened: browser.Browser) -> None:
    faults = {}
    for path in pages(site):
        found = opened.open(path, PHONE, 844)
        for dark in (False, True):
            opened.prefer(dark)
            found += [f"{one} {'in the dark' if dark else ''}" for one in opened.run(site_checks.CONTRAST)]
        found += [f"it asks for {one}" for one in opened.requests if not one.startswith(("file:", "data:"))]
        if found:
            faults[str(path.relative_to(site))] = found

    assert faults == {}


@pytest.mark.parametrize("page", ["docs/index.html", "docs/reference/multiply.html", "search.html"])
def test_axe_finds_nothing(site: Path, opened: browser.Browser, page: str) -> None:
    axe = importlib.resources.files("axe_core_python") / "axe.min.js"
    opened.open(site / page, PHONE, 844)
    opened.run(axe.read_text(encoding="utf-8") + ";0")

    found = opened.run(
        "axe.run().then((all) => all.violations.map("
        "(one) => `${one.id}: ${one.nodes.map((node) => node.html)}`))"
    )

    assert found == []


def test_its_dark_colours_are_others(site: Path, opened: browser.Browser) -> None:
    opened.open(site / "docs/index.html")
    colours = []
    for dark in (False, True):
        opened.prefer(dark)
        colours.append(opened.run("getComputedStyle(document.body).backgroundColor"))

    assert colours[0] != colours[1]


def test_search_works_without_a_server(site: Path, opened: browser.Browser) -> None:
    opened.open(site / "search.html")
    opened.run("(location.search = '?q=halo', 0)")
    end = time.monotonic() + 20
    found: list[str] = []
    while "stencil" not in found and time.monotonic() < end:
        time.sleep(0.2)
        found = opened.run(
            "[...document.querySelectorAll('#search-results li > a')].map((a) => a.textContent)"
        )

    assert "stencil" in found
    assert opened.errors == []


def test_what_is_wrong_is_found(tmp_path: Path, opened: browser.Browser) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<html><h1 id=a>One</h1><h3 id=a>Three</h3><img src=none.png><input name=q>"
        "<a href='#nowhere'>x</a><script src='https://example.org/x.js'></script>"
        "<p style='color: #999; background: #fff'>pale</p><p style='width: 500px'>wide</p>"
    )

    assert len(site_checks.Page(page.read_text()).faults) == 5
    assert [line.split()[1:] for line in site_checks.dead_links(tmp_path)] == [
        ["leads", "to", "#nowhere"],
        ["leads", "to", "none.png"],
        ["loads", "https://example.org/x.js"],
    ]
    assert "the page is" in " ".join(opened.open(page, PHONE))
    assert "https://example.org/x.js" in opened.requests
    assert opened.run(site_checks.CONTRAST) == ['"pale" (P ): 2.85']
