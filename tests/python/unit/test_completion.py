"""What TAB completes: what commands declare, handed on by scripts that lie where bash, zsh and fish look."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import HERE, InProcess, Tilewise, one_message
from tilewise.base.declare import Argument
from tilewise.cli import COMMANDS, JOBS, Page, names, page_of, subcommands
from tilewise.cli.complete import offers
from tilewise.cli.completion import SHELLS, place_of, script
from tilewise.lab.study import shipped

FILES = ("A.npy", "B.h5", "page.html", "record.json", "study.toml", "trace.json.gz", "notes", "launches.csv")
FOLDERS = ("folder", "data.tiles")
Wanted = dict[str, set[str]]  # what each line is to be completed with


def values_of(one: Argument) -> set[str]:
    """All that may be the value of an argument in a folder with FILES and FOLDERS."""
    value = one.value
    known = set(one.choices) or set(value.known() if value.known else ())
    if value.endings:
        known |= {*FOLDERS, *(name for name in FILES if name.endswith(value.endings))}
    return known


def spellings_of(page: Page) -> set[str]:
    flags = [each for each in page.arguments.shown() if each not in page.arguments.positions]
    return {"--help", "-h"} | {spelt for flag in flags for spelt in flag.spellings}


def lines_of(page: Page, start: str) -> Iterator[tuple[str, set[str]]]:
    """Lines that begin with `start`, and what the declarations of `page` have for them."""
    places = page.arguments.positions
    if places:
        below = {name.split()[-1] for name in subcommands(page.name)}
        yield f"{start} ", values_of(places[0]) | below
    for flag in page.arguments.shown():
        if flag in places or flag.kind is bool:
            continue
        for spelt in flag.spellings:
            yield f"{start} {spelt} ", values_of(flag)


def wanted_of(page: Page) -> Wanted:
    """All lines of a command, and those of `plan` with it."""
    found = dict(lines_of(page, f"tilewise {page.name}"))
    found[f"tilewise {page.name} -"] = spellings_of(page)
    if page.name in JOBS:
        found[f"tilewise plan {page.name} -"] = spellings_of(page) | {"--all", "--machine"}
        found[f"tilewise plan {page.name} --machine "] = {*FILES, *FOLDERS}
        found[f"tilewise plan {page.name} --io "] = found[f"tilewise {page.name} --io "]
    return found


TRICKY: Wanted = {
    "tilewise ": set(COMMANDS),
    "tilewise m": {"multiply", "measure"},
    "tilewise --": {"--help", "--version", "--install-completion", "--show-completion"},
    "tilewise nothing ": set(),
    "tilewise multiply A.npy A": {"A.npy"},
    "tilewise multiply --transpose-a A.npy -n 2 --ker": {"--kernel"},
    "tilewise multiply A.npy --kernel=b": {"blas"},
    "tilewise multiply --output ": {*FOLDERS, "A.npy", "B.h5", "launches.csv"},
    "tilewise multiply A.npy -n 4 --hint a=b -o fol": {"folder"},
    "tilewise transpose -- A": {"A.npy"},
    "tilewise convert A.npy --io root:coll": {"collective"},
    "tilewise measure ping --levels core,s": {"sibling", "socket"},
    "tilewise measure compare record.json ": {*FOLDERS, "record.json"},
    "tilewise study run q": {"quick"},
    "tilewise study show cannon-io --scale ": {"tiny", "default", "report"},
    "tilewise report record.json trace.json.gz r": {"record.json"},
    "tilewise info --stats ": {*FOLDERS, "A.npy", "B.h5", "launches.csv"},
}


def prepared(folder: Path) -> Path:
    """A folder with FILES and FOLDERS."""
    work = folder / "work"
    work.mkdir()
    for name in FILES:
        (work / name).touch()
    for name in FOLDERS:
        (work / name).mkdir()
    return work


def offered(shell: str, lines: list[str], folder: Path) -> Wanted:
    """What the real shell offers for each line."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    own = folder / "_tilewise"
    own.write_text(script(shell), encoding="utf-8")
    plain = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    driver = HERE / f"completion/complete.{shell}"
    ours = os.path.dirname(sys.executable)
    done = subprocess.run(
        [program, *plain, str(driver), str(folder if shell == "zsh" else own), *lines],
        cwd=prepared(folder),
        env={**os.environ, "HOME": str(folder), "PATH": f"{ours}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    found: Wanted = {}
    for line in done.stdout.splitlines():
        if line.startswith("> "):
            words = found[line[2:]] = set()
        else:
            words.update(each.rstrip("/") for each in line.split())
    return found


def last_part(words: set[str]) -> set[str]:
    """Each without what stands before it in the same word: a flag, or other names."""
    return {word.replace("=", ":").replace(",", ":").rpartition(":")[2] for word in words}


def test_what_is_declared_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(prepared(tmp_path))
    wanted: Wanted = {}
    for name in names():
        wanted |= wanted_of(page_of(name))
    assert len(wanted) > 250 and sum(map(bool, wanted.values())) > 150
    assert {line: {word.rstrip("/") for word, _ in offers(line)} for line in wanted} == wanted
    assert set(shipped.names()) <= {word for word, _ in offers("tilewise study run ")}


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_hand_on_what_is_offered(shell: str, tmp_path: Path) -> None:
    found = offered(shell, list(TRICKY), tmp_path)
    assert {line: last_part(words) for line, words in found.items()} == TRICKY


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tilewise multiply 'A b", {"A b.npy"}),
        ("tilewise multiply A\\ b", {"A b.npy"}),
        ("tilewise multiply .hid", {".hidden.npy"}),
        ("tilewise multiply A.npy ", {"A b.npy", "folder/"}),
        ("tilewise multiply --nothing=", set()),
        ("tilewise multiply folder/", {"folder/B.npy"}),
        ("tilewise multiply missing/", set()),
        ("tilewise multiply A.npy B.npy C", set()),
    ],
)
def test_words_are_read_as_a_shell_reads_them(
    line: str, words: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("A b.npy", ".hidden.npy", "folder/B.npy", "notes"):
        (tmp_path / name).touch()
    assert {word for word, _ in offers(line)} == words


@pytest.fixture
def home(here: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for key in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "BASH_COMPLETION_USER_DIR"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


PLACES = {
    "bash": ".local/share/bash-completion/completions/tilewise",
    "zsh": ".local/share/zsh/site-functions/_tilewise",
    "fish": ".config/fish/completions/tilewise.fish",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_written_where_the_shell_looks(shell: str, here: InProcess, home: Path) -> None:
    path = home / PLACES[shell]
    result = here("--install-completion", shell)
    assert result.returncode == 0 and result.stdout.startswith(f"wrote {path}\nOpen" * (shell != "zsh"))
    assert path.read_text(encoding="utf-8") == script(shell) == here("--show-completion", shell).stdout
    assert (f"fpath=({path.parent} $fpath)" in result.stdout) == (shell == "zsh")
    path.write_text(script(shell)[:-9], encoding="utf-8")  # an older one of ours
    assert here("--install-completion", shell).returncode == 0
    assert path.read_text(encoding="utf-8") == script(shell)


def test_places_follow_xdg(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/config")
    assert place_of("bash") == "/data/bash-completion/completions/tilewise"
    assert place_of("zsh") == "/data/zsh/site-functions/_tilewise"
    assert place_of("fish") == "/config/fish/completions/tilewise.fish"
    monkeypatch.setenv("BASH_COMPLETION_USER_DIR", "/own")
    assert place_of("bash") == "/own/completions/tilewise"


def test_the_shell_is_that_of_the_user(here: InProcess, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert here("--install-completion").returncode == 0
    assert (home / PLACES["fish"]).exists()
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert "no completion for 'tcsh'" in one_message(here("--install-completion"), 2)
    monkeypatch.delenv("SHELL")
    assert "$SHELL does not name a shell" in one_message(here("--install-completion"), 2)
    assert "needs SHELL" in one_message(here("--show-completion"), 2)


def test_a_file_of_somebody_else_is_kept(here: InProcess, home: Path) -> None:
    path = home / PLACES["bash"]
    path.parent.mkdir(parents=True)
    path.write_text("complete -W mine tilewise\n")
    assert "--force" in one_message(here("--install-completion", "bash"), 2)
    assert path.read_text() == "complete -W mine tilewise\n"
    assert here("--install-completion", "bash", "--force").returncode == 0
    assert path.read_text(encoding="utf-8") == script("bash")


def test_a_place_that_cannot_be_written_is_said(here: InProcess, home: Path) -> None:
    (home / ".local").write_text("no folder")
    assert "cannot be written" in one_message(here("--install-completion", "bash"), 1)


def test_bash_completion_loads_the_script_by_itself(fake: Tilewise) -> None:
    loader = Path("/usr/share/bash-completion/bash_completion")
    if not loader.exists():
        pytest.skip("bash-completion is not installed")
    told = {**fake.environment, "HOME": str(fake.folder)}
    for key in ("XDG_DATA_HOME", "BASH_COMPLETION_USER_DIR"):
        told.pop(key, None)
    fake.environment = told
    assert fake("--install-completion", "bash").returncode == 0
    asked = f"source {loader}; _completion_loader tilewise; complete -p tilewise"
    done = subprocess.run(
        ["bash", "--norc", "-c", asked], env=told, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip().endswith("-F _tilewise tilewise"), done.stdout + done.stderr


def test_fish_loads_the_script_by_itself(fake: Tilewise) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("fish is not installed")
    fake.environment |= {"HOME": str(fake.folder)}
    fake.environment.pop("XDG_CONFIG_HOME", None)
    assert fake("--install-completion", "fish").returncode == 0
    done = subprocess.run(
        [fish, "-c", "complete -C 'tilewise mul'"],
        env=fake.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("multiply\t"), done.stdout + done.stderr
