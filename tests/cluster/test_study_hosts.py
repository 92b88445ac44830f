"""The stencil's study over two hosts: its points for several hosts run there, and its claims have figures."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster
from test_jobs import Site, two_hosts
from tilewise.lab.study import evaluation, shipped
from tilewise.lab.study.store import DONE


@pytest.fixture(scope="module")
def made() -> Iterator[Cluster]:
    with two_hosts() as hosts:
        yield hosts


def test_neighbours_on_one_host_and_on_two(made: Cluster, tmp_path: Path) -> None:
    site = Site(made, tmp_path)
    shutil.copy(site.hosts, tmp_path / "hosts.txt")
    text = Path(shipped.path_of("stencil-scaling")).read_text(encoding="utf-8")
    name = '[[runs]]\nname = "hosts"\n'
    assert text.count(name) == 1
    (tmp_path / "mine.toml").write_text(text.replace(name, name + 'launcher.hosts = "hosts.txt"\n'))
    words = ["study", "run", "mine.toml", "--scale", "tiny", "--only", "run=hosts", "--into", "found", "-q"]
    command = site.words(*words)[: 3 + len(words)]
    done = made.run(command, site.folder, site.environment, timeout=250)
    assert done.returncode == 0, done.stderr
    found = evaluation.load(str(tmp_path / "found"))
    points = [point for point in found.results.points if point.run == "hosts"]
    assert points and all(entry.status == DONE for point in points for entry in point.entries)
    for point in points:
        (record,) = [entry.record for entry in point.entries]
        assert record is not None
        hosts = [each["host"] for each in record["placement"]]
        half = point.axes["ranks"] // 2
        near = ["node1"] * half + ["node2"] * half
        assert hosts == (near if point.axes["place"] == "core" else ["node1", "node2"] * half)
    (table,) = [table for table in found.tables if table.name == "hosts"]
    assert all(cell.value is not None for row in table.cells[1:] for cell in row)
    (claim,) = [each for each in found.verdicts if each.claim.text.startswith("Numbering ranks")]
    assert claim.figure is not None and claim.figure > 0
    (moved,) = [table for table in found.tables if table.name == "moved"]
    (claim,) = [each for each in found.verdicts if each.claim.text.startswith("On several hosts, MPI's own")]
    if moved.look(["hosts", 4], "moved").value == 0:
        assert claim.verdict == "untestable" and "an MPI library that moves ranks over hosts" in claim.reason
    else:
        assert claim.figure is not None
