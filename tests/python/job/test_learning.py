"""What jobs teach: a machine is measured once, before a long job, and undisturbed runs correct the rest."""

from __future__ import annotations

import os
from pathlib import Path

import numpy
import pytest
from conftest import InProcess
from tilewise.engine import learning, session
from tilewise.machine import profile
from tilewise.machine.disturbance import Disturbance, Watch
from tilewise.machine.terms import Term

JOB = ("multiply", "A.npy", "A.npy", "-o", "C.npy", "--force")


@pytest.fixture
def quiet(inside: InProcess, monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """Runs commands as on a machine that nothing else uses."""

    class Quiet(Watch):
        def seen(self, *, launch: int, what: str, **_: object) -> Disturbance:  # type: ignore[override]
            return Disturbance(launch=launch, what=what, seconds=1.0)

    monkeypatch.setattr(session, "Watch", Quiet)
    monkeypatch.delenv("TILEWISE_NO_LEARN")
    numpy.save("A.npy", numpy.random.default_rng(1).random((700, 700)))
    return inside


def _terms() -> dict[str, Term]:
    stored = profile.load().terms
    return next(iter(stored.values()), {})


def test_a_run_teaches(quiet: InProcess) -> None:
    assert quiet(*JOB, "-q").returncode == 0
    taught = _terms()
    assert taught["start"].runs == 1 and taught["start"].source == "learned from 1 run"
    assert quiet(*JOB, "-q").returncode == 0
    assert _terms()["start"].runs == 2


@pytest.mark.parametrize("words", [("--no-learn",), ("-n", 64, "-t", 1), ("--kernel", "plain")])
def test_a_run_that_teaches_nothing(quiet: InProcess, words: tuple[object, ...]) -> None:
    assert quiet(*JOB, "-q", *words).returncode == 0
    assert _terms() == {}


def test_a_run_whose_course_depends_on_its_numbers_teaches_nothing(quiet: InProcess) -> None:
    assert quiet("stencil", "A.npy", "-o", "S.npy", "--steps", 99, "--until-change", 1, "-q").returncode == 0
    assert _terms() == {}


@pytest.mark.parametrize("algorithm", ["two_stage", "local", "jacobi", "serial"])
def test_a_decomposition_teaches_of_its_algorithm(quiet: InProcess, algorithm: str) -> None:
    """What products and memory do it leaves alone; sweeps are those that it took."""
    numpy.save("A.npy", numpy.random.default_rng(1).random((400, 200)))
    assert quiet("svd", "A.npy", "-o", "factors", "-q", "--algorithm", algorithm).returncode == 0
    assert not {"gemm/float64", "lapack"} & set(_terms())
    (habits,) = profile.load().habits.values()
    assert habits[f"svd/{algorithm}/float64/compute"].runs == 1


def test_a_decomposition_that_another_algorithm_took_over_teaches_nothing(quiet: InProcess) -> None:
    """By LAPACK this one would lose its small singular values, and sweeps take over."""
    left, _ = numpy.linalg.qr(numpy.random.default_rng(1).random((300, 300)))
    numpy.save("A.npy", left * numpy.logspace(0, -250, 300))
    assert quiet("svd", "A.npy", "-o", "factors", "-q").returncode == 0
    assert _terms() == {}


def test_repetitions_are_no_start(quiet: InProcess) -> None:
    assert quiet(*JOB, "-q", "--repeat", 3).returncode == 0
    assert "start" not in _terms()


def test_a_disturbed_run_teaches_nothing(quiet: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Disturbance, "words", lambda self: ["busy"])
    assert quiet(*JOB, "-q").returncode == 0
    assert _terms() == {}


def test_a_machine_is_measured_once(quiet: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "LONG", 0.0)
    said = quiet(*JOB)
    assert said.returncode == 0 and "measured this machine, once, in" in said.stderr
    found = _terms()
    assert {"copy", "read", "write", "gemm/float64", "gemm/float32"} <= set(found)
    assert all(term.source == "measured" or term.runs for term in found.values())
    assert not [name for name in os.listdir() if name.startswith(".tilewise-measure")]
    again = quiet(*JOB)
    assert again.returncode == 0 and "measured" not in again.stderr


@pytest.mark.parametrize("words", [("--time-limit", "1h", "--memory", "45MiB"), ("--timeout", 100)])
def test_where_time_is_counted_nothing_is_measured(
    quiet: InProcess, monkeypatch: pytest.MonkeyPatch, words: tuple[object, ...]
) -> None:
    monkeypatch.setattr(learning, "LONG", 0.0)
    said = quiet(*JOB, *words)
    assert "measured this machine" not in said.stderr


def test_a_variable_keeps_runs_from_teaching(quiet: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWISE_NO_LEARN", "1")
    monkeypatch.setattr(learning, "LONG", 0.0)
    assert quiet(*JOB).returncode == 0
    assert _terms() == {}


def test_a_measurement_that_fails_does_not_fail_the_job(
    quiet: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "LONG", 0.0)
    monkeypatch.setattr(learning, "LIMIT", 1e-3)
    ended = quiet(*JOB)
    assert ended.returncode == 0 and "this machine was not measured, so its speed is assumed" in ended.stderr
    assert numpy.load(Path("C.npy")).shape == (700, 700)
