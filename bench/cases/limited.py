"""Within --memory and a control group of half as much again, over the same job in all the memory there is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness import BIN, Row, Sample, Setting, alternate, compare, run, tilewise

from cases.files import inputs

GROUPS = Path("/sys/fs/cgroup")
PROCESSES = "cgroup.procs"
MIB = 1 << 20
# Ranks, threads of each, and MiB for a product of 8192².
PRODUCTS = ((1, 2, 128), (2, 1, 128), (4, 1, 220))


def products(setting: Setting) -> list[Row]:
    """A and B stream past a tile of C; both sides start with nothing in the page cache."""
    n = 2048 if setting.quick else 8192
    a, b = inputs(setting, n)
    rows = []
    for ranks, threads, memory in PRODUCTS:
        words = ["multiply", a, b, "-n", ranks, "-t", threads]
        limit = 64 * ranks if setting.quick else memory
        what = f"{n}², {ranks} × {threads}, {limit} MiB, over all in memory"
        rows.append(_beside(setting, f"product-{ranks}x{threads}", what, words, limit, 1.15))
    return rows


def stencil(setting: Setting) -> list[Row]:
    """64 sweeps of five points over float32."""
    n, limit = (2048, 80) if setting.quick else (16384, 256)
    a = setting.work / f"field-{n}.npy"
    run([BIN / "tilewise", "generate", "-o", a, "--shape", f"{n}x{n}", "--dtype", "float32", "-q"])
    words = ["stencil", a, "--steps", 64, "-n", 1, "-t", 2]
    return [_beside(setting, "stencil", f"stencil {n}² × 64, {limit} MiB, over in memory", words, limit, 2.0)]


def safety(setting: Setting) -> list[Row]:
    """What the proof costs a product that streams, whose tiles stand in a journal anyway."""
    n, limit = (2048, 64) if setting.quick else (8192, 128)
    a, b = inputs(setting, n)
    words = ["multiply", a, b, "-t", 2, "-n", 1, "--memory", f"{limit}MiB"]
    sides = {
        "proved": _sample(setting, [*words, "--verify", "fast"], 0),
        "not proved": _sample(setting, [*words, "--verify", "off"], 0),
    }
    row = Row("safety", f"verification of {n}² within {limit} MiB: time over that without", "at most", 1.03)
    row.samples = alternate(sides, setting.rounds)
    return [compare(row, row.samples["proved"], row.samples["not proved"])]


def _beside(setting: Setting, name: str, what: str, words: list[Any], limit: int, most: float) -> Row:
    said: dict[str, Any] = {}
    sides = {
        "limited": _sample(setting, [*words, "--memory", f"{limit}MiB"], limit * 3 // 2, said),
        "in memory": _sample(setting, words, 0),
    }
    row = Row(name, what, "at most", most)
    row.samples = alternate(sides, setting.rounds)
    row.note = f"{said['how']}; {said['group']}"
    return compare(row, row.samples["limited"], row.samples["in memory"])


def _sample(setting: Setting, words: list[Any], limit: int, said: dict[str, Any] | None = None) -> Sample:
    def sample() -> list[float]:
        output = setting.work / "C.npy"
        _forget_pages()
        with _group(limit) as grouped:
            record = tilewise(*words, "-o", output, "--force", record=setting.work / "record.json")
        if said is not None:
            said["how"] = record["variant"]["io"]
            said["group"] = f"control group of {limit} MiB" if grouped else "no control group"
        return [record["seconds"]["total"]["max"]]

    return sample


def _forget_pages() -> None:
    """Empties the page cache, where we may."""
    with contextlib.suppress(OSError):
        run(["sync"])
        Path("/proc/sys/vm/drop_caches").write_text("1")


@contextlib.contextmanager
def _group(limit: int) -> Iterator[bool]:
    """Puts this process, and what it starts, into a control group of `limit` MiB; whether that was done."""
    with contextlib.ExitStack() as stack:
        done = False
        if limit:
            with contextlib.suppress(OSError):
                _enter(limit, stack.callback)
                done = True
        yield done


def _enter(limit: int, later: Callable[..., Any]) -> None:
    old = (GROUPS / "memory").is_dir()  # version 1
    root = GROUPS / "memory" if old else GROUPS
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    ours = next(path for _, controllers, path in lines if controllers == ("memory" if old else ""))
    group = root / "tilewise-bench"
    group.mkdir(exist_ok=True)
    later(_remove, group)
    (group / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(limit * MIB))
    (group / PROCESSES).write_text("0")
    later((root / ours.lstrip("/") / PROCESSES).write_text, "0")


def _remove(group: Path) -> None:
    with contextlib.suppress(OSError):  # a process of a launcher may linger
        group.rmdir()
