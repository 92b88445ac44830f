"""Whether MPI takes addresses on a device: what is made of how the trial ends."""

from __future__ import annotations

import resource
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from tilewise.base.errors import RunError
from tilewise.cli.doctor import module_version
from tilewise.lab.measurement import device_trial
from tilewise.lab.measurement.result import Launch, PlannedPoint
from tilewise.lab.measurement.run import FoundPoint
from tilewise.launch.job import Point
from tilewise.launch.signals import Signals

CAUGHT = cast(Signals, None)


def launch(*buffers: str, skipped: str = "") -> Launch:
    asks = [
        PlannedPoint(point=Point(kind="ping", name="blocking", buffer=each, gpus=2), skipped=skipped)
        for each in buffers
    ]
    return msgspec.structs.replace(device_trial.here(), ranks=6, cpus=[3, 1, 2, 0, 4, 5], asks=asks)


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    """Trials that were made, of which those from device memory die."""
    made: list[Launch] = []

    class Trial:
        def __init__(self, launches: list[Launch], *_: object, **__: object) -> None:
            made.extend(launches)

        def run(self) -> Any:
            assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
            if made[-1].asks[0].point.buffer == "device":
                raise RunError("rank 0 was killed")
            return SimpleNamespace(
                last=SimpleNamespace(told=SimpleNamespace(points=[FoundPoint(), FoundPoint()]))
            )

    monkeypatch.setattr(device_trial, "Runner", Trial)
    return made


def test_what_dies_is_staged_and_what_arrives_goes_straight(trials: list[Launch]) -> None:
    limit = resource.getrlimit(resource.RLIMIT_CORE)
    asked = [launch("", "managed", "device", "managed"), launch("managed")]
    made, said = device_trial.resolved(asked, "", CAUGHT)
    assert [ask.point.direct for ask in made[0].asks] == [False, True, False, True]
    assert made[1].asks[0].point.direct  # without another trial
    assert len(said) == 1 and "from device memory" in said[0] and said[0].endswith("rank 0 was killed")
    assert [(one.ranks, one.cpus) for one in trials] == [(2, [3, 1])] * 2
    assert all(ask.point.direct and ask.point.gpus == 2 for one in trials for ask in one.asks)
    assert resource.getrlimit(resource.RLIMIT_CORE) == limit


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5", "driver 550.54.15, "),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release", "driver 570.86.15, "),
        ("something else", ""),
    ],
)
def test_the_version_of_the_driver_is_the_modules(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "version").write_text(text)
    assert module_version(str(tmp_path / "version")) == said
    assert module_version(str(tmp_path / "none")) == ""


def test_nothing_is_tried_for_what_is_not_run_or_on_the_host(trials: list[Launch]) -> None:
    file = PlannedPoint(point=Point(kind="file", name="positioned", buffer="device"))
    none = [
        launch("", "pinned"),
        launch("device", skipped="no graphics processor"),
        msgspec.structs.replace(launch(), kind="file", asks=[file]),
    ]
    assert device_trial.resolved(none, "", CAUGHT) == (none, [])
    assert not trials
