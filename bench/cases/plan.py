"""Predictions beside what jobs take, and what is lost by going with the plan's choice.

A new profile is filled by `tilewise measure` and by jobs of other sizes than those that count. Then ways to
do each job that the plan lists (algorithms, exchanges, ranks, strategies) are measured, in turns. What every
run took, phase by phase, beside what was predicted, stays in build/plan/runs.jsonl.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from harness import BIN, ROOT, Row, Setting, run, say

TEACHING = 3  # times that each job of the lesson is run
CLOSE = 0.10  # of two ways that differ by less, either may come first
MOST_WAYS = 10  # of a job
SHORT, OFTEN = 0.6, 2  # seconds of a job, below which one run differs most from the next; so much more often
TRIES = 4  # of a run, until nothing disturbs it
OTHER_MPI = ROOT / "build/openmpi/tilewise-worker"
RUNS = ROOT / "build/plan/runs.jsonl"
SHARED = Path("/dev/shm")
UNKNOWN = str(ROOT / "build/plan/unknown")  # a cache that knows of no machine: the rule decides


@dataclass
class Case:
    """A job, its words without the output, and whether it is one that the profile learns from."""

    name: str
    words: list[str]
    output: str
    lesson: bool = False
    cold: bool = False
    worker: Path | None = None


Tell = Callable[..., dict[str, Any]]  # runs the words of a command for a case, which tells in JSON


@dataclass
class Way:
    """A way to do a job: its flags, what was predicted, whether the plan chose it, whether that is the rule
    where nothing is known of the machine, and what it took each time."""

    flags: list[str]
    predicted: dict[str, float]
    chosen: bool
    usual: bool
    variant: dict[str, Any]
    took: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return statistics.median(self.took)


def plan(setting: Setting) -> list[Row]:
    """Errors of predictions, and the regret of the choice."""
    around = {"XDG_CACHE_HOME": str(setting.work / "profile")}
    run([BIN / "tilewise", "measure", "--launches", "1", "--seconds", "0.05", "--store"], **around)
    cases = list(_cases(setting))

    def tell(words: list[str], case: Case, **more: str) -> dict[str, Any]:
        environment = {**_environment(case, around), **more}
        told: dict[str, Any] = json.loads(run([BIN / "tilewise", *words], **environment))
        return told

    for case, _ in itertools.product((case for case in cases if case.lesson), range(TEACHING)):
        _job(case, [], tell)
    RUNS.parent.mkdir(parents=True, exist_ok=True)
    with RUNS.open("w") as kept:
        found = {case.name: measured(case, tell, setting.rounds, kept) for case in cases if not case.lesson}
    return list(rows_of(found))


def measured(case: Case, tell: Tell, rounds: int, kept: IO[str]) -> list[Way]:
    """Ways to do a job, and what each took as often as there are rounds, and more often where it is short;
    `kept` gets a line for each run."""
    ways = _ways(case, tell)
    say(f"  {case.name}: {len(ways)} ways")
    short = min(way.predicted["wall"] for way in ways) < SHORT
    for turn in range(rounds * (OFTEN if short else 1)):
        for way in ways[:: 1 if turn % 2 == 0 else -1]:
            record = next((quiet for quiet in _tries(case, way, tell) if not quiet["labels"]), None)
            record = record or _job(case, way.flags, tell)
            way.took.append(record["seconds"]["wall"])
            kept.write(json.dumps(_point(case, way, record)) + "\n")
            kept.flush()
    return ways


def _cases(setting: Setting) -> Iterator[Case]:
    lessons, sizes = (
        ([1000, 3000], [1500, 2200]) if setting.quick else ([1000, 2000, 4000], [1500, 3000, 5000])
    )
    for size in (*lessons, *sizes):
        path = setting.work / f"A{size}.npy"
        run([BIN / "tilewise", "generate", "-o", path, "--shape", f"{size}x{size}", "-q"])
        lesson = size in lessons
        jobs = {
            "multiply": ["multiply", str(path), str(path)],
            "transpose": ["transpose", str(path)],
            "stencil": ["stencil", str(path), "--steps", "50"],
            "convert": ["convert", str(path), "--dtype", "float32"],
            "svd": ["svd", str(path)],
        }
        if size > 2200:
            del jobs["svd"]
        for name, words in jobs.items():
            suffix = ".npy" if name != "svd" else ""
            for where, folder in {"disk": setting.work, "memory": SHARED}.items():
                out = str(folder / f"tilewise-bench-{os.getpid()}-{name}{suffix}")
                yield Case(f"{name} {size}², {where}", words, out, lesson)
                if where == "disk" and size in (lessons[-1], sizes[-1]) and name in ("transpose", "convert"):
                    yield Case(f"{name} {size}², cold", words, out, lesson, cold=True)
                if where == "disk" and name != "svd" and OTHER_MPI.exists():
                    yield Case(f"{name} {size}², Open MPI", words, out, lesson, worker=OTHER_MPI)


def _job(case: Case, flags: list[str], tell: Tell) -> dict[str, Any]:
    if case.cold:
        _forget(Path(case.words[1]))
    told = tell([*case.words, "-o", case.output, *flags, "--force", "--json", "-"], case)
    if case.output.startswith(str(SHARED)) and case.output.endswith(".npy"):
        Path(case.output).unlink()
    return told


def _tries(case: Case, way: Way, tell: Tell) -> Iterator[dict[str, Any]]:
    """Records of a few runs, for whoever wants one that nothing disturbed."""
    for _ in range(TRIES):
        yield _job(case, way.flags, tell)


def _environment(case: Case, around: dict[str, str]) -> dict[str, str]:
    return around if case.worker is None else {**around, "TILEWISE_WORKER": str(case.worker)}


def _forget(path: Path) -> None:
    """Drops a file from the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _ways(case: Case, tell: Tell) -> list[Way]:
    """The chosen one, that of the rule, and of each algorithm and number of ranks the fastest ones."""
    if case.cold:
        _forget(Path(case.words[1]))
    words = ["plan", *case.words, "-o", case.output, "--force", "--json", "-"]
    usual = tell(words, case, XDG_CACHE_HOME=UNKNOWN)["variants"][0]["variant"]
    listed = [each for each in tell(words, case)["variants"] if each["fits"]]
    alike: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for each in listed:
        variant = each["variant"]
        alike[(variant["algorithm"], variant["ranks"])].append(each)
    turns = itertools.zip_longest(*alike.values())
    some = [each for turn in turns for each in turn if each is not None]
    some.sort(key=lambda each: not (each["chosen"] or each["variant"] == usual))  # the others as they were
    return [_way(case, each, listed[0]["variant"]["io"], usual) for each in some[:MOST_WAYS]]


def _way(case: Case, each: dict[str, Any], chosen: str, usual: dict[str, Any]) -> Way:
    variant = each["variant"]
    flags = ["-n", str(variant["ranks"]), "-t", str(variant["threads"])]
    if variant["algorithm"] not in ("local", "sweeps") or case.words[0] == "multiply":
        flags += ["--algorithm", variant["algorithm"]]
    if variant["exchange"] != "none":
        flags += ["--exchange", variant["exchange"]]
    if variant["io"] != chosen:
        flags += ["--io", variant["io"]]
    flags = [] if each["chosen"] else flags
    return Way(flags, each["predicted_seconds"], each["chosen"], variant == usual, variant)


def _point(case: Case, way: Way, record: dict[str, Any]) -> dict[str, Any]:
    seconds = record["seconds"]
    phases = {name: found["max"] if isinstance(found, dict) else found for name, found in seconds.items()}
    return {
        "case": case.name,
        "words": [*case.words, "-o", case.output, *way.flags],
        "chosen": way.chosen,
        "usual": way.usual,
        "variant": way.variant,
        "listed": way.predicted,
        "predicted": record["predicted_seconds"],
        "took": phases,
        "labels": record["labels"],
    }


def _regret(ways: list[Way]) -> float:
    """What the chosen way takes over the fastest one, which is named by one half of the runs and judged by
    the other: of many that are alike, the luckiest would seem faster than it is."""
    chosen = next(way for way in ways if way.chosen)
    found = []
    for half in (0, 1):
        best = min(ways, key=lambda way: statistics.median(way.took[half::2]))
        judged = [statistics.median(way.took[1 - half :: 2] or way.took) for way in (chosen, best)]
        found.append(judged[0] / judged[1] - 1)
    return statistics.mean(found)


def _beside_rule(ways: list[Way]) -> float | None:
    """The time of the chosen way over that of the rule, where both were measured."""
    chosen = next(way for way in ways if way.chosen)
    usual = next((way for way in ways if way.usual), None)
    return None if usual is None else chosen.seconds / usual.seconds


def rows_of(found: dict[str, list[Way]], name: str = "", where: str = "") -> Iterator[Row]:
    """What came of it, in rows whose names begin with `name`, and what they are of with `where`."""
    errors = [abs(way.predicted["wall"] / way.seconds - 1) for ways in found.values() for way in ways]
    regrets = {name: _regret(ways) for name, ways in found.items()}
    firsts = [sorted(ways, key=lambda way: way.predicted["wall"])[:2] for ways in found.values()]
    first = [_in_order(*pair) for pair in firsts if _differ(*pair)]
    pairs = [pair for ways in found.values() for pair in itertools.combinations(ways, 2)]
    every = [_in_order(*pair) for pair in pairs if _differ(*pair)]
    values = sorted(regrets.values())
    samples = {name: [way.seconds for way in ways] for name, ways in found.items()}
    worst = max(regrets, key=lambda name: regrets[name])
    error, middle, most = statistics.median(errors), statistics.median(values), values[-1]
    nearly = values[int(0.95 * (len(values) - 1))]
    yield Row(f"{name}error", f"{where}error of predictions, median", "at most", 0.15, error, samples=samples)
    yield Row(f"{name}regret", f"{where}regret of the choice, median", "at most", 0.05, middle)
    yield Row(f"{name}regret-95", f"{where}regret, 95 % of jobs", "at most", 0.10, nearly)
    yield Row(f"{name}regret-most", f"{where}regret, worst job", "at most", 0.30, most, note=worst)
    beside = {name: ratio for name, ways in found.items() if (ratio := _beside_rule(ways)) is not None}
    slowest = max(beside, key=lambda name: beside[name])
    another = sum(ratio != 1 for ratio in beside.values())
    others = f"{another} of {len(beside)} jobs are done another way" + (f"; {slowest}" if another else "")
    yield Row(f"{name}rule", f"{where}beside the rule, worst", "at most", 1.05, beside[slowest], note=others)
    if first:
        many = f"{len(first)} jobs where they differ"
        share = sum(first) / len(first)
        what = f"{where}first two ways in the right order"
        yield Row(f"{name}order", what, "at least", 0.9, share, note=many)
    if every:
        yield Row(f"{name}pairs", f"{where}any two ways in the right order", "", 0, sum(every) / len(every))


def _differ(one: Way, other: Way) -> bool:
    """Whether one of two ways takes clearly longer: no run of it was as fast as a run of the other."""
    apart = max(one.took) < min(other.took) or max(other.took) < min(one.took)
    return apart and abs(one.seconds / other.seconds - 1) > CLOSE


def _in_order(one: Way, other: Way) -> bool:
    return (one.predicted["wall"] < other.predicted["wall"]) == (one.seconds < other.seconds)
