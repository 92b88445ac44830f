"""The rank counts of reports on simulated ranks: the reports' own figures, and the study at scale tiny."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from tilewise.base import programs
from tilewise.base.errors import UsageError
from tilewise.lab.study import shipped
from tilewise.lab.study.evaluation import Evaluated, load
from tilewise.lab.study.points import combinations
from tilewise.lab.study.schema import Reference
from tilewise.lab.study.store import DONE
from tilewise.lab.study.study import read
from tilewise.launch.simulated import NAME
from tilewise.machine.cluster import parse_cluster

STUDY = "reports-simulated"
needs_simulator = pytest.mark.skipif(
    shutil.which("smpirun") is None or programs.first(programs.places(NAME)) is None,
    reason="SimGrid, or the worker for it, is not there. Try: make simulator",
)


def references(study: str) -> dict[str, Reference]:
    tables = read(shipped.path_of(study)).file.tables
    return {table.name: table.reference for table in tables if table.reference is not None}


def test_figures_of_the_reports_are_those_of_the_studies_that_repeat_them() -> None:
    """They are typed in twice; a figure says that it was measured, since ours are simulated."""
    told, svd, stencil = map(references, (STUDY, "svd-speedup", "stencil-scaling"))
    for name in ("seconds", "speedup", "efficiency"):
        assert told[name].values == svd[name].values and told[name].columns == svd[name].columns
        assert told[name].rows == svd[name].rows
    assert told["sweeping"].values == stencil["seconds"].values[1:]
    assert told["sweeping speedup"].values == stencil["speedup"].values
    assert told["sweeping efficiency"].values == stencil["efficiency"].values
    one_sweep = [1000 * seconds / 200 for (seconds,) in stencil["decomposition"].values]
    assert told["cutting"].values[0] == pytest.approx(one_sweep, rel=0.01)
    assert all("measured" in each.source for each in told.values())
    assert all("simulated" in table.title for table in read(shipped.path_of(STUDY)).file.tables)


def test_all_rank_counts_of_the_reports_have_a_core() -> None:
    runs = read(shipped.path_of(STUDY)).runs
    for run in runs:
        for axes in combinations(run):
            cluster = parse_cluster(axes["simulate"])
            assert cluster.counted and axes["ranks"] <= cluster.cores * len(cluster.hosts), (run.name, axes)
            if axes["simulate"].startswith("report-1"):  # which fills its sockets one after the other
                assert axes["ranks"] > cluster.cores * (len(cluster.hosts) - 1)
    ranks = {run.name: run.axes["ranks"] for run in runs}
    assert [*ranks["serial"], *ranks["svd"]] == references(STUDY)["seconds"].rows
    assert ranks["collected"] == [16, 32, 64] and ranks["stencil"] == [*range(1, 17)]


def test_sockets_of_the_machine_of_report_1() -> None:
    cluster = parse_cluster("report-1")
    assert len(cluster.hosts) == 4 and cluster.cores == 16
    pairs = [(one, two) for at, one in enumerate(cluster.hosts) for two in cluster.hosts[at:]]
    assert all(f'src="{one}" dst="{two}"' in cluster.xml for one, two in pairs)
    node = parse_cluster("report-1[:2]")
    assert node.hosts == cluster.hosts[:2] and node.name == "report-1[:2]" and node.xml == cluster.xml
    for none in ("report-1[:0]", "report-1[:5]"):
        with pytest.raises(UsageError, match="expected 1 to 4 hosts of report-1"):
            parse_cluster(none)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    folder = tmp_path_factory.mktemp("simulated")
    said = subprocess.run(
        [sys.executable, "-m", "tilewise", "study", "run", STUDY, "--scale", "tiny", "--into", "r", "-q"],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    return load(str(folder / "r"))


@needs_simulator
def test_every_point_of_it_is_simulated(tiny: Evaluated) -> None:
    assert all(entry.status == DONE for point in tiny.results.points for entry in point.entries)
    for point in tiny.results.points:
        (record,) = [entry.record for entry in point.entries]
        assert record is not None and record["environment"]["simulated"]["cluster"] == point.axes["simulate"]
    assert all(plot.series for plot in tiny.plots)
    figures = [cell for table in tiny.tables for line in table.cells for cell in line]
    assert figures and all(cell.value is not None for cell in figures)


@needs_simulator
def test_what_its_page_says_of_shapes_is_so_at_any_size(tiny: Evaluated) -> None:
    """Left-over columns cost much, Get takes longer than Send where little is sent, sweeps scale."""
    tables = {table.name: table for table in tiny.tables}
    by_cause = tables["causes"]
    spread, last = (by_cause.look([64, 12], way).value for way in ("columns spread", "as the report"))
    assert spread is not None and last is not None and last > 1.5 * spread
    one_over_two = tables["collected"].look([128, 16], "one/two").value
    assert one_over_two is not None and 1.2 < one_over_two < 2
    speedup = tables["sweeping speedup"].look(16, 1024).value
    assert speedup is not None and 14 < speedup < 16
    more = tables["cutting"].look([1024, 4], "columns/rows").value
    assert more is not None and more > 2
