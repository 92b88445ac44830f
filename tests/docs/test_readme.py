"""The README's commands run as they stand: every block fenced as `sh`, in order, in one empty folder."""

import re
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


def test_the_first_screen_has_the_three_commands() -> None:
    screen = README.split("\n## ")[0]

    for words in ("tilewise multiply A.npy B.npy -o C.npy\n", "--trace trace.json", "tilewise info A.npy"):
        assert words in screen


def test_the_result_table_is_that_of_the_benchmark() -> None:
    sys.path.insert(0, str(ROOT / "bench"))
    import readme_table

    assert readme_table.with_table(README, readme_table.kept()) == README
