"""Transposition in memory, as a fraction of a copy; beside HPTT where it is built, and NumPy."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from harness import BIN, ROOT, Row, Setting, compare, run, say

SHAPES = ((8192, 8192), (10000, 10000), (16384, 16384), (16000, 9000))
# Bytes of an item: its name, NumPy's type, and the least fraction of a copy; 0 where the row is only shown.
ITEMS = {
    8: ("float64", "float64", 0.90),
    4: ("float32", "float32", 0.85),
    2: ("int16", "int16", 0.60),
    1: ("int8", "int8", 0.0),
    16: ("complex128", "complex128", 0.0),
}
_NUMPY = """
import json, sys, time
import numpy as np
rows, columns, rounds = map(int, sys.argv[2:])
source = np.ones((rows, columns), sys.argv[1])
seconds = []
for _ in range(rounds):
    begin = time.perf_counter()
    np.ascontiguousarray(source.T)
    seconds.append(time.perf_counter() - begin)
print(json.dumps(seconds))
"""


def build() -> Path:
    """The program; beside HPTT where TILEWISE_HPTT names a folder that it was built in."""
    folder = ROOT / "build/bench-memory"
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DTILEWISE_BENCH=ON", f"-DPython_EXECUTABLE={BIN / 'python'}"]
    hptt = os.environ.get("TILEWISE_HPTT", "")
    run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options, f"-DTILEWISE_HPTT={hptt}"])
    run(["cmake", "--build", folder, "--target", "tilewise-transpose-memory"])
    return folder / "bench/tilewise-transpose-memory"


def measure(program: Path, shape: tuple[int, int], item: int, rounds: int) -> dict[str, Any]:
    """Side to what the program said of it; every item is checked there."""
    lines = run([program, *shape, item, 2, rounds]).splitlines()
    said: dict[str, Any] = {line["side"]: line for line in map(json.loads, lines)}
    wrong = [name for name, side in said.items() if not side.get("right", True)]
    if wrong:
        raise SystemExit(f"{', '.join(wrong)} turned {shape} items of {item} bytes wrongly")
    return said


def memory(setting: Setting) -> list[Row]:
    """Rows for each shape and type: over a copy, over HPTT, and NumPy over ours."""
    program = build()
    rounds = 2 * setting.rounds + 1
    rows = []
    for shape in ((1000, 900),) if setting.quick else SHAPES:
        for item, (name, dtype, target) in ITEMS.items():
            say(f"    {shape[0]}x{shape[1]} {name}")
            said = measure(program, shape, item, rounds)
            numpy = json.loads(run([BIN / "python", "-c", _NUMPY, dtype, *shape, 2]))
            rows += _rows(f"{name} {shape[0]}x{shape[1]}", target, said, numpy)
    return rows


def _rows(name: str, target: float, said: dict[str, Any], numpy: list[float]) -> list[Row]:
    ours = said["tilewise"]["seconds"]
    tile = said["tile"]
    note = f"tiles of {tile['rows']}x{tile['columns']}{', streaming' if tile['streaming'] else ''}"

    def row(what: str, least: float, above: list[float], below: list[float], note: str = "") -> Row:
        made = Row(
            f"transpose-{name}-{what}", f"{name}: {what}", "at least" if least else "", least, note=note
        )
        made.samples = {"above": above, "below": below}
        return compare(made, above, below)

    streaming = [
        row("speed over a streaming copy's", 0, said["streaming copy"]["seconds"], ours)
        for _ in range("streaming copy" in said)
    ]
    hptt = said["hptt"]
    beside = (
        row("speed over HPTT's", 1.0, hptt["seconds"], ours)
        if "seconds" in hptt
        else Row(f"transpose-{name}-hptt", f"{name}: speed over HPTT's", "", 0, note=hptt["not"])
    )
    return [
        row("speed over memcpy's", target, said["memcpy"]["seconds"], ours, note),
        *streaming,
        beside,
        row("speed over NumPy's", 10.0, numpy, ours),
    ]
