"""What a reader must know of a figure beside its value: disturbed launches, too few, more than can be.

`oversubscribed`, `busy`, `stolen`, `frequency`, `slow` come from records (`tilewise.machine.disturbance`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tilewise.lab.measurement.points import SIMULATED
from tilewise.lab.statistics.intervals import Interval
from tilewise.lab.study.results import Measured
from tilewise.lab.study.store import Entry
from tilewise.machine.disturbance import words

SINGLE = "single launch"
ABOVE = "above the cores"
WIDE = "interval wider than ±100 %"


def words_of(entry: Entry) -> list[str]:
    """What disturbed one launch, in a word each; older records only know of shared cores."""
    record = entry.record or {}
    environment = record.get("environment")
    shared = isinstance(environment, dict) and environment.get("oversubscribed") is True
    said = [*_texts(record.get("labels")), *(["oversubscribed"] if shared else [])]
    if isinstance(environment, dict) and environment.get("simulated_devices") is True:
        said.append(SIMULATED)
    for each in record.get("disturbances") or ():  # of a measurement, which has launches of its own
        if isinstance(each, dict):
            said += words(_texts(each.get("labels")), each.get("oversubscribed") is True)
    return sorted(set(said))


def labels_of(point: Measured) -> list[str]:
    """Of all launches of a point; a word that only some have says how many."""
    count = len(point.entries)
    counted = Counter(word for entry in point.entries for word in words_of(entry))
    said = [
        word if times == count else f"{word} in {times} of {count} launches"
        for word, times in sorted(counted.items())
    ]
    return [*said, *([SINGLE] if is_single(point) else [])]


def is_single(point: Measured) -> bool:
    """Whether nobody can tell how launches differ: there is one, and it is no measurement of several."""
    if len(point.entries) != 1:
        return False
    launches = (point.entries[0].record or {}).get("launches")
    return not (isinstance(launches, int) and launches > 1)


def of_ratio(value: float, interval: Interval | None, cores: int | None, over_ranks: bool) -> list[str]:
    """Of a ratio: whether it is a speedup `over_ranks` that the cores cannot explain, or nearly unknown."""
    said = [ABOVE] if over_ranks and cores is not None and value > cores else []
    if interval is not None and max(value - interval[0], interval[1] - value) > abs(value):
        said.append(WIDE)
    return said


def cores_of(point: Measured) -> int | None:
    """Cores of the machine that a point ran on."""
    environment = (point.entries[-1].record or {}).get("environment") if point.entries else None
    cores = environment.get("cores") if isinstance(environment, dict) else None
    return cores if isinstance(cores, int) and cores > 0 else None


def band(points: Iterable[Measured]) -> str:
    """A sentence on all points of a page that have labels; empty where none has."""
    ran = [point for point in points if point.entries]
    counted = Counter(label.partition(" in ")[0] for point in ran for label in labels_of(point))
    told = ", ".join(f"{label} {count}" for label, count in counted.most_common())
    return f"of {len(ran)} points: {told}" if told else ""


def _texts(labels: object) -> list[str]:
    return [each for each in labels if isinstance(each, str)] if isinstance(labels, list) else []
