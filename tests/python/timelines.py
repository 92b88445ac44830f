"""Traces made up for the tests of timelines: of any size, with any names."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

PHASES = ("input", "exchange", "compute", "output")


def made_up(path: Path, ranks: int = 4, spans: int = 40, messages: int = 10, name: str = "step") -> Path:
    """Writes a trace of `spans` spans and `messages` messages, of all ranks together; gives `path` back."""
    chance = random.Random(7)
    events: list[dict[str, Any]] = []
    each = max(spans // ranks, 1)
    for rank in range(ranks):
        events.append(
            {"name": "process_name", "ph": "M", "pid": rank, "tid": 0, "args": {"name": f"rank {rank}"}}
        )
        at = chance.random() * 50
        events.append(
            {"name": "job", "cat": "job", "ph": "X", "pid": rank, "tid": 0, "ts": 0.0, "dur": each * 100.0}
        )
        for number in range(each):
            long = chance.random() * 90 + 5
            events.append(
                {
                    "name": f"{name} {number % 20}",
                    "cat": PHASES[number * 4 // each] if number % 3 else "exchange",
                    "ph": "X",
                    "pid": rank,
                    "tid": 0,
                    "ts": round(at, 3),
                    "dur": round(long, 3),
                }
            )
            at += long + chance.random() * 5
    for number in range(messages):
        at = chance.random() * each * 90
        source = number % ranks
        place = {"cat": "message", "name": "message", "id": number, "tid": 0}
        told = {"bytes": 8 * number, "tag": number % 3}
        events.append({**place, "ph": "s", "pid": source, "ts": round(at, 3), "args": told})
        events.append(
            {
                **place,
                "ph": "f",
                "bp": "e",
                "pid": (source + 1) % ranks,
                "ts": round(at + chance.random() * 80, 3),
            }
        )
    about = {"command": "stencil", "ranks": ranks, "messages": messages, "unmatched": 0, "dropped": 0}
    path.write_text(json.dumps({"traceEvents": events, "otherData": about}), encoding="utf-8")
    return path
