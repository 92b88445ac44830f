"""Starts the worker again and again: every launch in each round, kinds in turn, points in an order of chance.

round 0   ping  file  memory  compute  ping …      what drifts slowly, such as a neighbour's load,
round 1   ping  file  memory  compute  ping …      hits all kinds alike, and shows between rounds
"""

from __future__ import annotations

import dataclasses
import os
import random
import shlex
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec

from tilewise.base.claim import Claim
from tilewise.base.errors import RunError, TilewiseError, UsageError
from tilewise.lab.measurement.result import Launch, PlannedPoint
from tilewise.launch import diagnose, job, launcher
from tilewise.launch.cleanup import Guardian
from tilewise.launch.events import Done
from tilewise.launch.signals import Signals
from tilewise.launch.supervise import Supervisor
from tilewise.machine import allocation, host
from tilewise.machine.disturbance import Disturbance, Watch

_LEAD = "the measurement was killed and its sample files are removed"


class Scratch:
    """A new folder in `parent`, which `flag` named. `names` are the files that may come to lie in it.

    A guardian removes them, and the folder, when this process is killed.
    """

    def __init__(self, parent: str, flag: str, names: list[str]) -> None:
        try:
            self._folder = os.path.realpath(tempfile.mkdtemp(prefix=".tilewise-measure-", dir=parent))
        except OSError as error:
            raise UsageError(
                f"{flag} {parent} cannot be written: {error.strerror or error}", f"{flag} with another place"
            ) from None
        claim = Claim("", "", undo=[*map(self.path, names), self._folder])
        self._guardian = Guardian([claim], _LEAD)

    def path(self, name: str) -> str:
        """Path of a file in the folder."""
        return os.path.join(self._folder, name)

    def remove(self) -> None:
        """Takes away the folder with all that is in it; safe to call twice."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._guardian.dismiss()


_MESSAGES = ("ping", "collective", "matrix")


class PointSeries(msgspec.Struct, frozen=True):
    """As the worker tells it: seconds of one operation, once a sample, and each rank's mean.

    `warmup` samples came before and do not count; None where the worker does not say.
    """

    name: str
    samples: list[float]
    by_rank: list[float] = []
    warmup: int | None = None


class FoundPoint(msgspec.Struct, frozen=True):
    """Outcome of a point. `chosen`: the kernel, `tiles` or `blas`, that jobs use for such a product."""

    series: list[PointSeries] = []
    inner: int = 1
    skipped: str = ""
    notes: list[str] = []
    devices: list[str] = []
    simulated_devices: bool = False
    chosen: str = ""


class WorkerReply(msgspec.Struct, frozen=True, kw_only=True):
    """The worker's result of one launch. `takes_device_addresses`: MPI says of itself yes, no or nothing."""

    points: list[FoundPoint]
    takes_device_addresses: str = ""
    clock: dict[str, float] = {}
    yardstick: dict[str, list[float]] = {}
    involuntary_switches: list[float] = []


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """One start of the worker that ended well: what it was, what it said, and what else happened."""

    launch: Launch
    done: Done
    final: job.Job
    start: launcher.Start
    seen: Disturbance
    told: WorkerReply
    chatter: list[str]


class RunResult(msgspec.Struct, kw_only=True):
    """Everything of all launches. `found` has a list for each ask, one entry a round, under (launch, ask).

    `failed` says of launches what ended them, and `error` is the first of these: they were not started again.
    """

    found: dict[tuple[int, int], list[FoundPoint]]
    labels: dict[int, list[str]]
    disturbances: list[Disturbance]
    clock: dict[str, float]
    last: Finished
    chatter: list[str]
    failed: dict[int, str] = {}
    error: TilewiseError | None = None


@dataclasses.dataclass
class Runner:
    """Runs `launches`. `update` hears what is on and how much of all is done; `say` each line of chatter."""

    launches: Sequence[Launch]
    rounds: int
    seed: int
    caught: Signals
    _: dataclasses.KW_ONLY
    user_launcher: str = ""
    timeout: float | None = None
    fault: str = ""
    progress: bool = False
    update: Callable[[str, float], None] = lambda what, done: None
    say: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._deadline = None if self.timeout is None else time.monotonic() + self.timeout
        self._worker = launcher.find_worker()

    def seconds(self) -> float:
        """About how long all launches take."""
        return max(self.rounds * sum(launch.seconds() for launch in self.launches), 1e-9)

    def run(self) -> RunResult:
        """Every launch in each round.

        A launch that fails once something was found costs only what it would have found itself. Raises
        Interrupted, and what `diagnose` makes of a failure before that, or of a limit of time.
        """
        points: dict[tuple[int, int], list[FoundPoint]] = defaultdict(list)
        labels: dict[int, list[str]] = defaultdict(list)
        failed: dict[int, str] = {}
        first: TilewiseError | None = None
        all_: list[Finished] = []
        turn = in_turn(self.launches)
        whole = self.seconds()
        spent = 0.0
        for _ in range(self.rounds):
            for index in turn:
                launch = self.launches[index]
                order = [place for place, ask in enumerate(launch.asks) if not ask.skipped]
                self._random.shuffle(order)
                if self._late():
                    raise RunError(
                        f"the job took longer than --timeout {self.timeout:g} seconds and was ended"
                    )
                begin, share = spent / whole, launch.seconds() / whole
                spent += launch.seconds()
                if not order or index in failed:
                    continue
                try:
                    one = self._one(launch, order, len(all_), begin, share)
                except RunError as error:
                    if not all_ or self._late():
                        raise
                    first, failed[index] = first or error, error.message
                    continue
                for place, point in zip(order, one.told.points, strict=True):
                    points[index, place].append(point)
                labels[index] += one.seen.labels
                all_.append(one)
        if not all_:
            raise RunError("nothing was measured")
        return RunResult(
            found=points,
            labels=labels,
            disturbances=[one.seen for one in all_],
            clock=next((one.told.clock for one in all_ if one.told.clock), {}),
            last=max(all_, key=lambda one: one.launch.ranks),
            chatter=list(dict.fromkeys(line for one in all_ for line in one.chatter)),
            failed=failed,
            error=first,
        )

    def _late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _theirs(self, launch: Launch) -> str:
        """The user's launcher where it is wanted: it may put messages within a node onto several."""
        near = launch.kind in _MESSAGES and launch.place != "node"
        if near and launcher.mpiexec_path(self._worker.build) is not None:
            return ""
        return self.user_launcher if launch.hosts or launch.ranks > 1 or launch.place == "node" else ""

    def _one(self, launch: Launch, order: list[int], number: int, begin: float, share: float) -> Finished:
        final = job_of(launch, [launch.asks[place] for place in order], number, self.fault, self.progress)
        theirs = self._theirs(launch)
        usual = launcher.own_start(
            self._worker,
            final.variant,
            _dealt(launch, theirs),
            theirs,
            launch.oversubscribed,
            launch.place,
            single=launch.kind in _MESSAGES,
        )
        start = usual.guarded(self._worker.path)
        if launch.kind == "file" and start.remote:
            final = msgspec.structs.replace(final, site=site_of(launch))
        self.say(f"tilewise: {launch.what}: starting {shlex.join(start.shown())}")
        self.update(launch.what, begin)
        left = None if self._deadline is None else max(0.1, self._deadline - time.monotonic())
        supervisor = Supervisor(
            start,
            self._worker.path,
            self.caught,
            timeout=left,
            # Other phases are steps of a point, and no share of the launch.
            on_progress=lambda phase, done: (
                self.update(launch.what, begin + share * done) if phase == "compute" else None
            ),
            on_chatter=self.say,
        )
        watch = Watch()
        outcome = supervisor.run(job.encode(final))
        error = diagnose.error_of(outcome, self.timeout, start)
        if error is not None:
            error.message = f"{launch.what}: {error.message}"
            raise error
        assert outcome.record is not None
        done = outcome.record
        try:
            told = msgspec.convert(done.result, type=WorkerReply)
        except msgspec.ValidationError as wrong:
            raise RunError(f"{launch.what}: the worker's result cannot be read: {wrong}") from None
        if len(told.points) != len(order):
            raise RunError(
                f"{launch.what}: {len(order)} points were requested, {len(told.points)} were returned"
            )
        check_hosts(launch, done)
        seen = watch.seen(
            launch=number,
            what=launch.what,
            oversubscribed=launch.oversubscribed,
            yardstick=told.yardstick,
            switches=told.involuntary_switches,
        )
        return Finished(
            launch=launch,
            done=done,
            final=final,
            start=start,
            seen=seen,
            told=told,
            chatter=outcome.chatter,
        )


def _dealt(launch: Launch, theirs: str) -> list[str]:
    """The host of each rank; in a Slurm allocation, too, what is measured within a host is this one."""
    if launch.hosts:
        return allocation.deal(launch.hosts, launch.ranks, launch.place)
    granted = allocation.granted(os.environ)
    return [] if theirs or granted is None else [allocation.this_host(granted)] * launch.ranks


def job_of(
    launch: Launch, asks: Sequence[PlannedPoint], number: int, fault: str = "", progress: bool = False
) -> job.Job:
    """Job that the worker is given."""
    variant = job.Variant(
        algorithm="local",
        exchange="none",
        read="positioned",
        write="positioned",
        grid=(1, launch.ranks),
        ranks=launch.ranks,
        threads=launch.threads,
    )
    return job.Job(
        id=f"measure-{number}",
        command="measure",
        inputs=[],
        output=None,
        variant=variant,
        dtype="float64",
        measure=job.Measure(stop=launch.stop, cpus=launch.cpus, points=[ask.point for ask in asks]),
        bind=not launch.oversubscribed and not launch.cpus,
        place="core",
        progress=progress,
        fault=fault,
    )


def site_of(launch: Launch) -> job.Site:
    """The folder of samples, which all hosts must share."""
    folders = dict.fromkeys(os.path.dirname(ask.point.path) for ask in launch.asks if ask.point.path)
    made = [job.StagedOutput(path=folder, name="the samples of --folder") for folder in folders]
    return job.Site(host=host.name(), view=host.file_view(), made=made)


def check_hosts(launch: Launch, done: Done) -> None:
    """Raises RunError where pairs are not as far apart as their level says: a launcher may do as it likes."""
    if launch.kind != "ping":
        return
    host = {rank.rank: rank.host for rank in done.ranks}
    for rank in range(0, launch.ranks - 1, 2):
        together = host.get(rank) == host.get(rank + 1)
        if together == (launch.level == "node"):
            where = f"both on {host.get(rank)}" if together else "on different hosts"
            raise RunError(
                f"{launch.what}: ranks {rank} and {rank + 1} are {where}, which was not requested",
                "--hosts FILE instead of hosts that --launcher names",
            )


def in_turn(launches: Sequence[Launch]) -> list[int]:
    """Places of the launches, one of each kind after the other as long as they last."""
    kinds: dict[str, list[int]] = {}
    for place, launch in enumerate(launches):
        kinds.setdefault(launch.kind, []).append(place)
    longest = max((len(places) for places in kinds.values()), default=0)
    return [places[turn] for turn in range(longest) for places in kinds.values() if turn < len(places)]
