"""Says of ranks that hang which they are, where, since when, and in what: for an error, or for a warning."""

from __future__ import annotations

import time

from tilewise.base.errors import RunError
from tilewise.base.units import listing, plural
from tilewise.launch import advice
from tilewise.launch.beats import Hang
from tilewise.launch.events import Beat

_NAMED = 3  # ranks that a message names one by one
_DID = {"T": "was stopped by a signal", "D": "waited for a disk or a file server"}  # by the kernel's letter


def error_of(hang: Hang) -> RunError:
    """What ended the job."""
    if hang.silent:
        return RunError(f"{_silent(hang)}; all ranks were ended", _advice(hang))
    return RunError(f"{_still(hang)}; all ranks were ended", _advice(hang))


def standstill(hang: Hang) -> str:
    """That the job does not get on, in one line with what to do."""
    return f"{_still(hang)}; --deadline TIME ends such a job, Ctrl-C this one"


def _silent(hang: Hang) -> str:
    groups: dict[str, list[Beat]] = {}
    for beat in hang.ranks:
        did = _DID.get(hang.states.get(beat.rank, ""), "did not answer, last")
        groups.setdefault(did, []).append(beat)
    said = [f"{_who(beats)} {did} {_where(beats)}" for did, beats in groups.items()]
    return f"{'; '.join(said)}, {_since(hang)}"


def _still(hang: Hang) -> str:
    """The ranks that others wait for, or all, where each waits for another."""
    others = plural(len(hang.others), "rank")
    rest = f"; {others} {'waits' if len(hang.others) == 1 else 'wait'} for that" if hang.others else ""
    return f"no rank got on {_since(hang)}: {_who(hang.ranks)} {_where(hang.ranks)}{rest}"


def _who(beats: list[Beat]) -> str:
    if len(beats) > _NAMED:
        return f"{plural(len(beats), 'rank')}, such as {_name(beats[0])},"
    return listing([_name(beat) for beat in beats])


def _name(beat: Beat) -> str:
    return f"rank {beat.rank} (pid {beat.pid} on {beat.host})"


def _where(beats: list[Beat]) -> str:
    """The phase, and the calls, of those that have the same; of several, each once."""
    return listing(list(dict.fromkeys(_place(beat) for beat in beats)))


def _place(beat: Beat) -> str:
    calls = ", ".join(part for part in (beat.call, beat.waits) if part)
    return f"in {beat.phase or 'start'}" + (f" ({calls})" if calls else "")


def _since(hang: Hang) -> str:
    return f"for {hang.seconds:.0f} s, since {time.strftime('%H:%M:%S', time.localtime(hang.since))}"


def _advice(hang: Hang) -> str:
    if hang.silent:
        return advice.STOPPED if "T" in hang.states.values() else advice.SILENT
    if any("/" in beat.waits for beat in hang.ranks):
        return advice.FILE
    return advice.STUCK
