"""What a run says of itself: the record's numbers against others counted here, the timeline, and silence."""

from __future__ import annotations

import gzip
import json
import math
from collections import defaultdict
from typing import Any

import pytest
from conftest import Tilewise
from oracle import matrix, record_of, save
from tilewise.lab.report.timeline import read_timeline
from tilewise.operations.multiply.options import ALGORITHMS as MULTIPLY
from tilewise.planning.names import ONE_FILE

WITHOUT_CHILD = True
PHASES = ("input", "compute", "exchange", "output", "verify")
# The contract's fields; those of the whole stand under no name.
FIELDS = {
    "": "tilewise command inputs outputs variant chosen_by fixed seconds samples bytes messages io_calls",
    " ": "flops rates fraction_of_peak peak_rss_bytes ranks_working placement predicted_seconds result",
    "variant": "algorithm exchange io grid ranks threads",
    "seconds": "input compute exchange output verify total wall",
    "bytes": "read useful written exchanged copied_in_node",
    "peak_rss_bytes": "per_rank max_rank node_sum",
    "verification": "method passed error tolerance",
    "environment": "host cpu mpi_library mpi_standard blas blas_kernel binding launcher storage",
}


def multiply(run: Tilewise, *words: object) -> dict[str, Any]:
    """The record of one product."""
    return record_of(run("multiply", *words, "-o", "C.npy", "--force", "--json", "-"))


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_record_is_whole_and_agrees_with_itself(tilewise: Tilewise, ranks: int) -> None:
    save(tilewise.folder, matrix((301, 200), "float32", 1), matrix((200, 103), "float32", 2))
    record = multiply(
        tilewise, "A.npy", "B.npy", "-n", ranks, "--repeat", 3, "--warmup", 1, "--io", "positioned"
    )
    for name, fields in FIELDS.items():
        assert set(fields.split()) <= set(record[name] if name.strip() else record), name
    assert {"warnings", "verification", "environment"} <= set(record)
    assert {"oversubscribed", "versions", "time"} <= set(record["environment"])
    seconds = record["seconds"]
    for name in (*PHASES, "total"):
        spread = seconds[name]
        assert 0 <= spread["min"] <= spread["mean"] <= spread["max"] <= seconds["wall"]
    # Phases add up to the total on every rank, so they do on the average too.
    total = seconds["total"]["mean"]
    assert math.isclose(sum(seconds[name]["mean"] for name in PHASES), total, rel_tol=0.01)
    for whole, parts in (
        ("input", ("parse", "file", "distribute")),
        ("output", ("format", "file", "collect")),
    ):
        assert sum(seconds[whole][part]["mean"] for part in parts) <= seconds[whole]["mean"] * 1.001
    assert len(record["samples"]) == 3
    assert record["command"] == "multiply" and record["chosen_by"] == "plan" and "ranks" in record["fixed"]
    assert record["flops"] == 2 * 301 * 200 * 103
    assert record["outputs"][0]["shape"] == [301, 103] and record["outputs"][0]["dtype"] == "float32"
    assert record["bytes"]["written"] == 301 * 103 * 4
    assert record["bytes"]["read"] >= record["bytes"]["useful"] >= (301 * 200 + 200 * 103) * 4
    assert len(record["placement"]) == len(record["peak_rss_bytes"]["per_rank"]) == ranks
    assert record["ranks_working"] == ranks
    memory = record["peak_rss_bytes"]
    assert memory["max_rank"] == max(memory["per_rank"]) > 1 << 20


@pytest.mark.parametrize("io", ONE_FILE)
def test_every_byte_is_counted_once(tilewise: Tilewise, io: str) -> None:
    save(tilewise.folder, matrix((41, 30), "int16", 1), matrix((30, 17), "float64", 2))
    counted = multiply(tilewise, "A.npy", "B.npy", "-n", 3, "--io", io)["bytes"]
    assert (counted["useful"], counted["written"]) == (41 * 30 * 2 + 30 * 17 * 8, 41 * 17 * 8)
    assert counted["useful"] <= counted["read"]


def test_idle_ranks_are_not_counted_as_working(tilewise: Tilewise) -> None:
    record = multiply(tilewise, "random:1x5", "random:5x1", "-n", 3)
    assert record["ranks_working"] == 1


def own_volume(m: int, k: int, n: int, grid: tuple[int, int]) -> int:
    """Elements that a rank of a p×q grid lacks: its rows of A and columns of B, but for its own blocks."""
    p, q = grid
    rows, columns = -(-m // p), -(-n // q)
    return rows * (k - k // q) + (k - k // p) * columns


@pytest.mark.parametrize(
    ("algorithm", "ranks", "shape"),
    [
        ("cannon", 4, (400, 400, 400)),
        ("cannon", 4, (301, 503, 199)),
        ("cannon", 9, (300, 301, 302)),
        ("summa", 4, (400, 400, 400)),
        ("summa", 6, (301, 1999, 203)),
        ("summa", 3, (97, 1000, 301)),
    ],
)
@pytest.mark.parametrize("exchange", ["blocking", "overlap", "one_sided_fence"])
def test_no_rank_receives_more_than_it_lacks(
    tilewise: Tilewise, algorithm: str, ranks: int, shape: tuple[int, int, int], exchange: str
) -> None:
    m, k, n = shape
    record = multiply(
        tilewise,
        f"random:{m}x{k}",
        f"random:{k}x{n}",
        "-n",
        ranks,
        "--algorithm",
        algorithm,
        "--exchange",
        exchange,
    )
    most = own_volume(m, k, n, tuple(record["variant"]["grid"])) * 8
    received = record["bytes"]["exchanged_max_rank"]
    assert 0 < received <= 1.15 * most
    # And what came is what was needed: none of it was left out of the books.
    assert record["bytes"]["exchanged"] >= 0.85 * most
    assert record["messages"] > 0


def test_shared_memory_needs_no_messages(tilewise: Tilewise) -> None:
    record = multiply(tilewise, "random:100x100", "random:100x100", "-n", 4, "--exchange", "shared")
    assert record["bytes"]["exchanged"] == record["messages"] == 0


# ---- the timeline --------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", MULTIPLY)
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_the_timeline(tilewise: Tilewise, algorithm: str, name: str) -> None:
    ranks = max(filter(MULTIPLY[algorithm].takes, range(1, 5)))
    save(tilewise.folder, matrix((90, 1700), seed=1), matrix((1700, 80), seed=2))
    record = multiply(tilewise, "A.npy", "B.npy", "-n", ranks, "--algorithm", algorithm, "--trace", name)
    raw = (tilewise.folder / name).read_bytes()
    timeline = json.loads(gzip.decompress(raw) if name.endswith(".gz") else raw)
    spans = [event for event in timeline["traceEvents"] if event["ph"] == "X" and event["cat"] in PHASES]
    jobs = {event["pid"]: event for event in timeline["traceEvents"] if event.get("cat") == "job"}
    assert {span["pid"] for span in spans} == jobs.keys() == set(range(ranks))
    assert {"input", "compute", "output"} <= {span["cat"] for span in spans}
    busy: dict[int, float] = defaultdict(float)
    for span in spans:
        job = jobs[span["pid"]]
        assert span["name"] and span["ts"] >= job["ts"] and span["dur"] >= 0
        assert span["ts"] + span["dur"] <= job["ts"] + job["dur"] + 0.01
        busy[span["pid"]] = max(busy[span["pid"]], span["ts"] + span["dur"] - job["ts"])
    assert min(busy.values()) / 1e6 > 0.5 * record["seconds"]["total"]["min"]
    assert tilewise.files() == {"A.npy", "B.npy", "C.npy", name}


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_timeline_and_the_record_tell_of_the_same_seconds(tilewise: Tilewise, ranks: int) -> None:
    """What a rank waits for between two spans is in one of them: in the same as in the record."""
    save(tilewise.folder, matrix((90, 1700), seed=1), matrix((1700, 80), seed=2))
    words = ("-n", ranks, "--exchange", "blocking" if ranks > 1 else "auto", "--trace", "t.json")
    seconds = multiply(tilewise, "A.npy", "B.npy", *words, "--verify", "fast")["seconds"]
    told = [rank.phases() for rank in read_timeline(tilewise.folder / "t.json").ranks]
    for kind, phase in enumerate(PHASES):
        mine = [span[span["kind"] == kind] for span in told]
        sums = [float((span["end"] - span["start"]).sum()) for span in mine]
        both = [seconds[phase][end] for end in ("min", "max")]
        assert [min(sums), max(sums)] == pytest.approx(both, abs=1e-4)  # up to a microsecond between spans


# ---- what is said --------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 3])
def test_silence_and_speech(tilewise: Tilewise, ranks: int) -> None:
    words = ("multiply", "random:50x50", "random:50x50", "-o", "C.npy", "--force", "-n", ranks, "-t", 1)
    quiet = tilewise(*words, "-q")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    both = tilewise(*words, "-q", "--json", "-")
    assert json.loads(both.stdout)["command"] == "multiply" and both.stderr == ""
    loud = tilewise(*words, "-v")
    assert loud.returncode == 0 and "tilewise-worker" in loud.stderr
    for word in ("input", "compute", "output", "verify", "total", "memory", "check", "result"):
        assert word in loud.stdout
    assert "\x1b" not in loud.stdout + loud.stderr and "\x1e" not in loud.stdout + loud.stderr


def test_the_record_goes_to_a_file_and_the_table_to_the_screen(tilewise: Tilewise) -> None:
    result = tilewise("multiply", "random:50x50", "random:50x50", "-o", "C.npy", "--json", "r.json", "-n", 2)
    record = json.loads((tilewise.folder / "r.json").read_bytes())
    assert record["variant"]["ranks"] == 2 and "total" in result.stdout
