"""A results folder read back: the study, its points with the launches that count, and labels beside them.

Labels say what a reader must know of a figure. `oversubscribed`, `busy`, `stolen`, `frequency` and `slow`
come from records (`tilewise.machine.disturbance`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import listing, plural
from tilewise.lab.measurement.result import SIMULATED, has_simulated_devices
from tilewise.lab.statistics.intervals import Interval
from tilewise.lab.study import store
from tilewise.lab.study.points import combinations
from tilewise.lab.study.schema import SCALES
from tilewise.lab.study.store import DONE, FAILED, NOT_RUN, Entry, StudyEnvironment, StudySession
from tilewise.lab.study.study import Study, parse
from tilewise.machine.disturbance import words


class MeasuredPoint(msgspec.Struct, kw_only=True):
    """A point and its counted launches; where there is none, `reason` says why."""

    key: str
    run: str
    axes: dict[str, Any]
    entries: list[Entry]
    reason: str = ""


class Results(msgspec.Struct, kw_only=True):
    """Everything of one folder. `sessions` are the runs that added to it, oldest first."""

    folder: str
    study: Study
    sessions: list[StudySession]
    points: list[MeasuredPoint]
    notes: list[str]

    def order(self, name: str, runs: list[str] | None = None) -> list[Any]:
        """All values of an axis in the order of the study; of `run`, the names of the runs.

        Those of `runs`, where they are given, come first.
        """
        every = sorted(self.study.runs, key=lambda run: run.name not in (runs or ()))
        if name == "run":
            return [run.name for run in every]
        values = [value for run in every for value in run.axes.get(name, [])]
        values += [point.axes[name] for point in self.points if name in point.axes]
        return list({repr(value): value for value in values}.values())


def load(folder: str) -> Results:
    """The results in `folder`, or in the newest one below it; UsageError where there are none."""
    folder = store.newest(folder)
    entries, notes = store.load_entries(folder)
    sessions = store.load_sessions(folder, notes)
    path = os.path.join(folder, store.STUDY)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        advice = f"tilewise study run FILE.toml --into {folder}, which stores the study's file there again"
        raise UsageError(f"{path}: {error.strerror or error}", advice) from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text, as a TOML file must be") from None
    told = next((each.study for each in reversed(sessions) if each.study), "")
    name = told or os.path.basename(os.path.dirname(os.path.abspath(folder))) or "study"
    scale = sessions[-1].scale if sessions else "default"
    if scale not in SCALES:
        notes.append(f"{folder}: its last run names the unknown scale {scale!r}; shown as default")
        scale = "default"
    study = parse(text, path, name, scale)
    points, more = _points(entries, study)
    refuse_mixture(folder, environments_of(entry for point in points for entry in point.entries))
    notes += [*more, *_mixed(points, sessions)]
    return Results(folder=folder, study=study, sessions=sessions, points=points, notes=notes)


def _mixed(points: list[MeasuredPoint], sessions: list[StudySession]) -> list[str]:
    """A note where points that stand side by side were measured in different environments, and in what."""
    there = {entry.environment for point in points for entry in point.entries}
    told = {each.id: msgspec.structs.asdict(each.environment) for each in sessions if each.id in there}
    if len(told) < 2:
        return []
    differs = [
        key
        for key in StudyEnvironment.__struct_fields__
        if len({str(each[key]) for each in told.values()}) > 1
    ]
    return [f"the points come from {len(told)} environments, which differ in {listing(differs)}"]


def _points(entries: list[Entry], study: Study) -> tuple[list[MeasuredPoint], list[str]]:
    """Points in the order of the study. Of a point measured on several machines, the last one counts."""
    of_point: dict[str, list[Entry]] = {}
    for entry in entries:
        of_point.setdefault(entry.point, []).append(entry)
    points, others = [], 0
    for key, launches in of_point.items():
        ran = [entry for entry in launches if entry.status != NOT_RUN]
        newest = ran[-1].environment if ran else ""
        others += any(entry.environment != newest for entry in ran)
        last = {
            entry.launch: entry for entry in ran if entry.environment == newest
        }  # the last try of each launch
        counted = [entry for entry in last.values() if entry.status == DONE and not entry.warmup]
        first = launches[0]
        reason = "" if counted else _reason(launches, list(last.values()))
        points.append(MeasuredPoint(key=key, run=first.run, axes=first.axes, entries=counted, reason=reason))
    place = {
        (run.name, _text(axes)): (number, inner)
        for number, run in enumerate(study.runs)
        for inner, axes in enumerate(combinations(run))
    }
    behind = (len(study.runs), 0)
    points.sort(key=lambda point: place.get((point.run, _text(point.axes)), behind))
    notes = []
    if others:
        count = plural(others, "point")
        notes.append(f"{count} measured on several machines or file systems; the last one is used")
    return points, notes


def _reason(entries: list[Entry], last: list[Entry]) -> str:
    failed = [entry for entry in last if entry.status == FAILED]
    if failed:
        return f"failed: {failed[-1].message}"
    skipped = [entry for entry in entries if entry.status == NOT_RUN]
    return f"not run: {skipped[-1].message}" if skipped else "not run yet"


def _text(axes: dict[str, Any]) -> bytes:
    return msgspec.json.encode(axes, order="sorted")


SINGLE = "single launch"
ABOVE = "above the cores"
WIDE = "interval wider than ±100 %"


def words_of(entry: Entry) -> list[str]:
    """Words for what disturbed one launch; older records only know of shared cores."""
    record = entry.record or {}
    environment = record.get("environment")
    shared = isinstance(environment, dict) and environment.get("oversubscribed") is True
    said = [*_texts(record.get("labels")), *(["oversubscribed"] if shared else [])]
    said += [SIMULATED] * has_simulated_devices(environment)
    for each in record.get("disturbances") or ():  # of a measurement, which has launches of its own
        if isinstance(each, dict):
            said += words(_texts(each.get("labels")), each.get("oversubscribed") is True)
    return sorted(set(said))


def labels_of(point: MeasuredPoint) -> list[str]:
    """Labels of all launches of a point; a word that only some have says how many."""
    count = len(point.entries)
    counted = Counter(word for entry in point.entries for word in words_of(entry))
    said = [
        word if times == count else f"{word} in {times} of {count} launches"
        for word, times in sorted(counted.items())
    ]
    return [*said, *([SINGLE] if is_single(point) else [])]


def is_single(point: MeasuredPoint) -> bool:
    """Tell whether nobody knows how launches differ: there is one, and it is no measurement of several."""
    if len(point.entries) != 1:
        return False
    launches = (point.entries[0].record or {}).get("launches")
    return not (isinstance(launches, int) and launches > 1)


def of_ratio(value: float, interval: Interval | None, cores: int | None, over_ranks: bool) -> list[str]:
    """Labels of a ratio: a speedup `over_ranks` that the cores cannot explain, or nearly unknown."""
    said = [ABOVE] if over_ranks and cores is not None and value > cores else []
    if interval is not None and max(value - interval[0], interval[1] - value) > abs(value):
        said.append(WIDE)
    return said


def cores_of(point: MeasuredPoint) -> int | None:
    """Cores of the machine that a point ran on."""
    environment = (point.entries[-1].record or {}).get("environment") if point.entries else None
    cores = environment.get("cores") if isinstance(environment, dict) else None
    return cores if isinstance(cores, int) and cores > 0 else None


def band(points: Iterable[MeasuredPoint]) -> str:
    """A sentence on all points of a page that have labels; empty where none has."""
    ran = [point for point in points if point.entries]
    counted = Counter(label.partition(" in ")[0] for point in ran for label in labels_of(point))
    told = ", ".join(f"{label} {count}" for label, count in counted.most_common())
    return f"of {len(ran)} points: {told}" if told else ""


def _texts(labels: object) -> list[str]:
    return [each for each in labels if isinstance(each, str)] if isinstance(labels, list) else []


def refuse_mixture(where: str, environments: Iterable[object]) -> None:
    """Raises UsageError where some `environments` of records had real devices and others simulated ones.

    They are those of `where`.
    """
    sorts = {
        has_simulated_devices(told) for told in environments if isinstance(told, dict) and told.get("devices")
    }
    if len(sorts) > 1:
        raise UsageError(
            f"{where}: figures of real graphics processors and of simulated ones, which no page mixes",
            "one page for each; tilewise study run … --into another folder",
        )


def environments_of(entries: Iterable[Entry]) -> list[object]:
    """Environments that the records of entries tell of."""
    return [(entry.record or {}).get("environment") for entry in entries]
