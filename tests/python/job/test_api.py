"""tilewise from Python: records with types, errors with types, and an import that costs nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import tilewise as package
from conftest import Tilewise, mpiexec, wait_for
from studies import Runner, run
from tilewise.base.errors import RunError, UsageError, VerificationError
from tilewise.engine.child import Ended
from tilewise.launch.record import Record

CALLING = str(Path(__file__).parents[1] / "calling.py")


@pytest.fixture
def there(fake: Tilewise, monkeypatch: pytest.MonkeyPatch) -> Tilewise:
    monkeypatch.chdir(fake.folder)
    for key, value in fake.environment.items():
        monkeypatch.setenv(key, value)
    return fake


def test_a_real_product(tilewise: Tilewise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tilewise.folder)
    a, b = numpy.random.default_rng(1).random((2, 30, 30))
    numpy.save("A.npy", a)
    numpy.save("B.npy", b)
    record = package.run(
        "multiply", "A.npy", Path("B.npy"), out=Path("C.npy"), ranks=2, transpose_a=True, io="root"
    )
    assert isinstance(record, Record) and (record.command, record.variant.ranks) == ("multiply", 2)
    assert record.variant.io == "root:root" and record.seconds.total.max >= record.seconds.total.min > 0
    assert record.verification is not None and record.verification.passed
    numpy.testing.assert_allclose(numpy.load("C.npy"), a.T @ b)


def test_it_is_shown_escaped(there: Tilewise) -> None:
    Path("<b>&.npy").write_bytes(Path("A.npy").read_bytes())
    record = package.run("multiply", "<b>&.npy", "B.npy", out="C.npy", ranks=1)
    shown = record._repr_html_()
    assert "&lt;b&gt;&amp;.npy" in shown and "<b>&" not in shown
    for phase in ("input", "compute", "exchange", "output", "verify", "total", "wall"):
        assert f"<th>{phase}</th>" in shown
    from html.parser import HTMLParser

    class Balance(HTMLParser):
        depth = 0

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.depth += tag != "br"

        def handle_endtag(self, tag: str) -> None:
            self.depth -= 1

    parser = Balance()
    parser.feed(shown)
    assert parser.depth == 0


def test_a_job_that_stopped_in_time_is_no_failure() -> None:
    errors = "tilewise: the job has ended in time\n  try: tilewise transpose A.npy -o B.npy --resume\n"
    with pytest.raises(package.Stopped) as caught:
        Ended(exit_code=4, output=b"", errors=errors, seconds=1.0).fail()
    assert caught.value.message == "the job has ended in time"
    assert caught.value.advice == "tilewise transpose A.npy -o B.npy --resume"


@pytest.mark.parametrize(
    ("words", "flags", "how", "kind", "said", "advice"),
    [
        (("nope.npy", "B.npy"), {}, "", UsageError, "nope.npy does not exist", ""),
        (("A.npy", "B.npy"), {"rnks": 2}, "", UsageError, "has no flag --rnks", "--ranks"),
        (("A.npy", "B.npy"), {"ranks": 2}, "die", RunError, "rank", ""),
        (("A.npy", "B.npy"), {"verify": "fast"}, "wrong", VerificationError, "verification", ""),
    ],
)
def test_errors_with_types(
    there: Tilewise, monkeypatch: pytest.MonkeyPatch, words, flags, how, kind, said, advice
) -> None:
    monkeypatch.setenv("FAKE", how)
    with pytest.raises(kind, match=said) as caught:
        package.run("multiply", *words, out="C.npy", **flags)
    assert type(caught.value) is kind and not caught.value.message.startswith("tilewise")
    assert advice in caught.value.advice
    assert not Path("C.npy").exists()


def test_an_interrupt_ends_the_ranks(there: Tilewise, processes, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setenv("FAKE", "hang")
    monkeypatch.setenv("FAKE_LOG", there.environment["FAKE_LOG"])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored
    press = lambda: (wait_for(processes), os.kill(os.getpid(), signal.SIGINT))  # noqa: E731
    threading.Thread(target=press).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            package.run("multiply", "A.npy", "B.npy", out="C.npy", ranks=2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not processes() and not Path("C.npy").exists()


@pytest.mark.parametrize(("how", "callers"), [("beside", 1), ("pool", 1), ("loop", 1), ("beside", 2)])
def test_calls_from_programs_with_threads(tilewise: Tilewise, how: str, callers: int) -> None:
    """Where BLAS computes in other threads, and where the caller is itself a rank of two."""
    words = [mpiexec(), "-n", callers] if callers > 1 else []
    done = subprocess.run(
        [*map(str, words), sys.executable, CALLING, how, "2", str(tilewise.folder)],
        env=tilewise.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["2"] * callers, done.stderr


def test_nothing_is_forked(there: Tilewise) -> None:
    """A forked child of a process with threads may wait for ever for a lock that none of its own holds."""
    forks: list[int] = []
    os.register_at_fork(before=lambda: forks.append(1))
    package.run("multiply", "A.npy", "B.npy", out="C.npy", ranks=2)
    assert not forks


def test_who_is_killed_leaves_no_command(there: Tilewise, processes) -> None:
    code = "import tilewise; tilewise.run('multiply', 'A.npy', 'B.npy', out='C.npy', ranks=2)"
    caller = subprocess.Popen([sys.executable, "-c", code], env={**there.environment, "FAKE": "hang"})
    wait_for(processes)
    caller.kill()
    caller.wait()
    wait_for(lambda: not processes())
    wait_for(lambda: there.files() == {"A.npy", "B.npy", "processes.log"})


def test_studies_load_as_frames(tmp_path: Path) -> None:
    run(tmp_path / "results/s/2026", "command = 'multiply'\naxes.ranks = [1, 2]\nlaunches = 2", Runner())
    frame = package.load_study(tmp_path / "results/s")
    rows = frame if isinstance(frame, list) else frame.to_dict("records")
    assert (
        sorted((row["ranks"], row["seconds.total.max"]) for row in rows) == [(1, 12.0)] * 2 + [(2, 6.0)] * 2
    )
    with pytest.raises(UsageError, match="no results of a study"):
        package.load_study(tmp_path)
    with (tmp_path / "results/s/2026/points.jsonl").open("a") as file:
        file.write("no entry\n")
    with pytest.warns(UserWarning, match="line 5 is not an entry and was left out"):
        assert len(package.load_study(tmp_path / "results/s")) == 4


def test_studies_run(tilewise: Tilewise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tilewise.folder)
    for key, value in tilewise.environment.items():
        monkeypatch.setenv(key, value)

    def launches() -> list[dict[str, Any]]:
        frame = package.load_study(results)
        return frame if isinstance(frame, list) else frame.to_dict("records")

    results = package.run_study("quick", scale="tiny", only={"size": "64", "ranks": 1}, results="mine")
    before = len(launches())
    assert results.startswith("mine/quick/") and {(row["size"], row["ranks"]) for row in launches()} == {
        (64, 1)
    }
    plots = package.plots("mine/quick")
    assert list(plots) == ["speedup", "io"] and plots["speedup"].title == "Speedup over one rank"
    again = package.run_study("quick", scale="tiny", only={"ranks": [1]}, results="mine", resume=True)
    assert again == results and len(launches()) > before and {row["size"] for row in launches()} == {64, 128}
    with pytest.raises(UsageError, match="rank"):
        package.run_study("quick", only={"rank": 1})
    with pytest.raises(UsageError, match="no results of a study"):
        package.plots(tilewise.folder)


def test_what_no_command_is_and_where_none_can_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="expects the name of a command first, not None"):
        package.run(None)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(RunError, match="the current folder: No such file or directory"):
        package.run("generate", out=str(tmp_path / "A.npy"), shape=(2, 2))


def test_importing_it_imports_nothing() -> None:
    code = "import sys, tilewise; print([m for m in sys.modules if m.startswith(('tilewise.', 'msgspec'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        package.nonsense  # noqa: B018


def test_values_that_are_lists(there: Tilewise) -> None:
    record = package.run("multiply", "A.npy", "B.npy", out="C.npy", ranks=2, grid=(2, 1), hint=["a=1", "b=2"])
    assert record.variant.grid == (2, 1)
    assert package.run("generate", out="G.npy", shape=[5, 6]).outputs[0].shape == (5, 6)
    for flags, said in (
        (
            {"weights": [[1, 2], [3, 4]]},
            "--weights must be a file name, a word or a number, not list",
        ),
        ({"weights": [1, 2, 3]}, r"--weights takes one value, not a list: \[1, 2, 3\]"),
        ({"grid": (1, 2, 3)}, r"--grid takes one value, not a tuple: \(1, 2, 3\)"),
    ):
        with pytest.raises(UsageError, match=said):
            package.run("stencil", "A.npy", out="S.npy", **flags)


def test_a_measurement_is_shown_escaped(tilewise: Tilewise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tilewise.folder)
    found = package.run("measure", "compute", sizes=[16, 32], dtypes=["float64"], launches=1, runs=2)
    assert {line.size for line in found.lines} == {16, 32}
    found.warnings.append("<b>&")
    shown = found._repr_html_()
    assert "&lt;b&gt;&amp;" in shown and "<b>&" not in shown
    assert "<td>16²</td>" in shown and "GFLOP/s" in shown
    for tag in ("table", "tr", "td", "th", "details", "p"):
        assert shown.count(f"<{tag}>") == shown.count(f"</{tag}>") > 0
