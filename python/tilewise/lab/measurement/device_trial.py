"""Tries whether MPI takes addresses on a graphics processor: it is given some, and may well die of it.

An MPI library that knows no devices touches such memory as if it were the host's. So ranks of their own send
a few messages, and how they end is the answer; what the library says of itself is only asked.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from tilewise.base.errors import RunError
from tilewise.lab.measurement.result import ON_DEVICE, Launch, PlannedPoint
from tilewise.lab.measurement.run import Finished, Runner
from tilewise.launch.job import Point, Stop
from tilewise.launch.signals import Signals

_PATIENCE = 60.0  # seconds; ranks that hang are an answer, too
_SIZES = (8, 1 << 20)  # bytes: a message that is sent at once, and one that is met first
_ONCE = Stop(least=1, most=1, warmup=0, relative=1.0, seconds=0.0)


class Tried(NamedTuple):
    """Result of a trial: whether messages arrived as they were sent, or what happened instead."""

    takes: bool
    why: str = ""


def here() -> Launch:
    """Two ranks of this host, wherever they are."""
    return Launch(what="a trial", kind="ping", ranks=2, oversubscribed=True, stop=_ONCE, asks=[])


def says(launcher: str, caught: Signals) -> str:
    """Ask what MPI says of itself: `yes`, `no`, or nothing where there is no way to ask. Raises RunError."""
    return _ran(here(), "", launcher, caught).told.takes_device_addresses


def tried(launch: Launch, buffer: str, launcher: str, caught: Signals) -> Tried:
    """Sends messages from and into memory of the kind `buffer`, between two ranks that are where `launch` has
    its first pair."""
    try:
        point = _ran(launch, buffer, launcher, caught).told.points[-1]
    except RunError as error:
        return Tried(False, error.message)
    return Tried(not point.skipped, point.skipped)


def resolved(launches: Sequence[Launch], launcher: str, caught: Signals) -> tuple[list[Launch], list[str]]:
    """`launches` with messages that go straight where MPI takes them, and what to say of those that do not.

    One trial is enough for all launches whose pairs are as far apart.
    """
    answers: dict[tuple[str, str], Tried] = {}
    made = []
    for launch in launches:
        points = [ask.point for ask in launch.asks if not ask.skipped]
        kinds = {point.buffer for point in points if point.kind == "ping"} & set(ON_DEVICE)
        for kind in sorted(kinds):
            if (launch.level, kind) not in answers:
                answers[launch.level, kind] = tried(launch, kind, launcher, caught)
        takes = {kind for kind in kinds if answers[launch.level, kind].takes}
        asks = [
            msgspec.structs.replace(ask, point=msgspec.structs.replace(ask.point, direct=True))
            if ask.point.buffer in takes
            else ask
            for ask in launch.asks
        ]
        made.append(msgspec.structs.replace(launch, asks=asks))
    said = [
        f"messages from {kind} memory go through pinned memory: MPI does not take its addresses: {answer.why}"
        for (_, kind), answer in answers.items()
        if not answer.takes
    ]
    return made, list(dict.fromkeys(said))


def _ran(launch: Launch, buffer: str, launcher: str, caught: Signals) -> Finished:
    """One start of two ranks. RunError where they die, hang, or get something else than was sent."""
    gpus = next((ask.point.gpus for ask in launch.asks if ask.point.buffer == buffer), 0)
    asks = [
        PlannedPoint(
            point=Point(
                kind="ping",
                name="blocking",
                pattern="roundtrip",
                bytes=size,
                pairs=[(0, 1)],
                buffer=buffer,
                gpus=gpus,
                direct=buffer in ON_DEVICE,
            ),
            level=launch.level,
            ranks=2,
        )
        for size in _SIZES
    ]
    trial = msgspec.structs.replace(
        launch, what="a trial of device memory", ranks=2, cpus=launch.cpus[:2], stop=_ONCE, asks=asks
    )
    with _without_cores():
        return Runner([trial], 1, 0, caught, user_launcher=launcher, timeout=_PATIENCE).run().last


@contextlib.contextmanager
def _without_cores() -> Iterator[None]:
    """Ranks that die of what they are given leave no core file: nothing is wrong with them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
