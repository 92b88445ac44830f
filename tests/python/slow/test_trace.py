"""The timeline of `--trace`: well-formed for Perfetto, with a line for each message that the record counts.

On both MPIs: that the worker's functions stand in for MPI's own is the linker's and the library's doing.
"""

from __future__ import annotations

import collections
import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Tilewise, environment
from oracle import record_of
from test_openmpi import WORKER as OPEN_MPI_WORKER

CATEGORIES = {"job", "input", "compute", "exchange", "output", "verify", "mpi", "collective", "message"}
PRODUCT = ("multiply", "random:40x30:float64", "random:30x50:float64", "-o", "C.npy", "-n", 4)
TURNED = ("transpose", "random:41x40:float64", "-o", "C.npy", "-n", 4, "--algorithm", "swap")
STENCIL = ("stencil", "random:40x30:float64", "-o", "C.npy", "-n", 4, "--steps", 5, "--depth", 1)
VALUES = ("svd", "random:40x24:float64", "-o", "S", "-n", 4, "--algorithm", "jacobi")
ONE_SIDED = ("one_sided_fence", "one_sided_pscw", "one_sided_lock")
CASES = [
    *[
        (*PRODUCT, "--algorithm", "cannon", "--exchange", exchange)
        for exchange in ("blocking", "synchronous", "nonblocking", "overlap", "persistent", *ONE_SIDED[::2])
    ],
    (*PRODUCT, "--algorithm", "summa", "--exchange", "nonblocking"),
    *[(*TURNED, "--exchange", exchange) for exchange in ("blocking", "nonblocking", *ONE_SIDED)],
    *[
        (*STENCIL, "--decomposition", "rows", "--exchange", exchange)
        for exchange in ("blocking", "nonblocking", "overlap", "persistent", *ONE_SIDED)
    ],
]


@pytest.fixture(params=["default", "open_mpi"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Tilewise:
    """The command with the default worker, and with the one on Open MPI where it was built."""
    if request.param == "default":
        command: Tilewise = request.getfixturevalue("tilewise")
        return command
    if not os.access(OPEN_MPI_WORKER, os.X_OK) or shutil.which("mpiexec.openmpi") is None:
        pytest.skip(f"there is no worker on Open MPI at {OPEN_MPI_WORKER}")
    return Tilewise(tmp_path, environment(tmp_path, TILEWISE_WORKER=str(OPEN_MPI_WORKER)))


def traced(run: Tilewise, *words: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record and the timeline of a job, which is checked to be well-formed."""
    files = ("--io", "positioned") if words[0] != "svd" else ()
    how = ("--verify", "off", "--json", "-", "--trace", "t.json", "--force")
    record = record_of(run(*words, *files, *how))
    timeline = json.loads((run.folder / "t.json").read_text())
    check(timeline, record["variant"]["ranks"])
    return record, timeline


def check(timeline: dict[str, Any], ranks: int) -> None:
    """What Chrome's format asks of events, and that slices lie within one another."""
    begun, ended, arrivals = {}, {}, set()
    slices = collections.defaultdict(list)
    for event in timeline["traceEvents"]:
        assert event["ph"] in ("M", "X", "s", "f") and isinstance(event["name"], str)
        assert event["pid"] in range(ranks) and event["tid"] == 0
        if event["ph"] == "M":
            continue
        assert event["ts"] >= 0 and event["cat"]
        if event["ph"] == "X":
            assert event["dur"] >= 0 and event["cat"] in CATEGORIES
            slices[event["pid"]].append((event["ts"], -event["dur"]))
            if event["cat"] == "message":
                arrivals.add((event["name"], event["pid"], event["ts"], str(event["args"])))
        else:
            ends = begun if event["ph"] == "s" else ended
            assert event["id"] not in ends
            ends[event["id"]] = event
    assert begun.keys() == ended.keys()
    for one, left in begun.items():
        arrived = ended[one]
        assert arrived["ts"] >= left["ts"] and arrived["pid"] != left["pid"]
        assert left["args"]["bytes"] >= 0 and "tag" in left["args"] and arrived["bp"] == "e"
        # Perfetto draws a line from the slice that began first: the later end needs one that begins there.
        words = (f"from rank {left['pid']}", arrived["pid"], arrived["ts"], str(left["args"]))
        assert words in arrivals
        for event in (left, arrived):  # each in a slice, else it is not drawn
            assert any(at <= event["ts"] <= at - long for at, long in slices[event["pid"]])
    for mine in slices.values():
        open_ones: list[float] = []
        for at, long in sorted(mine):
            while open_ones and open_ones[-1] <= at + 0.002:  # two roundings to a nanosecond
                open_ones.pop()
            assert not open_ones or at - long <= open_ones[-1] + 0.002
            open_ones.append(at - long)
    about = timeline["otherData"]
    assert about["messages"] == len(begun) and about["dropped"] == about["unmatched"] == 0


def messages(timeline: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in timeline["traceEvents"] if event["ph"] == "s"]


def calls(timeline: dict[str, Any], category: str) -> collections.Counter[str]:
    return collections.Counter(
        event["name"] for event in timeline["traceEvents"] if event.get("cat") == category
    )


@pytest.mark.parametrize("words", CASES, ids=lambda words: " ".join(map(str, words[4:])))
def test_a_line_for_each_message(run: Tilewise, words: tuple[object, ...]) -> None:
    record, timeline = traced(run, *words)
    assert len(messages(timeline)) == record["messages"] > 0
    assert sum(event["args"]["bytes"] for event in messages(timeline)) == record["bytes"]["exchanged"]
    one_sided = "one_sided" in str(words[-1])
    assert all((event["args"]["tag"] is None) == one_sided for event in messages(timeline))


def test_who_sent_what_to_whom(run: Tilewise) -> None:
    _, timeline = traced(run, *STENCIL, "--decomposition", "rows", "--exchange", "nonblocking")
    ends = {event["id"]: event["pid"] for event in timeline["traceEvents"] if event["ph"] == "f"}
    between = collections.Counter((event["pid"], ends[event["id"]]) for event in messages(timeline))
    steps = {5}
    assert set(between) == {(a, b) for a in range(4) for b in range(4) if abs(a - b) == 1}
    assert set(between.values()) == steps
    assert {event["args"]["bytes"] for event in messages(timeline)} == {30 * 8}


@pytest.mark.parametrize("exchange", ["blocking", "nonblocking"])
def test_the_ring_of_a_decomposition(run: Tilewise, exchange: str) -> None:
    record, timeline = traced(run, *VALUES, "--exchange", exchange)
    ring = record["result"]["sweeps"] * record["result"]["sweep_messages"]
    assert 0 < ring <= len(messages(timeline)) <= record["messages"]  # others of these are of collectives


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ((*PRODUCT, "--algorithm", "summa", "--exchange", "collective"), "MPI_Bcast"),
        ((*TURNED, "--exchange", "collective"), "MPI_Alltoallv"),
        ((*STENCIL, "--decomposition", "rows", "--exchange", "collective"), "MPI_Neighbor_alltoallw"),
    ],
    ids=["multiply", "transpose", "stencil"],
)
def test_a_collective_call_is_marked_on_every_rank(
    run: Tilewise, words: tuple[object, ...], call: str
) -> None:
    _, timeline = traced(run, *words)
    ranks = collections.Counter(
        event["pid"]
        for event in timeline["traceEvents"]
        if event.get("cat") == "collective" and event["name"].removesuffix("_c") == call
    )
    assert sorted(ranks) == [0, 1, 2, 3] and len(set(ranks.values())) == 1
    assert not messages(timeline)


def test_the_input_of_rank_0_is_seen(run: Tilewise) -> None:
    words = [*PRODUCT, "--algorithm", "cannon", "--exchange", "blocking"]
    how = ("--io", "root", "--verify", "off", "--json", "-", "--trace", "t.json.gz")
    record = record_of(run(*words, *how))
    with gzip.open(run.folder / "t.json.gz", "rt") as packed:
        timeline = json.load(packed)
    check(timeline, 4)
    assert len(messages(timeline)) > record["messages"]  # the record counts those of the computation
    assert calls(timeline, "mpi")["MPI_Recv"] + calls(timeline, "mpi")["MPI_Waitall"] > 0


def test_without_messages(run: Tilewise) -> None:
    _, timeline = traced(run, *PRODUCT[:-1], 1)
    assert not messages(timeline)


def test_one_job_slice_for_each_rank(run: Tilewise) -> None:
    record, timeline = traced(run, *CASES[0])
    jobs = [event for event in timeline["traceEvents"] if event.get("cat") == "job"]
    assert sorted(event["pid"] for event in jobs) == [0, 1, 2, 3]
    assert all(event["name"] == "multiply" for event in jobs)
    assert max(event["dur"] for event in jobs) * 1e-6 >= record["seconds"]["total"]["max"] - 1e-6
