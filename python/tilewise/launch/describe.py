"""Asks the worker what it was built with and what it finds here, without starting ranks."""

from __future__ import annotations

import json
import subprocess
from typing import Any

_PATIENCE = 60.0  # seconds for one process to start and to leave


def describe(path: str) -> tuple[dict[str, Any] | None, str]:
    """What the worker at `path` says of itself; None, and its last words, where it cannot be started."""
    try:
        said = subprocess.run(
            [path, "--describe"], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
        described = json.loads(said.stdout) if said.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None, ""
    if isinstance(described, dict):
        return described, ""
    return None, "".join(said.stderr.strip().splitlines()[-1:])


def no_graphics(described: dict[str, Any]) -> str:
    """Why there are no buffers on a graphics processor; empty where there are."""
    if int(described.get("gpus", 0)) > 0:
        return ""
    if not described.get("cuda"):
        return "the worker was built without CUDA"
    return f"no graphics processor ({described.get('gpu_trouble', '')})"
