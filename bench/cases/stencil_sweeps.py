"""200 stencil sweeps in memory: beside libraries, beside one sweep a pass, beside a copy, by ranks."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from harness import BIN, ROOT, NotRun, Row, Sample, Setting, alternate, compare, run, say, tilewise

PEERS = Path(__file__).resolve().parents[1] / "peers"
STEPS = 200
SIZES = (1024, 4096, 8000)
# Library: its package, how many sweeps are run (the rest is reckoned), and what is to be reached at 8000².
LIBRARIES = {
    "numba": ("numba", STEPS, 7),
    "opencv": ("opencv-python-headless", STEPS, 14),
    "devito": ("devito", STEPS, 9),
    "scipy": ("scipy", 4, 140),
}
MEMORY = {"star5": 4.5, "box3-general": 3, "box3": 3, "box5": 3, "box5-general": 3, "star9": 3}
FAST_COPY = 100e9  # bytes a second from which star5 need only be three times a copy


@cache
def python() -> Path:
    """An interpreter of its own with what libraries could be installed, so that ours stays as it is."""
    folder = ROOT / "build/bench-peers"
    interpreter = folder / "bin/python"
    if not interpreter.exists():
        run([sys.executable, "-m", "venv", folder])
        for package, _, _ in LIBRARIES.values():
            say(f"    installing {package}")
            words = [
                str(interpreter),
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                package,
            ]
            if subprocess.run(words, capture_output=True, check=False).returncode != 0:
                say(f"    {package} cannot be installed")
    return interpreter


def ours(setting: Setting, n: int, *how: object) -> Sample:
    """Seconds of compute and exchange of each repetition, the slowest rank of each."""

    def sample() -> list[float]:
        record = swept(setting, n, *how, "--warmup", 1, "--repeat", 3)
        return [one["compute"] + one["exchange"] for one in record["samples"]]

    return sample


def swept(setting: Setting, n: int, *how: object) -> dict[str, Any]:
    """The record of 200 sweeps over a matrix that needs no file."""
    output = setting.work / "B.npy"
    words = ["stencil", f"random:{n}x{n}:float32:1", "-o", output, "--steps", STEPS, "--no-verify", *how]
    record = tilewise(*words, record=setting.work / "record.json")
    output.unlink()
    return record


def peer(setting: Setting, name: str, n: int) -> Sample:
    """The same of a library; NotRun where it is missing."""
    _, steps, _ = LIBRARIES[name]

    def sample() -> list[float]:
        answer = json.loads(run([python(), PEERS / "stencil_sweeps.py", name, n, steps, 2, 1]))
        setting.facts[name] = answer["version"]
        return [seconds * STEPS / steps for seconds in answer["seconds"]]

    return sample


def libraries(setting: Setting) -> list[Row]:
    """Ours, and all libraries that there are, in turns."""
    rows = []
    for n in (256,) if setting.quick else SIZES:
        sides = {"tilewise": ours(setting, n, "-n", 1, "-t", 2)}
        for name, (_, _, target) in LIBRARIES.items():
            row = Row(
                f"stencil-{name}-{n}",
                f"{n}²: {name} over tilewise",
                "at least" if n == SIZES[-1] else "",
                target,
            )
            rows.append(row)
            try:
                peer(setting, name, 64)()
            except NotRun as reason:
                row.note = f"missing: {str(reason)[-80:]}"
                continue
            sides[name] = peer(setting, name, n)
        samples = alternate(sides, setting.rounds)
        for row in rows[-len(LIBRARIES) :]:
            name = row.name.split("-")[1]
            if name in samples:
                row.samples = {"tilewise": samples["tilewise"], name: samples[name]}
                compare(row, samples[name], samples["tilewise"])
                row.note = f"{_points(n, samples['tilewise'])} and {_points(n, samples[name])} Gpoint/s"
    return rows


def memory(setting: Setting) -> list[Row]:
    """The kernel alone, beside the best code that sweeps once a pass, and beside a copy of the same bytes."""
    folder = ROOT / "build/bench-memory"
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DTILEWISE_BENCH=ON", f"-DPython_EXECUTABLE={BIN / 'python'}"]
    run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options])
    run(["cmake", "--build", folder, "--target", "tilewise-stencil-memory"])
    program = folder / "bench/tilewise-stencil-memory"
    rows = []
    for n in (256,) if setting.quick else SIZES:
        for weights, target in MEMORY.items():
            lines = run([program, n, n, STEPS, 2, setting.rounds, weights]).splitlines()
            said: dict[str, Any] = {line["side"]: line for line in map(json.loads, lines)}
            large = n == SIZES[-1]
            copied = statistics.median(said["copy"]["seconds"])
            rate = said["copy"]["bytes_per_second"]
            mine, depth = said["tilewise"]["seconds"], said["tilewise"]["depth"]
            least = 3 if rate >= FAST_COPY else target
            roof = Row(
                f"stencil-copy-{weights}-{n}",
                f"{n}² {weights}: over what a copy allows",
                "at least" if large else "",
                least,
                note=f"{_points(n, mine)} Gpoint/s, depth {depth}; copy {rate / 1e9:.0f} GB/s",
                samples={"copy": said["copy"]["seconds"], "tilewise": mine},
            )
            rows.append(compare(roof, [copied * STEPS], mine))
            single = said["one sweep a pass"]["seconds"]
            bound = "at least" if large and weights == "star5" else ""
            over = Row(f"stencil-single-{weights}-{n}", f"{n}² {weights}: over one sweep a pass", bound, 6)
            over.samples = {"tilewise": mine, "one sweep a pass": single}
            rows.append(compare(over, single, mine))
    return rows


def two_ranks(setting: Setting) -> list[Row]:
    """Two ranks with deep halos beside two threads of one rank."""
    rows = []
    for n in (256,) if setting.quick else SIZES:
        sides = {
            "2 ranks": ours(setting, n, "-n", 2, "-t", 1),
            "2 threads": ours(setting, n, "-n", 1, "-t", 2),
        }
        samples = alternate(sides, setting.rounds)
        row = Row(f"stencil-ranks-{n}", f"{n}²: 2 ranks over 2 threads", "at least", 0.9, samples=samples)
        rows.append(compare(row, samples["2 threads"], samples["2 ranks"]))
    return rows


def ways(setting: Setting) -> list[Row]:
    """Report 3's comparison: cuts, exchanges and halos on 1 to 4 ranks, with messages and bytes."""
    n = 256 if setting.quick else 4096
    rows = [_way(setting, n, 1, "rows", "overlap", "packed", None)]
    from tilewise.planning.names import EXCHANGES

    for ranks in (2, 3, 4):
        for cut in ("rows", "columns", "grid"):
            if cut == "grid" and ranks < 4:
                continue
            rows += [_way(setting, n, ranks, cut, exchange, "packed", None) for exchange in EXCHANGES]
            for depth in (1, None):
                rows.append(_way(setting, n, ranks, cut, "blocking", "datatype", depth))
            rows.append(_way(setting, n, ranks, cut, "blocking", "packed", 1))
    # A message a number, as in the report: on a small field, because it takes so long.
    for cut in ("rows", "columns"):
        for halo in ("elementwise", "packed"):
            rows.append(_way(setting, min(n, 1024), 2, cut, "synchronous", halo, 1))
    return rows


def _way(setting: Setting, n: int, ranks: int, cut: str, exchange: str, halo: str, depth: int | None) -> Row:
    how: list[object] = ["-n", ranks, "-t", 1, "--decomposition", cut, "--exchange", exchange, "--halo", halo]
    how += [] if depth is None else ["--depth", depth]
    say(f"    {ranks} ranks, {cut}, {exchange}, {halo}")
    record = swept(setting, n, *how, "--repeat", setting.rounds)
    seconds = [one["compute"] + one["exchange"] for one in record["samples"]]
    moved = record["bytes"]["exchanged"] or record["bytes"]["copied_in_node"]
    deep, waited = record["variant"]["depth"], record["seconds"]["exchange"]["max"]
    words = "alone" if ranks == 1 else f"{cut} {exchange} {halo}"
    row = Row(
        f"stencil-way-{n}-{ranks}-{cut}-{exchange}-{halo}-{deep}",
        f"{n}² on {ranks}: {words}, depth {deep}",
        "",
        0,
        unit=" s",
        note=f"{record['messages']} messages, {moved / 2**20:.1f} MiB; exchange {waited:.3f} s",
        samples={"seconds": seconds},
    )
    row.ratio = statistics.median(seconds)
    return row


def _points(n: int, seconds: list[float]) -> str:
    return f"{n * n * STEPS / statistics.median(seconds) / 1e9:.2f}"
