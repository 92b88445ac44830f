"""The tile that transposition is fastest in on this machine: measured once for each item size, and kept."""

from __future__ import annotations

import json
import subprocess

from tilewise.machine import profile
from tilewise.machine.facts import Facts

_PATIENCE = 30.0  # seconds; the measurement takes about one


def stored_tile(item_bytes: int, threads: int, facts: Facts) -> profile.Tile | None:
    """The best tile for items of that many bytes (1 to 16) on so many threads; None before that is known."""
    return profile.load().tiles.get(profile.tile_key(facts.host, facts.cpu, item_bytes, threads))


def measure_tile(item_bytes: int, threads: int, facts: Facts, worker: str) -> None:
    """Has the program `worker` find the tile, and stores it; where it cannot tell, nothing is stored."""
    command = [worker, "--transpose-tile", str(item_bytes), str(threads)]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True).stdout
        fastest = json.loads(said)
        tile = profile.Tile(
            rows=int(fastest["rows"]),
            columns=int(fastest["columns"]),
            streaming=bool(fastest["streaming"]),
            bytes_per_second=float(fastest["bytes_per_second"]),
        )
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return
    profile.store_tile(profile.tile_key(facts.host, facts.cpu, item_bytes, threads), tile)
