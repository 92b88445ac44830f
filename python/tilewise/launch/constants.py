"""The worker's constants that plans go by, as its build left them in `build.json`.

They stand in the C++ headers, each beside its code; `cpp/tilewise/worker/constants.cpp` lists them.
"""

from __future__ import annotations

import functools
import json
import os
from typing import Any, TypeVar

import msgspec

from tilewise.base.errors import UsageError
from tilewise.launch import worker

_Room = TypeVar("_Room", bound=msgspec.Struct)
_NAMED = "constants"  # the member of build.json


def constants(room: str, kind: type[_Room]) -> _Room:
    """The constants `room.name`, such as `multiply.panel_width`, for each field `name` of `kind`.

    They are those of the worker that jobs will be given to. Where that is missing, or nothing lies beside it,
    they are the package's, and a worker that has others refuses the job. Raises UsageError where no build has
    left any, or where one of them is missing.
    """
    wanted: _Room = _read(os.environ.get("TILEWISE_WORKER"), room, kind)
    return wanted


class Seam(msgspec.Struct, frozen=True):
    """Of the seam itself, which `docs/reference/seam.md` describes; seconds but for the first."""

    job_window: int  # bytes of a job that go out before the worker says what it has read
    line_patience: int  # without an answer, after which a host counts as lost
    line_asked_after: int  # of silence, until a host is asked whether it is there
    line_asked_every: int  # and from then on


def seam() -> Seam:
    """Those of the seam."""
    return constants("seam", Seam)


def digest() -> int:
    """The number that stands for all of them in a job; 0 where there are none."""
    found = _built(os.environ.get("TILEWISE_WORKER"))
    return int(found[1].get("digest", 0)) if found is not None else 0


@functools.cache
def _read(named: str | None, room: str, kind: type[_Room]) -> _Room:
    found = _built(named)
    if found is None:
        raise UsageError(
            f"the worker's constants are missing: no build.json has them, sought first at {_places()[0]}",
            "tilewise doctor, or install tilewise again",
        )
    path, values = found
    lead = f"{room}."
    try:
        return msgspec.convert(
            {name.removeprefix(lead): value for name, value in values.items() if name.startswith(lead)}, kind
        )
    except msgspec.ValidationError as wrong:
        raise UsageError(
            f"{path} does not have the constants of {room} that this tilewise wants: {wrong}",
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
    """Where it may lie, best first: beside the worker, else where the package's own would."""
    programs = [*filter(None, [worker.find()]), *worker.candidates(), *worker.places()]
    return [os.path.join(os.path.dirname(program), worker.FACTS) for program in programs]
