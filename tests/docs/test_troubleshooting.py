"""The page about problems shows what the commands really print: each is run, and `…` stands for any words."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import shell

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/troubleshooting.md"
TEXT = PAGE.read_text(encoding="utf-8")
TRANSCRIPTS = re.findall(r"^```console\n\$ (.+)\n((?:.*\n)+?)```", TEXT, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the files that the examples use have been made."""
    made = tmp_path_factory.mktemp("problems")
    for block in re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL):
        shell.run(block, made)
    return made


def printed(command: str, folder: Path) -> tuple[int, str]:
    """The exit code of a command, and all that it printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"{command} 2>&1"],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(("command", "expected"), TRANSCRIPTS, ids=[command for command, _ in TRANSCRIPTS])
def test_a_command_prints_what_the_page_shows(command: str, expected: str, folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    code, said = printed(command, folder)

    pattern = re.escape(expected.rstrip("\n")).replace("…", r"(?:.|\n)+?")
    shown = said[said.find("tilewise: ") :] if expected.startswith("tilewise: ") else said
    assert re.fullmatch(pattern + r"\s*", shown), said
    assert (code == 0) == (command == "tilewise doctor")
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_page_has_its_transcripts() -> None:
    assert len(TRANSCRIPTS) == TEXT.count("```console") >= 10


def test_messages_that_need_a_cluster_are_those_of_the_source() -> None:
    blocks = re.findall(r"^```\ntilewise: (.+)\n  try: (.+)\n```", TEXT, re.MULTILINE)
    source = (PAGE.parents[2] / "python/tilewise/launch/causes.py").read_text(encoding="utf-8")

    assert blocks and [words for block in blocks for words in block if f'"{words}"' not in source] == []
