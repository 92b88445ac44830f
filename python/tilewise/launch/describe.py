"""Asks the worker what it was built with and what it finds here, without starting ranks."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import msgspec

from tilewise.base.undecodable import UNDECODABLE

_PATIENCE = 60.0  # seconds for one process to start and to leave


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """A graphics processor: `name` has its number and UUID, `compute` is its generation, `memory` in bytes.

    `migrates`: pages of managed memory move when somebody touches them. `peers` are devices whose memory it
    reaches.
    """

    name: str
    compute: str = ""
    memory: int = 0
    unified_addressing: bool = False
    managed: bool = False
    migrates: bool = False
    peers: list[int] = []


class Devices(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver of graphics processors says: the CUDA that it offers, and `trouble` if there is none.

    `simulated`: it is the driver of the tests.
    """

    driver: str = ""
    trouble: str = ""
    simulated: bool = False
    devices: list[Device] = []


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


def devices(path: str) -> Devices:
    """What graphics processors the worker at `path` finds here; this opens their driver."""
    try:
        said = subprocess.run(
            [path, "--devices"], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
        if said.returncode == 0:
            return msgspec.json.decode(said.stdout, type=Devices)
        why = f"the worker ended with {said.returncode} when it looked"
    except (OSError, *UNDECODABLE) as error:
        why = f"the worker cannot be asked: {error}"
    except subprocess.TimeoutExpired:
        why = f"the driver did not answer within {_PATIENCE:g} s"
    return Devices(trouble=why)


def no_graphics(found: Devices) -> str:
    """Why there are no buffers on a graphics processor; empty where there are."""
    return "" if found.devices else f"no graphics processor ({found.trouble})"
