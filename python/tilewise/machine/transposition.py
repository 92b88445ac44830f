"""The tile that transposition is fastest in on this machine: measured once for each item size, and kept."""

from __future__ import annotations

import json
import subprocess

from tilewise.machine import facts as facts_of
from tilewise.machine import profile

_PATIENCE = 30.0  # seconds; the measurement takes about one


def transpose_tile(
    item_bytes: int, worker: str, threads: int, facts: facts_of.Facts
) -> dict[str, int | bool]:
    """`rows`, `columns` and `streaming` of the best tile for items of that many bytes (1 to 16).

    Taken from the profile; where it lacks it, the program `worker` measures it with `threads` threads, and it
    is stored. Empty where the worker cannot tell: its own default then holds.
    """
    key = profile.tile_key(facts.host, facts.cpu, item_bytes, threads)
    known = profile.load().tiles.get(key)
    if known is None:
        known = _measured(item_bytes, worker, threads)
        if known is None:
            return {}
        profile.store_tile(key, known)
    return {"rows": known.rows, "columns": known.columns, "streaming": known.streaming}


def _measured(item_bytes: int, worker: str, threads: int) -> profile.Tile | None:
    command = [worker, "--transpose-tile", str(item_bytes), str(threads)]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True).stdout
        found = json.loads(said)
        return profile.Tile(
            rows=int(found["rows"]),
            columns=int(found["columns"]),
            streaming=bool(found["streaming"]),
            bytes_per_second=float(found["bytes_per_second"]),
        )
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None
