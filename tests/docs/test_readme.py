"""The README's commands run as they stand: every block fenced as `sh`, in order, in one empty folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import shell

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.strip()
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_runs(command: str, folder: Path) -> None:
    shell.run(command, folder)
    for output in re.findall(r"(?:-o|--json|--trace) (\S+)", command):
        if "tilewise plan" not in command:
            assert (folder / output).stat().st_size > 0


def shown(command: str) -> list[str]:
    """The lines that the README shows below a command which it runs at a prompt."""
    match = re.search(rf"^```\n\$ {re.escape(command)}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert match is not None, f"the README does not show what {command!r} prints"
    return match.group(1).splitlines()


def printed(command: str, folder: Path) -> tuple[list[str], list[str]]:
    """The lines that a command prints to standard output and to standard error, whatever its exit code."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = shlex.split(command)
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines(), done.stderr.splitlines()


@pytest.fixture
def matrices(tmp_path: Path) -> Path:
    """A folder with a 30x20 matrix A.npy and a 20x25 matrix B.npy."""
    shell.run("tilewise generate -o A.npy --shape 30x20; tilewise generate -o B.npy --shape 20x25", tmp_path)
    return tmp_path


def test_the_first_screen_shows_the_lines_of_a_closing_table(matrices: Path) -> None:
    command = "tilewise multiply A.npy B.npy -o C.npy"
    lines = [line.split()[0] for line in shown(command)]

    table, warnings = printed(command, matrices)
    assert [line.split()[0] for line in table] == lines, warnings


def test_the_first_screen_shows_a_refusal_to_the_letter(matrices: Path) -> None:
    command = "tilewise multiply A.npy B.npy -o D.npy --algorithm cannon -n 3"

    assert printed(command, matrices) == ([], shown(command))


def test_the_result_table_is_that_of_the_benchmark() -> None:
    sys.path.insert(0, str(ROOT / "bench"))
    import readme_table

    assert readme_table.with_table(README, readme_table.kept()) == README
