"""Facts that the worker tells: its constants, which plans go by, and what it finds on this host.

The build leaves the constants in `build.json`. They stand in the C++ headers, each beside its code, and
`cpp/tilewise/worker/constants.cpp` lists them. What it finds here it is asked for, without starting ranks.

Design: docs/design/front.md.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from typing import Any, TypeVar

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.undecodable import UNDECODABLE
from tilewise.launch import worker

_Section = TypeVar("_Section", bound=msgspec.Struct)
_NAMED = "constants"  # the member of build.json
_PATIENCE = 60.0  # seconds for one process to start and to leave


def constants(section: str, kind: type[_Section]) -> _Section:
    """The constants `section.name`, such as `multiply.panel_width`, for each field `name` of `kind`.

    They are those of the worker that jobs will be given to. Where that is missing, or nothing lies beside it,
    they are the package's, and a worker that has others refuses the job. Raises UsageError where no build has
    left any, or where one of them is missing.
    """
    wanted: _Section = _read(os.environ.get("TILEWISE_WORKER"), section, kind)
    return wanted


class Seam(msgspec.Struct, frozen=True):
    """Constants of the protocol in `docs/reference/seam.md`; in seconds but for the first."""

    job_window: int  # bytes of a job that go out before the worker says what it has read
    line_patience: int  # without an answer, after which a host counts as lost
    line_asked_after: int  # of silence, until a host is asked whether it is there
    line_asked_every: int  # and from then on


def seam() -> Seam:
    """Return the constants of the protocol."""
    return constants("seam", Seam)


def digest() -> int:
    """The number that stands for all of them in a job; 0 where there are none."""
    found = _built(os.environ.get("TILEWISE_WORKER"))
    return int(found[1].get("digest", 0)) if found is not None else 0


@functools.cache
def _read(named: str | None, section: str, kind: type[_Section]) -> _Section:
    found = _built(named)
    if found is None:
        raise UsageError(
            f"the worker's constants are missing: no build.json has them, sought first at {_places()[0]}",
            "tilewise doctor, or install tilewise again",
        )
    path, values = found
    lead = f"{section}."
    try:
        return msgspec.convert(
            {name.removeprefix(lead): value for name, value in values.items() if name.startswith(lead)}, kind
        )
    except msgspec.ValidationError as wrong:
        raise UsageError(
            f"{path} does not have the constants of {section} that this tilewise wants: {wrong}",
            "install tilewise again: the worker is of another build",
        ) from None


@functools.cache
def _built(named: str | None) -> tuple[str, dict[str, Any]] | None:
    """The first build.json that has constants, and these; `named` is what TILEWISE_WORKER says."""
    for path in _places():
        try:
            with open(path, encoding="utf-8") as file:
                values = json.load(file)[_NAMED]
        except (OSError, ValueError, LookupError, TypeError):
            continue
        if isinstance(values, dict):
            return path, values
    return None


def _places() -> list[str]:
    """Return places of build.json, best first: beside the worker, else where the package's would lie."""
    programs = [*filter(None, [worker.find()]), *worker.candidates(), *worker.places()]
    return [os.path.join(os.path.dirname(program), worker.FACTS) for program in programs]


class GraphicsDevice(msgspec.Struct, frozen=True, kw_only=True):
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
    """Answer of the driver of graphics processors: the CUDA that it offers, and `trouble` if there is none.

    `simulated`: it is the driver of the tests.
    """

    driver: str = ""
    trouble: str = ""
    simulated: bool = False
    devices: list[GraphicsDevice] = []


def _ask(path: str, flag: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([path, flag], capture_output=True, text=True, timeout=_PATIENCE, check=False)


def describe(path: str) -> tuple[dict[str, Any] | None, str]:
    """Return the worker's own description; None, and its last words, where it cannot be started."""
    try:
        done = _ask(path, "--describe")
        described = json.loads(done.stdout) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None, ""
    if isinstance(described, dict):
        return described, ""
    return None, "".join(done.stderr.strip().splitlines()[-1:])


def devices(path: str) -> Devices:
    """Return the graphics processors that the worker at `path` finds here; this opens their driver."""
    try:
        done = _ask(path, "--devices")
        if done.returncode == 0:
            return msgspec.json.decode(done.stdout, type=Devices)
        why = f"the worker ended with {done.returncode} when it looked"
    except (OSError, *UNDECODABLE) as error:
        why = f"the worker cannot be asked: {error}"
    except subprocess.TimeoutExpired:
        why = f"the driver did not answer within {_PATIENCE:g} s"
    return Devices(trouble=why)


def no_graphics(found: Devices) -> str:
    """Return why there are no buffers on a graphics processor; empty where there are."""
    return "" if found.devices else f"no graphics processor ({found.trouble})"
