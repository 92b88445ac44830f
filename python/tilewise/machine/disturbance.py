"""Disturbance of a measurement on this node: other programs, stolen time, slower cores.

    Watch() ──▶ launch: yardstick · points · yardstick ──▶ seen(): differences, a label for each that matters

Busy time of all processes comes from /proc/stat, ours from what the system books for this process and its
children; what is left after kernel threads (which write our own files out) belongs to other programs.

Design: docs/design/measuring.md.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from tilewise.machine import host

_TICK = 0.01  # seconds of a unit in /proc/stat, as Linux tells them to programs on every processor

# Found by trial on two cores of a virtual machine: quiet launches of 0.3 to 0.6 s had at most 0.01 cores of
# others, 0.17 of pressure, and yardsticks within 3 %; beside a busy loop it was 0.5 cores or more. One of the
# lowest priority gets next to nothing where all cores are busy, and is ready to run nearly all the time.
_OTHERS_CORES = 0.1
_OTHERS_SECONDS = 0.05
_PRESSURE = 0.4
_STOLEN = 0.02
_FREQUENCY = 0.1
_SLOWER = 0.1
_MOST_ASKED = 16  # cores whose throttling is asked for: each is a file
_WORDS = {
    "oversubscribed": "oversubscribed",
    "other programs busy": "busy",
    "core stolen": "stolen",
    "frequency changed": "frequency",
    "cores too hot": "frequency",
    "cores slowed down": "slow",
}


class Disturbance(msgspec.Struct, kw_only=True):
    """Disturbance of a launch; None where this machine does not say.

    `ceiling` is the highest frequency that the system lets cores have, before and after, in megahertz;
    `stolen` and `others` are shares of the cores' time; `slowdown` is the yardstick's greatest over its
    least, less 1; `switches` are those that took a core away from a rank; `throttled` counts how often
    cores were slowed down because of their heat.
    """

    launch: int
    what: str
    seconds: float
    stolen: float | None = None
    others: float | None = None
    slowdown: float | None = None
    switches: float | None = None
    megahertz: tuple[float, float] | None = None
    ceiling: tuple[float, float] | None = None
    throttled: int | None = None
    oversubscribed: bool = False
    labels: list[str] = []

    def words(self) -> list[str]:
        """A word for each label, for programs: `oversubscribed`, `busy`, `stolen`, `frequency`, `slow`."""
        return words(self.labels, self.oversubscribed)


def words(labels: Iterable[str], oversubscribed: bool = False) -> list[str]:
    """The word that stands for each of `labels`, once and sorted."""
    every = [*labels, *(["oversubscribed"] if oversubscribed else [])]
    return sorted({word for label in every for begin, word in _WORDS.items() if label.startswith(begin)})


class _Reading(msgspec.Struct, frozen=True):
    """Seconds since some moment: on the clock, of all cores together, of our own and of kernel threads."""

    clock: float
    all: float
    busy: float
    stolen: float
    own: float
    kernel: float
    pressure: float | None
    runnable: int | None
    megahertz: float | None
    ceiling: float | None
    throttled: int | None


def own_seconds() -> float:
    """Processor seconds of this process and of all its descendants that have ended."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def own_user_seconds() -> float:
    """User seconds of this process and of all its descendants that have ended."""
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Watch:
    """Observer of this node from its making until `seen` is called.

    Takes a few milliseconds each time; with `light` 0.2 ms, for what may not take longer: then only what
    programs do outside the kernel counts, in which the kernel's own threads have no part, and cores are
    asked for the highest frequency that they may have, not for what they have. Only cores that this process
    may use count. What other nodes of the launch do is not seen, but for the ranks' own yardsticks.
    Clock, files, cores and own time are parameters so that tests can make them up.
    """

    def __init__(
        self,
        proc: str = "/proc",
        sys: str = "/sys/devices/system/cpu",
        cpus: Collection[int] | None = None,
        clock: Callable[[], float] = time.monotonic,
        own: Callable[[], float] | None = None,
        light: bool = False,
    ) -> None:
        self._proc, self._sys = Path(proc), Path(sys)
        self._cpus = set(host.allowed_cpus() if cpus is None else cpus)
        self._light = light
        self._clock, self._own = clock, own or (own_user_seconds if light else own_seconds)
        self._begin = self._read()

    def seen(
        self,
        *,
        launch: int,
        what: str,
        oversubscribed: bool = False,
        yardstick: Mapping[str, Sequence[float]] | None = None,
        switches: Sequence[float] = (),
        ours: bool = True,
    ) -> Disturbance:
        """Return what happened since. `yardstick`: seconds on each rank, `before` and `after` the points.

        `switches`: how often a rank's core was taken away. Ranks that are not `ours`, as another program
        started them, cannot be told from others. Where ranks share cores (`oversubscribed`), slow yardsticks
        and waiting are their own doing, and are not labelled.
        """
        first, last = self._begin, self._read()
        seconds = last.clock - first.clock
        before, after = (list((yardstick or {}).get(name, ())) for name in ("before", "after"))
        disturbance = Disturbance(
            launch=launch,
            what=what,
            seconds=seconds,
            switches=float(sum(switches)) if switches else None,
            oversubscribed=oversubscribed,
        )
        if oversubscribed:
            disturbance.labels.append("oversubscribed")
        there = last.all - first.all
        if there > 0 and seconds > 0:
            disturbance.stolen = max(0.0, (last.stolen - first.stolen) / there)
            not_theirs = (last.own - first.own) + max(0.0, last.kernel - first.kernel)
            others = max(0.0, last.busy - first.busy - not_theirs) if ours else 0.0
            disturbance.others = min(1.0, others / there) if ours else None
            if disturbance.stolen >= _STOLEN:
                disturbance.labels.append(f"core stolen by the hypervisor ({100 * disturbance.stolen:.0f} %)")
            if others / seconds >= _OTHERS_CORES and others >= _OTHERS_SECONDS:
                disturbance.labels.append(f"other programs busy ({others / seconds:.1f} cores)")
            elif ours and (why := self._waiting(first, last, oversubscribed)):
                disturbance.labels.append(f"other programs busy ({why})")
        change = _change(before, after)
        disturbance.slowdown = (
            max(before + after) / min(before + after) - 1 if min(before + after, default=0) > 0 else None
        )
        if first.megahertz and last.megahertz:
            disturbance.megahertz = first.megahertz, last.megahertz
            if _frequency_matters(first.megahertz, last.megahertz, change):
                disturbance.labels.append(
                    f"frequency changed ({first.megahertz / 1000:.2f} to {last.megahertz / 1000:.2f} GHz)"
                )
        if first.ceiling and last.ceiling:
            disturbance.ceiling = first.ceiling, last.ceiling
            if abs(last.ceiling / first.ceiling - 1) >= _FREQUENCY:
                disturbance.labels.append(
                    f"frequency changed (ceiling {first.ceiling / 1000:.2f} to {last.ceiling / 1000:.2f} GHz)"
                )
        if first.throttled is not None and last.throttled is not None:
            disturbance.throttled = max(0, last.throttled - first.throttled)
            if disturbance.throttled:
                disturbance.labels.append(f"cores too hot (slowed down {disturbance.throttled} times)")
        slower = max(change, _unevenness(before, after) if self._alike() else 0.0)
        # A core that was taken away for a while shows in the yardstick as well, and is labelled above.
        taken = oversubscribed or any(
            label.startswith(("core stolen", "other programs")) for label in disturbance.labels
        )
        if slower >= _SLOWER and not taken:
            disturbance.labels.append(f"cores slowed down (yardstick +{100 * slower:.0f} %)")
        return disturbance

    def _waiting(self, first: _Reading, last: _Reading, oversubscribed: bool) -> str:
        """Say that others wanted a core all the time and got next to nothing, as those of low priority do.

        The system says so of all of its cores only; so nothing is said where this process may not use all,
        nor where our own ranks wait for each other.
        """
        online = host.cpu_list(host.text_of(self._sys / "online"))
        if oversubscribed or (online and not online <= self._cpus):
            return ""
        if first.pressure is not None and last.pressure is not None:
            share = (last.pressure - first.pressure) / (last.clock - first.clock)
            return (
                f"waiting for a core {100 * min(share, 1.0):.0f} % of the time" if share >= _PRESSURE else ""
            )
        if first.runnable is not None and last.runnable is not None:
            count = min(first.runnable, last.runnable) - 1  # one is this process, which just looks
            return f"{count} ready to run before and after" if count > 0 else ""
        return ""

    def _read(self) -> _Reading:
        all_, busy, stolen, runnable = self._times()
        return _Reading(
            clock=self._clock(),
            all=all_,
            busy=busy,
            stolen=stolen,
            own=self._own(),
            kernel=0.0 if self._light else self._kernel_threads(),
            pressure=self._pressure(),
            runnable=runnable,
            megahertz=None if self._light else self._megahertz(),
            ceiling=_mean(self._read_of_cores("cpufreq/scaling_max_freq", 1), 1000),
            throttled=self._throttled(),
        )

    def _times(self) -> tuple[float, float, float, int | None]:
        """Seconds of our cores: all, busy with programs, stolen; and how many threads are ready to run.

        Interrupts are not others' work: on a node where only we are, they are ours.
        """
        all_ = busy = stolen = 0.0
        runnable = None
        for line in host.text_of(self._proc / "stat").splitlines():
            name, *fields = line.split()
            if name == "procs_running":
                runnable = int(fields[0])
            elif name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in self._cpus:
                ticks = [int(field) for field in fields[:8]] + [0] * (8 - len(fields))
                all_ += _TICK * sum(ticks)  # guests, which come after, are in the first field
                busy += _TICK * sum(ticks[: 2 if self._light else 3])
                stolen += _TICK * ticks[7]
        return all_, busy, stolen, runnable

    def _kernel_threads(self) -> float:
        """Processor seconds of the kernel's own threads; 0 where a container does not show them."""
        if "(kthreadd)" not in host.text_of(self._proc / "2" / "stat"):
            return 0.0
        total = 0
        for number in host.text_of(self._proc / "2" / "task" / "2" / "children").split():
            fields = host.text_of(self._proc / number / "stat").rpartition(")")[2].split()
            if len(fields) > 12:
                total += int(fields[11]) + int(fields[12])
        return _TICK * total

    def _pressure(self) -> float | None:
        """Seconds in which something waited for a core."""
        for line in host.text_of(self._proc / "pressure" / "cpu").splitlines():
            if line.startswith("some ") and "total=" in line:
                return int(line.rpartition("total=")[2]) * 1e-6
        return None

    def _megahertz(self) -> float | None:
        """The mean of our cores."""
        texts = [
            host.text_of(self._sys / f"cpu{number}" / "cpufreq" / "scaling_cur_freq") for number in self._cpus
        ]
        megahertz = [int(text) / 1000 for text in texts if text.isdigit()]
        if not megahertz:
            number = -1
            for line in host.text_of(self._proc / "cpuinfo").splitlines():
                key, _, value = line.partition(":")
                if key.strip() == "processor":
                    number = int(value)
                elif key.strip() == "cpu MHz" and number in self._cpus:
                    megahertz.append(float(value))
        return _mean(megahertz)

    def _throttled(self) -> int | None:
        """Return how often cores were slowed down by heat, theirs or their package's; None where unknown."""
        names = ("core_throttle_count", "package_throttle_count")
        counts = [count for name in names for count in self._read_of_cores(f"thermal_throttle/{name}")]
        return sum(counts) if counts else None

    def _read_of_cores(self, name: str, most: int = _MOST_ASKED) -> list[int]:
        """Read a number for each of our first cores; empty where there is none, as in virtual machines."""
        texts = (host.text_of(self._sys / f"cpu{number}" / name) for number in sorted(self._cpus)[:most])
        return [int(text) for text in texts if text.isdigit()]

    def _alike(self) -> bool:
        """Return whether our cores are of one kind, as far as the system tells."""
        return all(
            len({host.text_of(self._sys / f"cpu{number}" / name) for number in self._cpus}) <= 1
            for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq")
        )


def _mean(values: Sequence[float], unit: float = 1) -> float | None:
    return sum(values) / len(values) / unit if values else None


def _change(before: list[float], after: list[float]) -> float:
    """Relative change of the fastest rank's yardstick: one rank alone may have been interrupted."""
    if not before or not after or min(before + after) <= 0:
        return 0.0
    low, high = sorted((min(before), min(after)))
    return high / low - 1


def _unevenness(before: list[float], after: list[float]) -> float:
    """Relative excess of the slowest rank's better yardstick over that of the fastest."""
    best = [min(two) for two in zip(before, after, strict=False)]
    return max(best) / min(best) - 1 if best and min(best) > 0 else 0.0


def _frequency_matters(first: float, last: float, change: float) -> bool:
    """A core that was idle before is expected to be faster after, unless the work shows it as well."""
    if last < (1 - _FREQUENCY) * first:
        return True
    return last > (1 + _FREQUENCY) * first and change >= _SLOWER
