"""The README shows what commands print, with `…` for lines left out, and figures of the benchmarks."""

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
PRODUCT = "tilewise multiply A.npy B.npy -o AB.npy"
LARGE = "tilewise multiply data.h5:/A data.h5:/B -o P.npy --memory 512MiB"
SMALL = "45MiB -t 1"  # does to the matrices of a test what 512MiB does to those of the README
LONGEST = 120  # lines


def shown(command: str) -> list[str]:
    """The lines that the README shows below a command which it runs at a prompt."""
    match = re.search(rf"^\$ {re.escape(command)}\n((?:(?![$`]).*\n)*)", README, re.MULTILINE)
    assert match is not None, f"the README does not show what {command!r} prints"
    return match.group(1).splitlines()


def printed(command: str, folder: Path, **more: str) -> tuple[list[str], list[str]]:
    """The lines that a command prints to standard output and to standard error, whatever its exit code."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        shlex.split(command),
        cwd=folder,
        env={**os.environ, "PATH": path, **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout.splitlines(), done.stderr.splitlines()


def agrees(lines: list[str], real: list[str]) -> None:
    """Fails unless `lines` and `real` begin with the same words; `…` stands for any lines."""
    wanted = [re.escape(line.split()[0]) if line != "…" else r"(?:\S+\n)*?" for line in lines]
    pattern = "".join(word if word.endswith("*?") else f"{word}\n" for word in wanted)
    first = "".join(f"{line.split()[0]}\n" for line in real)
    assert re.fullmatch(pattern, first), f"{first}\nis not\n{lines}"


def pattern_of(lines: list[str]) -> str:
    """A regular expression for what the README shows: `…` are any words, numbers any numbers."""
    return re.sub(r"\d+ %", r"\\d+ %", re.escape("\n".join(lines)).replace("…", ".+").replace("\\ ", " "))


def test_the_first_screen_shows_lines_of_a_closing_table(tmp_path: Path) -> None:
    shell.run("tilewise generate -o A.npy --shape 30x20; tilewise generate -o B.npy --shape 20x25", tmp_path)

    agrees(shown(PRODUCT), printed(PRODUCT, tmp_path)[0])


def test_a_product_larger_than_memory_dies_and_resumes_as_shown(tmp_path: Path) -> None:
    for name in ("A", "B"):
        shell.run(f"tilewise generate -o data.h5:/{name} --shape 2100x2100", tmp_path)
    died = printed(LARGE.replace("512MiB", SMALL), tmp_path, TILEWISE_FAULT="kill:0:output*6")[1]
    real = "\n".join(re.sub(r" in \w+; ", "; ", line).replace(SMALL, "512MiB") for line in died)
    assert re.fullmatch(pattern_of(shown(LARGE)), real), real
    agrees(shown(f"{LARGE} --resume"), printed(f"{LARGE} --resume".replace("512MiB", SMALL), tmp_path)[0])


def test_the_lines_of_python_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    block = re.search(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert block is not None

    exec(compile(block.group(1), "README.md", "exec"), {})

    assert (tmp_path / "AT.npy").stat().st_size > 0


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= LONGEST


@pytest.mark.parametrize("name", ["README.md", "docs/benchmarks.md"])
def test_figures_are_those_of_the_benchmark(name: str) -> None:
    sys.path.insert(0, str(ROOT / "bench"))
    import readme_table

    part = {"README.md": readme_table.readme, "docs/benchmarks.md": readme_table.page}[name]
    text = (ROOT / name).read_text(encoding="utf-8")
    assert readme_table.with_part(text, part(readme_table.kept())) == text
