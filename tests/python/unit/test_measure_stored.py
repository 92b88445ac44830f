"""What of a measurement becomes the profile, where the machine was disturbed."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import FACTS
from test_measure_points import line, measurement
from tilewise.lab.measurement import stored
from tilewise.lab.measurement.fit import DISTURBED, fit
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
        """Messages in two ways, a copy and a product; those of the names or kinds `disturbed` are marked."""
        found = [
            *(line("ping", name, factor, level="core", bytes=size) for name in "ab" for size in (8, 16)),
            line("memory", "copy", factor, bytes=64),
            line("compute", "gemm", factor * 1e9, dtype="float64", threads=2, size=64),
        ]
        for one in found:
            one.labels = busy if {one.name, one.kind} & set(disturbed) else []
        return measurement(["ping", "memory", "compute"], found, fit(found))

    disturbed = {"ping/core/a", "copy_rate", "compute"}
    for what, copy, reached, marks, said in (
        (told(2, "a", "memory", "compute"), 2, 2, disturbed, 0),
        (told(3, "a", "memory", "compute"), 3, 3, disturbed, 0),
        (told(1), 1, 1, set(), 0),
        (told(4), 4, 4, set(), 0),
        (told(3.5, "ping", "memory", "compute"), 4, 4, set(), 4),
        (told(5, "ping", "memory", "compute"), 4, 4, set(), 4),
        (told(6), 6, 6, set(), 0),
    ):
        stored.keep(what, FACTS)
        found = profile.load()
        model = found.measured["h|c"].model
        (products,) = [found.terms[key]["gemm/float64"] for key in found.terms]
        assert {*model.labels, *({"compute"} if products.error == DISTURBED else ())} == marks
        assert (model.copy_rate, products.rate) == (copy, reached * 1e9 / 2)
        assert [one.key for one in model.costs] == ["ping/core/a", "ping/core/b"]
        assert len(what.warnings) == bool(said)
        if said:
            assert f"{said} figures measured on a disturbed machine are not stored" in what.warnings[0]


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
    stored.keep(measurement(["memory"], [copy := line("memory", "copy", 9, bytes=64)], fit([copy])), FACTS)
    assert profile.load().version == 2 and set(profile.load().terms) == {machine_name(FACTS)}
