"""The progress of a job on a terminal: phase, share, rate and time left, by a clock that a test turns."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import threading

import numpy
import pytest
import tilewise as package
from conftest import Tilewise
from tilewise.engine import child
from tilewise.engine.request import PROGRESS
from tilewise.lab.report.progress import Pace
from tilewise.launch.worker import find


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_pace_by_the_clock() -> None:
    clock = Clock()
    pace = Pace(clock)
    said = []
    for later, phase, share in (
        (0.0, "input", 0.0),
        (1.0, "input", 1.0),  # at its end nothing is left, and no clock may stop
        (0.0, "compute", 0.0),
        (4.0, "", 0.0),  # nobody reports, time passes
        (0.0, "compute", 0.25),
        (2.0, "", 0.0),  # between two reports what is left shrinks
        (1.0, "exchange", 0.0),
        (90.0, "compute", 0.5),  # goes on with the 7 s that it has had
        (3.0, "compute", 0.5),
        (500.0, "", 0.0),  # later than foreseen
    ):
        clock.now += later
        if phase:
            pace.update(phase, share)
        said.append(pace.text())
    assert said == [
        "0 s",
        "1 s",
        "1 s",
        "5 s",
        "5 s, 6.2 %/s, 12 s left",
        "7 s, 6.2 %/s, 10 s left",
        "8 s",
        "1 min 38 s, 7.1 %/s, 7 s left",
        "1 min 41 s, 7.1 %/s, 4 s left",
        "10 min 01 s, 7.1 %/s, 0 s left",
    ]


def test_a_pace_that_nobody_counts_by_what_was_foreseen() -> None:
    clock = Clock()
    pace = Pace(clock, 40.0)
    pace.update("compute", 0.0)
    clock.now += 12
    assert pace.text() == "12 s of about 40 s"
    pace.update("compute", 0.5)
    assert pace.text() == "12 s, 4.2 %/s, 12 s left"
    pace.update("output", 0.0)
    clock.now += 30
    assert pace.text() == "42 s"
    assert Pace(clock, 0.2).text() == "0 s"


def seen_on_a_terminal(tilewise: Tilewise, *words: str) -> str:
    """All that the command writes to a terminal as its standard error."""
    ours, theirs = pty.openpty()
    shown = {**tilewise.environment, "TERM": "xterm", "COLUMNS": "120"}
    child = tilewise.start(*words, env=shown, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError), os.fdopen(ours, "rb", buffering=0) as terminal:
        while piece := terminal.read(1 << 16):
            said += piece
    assert child.wait(60) == 0, said
    return said.decode(errors="replace")


def test_a_bar_on_a_terminal_and_nothing_in_a_pipe(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.random.default_rng(1).random((60, 50)))
    said = seen_on_a_terminal(tilewise, "svd", "A.npy", "-o", "s", "-n", "2")
    assert "input" in said and " 0 % 0 s" in said  # the rest may be too fast to be drawn
    assert tilewise("svd", "A.npy", "-o", "t").stderr == ""


COMMANDS = (
    (("svd", "A.npy", "-o", "C", "--algorithm", "local", "-n", "1"), "compute"),
    (("svd", "A.npy", "-o", "C", "--algorithm", "jacobi", "-n", "2"), "compute"),
    (("svd", "A.npy", "-o", "C", "--algorithm", "randomized", "--components", "3"), "compute"),
    (("multiply", "A.npy", "A.npy", "-o", "C.npy", "--transpose-b"), "compute"),
    (("transpose", "A.npy", "-o", "C.npy", "-n", "2"), "output"),
    (("stencil", "A.npy", "-o", "C.npy", "--steps", "5"), "compute"),
    (("convert", "A.npy", "-o", "C.txt"), "output"),
    (("generate", "-o", "C.npy", "--shape", "50x60"), "output"),
    (("norm", "A.npy", "-n", "2"), "compute"),
)


@pytest.mark.parametrize(("words", "phase"), COMMANDS, ids=[" ".join(words[:5]) for words, _ in COMMANDS])
def test_every_operation_says_where_it_is(
    tilewise: Tilewise, words: tuple[str, ...], phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker names each phase as it enters it, whether or not it can tell how far it is."""
    numpy.save(tilewise.folder / "A.npy", numpy.random.default_rng(1).random((60, 50)))
    worker = tilewise.folder / "worker"
    worker.write_text(
        f"#!{sys.executable}\n"
        "import subprocess, sys, json, os\n"
        "job = sys.stdin.buffer.read() if os.environ.get('PMI_RANK', '0') == '0' else b''\n"
        "if job: job = json.dumps({**json.loads(job), 'progress': True}).encode()\n"
        f"words = [{find()!r}, *sys.argv[1:]]\n"
        "done = subprocess.run(words, input=job, stdout=subprocess.PIPE, close_fds=False)\n"
        "open('said', 'ab').write(done.stdout)\n"
        "sys.stdout.buffer.write(done.stdout)\n"
        "sys.exit(done.returncode)\n"
    )
    worker.chmod(0o755)
    tilewise.environment["TILEWISE_WORKER"] = str(worker)
    done = tilewise(*words)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line[1:]) for line in (tilewise.folder / "said").read_bytes().splitlines()]
    told = [event for event in events if event["event"] == "progress"]
    assert told[0]["phase"] == "input" or words[0] == "generate"
    assert phase in {event["phase"] for event in told}
    assert all(0 <= event["done"] <= 1 for event in told)


class Notebook:
    """As much of IPython as shows a line, and changes it."""

    kernel = "there"

    def __init__(self) -> None:
        self.shown: list[str] = []

    def get_ipython(self) -> Notebook:
        return self

    def display(self, bundle: dict[str, str], raw: bool, display_id: bool = False) -> Notebook:
        assert raw
        self.shown.append(bundle.get("text/plain", ""))
        return self

    update = display


def test_a_notebook_shows_progress_and_takes_it_away(fake: Tilewise, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook()
    monkeypatch.chdir(fake.folder)
    for key, value in fake.environment.items():
        monkeypatch.setenv(key, value)
    for name in ("IPython", "IPython.display"):
        monkeypatch.setitem(sys.modules, name, notebook)
    record = package.run("multiply", "A.npy", "B.npy", out="C.npy", ranks=1)
    assert record.command == "multiply"
    assert [text.split()[:2] for text in notebook.shown] == [["compute:", "10%,"], ["compute:", "100%,"], []]
    del notebook.shown[:]
    monkeypatch.delattr(Notebook, "kernel")  # a terminal's IPython is no notebook
    package.run("multiply", "A.npy", "B.npy", out="D.npy", ranks=1)
    assert notebook.shown == []


def test_what_is_heard_is_told_again_while_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the time that is shown goes on."""
    monkeypatch.setattr(child, "_TICK", 0.01)
    heard: list[tuple[str, float]] = []
    enough = threading.Event()

    def hear(phase: str, share: float) -> None:
        heard.append((phase, share))
        if len(heard) == 5:
            enough.set()

    with child._heard(hear) as told:
        os.write(int(told[PROGRESS]), b"0.1 input\n0.5 com")
        os.write(int(told[PROGRESS]), b"pute\n")
        assert enough.wait(30)
    assert heard[:2] == [("input", 0.1), ("compute", 0.5)] and set(heard[2:]) == {("compute", 0.5)}


def test_a_descriptor_that_is_none_is_not_written_to(fake: Tilewise) -> None:
    for told in ("999", "x"):
        fake.environment["TILEWISE_PROGRESS_FD"] = told
        done = fake("multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", 1, "--force")
        assert done.returncode == 0 and done.stderr == ""
