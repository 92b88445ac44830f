"""In a real kernel, as Jupyter starts it: progress, errors, interrupts, restarts, results."""

from __future__ import annotations

import os
import queue
import re
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from conftest import Tilewise

pytest.importorskip("ipykernel", reason="ipykernel is not installed")
manager = pytest.importorskip("jupyter_client.manager", reason="jupyter_client is not installed")

LONG = "tilewise.svd(a, ranks=2, algorithm='jacobi')"  # most of a minute
_PATIENCE = 60.0


class Kernel:
    """A kernel in a test's folder; `a` is a matrix whose decomposition takes long."""

    def __init__(self, tilewise: Tilewise) -> None:
        self._folder = tilewise.folder
        self.manager, self.client = manager.start_new_kernel(
            cwd=str(tilewise.folder),
            env={**tilewise.environment, "IPYTHONDIR": str(tilewise.folder / ".ipython")},
        )

    def start(self, code: str) -> str:
        """Sends a cell, and returns the name that all its messages carry."""
        return str(self.client.execute(code))

    def messages(self, cell: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Kind and content of what a cell shows, until it has run."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") == cell:
                kind, content = message["msg_type"], message["content"]
                if kind == "status" and content["execution_state"] == "idle":
                    return
                yield kind, content
        raise AssertionError("the cell did not end")

    def run(self, code: str) -> list[tuple[str, dict[str, Any]]]:
        """All that a cell shows; no error."""
        shown = list(self.messages(self.start(code)))
        assert [content for kind, content in shown if kind == "error"] == []
        return shown

    def wait_for_ranks(self) -> list[psutil.Process]:
        """The ranks that this kernel's call has started."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            below = psutil.Process(self.manager.provisioner.pid).children(recursive=True)
            ranks = [each for each in below if _name(each) == "tilewise-worker"]
            if len(ranks) == 2:
                return ranks
            time.sleep(0.05)
        raise AssertionError("no ranks were started")


def _name(process: psutil.Process) -> str:
    try:
        return os.path.basename((process.cmdline() or [""])[0])
    except psutil.Error:
        return ""


def _living(ranks: list[psutil.Process]) -> list[psutil.Process]:
    return [each for each in ranks if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def kernel(tilewise: Tilewise) -> Iterator[Kernel]:
    made = Kernel(tilewise)
    try:
        made.run("import asyncio, os, threading, numpy, tilewise")
        made.run("a = numpy.random.default_rng(1).random((2000, 2000))")
        yield made
    finally:
        made.client.stop_channels()
        made.manager.shutdown_kernel(now=True)


def plain(error: dict[str, Any]) -> str:
    """The traceback that a notebook prints, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error["traceback"]))


def test_progress_is_one_line_that_vanishes(kernel: Kernel) -> None:
    shown = kernel.run("tilewise.svd(a[:300, :300], ranks=2, algorithm='jacobi')[1].shape")
    first, *others = [each for kind, each in shown if "display_data" in kind]
    assert re.match(r"\w+: \d+%, \d+ s", first["data"]["text/plain"])
    assert {each["transient"]["display_id"] for each in others} == {first["transient"]["display_id"]}
    assert others[-1]["data"] == {}
    assert shown[-1][1]["data"]["text/plain"] == "(300,)"


@pytest.mark.parametrize(
    "code",
    [
        "each = threading.Thread(target=tilewise.multiply, args=(a[:99], a)); each.start(); each.join()",
        "await asyncio.gather(*[asyncio.to_thread(tilewise.multiply, a[:99], a) for _ in range(2)]);",
        "tilewise.multiply(a[:99], a);",
    ],
    ids=["thread", "asyncio", "loop"],
)
def test_calls_of_threads_and_loops_show_theirs(kernel: Kernel, code: str) -> None:
    lines: dict[str, Any] = {}
    for kind, each in kernel.run(code):
        if "display_data" in kind:
            lines[each["transient"]["display_id"]] = each["data"]
    assert len(lines) == (2 if "gather" in code else 1) and set(map(str, lines.values())) == {"{}"}


def test_an_error_is_the_callers_line_the_message_and_the_advice(kernel: Kernel) -> None:
    cell = kernel.start("def mine():\n    return tilewise.multiply(a, a[:3])\nmine()")
    (error,) = [content for kind, content in kernel.messages(cell) if kind == "error"]
    assert error["ename"] == "UsageError"
    lines = plain(error).splitlines()
    assert lines[-2:] == [
        "UsageError: a (2000×2000) and b (3×2000) do not fit: 2000 columns meet 3 rows",
        "  try: --transpose-b",
    ]
    assert "----> 3 mine()" in lines and "----> 2     return tilewise.multiply(a, a[:3])" in lines
    assert "calls.py" not in plain(error)


def test_an_interrupt_ends_the_ranks(kernel: Kernel) -> None:
    cell = kernel.start(LONG)
    ranks = kernel.wait_for_ranks()
    kernel.manager.interrupt_kernel()
    (error,) = [content for kind, content in kernel.messages(cell) if kind == "error"]
    assert error["ename"] == "KeyboardInterrupt" and "subprocess.py" not in plain(error)
    assert _living(ranks) == []
    shown = kernel.run("[name for name in os.listdir('/dev/shm') if f'-arrays-{os.getpid()}-' in name]")
    assert shown[-1][1]["data"]["text/plain"] == "[]"


def test_a_restart_leaves_nothing(kernel: Kernel) -> None:
    kernel.run("product = tilewise.multiply(a, a)")  # whose memory the kernel still has
    kernel.start(LONG)
    ranks = kernel.wait_for_ranks()
    mine = f"tilewise-arrays-{kernel.manager.provisioner.pid}-"
    assert [name for name in os.listdir("/dev/shm") if name.startswith(mine)]
    kernel.manager.restart_kernel(now=True)
    end = time.monotonic() + 20
    while (left := [name for name in os.listdir("/dev/shm") if name.startswith(mine)]) or _living(ranks):
        assert time.monotonic() < end, left
        time.sleep(0.1)


def test_results_are_tables_and_pictures(kernel: Kernel) -> None:
    record = kernel.run("tilewise.multiply(a, a[:, :9], out='C.npy')")[-1][1]["data"]
    assert "<td>" in record["text/html"] and "| compute |" in record["text/markdown"]
    plan = kernel.run("tilewise.plan('multiply', a, a)")[-1][1]["data"]
    assert "<summary>every variant</summary>" in plan["text/html"]
    shown = kernel.run(
        "results = tilewise.run_study('quick', scale='tiny', only={'size': 64, 'ranks': [1, 2]})"
    )
    lines = [each["data"].get("text/plain", "") for kind, each in shown if "display_data" in kind]
    assert any(re.search(r"\d+ of \d+: \d+%", line) for line in lines) and lines[-1] == ""
    plots = [each["data"] for kind, each in kernel.run("tilewise.plots(results)") if kind == "display_data"]
    assert "image/png" in plots[0] and "samples" in plots[1]["text/markdown"]
    one = kernel.run("tilewise.plots(results)['speedup']")[-1][1]
    assert "image/png" in one["data"] and 100 < one["metadata"]["image/png"]["width"] < 800
