"""What `tilewise measure` says beside small independent programs, figure by figure, each side in turns.

    tilewise measure ─┐  round 1, 2, …, every other one backwards ──▶ ours over theirs: at least 0.9,
    truth_node, _mpi ─┘                                               for the best set, AVX2 and the baseline

The programs in `bench/peers/truth_*.cpp` hold nothing of tilewise; they are compiled here for each set.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness import BIN, NotRun, Row, Setting, compare, run, say
from tilewise.machine.host import model_and_flags

from cases.measure_run import lines, measure

CLOSE = 0.9  # of the best of both sides
PEERS = Path(__file__).resolve().parent.parent / "peers"
# Sets of instructions: what our kernels are told, and what the compiler of the programs is.
SETS = {"": "native", "avx2": "x86-64-v3", "baseline": "x86-64"}
ARRAYS = (16 << 10, 256 << 10, 4 << 20, 256 << 20)  # bytes: in each cache, and in memory
MESSAGES = (8, 1 << 10, 64 << 10, 1 << 20)
BLOCK, BLOCKS = 1 << 20, 64
MULTIPLIED = 512  # rows: a job after which the peak is measured
Figures = dict[tuple[str, ...], float]  # by what they are of; the more the better


def memory(setting: Setting) -> list[Row]:
    """Arrays that are read, written and copied, on one thread and on all."""
    sizes = ARRAYS[::3] if setting.quick else ARRAYS
    threads = sorted({1, len(os.sched_getaffinity(0))})
    found: list[Row] = []
    for kernels, march in _sets():
        program = _compiled(setting, march)

        def ours(kernels: str = kernels) -> Figures:
            words = ["--bytes", ",".join(map(str, sizes)), "-t", ",".join(map(str, threads))]
            told = _measured(setting, kernels, "memory", *words)
            return {
                (line["name"], str(line["bytes"]), str(line["threads"])): line["amount"]
                / line["summary"]["median"]
                for line in lines(told, kind="memory")
            }

        def theirs(program: Path = program) -> Figures:
            return _printed([program, "memory", ",".join(map(str, threads)), *sizes])

        found += _rows(setting, kernels, "memory", ours, theirs)
    return found


def arithmetic(setting: Setting) -> list[Row]:
    """The peak that a job's record has, beside loops of multiplications and additions."""
    found: list[Row] = []
    threads = sorted({1, len(os.sched_getaffinity(0))})
    for kernels, march in _sets():
        program = _compiled(setting, march)

        def ours(kernels: str = kernels) -> Figures:
            rates: Figures = {}
            for dtype in ("float64", "float32"):
                matrix = setting.work / f"{dtype}.npy"
                words = ["--shape", f"{MULTIPLIED}x{MULTIPLIED}", "--dtype", dtype, "-o", matrix]
                run([BIN / "tilewise", "generate", *words, "--force", "-q"])
                for count in threads:
                    record = setting.work / "record.json"
                    job = [matrix, matrix, "-o", setting.work / "product.npy", "-n", "1", "-t", count]
                    told = ["--kernel", "tiles", "--force", "-q", "--no-learn", "--json", record]
                    run([BIN / "tilewise", "multiply", *job, *told], **_forced(kernels))
                    rates[dtype, "0", str(count)] = json.loads(record.read_text())["peak_flops"] or 0.0
            return rates

        def theirs(program: Path = program) -> Figures:
            return _printed([program, "arithmetic", ",".join(map(str, threads))])

        found += _rows(setting, kernels, "arithmetic", ours, theirs)
    return found


def files(setting: Setting) -> list[Row]:
    """A file in the page cache, written and read by calls of 1 MiB on one rank."""
    program = _compiled(setting, "native")

    def ours() -> Figures:
        words = ["--io", "positioned", "--block", BLOCK, "--blocks-per-rank", BLOCKS, "-n", "1"]
        told = _measured(
            setting, "", "file", *words, "--cache", "warm", "--check", "none", "--folder", setting.work
        )
        return {
            (line["series"], str(BLOCK), "1"): line["amount"] / line["summary"]["median"]
            for line in lines(told, kind="file")
        }

    def theirs() -> Figures:
        return _printed([program, "file", setting.work / "truth.bin", BLOCK * BLOCKS, BLOCK])

    return _rows(setting, "", "files", ours, theirs)


def messages(setting: Setting) -> list[Row]:
    """Two ranks of this node: round trips, puts, and two collectives by the library."""
    program = setting.work / "truth_mpi"
    run([BIN / "mpicxx_abi", "-O2", "-std=c++20", "-DMPI_ABI", PEERS / "truth_mpi.cpp", "-o", program])
    sizes = MESSAGES[::3] if setting.quick else MESSAGES

    def ours() -> Figures:
        listed = ",".join(map(str, sizes))
        words = ["--bytes", listed, "--exchange", "blocking,put", "--pattern", "roundtrip", "--no-matrix"]
        told = _measured(setting, "", "ping", *words, "--collectives", "bcast,allreduce")
        found: Figures = {}
        for line in [*lines(told, kind="ping"), *lines(told, kind="collective", pattern="library")]:
            ways = 2 if line["name"] == "blocking" else 1
            found[line["name"], str(line["bytes"])] = ways / line["summary"]["median"]
        return found

    def theirs() -> Figures:
        printed = run([BIN / "mpiexec", "-n", "2", "-bind-to", "core", program, *sizes])
        words = (line.split() for line in printed.splitlines())
        return {(what, size): 1 / float(seconds) for what, size, seconds in words}

    return _rows(setting, "", "messages", ours, theirs)


def _sets() -> Iterator[tuple[str, str]]:
    _, flags = model_and_flags()
    for kernels, march in SETS.items():
        if kernels != "avx2" or "avx2" in flags:
            yield kernels, march


def _forced(kernels: str) -> dict[str, str]:
    return {"TILEWISE_KERNELS": kernels} if kernels else {}


def _compiled(setting: Setting, march: str) -> Path:
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        raise NotRun("there is no C++ compiler")
    program = setting.work / f"truth_node-{march}"
    if not program.exists():
        words = ["-O3", f"-march={march}", "-std=c++20", "-pthread", PEERS / "truth_node.cpp"]
        run([compiler, *words, "-o", program])
    return program


def _measured(setting: Setting, kernels: str, kind: str, *words: Any) -> dict[str, Any]:
    brief = ["--launches", "1", "--seconds", "0.1", "--no-store"]
    return measure(setting.work / "measured.json", kind, *words, *brief, **_forced(kernels))[0]


def _printed(command: list[Any]) -> Figures:
    """Of lines like `read 16384 1 1.7e+11` the last number by the words before it."""
    words = (line.split() for line in run(command).splitlines())
    return {tuple(told[:-1]): float(told[-1]) for told in words}


def _rows(
    setting: Setting, kernels: str, kind: str, ours: Callable[[], Figures], theirs: Callable[[], Figures]
) -> list[Row]:
    """In turns; of each figure that both sides have, ours over theirs."""
    sides = {"measure": ours, "program": theirs}
    told: dict[str, dict[tuple[str, ...], list[float]]] = {side: defaultdict(list) for side in sides}
    for turn in range(setting.rounds):
        for side in list(sides)[:: 1 if turn % 2 == 0 else -1]:
            say(f"    {kind}, {kernels or 'the best set'}: {side}, round {turn + 1} of {setting.rounds}")
            for key, figure in sides[side]().items():
                told[side][key].append(figure)
    rows = []
    for key in told["program"]:
        if not (here := told["measure"].get(key)):
            continue
        name = "-".join(("truth", kind, kernels or "best", *key))
        row = Row(name, f"{kind}: {' '.join(key)}, {kernels or 'the best set'}", "at least", CLOSE)
        row.samples = {"measure": here, "program": told["program"][key]}
        rows.append(compare(row, here, told["program"][key]))
    return rows
