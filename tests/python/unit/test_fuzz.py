"""Replays what fuzzing began with and what it found: strangers' bytes break no promise."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.font_manager  # noqa: F401 - it makes folders and a list of fonts when it comes in
import pytest

FUZZ = Path(__file__).parents[2] / "fuzz"
sys.path.insert(0, str(FUZZ))

import mutate  # noqa: E402
import targets  # noqa: E402
import watch  # noqa: E402
from pages import check_page, check_terminal  # noqa: E402

SLOW = ("result", "points")  # a page each
ROUNDS = 15  # changes of each seed that is a tree


def test_each_kept_input_has_a_target() -> None:
    kept = {path.name for path in (FUZZ / "corpus").iterdir()}
    assert kept <= {*targets.TARGETS, "text", "format", "unpack", "job"}


@pytest.mark.parametrize("name", targets.TARGETS)
def test_replay(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, folder = targets.TARGETS[name], tmp_path / "in"
    monkeypatch.setattr(watch, "SECONDS", 1e9)  # on a busy machine, under coverage or a debugger
    folder.mkdir()
    kept = FUZZ / "corpus" / name
    inputs = [path.read_bytes() for path in sorted(kept.iterdir())] if kept.is_dir() else []
    honest = list(target.seeds())
    if name in SLOW:
        honest = honest[:3]
    elif target.structured:
        inputs += [mutate.mutated(data, seed) for data in honest for seed in range(ROUNDS)]
    targets.called(target, honest[0], folder, watching=False)  # imports what is imported late
    for data in [*honest, *inputs]:
        targets.called(target, data, folder)


@pytest.mark.parametrize(
    "page",
    [
        "<p onclick=alert(1)>",
        "<iframe></iframe>",
        "<a href='javascript:alert(1)'>",
        "<style>alert</style>",
        "<!-- alert -->",
    ],
)
def test_the_look_at_pages_sees(page: str) -> None:
    with pytest.raises(watch.BrokenPromise):
        check_page(page)


@pytest.mark.parametrize("text", ["\x1b[2J", "\x9b2J", "a\rb", "\u202e"])
def test_the_look_at_the_terminal_sees(text: str) -> None:
    with pytest.raises(watch.BrokenPromise):
        check_terminal(text)


def test_the_watch_sees(tmp_path: Path) -> None:
    import os
    import subprocess

    for does in (
        lambda: open("/etc/passwd").close(),
        lambda: open(tmp_path.parent / "new", "w").close(),
        lambda: subprocess.run(["true"], check=True),
        lambda: os.system("true"),
    ):
        with pytest.raises(watch.BrokenPromise), watch.watched(str(tmp_path)):
            does()
