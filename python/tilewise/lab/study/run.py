"""Runs the points of a study: in rounds of shuffled order, one process each, every end kept at once.

round 0   C A D B     each letter a point, each column a launch of it: slow drift of the machine
round 1   B D A C     hits all points alike, and no point always follows the same other one

Several parts may run at once: a point that another one is just launching is passed over, and looked at again
at the end, since that other part may have died meanwhile. Whoever is last finds nothing held, and runs all.

With `until_decided`, points of undecided claims go on a round each, so that drift meets all of them alike,
until the intervals leave the thresholds. A claim is left alone where its figure is nearer to the threshold
than sessions are to each other: no launch decides it.
"""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from tilewise.base.errors import RunError, TilewiseError
from tilewise.base.units import plural
from tilewise.engine.child import Ended, run_words
from tilewise.lab.statistics.intervals import narrow
from tilewise.lab.study import store
from tilewise.lab.study.claims import UNDECIDED
from tilewise.lab.study.evaluation import Evaluated
from tilewise.lab.study.observations import figure_of
from tilewise.lab.study.points import StudyPoint
from tilewise.lab.study.results import is_single
from tilewise.lab.study.store import DONE, FAILED, NOT_RUN, Entry, Store, StudyEnvironment
from tilewise.lab.study.study import Study, launches_of, parse, warmups_of
from tilewise.lab.study.work import Work

Runner = Callable[[list[str], str, "float | None"], Ended]
Progress = Callable[[str, float], None]


class StudyOutcome(msgspec.Struct, kw_only=True):
    """How many launches there were, and how many points ended how; `first` failure in words.

    `left` counts launches that another part was at when this one ended; it goes on with their points.
    `notes` are sentences on what did not go as the study's file has it.
    """

    launched: int = 0
    reused: int = 0
    left: int = 0
    done: int = 0
    failed: int = 0
    not_run: int = 0
    first: str = ""
    notes: list[str] = []


def run(
    study: Study,
    points: list[StudyPoint],
    kept: Store,
    work: Work,
    environment: StudyEnvironment,
    *,
    progress: Progress = lambda phase, done: None,
    runner: Runner = run_words,
    retry: bool = False,
    told: Callable[[Entry], None] = lambda entry: None,
    once_more: Collection[str] = (),
) -> StudyOutcome:
    """Runs what `kept` does not have yet; returns how all points ended. Failures are kept, not raised.

    With keys of points in `once_more` only these run, each of them once, however many launches it has.
    """
    schedule = _Schedule(study, kept.entries, environment, retry, once_more)
    outcome = StudyOutcome()
    _keep_not_run(points, kept, environment)
    there = [point for point in points if not point.reason]
    expected = sum(schedule.expected(point) for point in there)
    rounds = range(max((schedule.most(point) for point in there), default=0))
    ahead = [(point, launch) for launch in rounds for point in _shuffled(there, study.file.seed, launch)]
    passed: list[tuple[StudyPoint, int]] = []
    while ahead:
        before, passed = outcome.launched, []
        for point, launch in ahead:
            if not schedule.wanted(point, launch):
                continue
            with kept.locked(point.key, environment) as ours:
                if not ours:
                    passed.append((point, launch))
                    continue
                news = kept.news()
                for entry in news:
                    schedule.add(entry)
                if not schedule.wanted(point, launch):
                    continue
                done = outcome.launched
                if news or done >= expected:  # others have done some, or intervals are wide still
                    expected = done + max(1, sum(schedule.expected(each) for each in there))
                progress(f"{done + 1} of {expected}", done / max(1, expected))
                entry = schedule.entry(point, launch)
                trace = schedule.trace(point, launch)
                entry = _launch(point, entry, trace, work, kept.folder, runner)
                kept.append(entry)
            schedule.add(entry)
            told(entry)
            outcome.launched += 1
        if outcome.launched == before:
            break
        ahead = passed
    outcome.left = len(passed)
    outcome.reused = sum(schedule.has(point, launch) for launch in rounds for point in there)
    outcome.reused -= outcome.launched
    outcome.notes = schedule.notes()
    others = {point.key for point, _ in passed}
    for point in points:
        failure = schedule.failure(point)
        if point.reason:
            outcome.not_run += 1
        elif point.key in others:
            continue
        elif failure is not None:
            outcome.failed += 1
            outcome.first = outcome.first or f"tilewise {' '.join(failure.command)}: {failure.message}"
        else:
            outcome.done += 1
    return outcome


def unfinished(
    study: Study, points: list[StudyPoint], folder: str, environment: StudyEnvironment, retry: bool
) -> list[StudyPoint]:
    """Points that a machine called as ours still has to run; all of them where `folder` has none of it yet.

    Its processor and its cores are not compared: a batch system's hosts may not be asked from here.
    """
    if not store.points_in(folder):
        return points
    entries, _ = store.load_entries(folder)
    schedules = [
        _Schedule(study, entries, there, retry)
        for there in {
            each.environment.id(): each.environment for each in store.load_sessions(folder)
        }.values()
        if (there.machine, there.tilewise, there.mpi, there.storage)
        == (environment.machine, environment.tilewise, environment.mpi, environment.storage)
    ]
    return [point for point in points if point.reason or all(each.open(point) for each in schedules)]


def left_of(
    study: Study,
    points: list[StudyPoint],
    kept: list[Entry],
    environment: StudyEnvironment,
    retry: bool = False,
) -> int:
    """The fewest launches of `points` that are left where `kept` is there."""
    schedule = _Schedule(study, kept, environment, retry)
    return sum(schedule.expected(point) for point in points if not point.reason)


class _Schedule:
    """Which launches a point still needs, by what is kept; or one more of the points in `once_more` alone."""

    def __init__(
        self,
        study: Study,
        kept: list[Entry],
        environment: StudyEnvironment,
        retry: bool,
        once_more: Collection[str] = (),
    ) -> None:
        self._runs = {each.name: each for each in study.runs}
        self._environment = environment
        self._entries: dict[str, Entry] = {}
        self._of_point: dict[str, dict[int, Entry]] = {}
        self._blind: dict[str, str] = {}
        self._more: dict[str, int] = {}
        for entry in kept:
            if entry.status == DONE or (entry.status == FAILED and not retry):
                self.add(entry)
        for key in once_more:
            self._more[key] = max(self._of_point.get(key, {}), default=-1) + 1

    def add(self, entry: Entry) -> None:
        if entry.status == NOT_RUN:
            return
        self._entries[entry.hash] = entry
        if entry.environment == self._environment.id():
            self._of_point.setdefault(entry.point, {})[entry.launch] = entry

    def has(self, point: StudyPoint, launch: int) -> bool:
        return store.hash_of(point.key, launch, self._environment) in self._entries

    def failure(self, point: StudyPoint) -> Entry | None:
        return next((e for e in self._of_point.get(point.key, {}).values() if e.status == FAILED), None)

    def entry(self, point: StudyPoint, launch: int) -> Entry:
        """The entry of a launch that is about to begin."""
        warmup = launch < warmups_of(self._runs[point.run])
        return _entry(point, launch, self._environment, status=DONE, warmup=warmup)

    def trace(self, point: StudyPoint, launch: int) -> str:
        """The name of the timeline that a launch is to keep; empty for nearly all."""
        run = self._runs[point.run]
        return f"{point.key[:16]}.json.gz" if run.trace and launch == warmups_of(run) - 1 else ""

    def most(self, point: StudyPoint) -> int:
        if self._more:
            return self._more.get(point.key, -1) + 1
        return warmups_of(self._runs[point.run]) + launches_of(self._runs[point.run])[1]

    def expected(self, point: StudyPoint) -> int:
        """Launches that are left if the least number is enough."""
        least = warmups_of(self._runs[point.run]) + launches_of(self._runs[point.run])[0]
        count = self.most(point) if self._more else least
        return sum(self.wanted(point, launch) for launch in range(count))

    def open(self, point: StudyPoint) -> bool:
        """Tell whether any launch is still wanted."""
        return any(self.wanted(point, launch) for launch in range(self.most(point)))

    def wanted(self, point: StudyPoint, launch: int) -> bool:
        """A point that has failed once is left alone, and so is one whose interval is narrow enough."""
        if self.has(point, launch) or launch >= self.most(point) or self.failure(point) is not None:
            return False
        if self._more:
            return launch == self._more[point.key]
        least, _, stop = launches_of(self._runs[point.run])
        counted = [
            e for e in self._of_point.get(point.key, {}).values() if not e.warmup and e.launch < launch
        ]
        if stop is None or len(counted) < least:
            return True
        figures = [figure_of(stop.metric, entry) for entry in counted]
        samples = [each for each in figures if each is not None]
        if not samples:
            self._blind[point.key] = f"{stop.metric}, the metric of stop, in its records: {point.line()}"
        return not narrow(samples, stop.relative)

    def notes(self) -> list[str]:
        """A sentence where nothing could be told from launches, so that as many were run as are allowed."""
        if not self._blind:
            return []
        first = next(iter(self._blind.values()))
        return [f"{plural(len(self._blind), 'point')} reached the maximum number of launches without {first}"]


def _launch(point: StudyPoint, entry: Entry, trace: str, work: Work, folder: str, runner: Runner) -> Entry:
    words = [*point.words, *(["--trace", trace] if trace else [])]
    entry = msgspec.structs.replace(entry, command=words)
    try:
        work.again()
        for made in point.inputs:
            work.prepare(made)
        work.discard(point.output)
        ended = runner([*words, "--json", "-"], work.folder, point.timeout)
        if trace and not ended.exit_code:
            entry = msgspec.structs.replace(entry, trace=work.keep_trace(trace, folder))
    except RunError as error:
        return msgspec.structs.replace(entry, status=FAILED, exit_code=error.exit_code, message=error.message)
    finally:
        work.discard(point.output)
    return _judged(entry, ended)


def _judged(entry: Entry, ended: Ended) -> Entry:
    record: dict[str, Any] | None = None
    message = ended.message() if ended.exit_code else ""
    if ended.output.strip():
        try:
            record = msgspec.json.decode(ended.output, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            message = message or f"its record is not JSON: {error}"
    elif not ended.exit_code:
        message = "it wrote no record"
    return msgspec.structs.replace(
        entry,
        status=FAILED if message else DONE,
        seconds=ended.seconds,
        exit_code=ended.exit_code,
        message=message,
        record=record,
    )


def _keep_not_run(points: list[StudyPoint], kept: Store, environment: StudyEnvironment) -> None:
    """An entry for each point out of reach that says why, unless the same is there already."""
    there = {(entry.point, entry.message) for entry in kept.entries if entry.status == NOT_RUN}
    for point in points:
        if point.reason and (point.key, point.reason) not in there:
            kept.append(_entry(point, -1, environment, status=NOT_RUN, message=point.reason))


def _entry(point: StudyPoint, launch: int, environment: StudyEnvironment, **more: Any) -> Entry:
    return Entry(
        hash=store.hash_of(point.key, launch, environment),
        point=point.key,
        run=point.run,
        axes=point.axes,
        launch=launch,
        command=point.words,
        environment=environment.id(),
        started=store.now(),
        **more,
    )


def _shuffled(points: list[StudyPoint], seed: int, launch: int) -> list[StudyPoint]:
    return random.Random(f"{seed} {launch}").sample(points, len(points))


def errors_of(outcome: StudyOutcome, folder: str) -> TilewiseError | None:
    """Error with which `study run` ends where points have failed."""
    if not outcome.failed:
        return None
    total = outcome.failed + outcome.done
    return RunError(
        f"{outcome.failed} of {total} points failed; the first: {outcome.first}",
        f"the whole message is in {folder}/{store.POINTS}; --resume --retry runs failed points again",
    )


_LOOK_SECONDS = 0.05  # of reading and judging everything once more, for each point that goes on


class Ahead(msgspec.Struct, frozen=True):
    """Launches that may still come: undecided `claims`, their `points`, and `seconds` at most."""

    claims: int
    points: list[str]
    seconds: float

    def told(self, most: int) -> str:
        """A sentence, said before it begins."""
        launches = f"up to {plural(most, 'more launch')} of each of {plural(len(self.points), 'point')}"
        minutes = f"{self.seconds:.0f} s" if self.seconds < 100 else f"{self.seconds / 60:.0f} min"
        return f"{launches} for {plural(self.claims, 'undecided claim')}, {minutes} at most"


def ahead(found: Evaluated, most: int, launched: Counter[str] | None = None) -> Ahead:
    """Find what is undecided and can go on, where a point may be launched `most` times, some of them done."""
    done = launched or Counter[str]()
    opened = [each for each in found.verdicts if each.verdict == UNDECIDED and not each.settled]
    open_points = {key for each in opened for key in each.points}
    seconds, keys = 0.0, []
    for point in found.results.points:
        left = most - done[point.key]
        if point.key in open_points and point.entries and left > 0:
            keys.append(point.key)
            usual = statistics.median(entry.seconds for entry in point.entries)
            seconds += left * (usual + _LOOK_SECONDS)
    return Ahead(sum(bool(set(each.points) & set(keys)) for each in opened), keys, seconds)


def nothing_decided(found: Evaluated) -> str:
    """A sentence on how claims are decided where each point has one run; else empty.

    As many more runs as the study has by itself take so long by the seconds of this one.
    """
    study = found.results.study
    runs = parse(study.text, study.path, study.name).runs  # not of a scale with one launch
    more = max([1, *(launches_of(each)[1] - 1 for each in runs)])
    left = ahead(found, more)
    if not left.claims or not all(is_single(point) for point in found.results.points if point.entries):
        return ""
    again = f"--into {found.results.folder} --resume --until-decided {more}"
    return f"one run of each point, nothing decided; {again} adds {left.told(more)}"


def until_decided(
    most: int,
    look: Callable[[], Evaluated],
    again: Callable[[Collection[str]], StudyOutcome],
    tell: Callable[[str], None],
) -> StudyOutcome | None:
    """Goes on while claims are undecided and a point of theirs was launched fewer than `most` times here.

    `look` reads what there is by now, `again` launches points once more. Returns how all points ended, with
    all launches counted; None where there was nothing to do.
    """
    launched: Counter[str] = Counter()
    first = left = ahead(look(), most)
    if not first.points:
        return None
    tell(first.told(most))
    total, outcome = 0, None
    while left.points:
        outcome = again(left.points)
        total += outcome.launched
        launched.update(left.points)  # those of other parts and those that fail too, so that it ends
        left = ahead(look(), most, launched)
    assert outcome is not None
    outcome.launched = total
    return outcome


_BUSY = 0.5  # processes that want a core, on average of the last minute: with fewer, nobody else is there


def time_text(minutes: float) -> str:
    """`6 minutes`, `40 seconds`: no more digits than an estimate has."""
    return f"{minutes:.0f} minutes" if minutes >= 1.5 else f"{max(5, 5 * round(12 * minutes))} seconds"


def foretold(left: int, whole: int, points: int, minutes: float | None, load: float) -> str:
    """`360 launches of 120 points; about 5 minutes on two quiet cores`, of the `left` of `whole` launches.

    `minutes` are those of the whole, None where nobody said; `load` is the system's average over a minute.
    """
    said = f"{plural(left, 'launch')} of {plural(points, 'point')}"
    if minutes is None or not whole:
        return said
    said += f"; about {time_text(minutes * left / whole)} on two quiet cores"
    if load > _BUSY:
        said += f", and longer here: others use this machine now (load {load:.1f})"
    return said
