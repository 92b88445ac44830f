"""Transposition from file to file: beside `cp`, numpy and Dask, and larger than the memory allowed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from harness import (
    BIN,
    NotRun,
    Row,
    Sample,
    Setting,
    alternate,
    clean_environment,
    compare,
    run,
    say,
    wall,
)

from cases.files import PEERS

SHAPES = ((16384, 16384, "float64"), (16000, 9000, "float64"), (10000, 10000, "float32"))
CAP = "1200MiB"
CAP_BYTES = 1200 << 20


def made(setting: Setting, rows: int, columns: int, dtype: str) -> Path:
    path = setting.work / f"A-{rows}x{columns}-{dtype}.npy"
    shape = f"{rows}x{columns}"
    run([BIN / "tilewise", "generate", "-o", path, "--shape", shape, "--dtype", dtype, "--force", "-q"])
    return path


def cached(setting: Setting) -> list[Row]:
    """Whole processes, files in the page cache, no fsync; the old output is gone before, on every side."""
    rows = []
    for shape in ((2048, 1024, "float64"),) if setting.quick else SHAPES:
        rows += _beside_copy(setting, *shape)
    return rows


def _beside_copy(setting: Setting, rows: int, columns: int, dtype: str) -> list[Row]:
    a, b, part = made(setting, rows, columns, dtype), setting.work / "B.npy", setting.work / "part"
    name = f"{rows}x{columns} {dtype}"
    say(f"    {name}")

    def whole(*command: object) -> Sample:
        def sample() -> list[float]:
            b.unlink(missing_ok=True)
            return [wall(list(command))]

        return sample

    script = [sys.executable, PEERS / "transpose_files.py"]
    ours = whole(BIN / "tilewise", "transpose", a, "-o", b, "-q")
    ours()
    run([*script, "check", a, b])
    samples = alternate(
        {"cp": whole("sh", "-c", f"cp '{a}' '{part}' && mv '{part}' '{b}'"), "tilewise": ours},
        2 * setting.rounds + 1,
    )
    peers = {"naive": "numpy memmap", "blocked": "numpy memmap in blocks"}
    if importlib.util.find_spec("dask") is not None:
        peers["dask"] = "Dask"
    for how, peer in peers.items():
        say(f"    {peer}")
        sample = whole(*script, how, a, b)
        samples[peer] = [second for _ in range(2) for second in sample()]
    a.unlink()
    b.unlink()
    best = min(peers.values(), key=lambda peer: statistics.median(samples[peer]))
    table = [(f"transpose-files-{name}-cp", "rate over cp's", "cp", 0.8, "")]
    table += [(f"transpose-files-{name}-peer", "speed over the best peer's", best, 3.0, best)]
    comparisons = []
    for key, what, side, least, note in table:
        row = Row(key, f"{name}, file to file: {what}", "at least", least, note=note)
        row.samples = {side: samples[side], "tilewise": samples["tilewise"]}
        comparisons.append(compare(row, samples[side], samples["tilewise"]))
    return comparisons


class MemoryWatch:
    """The most anonymous and shared memory that a process and its descendants hold, seen every 20 ms."""

    def __init__(self, pid: int) -> None:
        self.most = 0
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._done.set()
        self._thread.join()
        return self.most

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self.most = max(self.most, sum(map(_resident, _workers(self._pid))))


def _workers(pid: int) -> list[int]:
    """The descendants of `pid` that are workers; the front does not count."""
    workers, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        try:
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            if Path(f"/proc/{parent}/comm").read_text().startswith("tilewise-worker"[:15]):
                workers.append(parent)
        except OSError:
            continue  # it ended between two looks
        waiting += map(int, children)
    return workers


def _resident(pid: int) -> int:
    """Bytes of anonymous and shared memory, shared pages by their share."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))


def capped(setting: Setting) -> list[Row]:
    """A matrix of 7 GiB within 1.2 GiB, beside a copy past the page cache; one and two ranks."""
    n = 4096 if setting.quick else 30720
    a, b, record = made(setting, n, n, "float64"), setting.work / "B.npy", setting.work / "record.json"
    if shutil.disk_usage(setting.work).free < 2 * a.stat().st_size:
        raise NotRun(f"needs {2 * a.stat().st_size >> 30} GiB of disk more")
    peaks: dict[str, list[float]] = {}

    def ours(ranks: int) -> Sample:
        def sample() -> list[float]:
            b.unlink(missing_ok=True)
            words = [BIN / "tilewise", "transpose", a, "-o", b, "--memory", CAP, "-n", ranks, "-q", "--json"]
            begin = time.perf_counter()
            child = subprocess.Popen([*map(str, words), str(record)], env=clean_environment())
            watch = MemoryWatch(child.pid)
            code = child.wait()
            seconds = time.perf_counter() - begin
            seen = watch.stop()
            if code != 0:
                raise SystemExit(f"tilewise transpose ended with {code}")
            peaks.setdefault("seen", []).append(seen)
            peaks.setdefault("node_sum", []).append(
                json.loads(record.read_text())["peak_rss_bytes"]["node_sum"]
            )
            return [seconds]

        return sample

    def direct() -> list[float]:
        b.unlink(missing_ok=True)
        words = ["dd", f"if={a}", f"of={b}", "bs=16M", "iflag=direct", "oflag=direct", "status=none"]
        return [wall(words)]

    for ranks in (1, 2):
        ours(ranks)()
        run([sys.executable, PEERS / "transpose_files.py", "check", a, b])
    samples = alternate({"copy": direct, "1 rank": ours(1), "2 ranks": ours(2)}, setting.rounds)
    os.unlink(a)
    os.unlink(b)
    rows = []
    for side in ("1 rank", "2 ranks"):
        what = f"{n}² float64 within {CAP}, {side}: rate over a copy's by O_DIRECT"
        row = Row(f"transpose-capped-{side}", what, "at least", 0.7)
        row.samples = {"copy": samples["copy"], side: samples[side]}
        rows.append(compare(row, samples["copy"], samples[side]))
    for key, values in peaks.items():
        row = Row(f"transpose-capped-{key}", f"peak memory over the cap, {key}", "at most", 1.0)
        row.samples = {key: values, "cap": [CAP_BYTES]}
        rows.append(compare(row, [max(values)], [CAP_BYTES]))
    return rows
