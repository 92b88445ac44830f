"""What of a measurement becomes the profile, where the machine was disturbed."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import FACTS
from test_measure_points import line, measurement
from tilewise.lab.measurement import stored
from tilewise.lab.measurement.fit import DISTURBED
from tilewise.lab.measurement.result import Measurement
from tilewise.machine import profile
from tilewise.operations.prediction import machine_name


def test_a_disturbed_figure_never_replaces_a_quiet_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fills an empty place, marked so, until a quiet one comes, be that lower; the highest peak stays."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    busy = ["other programs busy (0.9 cores)"]

    def told(factor: float, *disturbed: str) -> Measurement:
        """A copy and a product; those of the kinds `disturbed` are marked."""
        found = [
            line("memory", "copy", factor * 1e9, bytes=64, threads=1),
            line("compute", "gemm", factor * 1e9, dtype="float64", threads=1, size=64),
        ]
        for one in found:
            one.labels = busy if one.kind in disturbed else []
        return measurement(["memory", "compute"], found)

    both = ("memory", "compute")
    for what, copy, product, marked, said in (
        (told(2, *both), 2, 2, 2, 0),
        (told(3, *both), 3, 3, 2, 0),
        (told(1), 1, 1, 0, 0),
        (told(4), 4, 4, 0, 0),
        (told(3.5, *both), 4, 4, 0, 2),
        (told(5, "memory"), 4, 5, 0, 1),
        (told(6), 6, 6, 0, 0),
    ):
        stored.keep(what, FACTS)
        (terms,) = profile.load().terms.values()
        assert (terms["copy"].rate, terms["gemm/float64"].rate) == (copy * 1e9, product * 1e9)
        assert [term.error for term in terms.values()].count(DISTURBED) == marked
        assert len(what.warnings) == bool(said)
        if said:
            assert (
                f"{said} figure{'s' * (said > 1)} measured on a disturbed machine are not" in what.warnings[0]
            )


def test_what_an_older_version_measured_is_measured_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "tilewise").mkdir()
    (tmp_path / "tilewise/profile.json").write_text(
        '{"version": 1, "measured": {"h|c": {"model": {"costs": [], "copy_rate": 4.0}, "times": {}}},'
        ' "terms": {"h|c|b": {"copy": {"rate": 15e9, "runs": 3}}}}'
    )
    assert profile.load() == profile.Profile()
    stored.keep(measurement(["memory"], [line("memory", "copy", 9, bytes=64)]), FACTS)
    assert profile.load().version == 2 and set(profile.load().terms) == {machine_name(FACTS)}
