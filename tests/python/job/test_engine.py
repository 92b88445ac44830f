"""The engine by itself: a request in, a record out, nothing printed; what it raises, hears and leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
from conftest import Tilewise
from oracle import matrix
from tilewise import engine
from tilewise.base.errors import Interrupted, UsageError, VerificationError
from tilewise.engine import session
from tilewise.engine.job_output import JobOutput
from tilewise.engine.prepare import prepare
from tilewise.engine.request import Listener, Request
from tilewise.launch.join import Join
from tilewise.launch.record import encode
from tilewise.operations.convert import Convert
from tilewise.operations.generate import Generate
from tilewise.operations.multiply.options import Multiply
from tilewise.operations.operation import Operation
from tilewise.operations.stencil.options import Stencil
from tilewise.operations.svd.options import Svd
from tilewise.operations.transpose.options import Transpose
from tilewise.planning.plan import Plan

PRODUCT = Multiply(a="A.npy", b="B.npy", output="C.npy")


@pytest.fixture
def inputs(tilewise: Tilewise, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with A.npy (31×17) and B.npy (17×23), with the real worker; we are in it."""
    for key in set(os.environ) - set(tilewise.environment):
        monkeypatch.delenv(key)
    monkeypatch.setenv("XDG_CACHE_HOME", tilewise.environment["XDG_CACHE_HOME"])
    monkeypatch.chdir(tilewise.folder)
    numpy.save("A.npy", matrix((31, 17), seed=1))
    numpy.save("B.npy", matrix((17, 23), seed=2))
    return tilewise.folder


def product(how: dict[str, Any] = {}, **more: Any) -> Request:  # noqa: B006 - never changed
    return Request(operation=msgspec.structs.replace(PRODUCT, **how), **more)


class Heard(Listener):
    """Keeps the order of what it hears."""

    progress = True

    def __init__(self) -> None:
        self.events: list[str] = []

    def starting(self, command: str) -> None:
        self.events.append(f"starting {command}")

    def running(self) -> None:
        self.events.append("running")

    def update(self, phase: str, done: float) -> None:
        self.events.append(phase)


def test_a_request_becomes_a_record_and_nothing_is_printed(
    inputs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    heard = Heard()
    record = engine.run(product({"ranks": 2, "sync": True}, record="r.json"), heard)
    assert numpy.allclose(numpy.load("C.npy"), numpy.load("A.npy") @ numpy.load("B.npy"), rtol=0, atol=1e-12)
    assert record.variant.ranks == 2 and record.verification is not None and record.verification.passed
    assert Path("r.json").read_bytes() == encode(record)
    assert heard.events[0].startswith("starting ") and "running" in heard.events
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "operation",
    [
        Transpose(a="A.npy", output="D.npy"),
        Convert(a="A.npy", output="D.npy", dtype="float32"),
        Generate(output="D.npy", shape=(3, 4)),
        Stencil(a="A.npy", output="D.npy", steps=3),
        Svd(a="A.npy", output="D"),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_every_operation_is_a_value(inputs: Path, operation: Operation) -> None:
    assert msgspec.structs.replace(operation) == operation
    record = engine.run(Request(operation=operation))
    assert os.path.exists(operation.output)
    assert record.outputs[0].path.startswith(os.path.realpath(operation.output))


def test_what_is_refused_changes_nothing(inputs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = sorted(os.listdir())
    with pytest.raises(UsageError, match="17 columns meet 31 rows"):
        engine.run(Request(operation=Multiply(a="A.npy", b="A.npy", output="C.npy")))
    with pytest.raises(UsageError, match="--overflow 'sometimes' is unknown"):
        product({"overflow": "sometimes"})
    with pytest.raises(UsageError, match="--steps -1"):
        Request(operation=Stencil(a="A.npy", output="C.npy", steps=-1))
    assert sorted(os.listdir()) == before
    assert capfd.readouterr() == ("", "")


def test_a_failed_proof_is_raised_with_its_record(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWISE_FAULT", "element")
    with pytest.raises(VerificationError, match="discarded") as raised:
        engine.run(product({"verify": "fast"}, record="r.json"))
    assert raised.value.record.verification.passed is False
    assert msgspec.json.decode(Path("r.json").read_bytes())["verification"]["passed"] is False
    assert not os.path.exists("C.npy")


def test_a_plan_is_what_it_was_after_the_job(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[Plan] = []

    class Written(Listener):
        def running(self) -> None:  # an input that changes adds a warning: to the record, not to the plan
            numpy.save("A.npy", matrix((31, 17), seed=3))

    def keeping(request: Request, joined: Join | None) -> JobOutput:
        output = prepare(request, joined)
        planned.append(output.plan)
        before.append(list(output.plan.warnings))
        return output

    before: list[list[str]] = []
    monkeypatch.setattr(session, "prepare", keeping)
    record = engine.run(product({"verify": "off"}), Written())
    assert any("written to while it was read" in warning for warning in record.warnings)
    assert planned[0].warnings == before[0]


def test_seconds_count_from_the_request(inputs: Path) -> None:
    engine.run(product())
    time.sleep(0.5)
    begin = time.perf_counter()
    record = engine.run(product(force=True))
    assert record.seconds.total.max <= record.seconds.wall <= time.perf_counter() - begin


def test_a_thread_may_run_a_job(inputs: Path) -> None:
    walls: list[float] = []
    thread = threading.Thread(target=lambda: walls.append(engine.run(product()).seconds.wall))
    thread.start()
    thread.join(120)
    assert walls and os.path.exists("C.npy")


def test_an_interrupt_is_raised_and_signals_are_as_before(inputs: Path) -> None:
    class Impatient(Listener):
        def running(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted, match="all ranks were ended"):
        engine.run(product({"ranks": 2}), Impatient())
    assert signal.getsignal(signal.SIGINT) is before
    assert {*os.listdir()} - {".cache"} == {"A.npy", "B.npy"}


def test_importing_the_engine_takes_nothing_of_command_line_and_laboratory() -> None:
    code = (
        "import sys; from tilewise.engine import session; "
        "print([each for each in sys.modules if each.startswith(('tilewise.cli', 'tilewise.lab', 'rich'))])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
