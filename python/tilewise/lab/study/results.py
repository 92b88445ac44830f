"""A results folder read back: the study, its points with the launches that count, what is missing and why."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import listing, plural
from tilewise.lab.study import store
from tilewise.lab.study.devices import environments_of, refuse_mixture
from tilewise.lab.study.points import combinations
from tilewise.lab.study.schema import SCALES
from tilewise.lab.study.store import DONE, FAILED, NOT_RUN, Entry, Environment, Session
from tilewise.lab.study.study import Study, parse


class Measured(msgspec.Struct, kw_only=True):
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
    sessions: list[Session]
    points: list[Measured]
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


def _mixed(points: list[Measured], sessions: list[Session]) -> list[str]:
    """A note where points that stand side by side were measured in different environments, and in what."""
    there = {entry.environment for point in points for entry in point.entries}
    told = {each.id: msgspec.structs.asdict(each.environment) for each in sessions if each.id in there}
    if len(told) < 2:
        return []
    differs = [
        key for key in Environment.__struct_fields__ if len({str(each[key]) for each in told.values()}) > 1
    ]
    return [f"the points come from {len(told)} environments, which differ in {listing(differs)}"]


def _points(entries: list[Entry], study: Study) -> tuple[list[Measured], list[str]]:
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
        points.append(Measured(key=key, run=first.run, axes=first.axes, entries=counted, reason=reason))
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
