"""What a machine, a size or a build cannot have: said before ranks start, and no loss to the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Tilewise, one_message
from machines import FACTS
from tilewise.base.errors import UsageError
from tilewise.lab.measurement import messages, plans
from tilewise.lab.measurement.request import MeasureRequest
from tilewise.lab.measurement.result import Launch
from tilewise.launch import constants
from tilewise.launch.launcher import find_worker
from tilewise.machine.allocation import granted
from tilewise.machine.topology import Core, Topology

QUICK = ("--launches", 1, "--runs", 3)


def topology(cores: int) -> Topology:
    """Two sockets where there are 16 cores or more."""
    socket = max(cores // 2, 8)
    return Topology(
        cores=[
            Core(cpus=(number,), cache=number // socket, socket=number // socket) for number in range(cores)
        ]
    )


def planned(request: MeasureRequest, cores: int, folder: Path, **more: Any) -> list[Launch]:
    facts = msgspec.structs.replace(FACTS, cores=cores, cpus=cores)
    known, others = topology(cores), messages.Hosts(request)
    return [
        *messages.launches(request, facts, known, others, messages.levels(request, known, others)),
        *plans.file_launches(request, facts, "/x/sample", **more),
        *plans.memory_launches(request, facts),
        *plans.carriers(request, facts),
        *plans.product_launches(request, facts),
    ]


@pytest.mark.parametrize("cores", [1, 2, 3, 96, 1536])
def test_machines_of_all_sizes(tmp_path: Path, cores: int) -> None:
    for launch in planned(MeasureRequest(), cores, tmp_path):
        assert launch.threads >= max(ask.point.threads for ask in launch.asks)
        for ask in launch.asks:
            point = ask.point
            assert all(rank < launch.ranks for pair in point.pairs for rank in pair)
            if point.kind == "memory":
                assert bool(ask.skipped) == (point.bytes < 64 * point.threads)
    for level in ("core", "cache", "socket"):
        assert topology(cores).missing(level) or cores > 1


def test_small_arrays_are_not_run_and_say_why(tilewise: Tilewise) -> None:
    result = tilewise("measure", "memory", *QUICK, "--bytes", "7,8,4KiB", "-t", "1,2", "--json", "-")
    assert result.returncode == 0, result.stderr
    lines = json.loads(result.stdout)["lines"]
    assert {line["bytes"]: line["skipped"] for line in lines if line["threads"] == 1} == {
        7: "the size of an array must be a multiple of 8 bytes, not 7 bytes",
        8: "an array for 1 thread has 64 bytes or more, one cache line each",
        4096: "",
    }
    assert "memory cannot run" in one_message(tilewise("measure", "memory", "--bytes", "8"), 2)


def test_only_the_launch_that_shares_processors_is_crowded(tmp_path: Path) -> None:
    for launches in (
        plans.memory_launches(MeasureRequest(kind="memory", threads=[1, 2, 5]), FACTS),
        plans.product_launches(MeasureRequest(kind="compute", threads=[1, 2, 5]), FACTS),
    ):
        assert [(one.oversubscribed, {ask.point.threads for ask in one.asks}) for one in launches] == [
            (False, {1, 2}),
            (True, {5}),
        ]


def test_collectives_name_the_greatest_distance_among_their_ranks(tmp_path: Path) -> None:
    for cores, level in ((2, "core"), (32, "socket")):
        found = [one for one in planned(MeasureRequest(), cores, tmp_path) if one.kind == "collective"]
        assert [(one.level, one.cpus) for one in found] == [(level, list(range(cores)))]
    with pytest.raises(UsageError, match="--ranks 1"):
        planned(MeasureRequest(kind="ping", ranks=[1]), 2, tmp_path)


def test_hosts_have_a_table_of_pairs(tmp_path: Path) -> None:
    (tmp_path / "three").write_text("a\nb\nc\n")
    request = MeasureRequest(kind="ping", hosts=str(tmp_path / "three"), levels=["node"])
    (found,) = [one for one in planned(request, 2, tmp_path) if one.kind == "matrix"]
    assert (found.ranks, found.names, found.place) == (3, ["a", "b", "c"], "node")
    assert {ask.point.pairs[0] for ask in found.asks} == {(0, 1), (0, 2), (1, 2)}
    assert found.hosts == {"a": 0, "b": 0, "c": 0}


def test_hosts_that_slurm_grants() -> None:
    one, two = (granted({"SLURM_JOB_NODELIST": names}, "n1") for names in ("n1", "n[1-2]"))
    assert messages.Hosts(MeasureRequest(), two).missing() == ""
    assert messages.Hosts(MeasureRequest(), two).first(1) == {"n1": 0}
    assert messages.Hosts(MeasureRequest(), one).missing() == "Slurm grants one host, n1"
    assert "--hosts FILE" in messages.Hosts(MeasureRequest()).missing()


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (constants.Devices(trouble="no driver"), "no driver"),
        (constants.Devices(driver="13.0", devices=[constants.GraphicsDevice(name="one")]), ""),
    ],
)
def test_buffers_without_a_graphics_processor_are_not_run(
    tmp_path: Path, found: constants.Devices, said: str
) -> None:
    why = constants.no_graphics(found)
    assert said in why and bool(said) == bool(why)
    request = MeasureRequest(kind="file", buffers=["malloc", "pinned", "managed"])
    for launch in plans.file_launches(request, FACTS, "/x/s", why):
        for ask in launch.asks:
            assert bool(ask.skipped) == (bool(why) and ask.point.buffer != "malloc")


def test_graphics_processors_that_are_not_there(tilewise: Tilewise) -> None:
    if not constants.no_graphics(constants.devices(find_worker().path)):
        pytest.skip("there is a graphics processor")
    words = (
        "measure",
        "file",
        *QUICK,
        "--io",
        "positioned",
        "-n",
        1,
        "--block",
        "4KiB,8KiB",
        "--blocks-per-rank",
        2,
    )
    assert "file cannot run: device buffers" in one_message(tilewise(*words, "--buffer", "device"), 2)
    both = tilewise(*words, "--buffer", "malloc,device")
    assert both.returncode == 0 and "not run" in both.stdout and "device buffers" in both.stdout


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        ({}, True),
        ({"folder": "/tmp"}, True),
        ({"launches": 9, "interval": 0.01, "seconds": 2.0}, True),
        ({"interval": 0.9}, False),
        ({"seconds": 0.001}, False),
        ({"runs": 5}, False),
        ({"shift": 0}, False),
        ({"check": "content"}, False),
        ({"launcher": "srun"}, False),
        ({"launches": 1}, False),
        ({"seconds": 0.001, "store": True}, True),
        ({"no_store": True}, False),
    ],
)
def test_what_becomes_the_profile_by_itself(flags: dict[str, Any], kept: bool) -> None:
    assert MeasureRequest(**flags).stored == kept
