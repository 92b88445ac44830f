"""The five reports' studies, as they ship: each runs at its tiny scale, and its claims are judged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import studies
from tilewise.base.errors import UsageError
from tilewise.lab.study import shipped
from tilewise.lab.study.claims import FAILS, UNDECIDED, UNTESTABLE, VERDICTS
from tilewise.lab.study.evaluation import load
from tilewise.lab.study.store import DONE
from tilewise.lab.study.study import read
from tilewise.lab.study.tables import derive_reference
from tilewise.launch import worker

REPORTS = (
    "cannon-io",
    "file-bandwidth",
    "io-strategies",
    "ping-levels",
    "stencil-scaling",
    "svd-speedup",
    "transpose-one-two-sided",
)
NO_FIGURES = ("io-strategies", "transpose-one-two-sided")  # of their sources that could stand beside ours
# Claims that the reports' own numbers refute, with the figure that these give.
REFUTED = {
    "cannon-io": {"own table 2, that is 0.05 %": 5.48, "own table 4, that is 2.58 %": 3.68},
    "file-bandwidth": {"The report's own table 1 has 21 as its largest ratio": 78.8},
    "svd-speedup": {"left-over columns explain the slow points no better than the network": 5.54},
    "stencil-scaling": {"its 0.053 s at 4096×4096 fit its 1.95 s": 9.65, "left-over columns can make": 0.875},
}


def raw(name: str) -> dict[str, Any]:
    return msgspec.toml.decode(Path(shipped.path_of(name)).read_bytes(), type=dict)


def test_the_five_reports_ship() -> None:
    assert set(REPORTS) <= set(shipped.names())


@pytest.mark.parametrize("name", REPORTS)
def test_each_has_what_its_report_has(name: str) -> None:
    study = raw(name)
    assert {"tiny", "report"} <= set(study["scales"]) and study["source"]
    assert any(table.get("reference") for table in study["tables"]) or name in NO_FIGURES
    assert len(study["plots"]) >= 2 and len(study["claims"]) >= 10
    for claim in study["claims"]:
        assert len(claim["text"]) < 120 and ("figure" in claim or "untestable" in claim), claim["text"]


@pytest.mark.parametrize("name", REPORTS)
def test_references_are_whole(name: str) -> None:
    for table in read(shipped.path_of(name)).file.tables:
        if reference := table.reference:
            assert len(reference.values) == len(reference.rows), table.name
            assert {len(row) for row in reference.values} == {len(reference.columns)}, table.name
    for plot in raw(name)["plots"]:
        for curve in plot.get("references", []):
            assert len(curve["x"]) == len(curve["y"]), plot["name"]


def test_the_full_lists_of_the_reports() -> None:
    def axes(name: str) -> dict[str, Any]:
        return dict(raw(name)["scales"]["report"]["axes"])

    assert axes("svd-speedup") == {
        "size": [256, 512, 768, 1024, 1536],
        "ranks": [1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64],
    }
    assert axes("file-bandwidth")["ranks"] == [2, 4, 8, 16, 32, 64]
    assert raw("file-bandwidth")["scales"]["report"]["flags"]["block"].count(",") == 7
    assert axes("stencil-scaling") == {"size": [1024, 4096, 8000], "ranks": list(range(1, 17))}
    assert {8, 128} <= set(axes("transpose-one-two-sided")["size"])
    assert {16, 32, 64} <= set(axes("transpose-one-two-sided")["ranks"])
    for run in raw("transpose-one-two-sided")["runs"][:2]:  # whatever the cores, at every scale
        assert {16, 64} <= set(run["axes"]["ranks"]) and not any("cores" in each for each in run["limits"])
    assert raw("cannon-io")["runs"][0]["axes"]["size"] == [64, 128, 256, 512, 1024, 2048, 4096]
    assert axes("cannon-io")["ranks"] == [1, 4, 16, 64]


def test_bandwidths_of_report_4_fit_their_seconds() -> None:
    """The constants are typed in: bytes over seconds must give the bandwidths that stand beside them."""
    tables = [table for table in read(shipped.path_of("file-bandwidth")).file.tables if table.reference]
    assert [table.name for table in tables] == ["malloc", "managed"]
    for table in tables:
        assert table.reference is not None and len(table.reference.rows) == 48
        shown = derive_reference(table.reference, table.rows, table.also)
        assert shown.columns == ["write time", "read time", "write", "read", "read/write"]
        for (ranks, block), row in zip(shown.rows, shown.values, strict=True):
            write, reading, write_rate, read_rate, ratio = row
            amount = 64 * ranks * block / 1e9
            assert amount / write == pytest.approx(write_rate, rel=0.01, abs=0.001)
            assert amount / reading == pytest.approx(read_rate, rel=0.01, abs=0.001)
            assert read_rate / write_rate == pytest.approx(ratio, rel=0.01)


@pytest.mark.skipif(worker.find() is None, reason="needs the worker")
@pytest.mark.parametrize("name", REPORTS)
def test_runs_at_its_tiny_scale(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    words = ["study", "run", name, "--scale", "tiny", "--into", str(folder), "-q"]
    said = subprocess.run(
        [sys.executable, "-m", "tilewise", *words],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    found = load(str(folder))
    assert all(entry.status == DONE for point in found.results.points for entry in point.entries), [
        point.reason for point in found.results.points
    ]
    figures = [cell for table in found.tables for row in table.cells for cell in row]
    assert sum(cell.value is not None for cell in figures) >= 8
    verdicts = {verdict.verdict for verdict in found.verdicts}
    assert verdicts <= set(VERDICTS) and len(found.verdicts) == len(raw(name)["claims"])
    for verdict in found.verdicts:
        assert verdict.verdict not in (UNDECIDED, UNTESTABLE) or verdict.reason
    for text, figure in REFUTED.get(name, {}).items():
        (one,) = [each for each in found.verdicts if text in each.claim.text]
        assert one.own and one.verdict == FAILS and one.figure == pytest.approx(figure, rel=0.02)
    assert any(plot.series for plot in found.plots)
    assert not re.search(r"cannot be computed", said.stderr)


def test_axes_that_go_together_may_repeat_values_but_not_rows() -> None:
    head = 'command = "multiply"\nwords = ["a{way}", "b"]\nzip = [["way", "io"]]\n'
    made = studies.points(head + 'axes.way = ["x", "y"]\naxes.io = ["root", "root"]')
    assert [point.axes for point in made] == [{"way": "x", "io": "root"}, {"way": "y", "io": "root"}]
    with pytest.raises(UsageError, match="the axis 'way' has a value twice"):
        studies.points(head + 'axes.way = ["x", "x"]\naxes.io = ["root", "root"]')


def test_points_for_a_graphics_processor_are_out_of_reach_without_one() -> None:
    text = 'command = "multiply"\nwords = ["a", "b"]\naxes.ranks = [1]\nlimits = ["gpus >= 1"]'
    assert studies.points(text)[0].reason == "needs 1 device; there is no device here"
    assert studies.points(text, gpus=2)[0].reason == ""
