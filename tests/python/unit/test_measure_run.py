"""Launches without ranks: who gets which result, in which order, and what a worker may not say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tilewise.base.errors import RunError
from tilewise.lab.measurement import lines, run
from tilewise.lab.measurement.result import Disturbance, Launch, PlannedPoint
from tilewise.launch import launcher
from tilewise.launch.events import Done, Failed, RankDone
from tilewise.launch.job import Point, Stop
from tilewise.launch.outcome import Outcome
from tilewise.launch.signals import Signals


class Worker:
    """Stands in for the supervisor: a point's seconds are its bytes; remembers all jobs and environments."""

    def __init__(self) -> None:
        self.jobs: list[dict[str, Any]] = []
        self.starts: list[launcher.Start] = []
        self.answer: Any = None

    def __call__(self, start: launcher.Start, program: str, signals: Signals, **more: Any) -> Worker:
        self.starts.append(start)
        self.progress = more["on_progress"]
        return self

    def run(self, text: bytes) -> Outcome:
        job = json.loads(text)
        self.jobs.append(job)
        self.progress("compute", 1.0)
        if isinstance(self.answer, Failed):
            return Outcome(failed=self.answer)
        points = [
            {"series": [{"name": "seconds", "samples": [float(point["bytes"])], "by_rank": []}]}
            for point in job["measure"]["points"]
        ]
        result = {"points": points} if self.answer is None else self.answer
        ranks = [RankDone(rank=rank, host="h", pid=1) for rank in range(job["variant"]["ranks"])]
        return Outcome(record=Done(ranks=ranks, seconds={}, result=result))


class Quiet:
    """No machine to watch."""

    def seen(self, launch: int, what: str, **_: Any) -> Disturbance:
        return Disturbance(launch=launch, what=what, seconds=0.0, labels=[f"label of {what}"])


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    fake = Worker()
    monkeypatch.setattr(run, "Supervisor", fake)
    monkeypatch.setattr(run, "Watch", Quiet)
    monkeypatch.setattr(run.launcher, "find_worker", lambda: launcher.Worker("/w", {"mpi": "wheel"}))
    monkeypatch.setattr(run.launcher, "mpiexec_path", lambda build: "/m")
    return fake


def launch(what: str, kind: str, sizes: list[int], ranks: int = 1, **more: Any) -> Launch:
    asks = [PlannedPoint(point=Point(kind=kind, name="copy", bytes=size)) for size in sizes]
    return Launch(what=what, kind=kind, ranks=ranks, stop=Stop(), asks=asks, **more)


def test_results_find_their_points_in_any_order(worker: Worker) -> None:
    launches = [launch("a", "memory", list(range(1, 40))), launch("b", "file", [50, 60], ranks=2)]
    launches[1].asks[0] = PlannedPoint(point=launches[1].asks[0].point, skipped="too large")
    shown: list[tuple[str, float]] = []
    ran = run.Runner(launches, 3, 1, Signals(), update=lambda what, done: shown.append((what, done))).run()
    for place, ask in enumerate(launches[0].asks):
        samples = [one.series[0].samples for one in ran.found[0, place]]
        assert samples == [[float(ask.point.bytes)]] * 3
    assert (1, 0) not in ran.found and len(ran.found[1, 1]) == 3
    orders = [[point["bytes"] for point in job["measure"]["points"]] for job in worker.jobs]
    assert [len(order) for order in orders] == [39, 1] * 3
    assert len({tuple(order) for order in orders[::2]}) == 3 and orders[0] != sorted(orders[0])
    assert ran.labels[1] == ["label of b"] * 3 and len(ran.disturbances) == 6
    done = [share for _, share in shown]
    assert done == sorted(done) and done[0] == 0 and done[-1] == pytest.approx(1)
    assert ran.last.launch.what == "b"


def test_a_seed_repeats_the_order(worker: Worker) -> None:
    for seed in (7, 7, 8):
        run.Runner([launch("a", "memory", list(range(20)))], 2, seed, Signals()).run()
    first, again, other = (
        [job["measure"]["points"] for job in worker.jobs[begin : begin + 2]] for begin in (0, 2, 4)
    )
    assert first == again != other


def test_ranks_that_share_cores_yield_and_messages_need_no_threads(worker: Worker) -> None:
    crowded = launch("a", "ping", [1], ranks=4, cpus=[0, 1], oversubscribed=True)
    run.Runner([crowded, launch("b", "memory", [1])], 1, 0, Signals()).run()
    here, there = (start.environment for start in worker.starts)
    assert here["MPIR_CVAR_ENABLE_HEAVY_YIELD"] == "1" and here["TILEWISE_MPI_THREADS"] == "single"
    assert "MPIR_CVAR_ENABLE_HEAVY_YIELD" not in there and "TILEWISE_MPI_THREADS" not in there
    assert worker.jobs[0]["measure"]["cpus"] == [0, 1] and not worker.jobs[0]["bind"]
    assert worker.jobs[1]["bind"]


def test_a_launch_that_fails_later_costs_only_itself(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([None, None, Failed(kind="io", message="gone", rank=0), None, None])
    usual = worker.run

    def answer(text: bytes) -> Outcome:
        worker.answer = next(answers)
        return usual(text)

    monkeypatch.setattr(worker, "run", answer)
    launches = [launch("a", "file", [1]), launch("b", "memory", [2])]
    ran = run.Runner(launches, 3, 0, Signals()).run()
    assert len(ran.found[0, 0]) == 1 and len(ran.found[1, 0]) == 3  # not started again
    assert ran.failed == {0: "a: rank 0: gone"} and isinstance(ran.error, RunError)
    first, other = lines.lines_of(launches, ran)
    assert first.summary is not None and "a later launch failed: a: rank 0: gone" in first.notes[0]
    assert other.summary is not None and not other.notes
    never = [launch("c", "memory", [2]), launch("d", "file", [1])]
    answers = iter([None, Failed(kind="io", message="gone", rank=0), None])
    *_, lost = lines.lines_of(never, run.Runner(never, 2, 0, Signals()).run())
    assert lost.skipped == "d: rank 0: gone"


def test_messages_within_a_node_keep_our_own_launcher(worker: Worker) -> None:
    near = launch("a", "ping", [1], ranks=2, level="core")
    far = launch("b", "file", [1], ranks=2)
    run.Runner([near, far], 1, 0, Signals(), user_launcher="/bin/true --nodes=2").run()
    assert [start.command[0] for start in worker.starts] == ["/m", "/bin/true"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({}, "cannot be read"),
        ({"points": []}, "1 points were requested, 0 were returned"),
        ({"points": [{"series": "x"}]}, "cannot be read"),
        (Failed(kind="io", message="the disk is full", rank=0), "a: rank 0: the disk is full"),
    ],
)
def test_a_worker_that_says_something_else(worker: Worker, answer: Any, said: str) -> None:
    worker.answer = answer
    with pytest.raises(RunError) as raised:
        run.Runner([launch("a", "memory", [1])], 1, 0, Signals()).run()
    assert said in raised.value.text()
