"""The manual in docs/man is what the commands declare, and neither mandoc nor groff finds a mistake in it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tilewise.cli import names, page_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/man").glob("*.1"))
SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO")


def test_the_pages_are_what_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import man_pages

    assert {path.name: path.read_text(encoding="ascii") for path in PAGES} == man_pages.pages(), (
        "python tools/man_pages.py writes them"
    )


def test_the_variables_are_those_of_the_page_of_common_flags() -> None:
    text = (ROOT / "docs/man/tilewise-multiply.1").read_text(encoding="ascii")
    assert all(f".B {name}\n" in text for name in ("TILEWISE_KERNELS", "TILEWISE_WORKER", "XDG_CACHE_HOME"))
    assert "TILEWISE_FAULT" not in text and "SHELL" not in text


def shown(path: Path) -> str:
    """A page as a reader sees it, without marks of bold and italic."""
    words = ["groff", "-man", "-Tutf8", "-P-cbou", "-rLL=200n", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("name", [name for name in names() if not name.startswith("-")])
def test_a_page_has_every_argument_choice_and_example(name: str) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    page = page_of(name)
    text = shown(ROOT / f"docs/man/tilewise-{name.replace(' ', '-')}.1")
    assert [each for each in SECTIONS if f"\n{each}\n" not in text] == []
    for each in page.arguments.shown():
        spelt = ", ".join(sorted(each.spellings, key=len))
        assert re.search(rf"^ +{re.escape(spelt)}\b", text, re.MULTILINE), spelt
        assert all(choice in text for choice in each.choices)
    assert page.examples and all(f"    {example.line}\n" in text for example in page.examples)


@pytest.mark.parametrize("program", ["mandoc -Tlint", "groff -man -ww -Tutf8 -z"])
def test_no_program_finds_a_mistake(program: str) -> None:
    words = program.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    for path in PAGES:
        done = subprocess.run([*words, str(path)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("commands", "manual"), [("bin", "share/man"), ("share/tilewise/bin", "share/tilewise/man")]
)
def test_man_finds_the_pages_of_an_installed_command(commands: str, manual: str) -> None:
    installed = Path(sys.prefix, manual, "man1/tilewise-multiply.1")
    man = shutil.which("man")
    if not Path(sys.prefix, "share/modulefiles/tilewise").is_dir() or man is None:
        pytest.skip(f"tilewise is not installed in {sys.prefix}, or man is not")
    environment = {"PATH": f"{sys.prefix}/{commands}:/usr/bin:/bin"}
    words = [man, "-w", "tilewise-multiply"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == installed
