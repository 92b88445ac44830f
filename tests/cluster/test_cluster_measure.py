"""Messages within a host and over links of 1 Gbit/s: report 1's two tables, on both MPI libraries."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import Cluster
from test_jobs import LINK, OPEN_MPI, Site, Stopwatch, two_hosts
from tilewise.launch.worker import ALGORITHMS, YIELDING

LARGE = 4 << 20
LIMIT = 60.0  # seconds of one measurement
Found = dict[str, Any]


@pytest.fixture(scope="module")
def made() -> Iterator[Cluster]:
    with two_hosts() as hosts:
        yield hosts


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def found(request: pytest.FixtureRequest, made: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What `measure ping` finds there with one pair and with three, and the seconds that it took."""
    site = Site(made, tmp_path_factory.mktemp("measured"))
    for name in (*YIELDING, *ALGORITHMS):  # the command itself sees to ranks that share cores
        del site.environment[name]
    if request.param == "openmpi":
        if not os.access(OPEN_MPI, os.X_OK) or shutil.which("mpiexec.openmpi") is None:
            pytest.skip(f"Open MPI is not installed, or there is no worker on it at {OPEN_MPI}")
        site.environment["TILEWISE_WORKER"] = str(OPEN_MPI)
    words = ["--hosts", made.hostfile(slots=3), "--levels", "core,socket,node", "--pairs", "1,3"]
    words += ["--bytes", "1,1KiB,1MiB,4MiB", "--exchange", "blocking,nonblocking", "--pattern", "roundtrip"]
    words += ["--collectives", "none", "--no-matrix", "--launches", 1, "--seconds", 0.4]
    watch = Stopwatch()
    command = [sys.executable, "-m", "tilewise", "measure", "ping", *words, "--json", "ping.json"]
    done = made.run(command, site.folder, site.environment, timeout=250)
    assert done.returncode == 0, done.stderr
    measured: Found = json.loads((site.folder / "ping.json").read_text())
    assert site.left_after(2) == []
    assert [path.name for path in site.folder.iterdir() if path.name != ".cache"] == ["ping.json"]
    return {**measured, "took": watch.stop()}


def line(found: Found, level: str, size: int, pairs: int = 1) -> Found:
    """The one line of that level, size and number of pairs."""
    chosen = [
        one
        for one in found["lines"]
        if (one["kind"], one["name"], one["level"]) == ("ping", "blocking", level)
        and (one["bytes"], one["pairs"]) == (size, pairs)
    ]
    assert len(chosen) == 1, [one["key"] for one in found["lines"]]
    assert chosen[0]["summary"], chosen[0]["skipped"]
    return chosen[0]


def seconds(found: Found, level: str, size: int, pairs: int = 1) -> float:
    """Of the fastest sample: where others want the cores, the median is how long a rank waits for one."""
    return float(line(found, level, size, pairs)["summary"]["minimum"])


def least(found: Found, level: str, pairs: int, rate: float) -> float:
    """What is to be reached at least: the rate, or a third where others kept the cores busy meanwhile."""
    labels = line(found, level, LARGE, pairs)["labels"]
    return rate / 3 if any("other programs" in label or "slowed" in label for label in labels) else rate


def test_both_tables_are_there(found: Found) -> None:
    for level in ("core", "node"):
        for pairs in (1, 3):
            for size in (1, 1024, 1 << 20, LARGE):
                assert seconds(found, level, size, pairs) > 0


def test_another_node_is_further_than_another_core(found: Found) -> None:
    """One pair, a byte there and back: 0.3 to 2 µs in shared memory, over 10 by way of the network."""
    assert seconds(found, "node", 1) > 3 * seconds(found, "core", 1)
    assert seconds(found, "node", 1) > 5e-6


def test_large_messages_get_what_the_link_carries(found: Found) -> None:
    """4 MiB there and back, one pair. TCP often leaves some of the link unused, never in all samples."""
    summary = line(found, "node", LARGE)["summary"]
    assert 2 * LARGE / summary["median"] <= LINK
    assert least(found, "node", 1, 80e6) <= 2 * LARGE / summary["minimum"] <= 1.05 * LINK
    assert 2 * LARGE / seconds(found, "core", LARGE) > least(found, "core", 1, 4 * LINK)


def test_three_pairs_share_the_link(found: Found) -> None:
    """Each pair has less than one has alone, and the model's limit for all of them is the link."""
    assert seconds(found, "node", LARGE, pairs=3) > 1.2 * seconds(found, "node", LARGE)
    assert least(found, "node", 3, 0.6 * LINK) <= found["model"]["injection"] <= 1.2 * LINK


def test_a_level_that_is_missing_is_said_to_be(found: Found) -> None:
    levels = {level["name"]: level for level in found["levels"]}
    if len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) < 2:
        assert "socket" in levels["socket"]["missing"]
        assert not [one for one in found["lines"] if one["level"] == "socket" and one["summary"]]
    assert levels["core"]["missing"] == "" and levels["node"]["missing"] == ""


def test_six_ranks_on_few_cores_are_labelled(found: Found) -> None:
    if (os.cpu_count() or 1) < 6:
        assert line(found, "core", 1, pairs=3)["labels"]


def test_it_ends_in_time(found: Found) -> None:
    assert found["took"] < LIMIT
