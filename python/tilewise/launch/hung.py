"""Says of ranks that hang which they are, where, since when, and in what: for an error, or for a warning."""

from __future__ import annotations

import time
from collections.abc import Callable

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
    def what(beat: Beat) -> str:
        return (
            f"{_DID.get(hang.states.get(beat.rank, ''), 'did not answer, last')} in {beat.phase or 'start'}"
        )

    return f"{_together(hang.ranks, what)}, {_since(hang)}"


def _still(hang: Hang) -> str:
    """The ranks that others wait for, or all, where each waits for another."""
    others = plural(len(hang.others), "rank")
    rest = f"; {others} {'waits' if len(hang.others) == 1 else 'wait'} for that" if hang.others else ""
    return f"no rank got on {_since(hang)}: {_together(hang.ranks, _place)}{rest}"


def _together(beats: list[Beat], what: Callable[[Beat], str]) -> str:
    """Who does what: those together that do the same, the fewest first."""
    groups: dict[str, list[Beat]] = {}
    for beat in beats:
        groups.setdefault(what(beat), []).append(beat)
    fewest = sorted(groups.items(), key=lambda group: len(group[1]))
    return ", ".join(f"{_who(group)} {done}" for done, group in fewest)


def _who(beats: list[Beat]) -> str:
    if len(beats) > _NAMED:
        return f"{plural(len(beats), 'rank')}, such as {_name(beats[0])},"
    return listing([_name(beat) for beat in beats])


def _name(beat: Beat) -> str:
    return f"rank {beat.rank} (pid {beat.pid} on {beat.host})"


def _place(beat: Beat) -> str:
    """Its phase and call; of system calls inside MPI only those on a file: it sleeps between two looks."""
    waits = beat.waits if not beat.call or "/" in beat.waits else ""
    calls = ", ".join(part for part in (beat.call, waits) if part)
    return f"in {beat.phase or 'start'}" + (f" ({calls})" if calls else "")


def _since(hang: Hang) -> str:
    return f"for {hang.seconds:.0f} s, since {time.strftime('%H:%M:%S', time.localtime(hang.since))}"


def _advice(hang: Hang) -> str:
    if hang.silent:
        return advice.STOPPED if "T" in hang.states.values() else advice.SILENT
    if any("/" in beat.waits for beat in hang.ranks):
        return advice.FILE
    return advice.STUCK
