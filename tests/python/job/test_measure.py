"""`tilewise measure` with real ranks: what comes out, and that nothing is left behind however it ends."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import psutil
import pytest
from conftest import Tilewise, mpiexec, one_message, wait_for
from disks import before_the_ranks
from oracle import processes_in
from stopwatch import within
from tilewise.lab.measurement.result import Measurement

QUICK = ("--launches", 2, "--runs", 3)
PING = ("ping", *QUICK, "--bytes", "8,64KiB", "--collectives", "none", "--no-matrix")
FILE = ("file", *QUICK, "--block", "4KiB", "--blocks-per-rank", 3)
LONG = ("file", "--block", "1M", "--blocks-per-rank", 8, "--runs", 100_000, "--io", "positioned", "-n", 2)

Lines = list[dict[str, Any]]


@contextmanager
def nothing_new(run: Tilewise) -> Iterator[None]:
    """Checks that what is done inside leaves no file, also none in the temporary folder, and no process."""
    temporary = run.folder / "tmp"
    temporary.mkdir(exist_ok=True)
    run.environment["TMPDIR"] = str(temporary)
    before = run.files()
    yield
    with within(5):
        wait_for(lambda: not processes_in(run.folder))
        wait_for(lambda: run.files() == before and not list(temporary.iterdir()))


def measured(run: Tilewise, *words: object) -> dict[str, Any]:
    """The JSON of a run that must end well and fit the schema."""
    result = run("measure", *words, "--json", "-")
    assert result.returncode == 0, result.stderr
    measurement: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(measurement, msgspec.json.schema(Measurement))
    msgspec.json.decode(result.stdout, type=Measurement)
    return measurement


def of(measurement: dict[str, Any], kind: str, **more: object) -> Lines:
    """The lines of a kind."""
    lines = [line for line in measurement["lines"] if line["kind"] == kind]
    return [line for line in lines if all(line[name] == value for name, value in more.items())]


def assert_sampled(lines: Lines, launches: int, samples: int) -> None:
    assert lines
    for line in lines:
        assert not line["skipped"], line
        assert [len(one) for one in line["launches"]] == [samples] * launches, line["key"]
        flat = sorted(sample for one in line["launches"] for sample in one)
        summary = line["summary"]
        assert 0 < flat[0] == summary["minimum"] and summary["maximum"] == flat[-1]
        assert summary["n"] == len(flat) and summary["mean"] == pytest.approx(sum(flat) / len(flat))
        assert summary["low"] <= summary["median"] <= summary["high"]


def test_ping(tilewise: Tilewise) -> None:
    with nothing_new(tilewise):
        measurement = measured(tilewise, *PING, "--seed", 5)
    lines = of(measurement, "ping")
    assert_sampled(lines, 2, 3)
    ways = {(line["name"], line["pattern"]) for line in lines}
    assert ways == {
        *((name, "roundtrip") for name in ("blocking", "nonblocking", "put", "get")),
        ("nonblocking", "stream"),
    }
    assert {line["bytes"] for line in lines} == {8, 65536}
    assert all(line["share"] > 0 and "memory copy" in line["carrier"] for line in lines)
    levels = {level["name"]: level for level in measurement["levels"]}
    assert set(levels) == {"sibling", "core", "cache", "socket", "node"}
    assert all(bool(level["missing"]) != bool(level["cpus"]) for level in levels.values())
    assert levels["node"]["missing"]
    assert (measurement["seed"], measurement["launches"], measurement["kinds"]) == (5, 2, ["ping"])
    assert measurement["clock"]["resolution"] > 0 and measurement["environment"]["mpi_library"]
    assert [one["launch"] for one in measurement["disturbances"]] == list(
        range(len(measurement["disturbances"]))
    )
    assert not (tilewise.folder / ".cache/tilewise/profile.json").exists()


def test_several_pairs_and_every_pair(tilewise: Tilewise) -> None:
    words = (
        "ping",
        *QUICK,
        "--bytes",
        "8",
        "--collectives",
        "none",
        "--exchange",
        "blocking",
        "--levels",
        "core",
    )
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        pytest.skip("one core: there is no level core")
    pairs = cores // 2 + 1
    measurement = measured(tilewise, *words, "--pairs", f"1,{pairs}", "--pattern", "roundtrip", "-n", 3)
    assert {line["pairs"]: line["ranks"] for line in of(measurement, "ping")} == {1: 2, pairs: 2 * pairs}
    crowded = of(measurement, "ping", pairs=pairs)[0]
    assert any("oversubscribed" in label for label in crowded["labels"])
    assert not any("oversubscribed" in label for label in of(measurement, "ping", pairs=1)[0]["labels"])
    for matrix in measurement["matrices"]:
        assert len(matrix["ranks"]) == 3
        for row, values in enumerate(matrix["seconds"]):
            assert values[row] == 0 and all(value > 0 for column, value in enumerate(values) if column != row)


def test_collectives_beside_their_loops(tilewise: Tilewise) -> None:
    words = ("--bytes", "1KiB", "--exchange", "blocking", "--pattern", "roundtrip", "--no-matrix", "-n", 2)
    measurement = measured(tilewise, "ping", *QUICK, *words, "--collectives", "bcast,alltoallv")
    lines = of(measurement, "collective")
    assert_sampled(lines, 2, 3)
    assert {(line["name"], line["pattern"]) for line in lines} == {
        (name, pattern) for name in ("bcast", "alltoallv") for pattern in ("library", "loop")
    }


@pytest.mark.parametrize("io", ["collective,independent,positioned", "per_rank", None])
def test_files(tilewise: Tilewise, io: str | None) -> None:
    with nothing_new(tilewise):
        measurement = measured(tilewise, *FILE, "-n", "1,2", *(("--io", io) if io else ()))
    lines = of(measurement, "file", bytes=4096)
    assert {(line["series"], line["ranks"]) for line in lines} == {
        (series, ranks) for series in ("write_new", "write", "read") for ranks in (1, 2)
    }
    assert_sampled([line for line in lines if line["series"] != "write_new"], 2, 3)
    assert {line["shift"] for line in lines if line["ranks"] == 2} == {1}
    assert measurement["environment"]["storage"][0]["path"] == str(tilewise.folder)
    names = {line["name"] for line in of(measurement, "file")}
    assert len(names) == 11 if io is None else names == set(io.split(","))


def test_blocks_that_no_disk_holds_are_not_run(tilewise: Tilewise) -> None:
    words = ("file", *QUICK, "--io", "positioned", "-n", 1, "--blocks-per-rank", 3)
    with nothing_new(tilewise):
        message = one_message(tilewise("measure", *words, "--block", "900T"), 2)
        both = measured(tilewise, *words, "--block", "4KiB,900T")
    assert "file cannot run" in message
    assert {line["bytes"] for line in of(both, "file") if line["skipped"]} == {900 * 10**12}
    assert_sampled(of(both, "file", bytes=4096, series="read"), 2, 3)


def test_memory_and_arithmetic(tilewise: Tilewise) -> None:
    measurement = measured(tilewise, "memory", *QUICK, "--bytes", "4KiB,1MiB", "-t", "1,2")
    assert_sampled(of(measurement, "memory"), 2, 3)
    assert {(line["name"], line["threads"]) for line in of(measurement, "memory")} == {
        (name, threads) for name in ("copy", "triad", "read", "write") for threads in (1, 2)
    }
    measurement = measured(tilewise, "compute", *QUICK, "--sizes", "64,100", "--dtypes", "float32,complex128")
    assert_sampled(of(measurement, "compute"), 2, 3)
    assert {line["unit"] for line in of(measurement, "compute")} == {"flop"}
    assert max(line["share"] for line in of(measurement, "compute")) == 1
    both = [line for line in of(measurement, "compute") if line["kernel"] != "fast"]
    assert {(line["kernel"], line["dtype"], line["size"]) for line in both} == {
        (kernel, "float32", size) for kernel in ("tiles", "blas") for size in (64, 100)
    }
    assert {line["chosen"] or "no tiles" for line in both} <= {"tiles", "blas", "no tiles"}


def test_arrays_too_large_for_memory(tilewise: Tilewise) -> None:
    assert "memory cannot run" in one_message(tilewise("measure", "memory", "--bytes", "100TiB"), 2)
    measurement = measured(tilewise, "memory", *QUICK, "--bytes", "4KiB,100TiB", "-t", 1)
    assert {line["bytes"] for line in of(measurement, "memory") if line["skipped"]} == {100 << 40}


def test_what_is_stored_serves_later_jobs(tilewise: Tilewise) -> None:
    said = tilewise("measure", "compute", *QUICK, "--sizes", "64,128", "--store", "-t", 1)
    cache = tilewise.folder / ".cache/tilewise"
    assert said.returncode == 0 and str(cache / "profile.json") in said.stdout
    kept = json.loads((cache / "profile.json").read_text())
    assert any("gemm/float64" in terms for terms in kept["terms"].values())
    again = tilewise("measure", "memory", *QUICK, "--bytes", "4KiB", "-t", 1, "--store", "-q")
    assert again.returncode == 0 and not again.stdout
    (whole,) = [json.loads(path.read_text()) for path in cache.glob("measured-*-memory.json")]
    assert whole["kinds"] == ["memory"] and {line["kind"] for line in whole["lines"]} == {"memory"}
    assert len(list(cache.glob("measured-*-compute.json"))) == 1
    assert ", memory " in tilewise("doctor").stdout
    result = tilewise(
        "multiply", "random:64x64", "random:64x64", "-o", "C.npy", "-n", 1, "-t", 1, "--json", "-"
    )
    assert json.loads(result.stdout)["fraction_of_peak"] is not None
    said = tilewise("measure", "memory", *QUICK, "--bytes", "4KiB", "-t", 1)
    assert "stored       no" in said.stdout


def test_everything_that_is_shown(tilewise: Tilewise) -> None:
    words = ("--json", "m.json", "--html", "m.html", "--plots", "plots", "--tables", "tables")
    said = tilewise("measure", *PING, *words)
    assert said.returncode == 0 and not said.stderr
    assert "m.json" in said.stdout and "latency" in said.stdout
    assert (tilewise.folder / "m.html").read_text().startswith("<!")
    assert any(path.suffix == ".svg" for path in (tilewise.folder / "plots").iterdir())
    rows = (tilewise.folder / "tables/latency-bandwidth.csv").read_text().splitlines()
    assert "latency" in rows[0] and len(rows) > 5
    assert "| core |" in (tilewise.folder / "tables/latency-bandwidth.md").read_text()
    compared = tilewise("measure", "compare", "m.json", "m.json", "--json", "-")
    assert compared.returncode == 0
    assert {one["word"] for one in json.loads(compared.stdout)["changes"]} == {"not distinguishable"}
    assert "not distinguishable" in tilewise("measure", "compare", "m.json", "m.json").stdout
    other = json.loads((tilewise.folder / "m.json").read_text())
    (tilewise.folder / "none.json").write_text(json.dumps({**other, "lines": []}))
    assert "no line in common" in one_message(tilewise("measure", "compare", "m.json", "none.json"), 2)


def test_under_a_launcher_there_is_one_message(tilewise: Tilewise) -> None:
    result = tilewise("measure", "ping", before=(mpiexec(), "-n", 3))
    assert result.returncode == 2
    assert [line for line in result.stderr.splitlines() if line.startswith("tilewise:")] == [
        "tilewise: measure starts its own ranks and cannot run under mpiexec or srun"
    ]


# ---- endings -------------------------------------------------------------------------------------


def ranks_of(run: Tilewise) -> list[psutil.Process]:
    """Ranks of the worker that run in its folder."""
    processes = []
    for pid in processes_in(run.folder):
        try:
            process = psutil.Process(pid)
            if "tilewise-worker" in process.name():
                processes.append(process)
        except psutil.Error:
            continue
    return processes


def under_way(run: Tilewise) -> subprocess.Popen[str]:
    """A long measurement of files whose sample file is there."""
    child = run.start("measure", *LONG)
    wait_for(lambda: len(ranks_of(run)) == 2 and list(run.folder.glob(".tilewise-measure-*/sample")))
    time.sleep(0.2)
    return child


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(tilewise: Tilewise, number: signal.Signals) -> None:
    with nothing_new(tilewise):
        child = under_way(tilewise)
        with within(2):
            child.send_signal(number)
            out, err = child.communicate(timeout=60)
        result = subprocess.CompletedProcess([], child.returncode, out, err)
        assert number.name in one_message(result, 130)


def test_a_front_that_is_killed_leaves_nothing(tilewise: Tilewise) -> None:
    with nothing_new(tilewise):
        child = under_way(tilewise)
        child.kill()
        child.communicate(timeout=60)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_killed(tilewise: Tilewise, rank: int) -> None:
    with nothing_new(tilewise):
        child = under_way(tilewise)
        ranks_of(tilewise)[rank].kill()
        out, err = child.communicate(timeout=60)
        said = one_message(subprocess.CompletedProcess([], child.returncode, out, err), 1)
    assert "files, 2 ranks" in said and "SIGKILL" in said


def test_a_rank_that_fails(tilewise: Tilewise) -> None:
    tilewise.environment["TILEWISE_FAULT"] = "fail:1"
    with nothing_new(tilewise):
        result = tilewise("measure", *FILE, "-n", 2)
        assert "told to fail" in one_message(result, 1)


def test_a_limit_of_time(tilewise: Tilewise) -> None:
    with nothing_new(tilewise):
        with within(5):
            said = one_message(tilewise("measure", *LONG, "--timeout", 1.5), 1)
        assert "--timeout" in said


def test_a_folder_that_may_not_be_written(tilewise: Tilewise, mount: Callable[..., Path]) -> None:
    folder = mount("-t", "tmpfs", "-o", "size=64k,ro", "tmpfs")
    with nothing_new(tilewise):
        said = one_message(tilewise("measure", *FILE, "--folder", folder), 2)
        assert "cannot be written" in said
        assert "--json" in one_message(tilewise("measure", *PING, "--json", folder / "m.json"), 2)


def test_a_disk_that_becomes_full(tilewise: Tilewise, mount: Callable[..., Path]) -> None:
    folder = mount("-t", "tmpfs", "-o", "size=1536k", "tmpfs")
    with nothing_new(tilewise):
        words = (*FILE[:5], "--io", "positioned", "-n", 2, "--folder", folder)
        said = one_message(tilewise("measure", *words, "--block", "1M", "--blocks-per-rank", 2), 2)
        assert "file cannot run" in said
        script = before_the_ranks(tilewise, f"head -c 1500000 /dev/zero >'{folder}/filler'", 2)
        full = tilewise("measure", *words, "--block", "64KiB", "--blocks-per-rank", 4, "--launcher", script)
        one_message(full, 2)
        script.unlink()
    assert os.listdir(folder) == ["filler"]


def test_a_bar_on_a_terminal_only(tilewise: Tilewise) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        tilewise.command("measure", *PING, "--json", "m.json"),
        cwd=tilewise.folder,
        env={**tilewise.environment, "TERM": "xterm", "COLUMNS": "100"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(ours)
    assert child.wait(60) == 0 and b"messages" in shown and b"%" in shown
