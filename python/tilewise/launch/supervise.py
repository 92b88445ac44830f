"""Runs one job to its end: feeds it, reads its events, and lets nothing hang or linger."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable

import msgspec

from tilewise.launch import afterwards, processes, segments
from tilewise.launch.bells import Bells, death_bell
from tilewise.launch.events import (
    Done,
    Event,
    Failed,
    Progress,
    Reading,
    Signalled,
    Snapshot,
    Started,
    split_line,
)
from tilewise.launch.launcher import Start
from tilewise.launch.signals import Signals

_TICK = 0.05
_AFTER_ERROR = 3.0  # seconds a job may take to end once it said that it failed
_GRACE = 2.0  # of these, whatever --timeout says
_AFTER_RECORD = 30.0  # seconds it may take to leave MPI once it said that it is done
_LEAVING = 3.0  # seconds in which ranks may end after the first has, when the job has failed
_DRAIN = 0.3  # seconds for what is still in the pipes once the child has gone
_ANSWER = 0.3  # seconds in which ranks say where they are, before a job that takes too long is ended
_KEPT = 400  # lines of chatter that are kept
_AHEAD = 32768  # bytes of a job that go out before the worker says what it has read; the worker knows it too
_MARK = "TILEWISE_RUN"  # the variable by which all that a launcher has started is found again


class Outcome(msgspec.Struct):
    """All that was seen of a run. `returncode` is the child's, negative for a signal."""

    ranks: int = 1
    started: Started | None = None
    record: Done | None = None
    failed: Failed | None = None
    signalled: Signalled | None = None  # of the first rank that said that a signal ends it
    returncode: int = 0
    chatter: list[str] = []
    phase: str = ""  # the last that rank 0 told of
    timed_out: bool = False
    unstarted: float | None = None  # the seconds in which not all ranks had started
    where: dict[int, str] = {}  # the phase of each rank that said so when the job took too long
    states: dict[int, str] = {}  # and what each rank on this host did then: the kernel's letter
    hung: bool = False
    first_gone: int | None = None  # the rank that ended before all others on this host, -1: one of several
    lost: str | None = None  # where (empty: not known) something ended and the launcher let the others wait
    memory_kills: int = 0  # processes that the kernel of this host killed meanwhile for want of memory
    wall: float = 0.0


class Supervisor:
    """Watches one child. `on_progress` hears of progress, `on_chatter` of each line that is not ours.

    `on_snapshot` hears of snapshots that are complete.
    """

    def __init__(
        self,
        start: Start,
        program: str,
        signals: Signals,
        *,
        timeout: float | None = None,
        on_running: Callable[[], None] = lambda: None,
        on_progress: Callable[[str, float], None] = lambda phase, done: None,
        on_chatter: Callable[[str], None] = lambda line: None,
        on_snapshot: Callable[[int], None] = lambda index: None,
    ) -> None:
        # No two runs have the same: one child is started by this process at a time.
        self._mark = f"{_MARK}={os.getpid()}-{time.monotonic_ns()}"
        name, _, value = self._mark.partition("=")
        self._start = msgspec.structs.replace(start, environment={**start.environment, name: value})
        self._program = program
        self._signals = signals
        self._timeout = timeout
        self._on_running = on_running
        self._on_progress = on_progress
        self._on_chatter = on_chatter
        self._on_snapshot = on_snapshot
        self._outcome = Outcome(ranks=start.ranks)
        self._rest: dict[int, bytes] = {}
        self._deadline: float | None = None
        self._sent = 0  # bytes of the job
        self._read_there = 0  # of those, what rank 0 said that it has read
        self._waits = False  # for rank 0 to read more
        self._start_by: float | None = None

    def run(self, job: bytes) -> Outcome:
        """Starts the child, hands it `job`, and returns when it and all below it have gone.

        Raises Interrupted after a signal, and whatever a callback raises; the whole tree is ended first then.
        """
        begin = time.monotonic()
        kills = processes.memory_kills()
        child: subprocess.Popen[bytes] | None = None
        try:
            self._signals.check()
            with self._signals.hold():
                child = processes.spawn(self._start)
            if self._timeout is not None:
                self._deadline = begin + self._timeout
            if self._start.patience is not None:
                self._start_by = begin + self._start.patience
            self._watch(child, memoryview(job))
        except BaseException:
            if child is not None:
                self._end(child)
                self._end_others(well=False)
            raise
        finally:
            if child is not None and not self._waited_for():
                _close(child)
        if self._waited_for():
            # The launcher kills us once the rank aborts the job, which it does when nobody reads any more.
            afterwards.later(lambda: _let_go(child))
            return self._outcome
        self._outcome.returncode = child.wait()
        self._end_others(well=self._outcome.returncode == 0)
        self._outcome.memory_kills = processes.memory_kills() - kills
        self._outcome.wall = time.monotonic() - begin
        return self._outcome

    def _watch(self, child: subprocess.Popen[bytes], job: memoryview) -> None:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        with selectors.DefaultSelector() as selector:
            for stream in (child.stdout, child.stderr):
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ)
            os.set_blocking(child.stdin.fileno(), False)
            selector.register(child.stdin, selectors.EVENT_WRITE)
            bell = death_bell(child.pid)
            if bell is not None:
                selector.register(bell, selectors.EVENT_READ)
            bells = Bells(selector, self._mark.partition("=")[2], self._start.ranks)
            told = watched = False
            try:
                gone_at: float | None = None
                while True:
                    self._signals.check()
                    ready = selector.select(_TICK)
                    bells.hear([key.fd for key, _ in ready if key.fd in bells])
                    for key, _ in ready:
                        if key.fd in bells:
                            continue
                        if key.fileobj is child.stdin:
                            job = self._feed(selector, child, job)
                        elif key.fileobj is bell:
                            selector.unregister(bell)
                        else:
                            self._read(selector, key)
                    self._feed_on(selector, child)
                    if self._outcome.started is None:
                        if self._start.hydra:
                            bells.watch_start(child.pid)
                    elif not watched:
                        watched = True
                        bells.watch(self._outcome.started.ranks, child.pid)
                    if not told:
                        told = True
                        segments.sweep()
                        self._on_running()
                    now = time.monotonic()
                    if gone_at is None and child.poll() is not None:
                        gone_at = now
                    streams = [
                        key
                        for key in selector.get_map().values()
                        if key.events == selectors.EVENT_READ and key.fd not in bells
                    ]
                    if gone_at is not None and (not streams or now > gone_at + _DRAIN):
                        break
                    if gone_at is None and self._too_late(now, bells):
                        if self._waited_for():
                            break
                        self._end(child)
                        gone_at = now
            finally:
                self._outcome.first_gone = bells.first_gone
                bells.close()
                if bell is not None:
                    os.close(bell)
        for fileno, rest in self._rest.items():
            if rest:
                self._line(rest, fileno)

    def _too_late(self, now: float, bells: Bells) -> bool:
        """Whether nothing good can come any more; the outcome says why."""
        outcome = self._outcome
        said = outcome.record is not None or outcome.failed is not None or outcome.signalled is not None
        if self._deadline is not None and now > self._deadline:
            if said:
                outcome.hung = True
            elif not outcome.timed_out:
                outcome.timed_out = True
                self._ask_ranks()
                self._deadline = now + _ANSWER
                return False
            return True
        if outcome.started is None and self._start_by is not None and now > self._start_by and not said:
            outcome.unstarted = self._start.patience
            return True
        if not said and bells.left_alone():
            outcome.lost = bells.lost
            return True
        return False

    def _ask_ranks(self) -> None:
        """Those on this host, where they are; what the kernel knows of those that cannot answer, too."""
        here = os.uname().nodename
        for rank in self._outcome.started.ranks if self._outcome.started is not None else ():
            if rank.host == here and processes.living(rank.pid, self._program) is not None:
                self._outcome.states[rank.rank] = processes.state(rank.pid)
                with contextlib.suppress(OSError):
                    os.kill(rank.pid, signal.SIGUSR2)

    def _feed(
        self, selector: selectors.BaseSelector, child: subprocess.Popen[bytes], job: memoryview
    ) -> memoryview:
        """Hands on what may go; a launcher between us and rank 0 holds a pipe full, and may die of more."""
        assert child.stdin is not None
        may_go = self._read_there + _AHEAD - self._sent
        if may_go <= 0:
            selector.unregister(child.stdin)
            self._waits = True
            return job
        try:
            written = os.write(child.stdin.fileno(), job[:may_go])
        except BlockingIOError:
            return job
        except OSError:
            written = len(job)  # the child has gone; its exit tells the rest
        self._sent += written
        job = job[written:]
        if not job:
            selector.unregister(child.stdin)
            with contextlib.suppress(OSError):
                child.stdin.close()
        return job

    def _feed_on(self, selector: selectors.BaseSelector, child: subprocess.Popen[bytes]) -> None:
        """Once rank 0 has read more."""
        if self._waits and self._sent < self._read_there + _AHEAD:
            self._waits = False
            assert child.stdin is not None
            selector.register(child.stdin, selectors.EVENT_WRITE)

    def _read(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        try:
            data = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            selector.unregister(key.fileobj)
        lines = (self._rest.pop(key.fd, b"") + data).split(b"\n")
        self._rest[key.fd] = lines.pop()
        for line in lines:
            self._line(line, key.fd)

    def _line(self, line: bytes, fileno: int) -> None:
        chatter, event = split_line(line)
        if event is not None:
            self._event(event)
        text = chatter.decode(errors="replace").rstrip()
        if text:
            if len(self._outcome.chatter) < _KEPT:
                self._outcome.chatter.append(text)
            self._on_chatter(text)

    def _event(self, event: Event) -> None:
        now = time.monotonic()
        if isinstance(event, Progress):
            self._outcome.phase = event.phase
            self._on_progress(event.phase, event.done)
        elif isinstance(event, Reading):
            self._read_there = event.bytes
            if self._start.patience is not None:
                self._start_by = now + self._start.patience
        elif isinstance(event, Snapshot):
            self._on_snapshot(event.index)
        elif isinstance(event, Started):
            self._outcome.started = event
        elif isinstance(event, Signalled) and event.number == signal.SIGUSR2:
            self._outcome.where[event.rank] = event.phase
        elif isinstance(event, Failed | Signalled):
            if self._outcome.failed is None and self._outcome.signalled is None:  # the first one is the cause
                if isinstance(event, Failed):
                    self._outcome.failed = event
                else:
                    self._outcome.signalled = event
            self._tighten(now if self._waited_for() else now + _AFTER_ERROR)
        else:
            self._outcome.record = event
            self._outcome.timed_out = False  # it was done while the ranks were asked
            # A --timeout still holds, but what is done is not thrown away for a moment more.
            limit = now + _AFTER_RECORD
            self._deadline = (
                limit if self._deadline is None else min(limit, max(self._deadline, now + _GRACE))
            )

    def _waited_for(self) -> bool:
        """Whether a rank of somebody else's launcher waits until we have said why the job failed."""
        failed, signalled = self._outcome.failed, self._outcome.signalled
        return self._start.joined and (signalled is not None or (failed is not None and failed.aborts))

    def _tighten(self, deadline: float) -> None:
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Ends all that runs."""
        processes.end_tree(child, () if self._start.joined else self._pids(), self._program, self._mark)

    def _end_others(self, well: bool) -> None:
        """Ends what lives on without the child, and removes what dead ranks have left in shared memory.

        When a job has failed whose ranks belong to somebody else's launcher, that waits until we have said
        why: the launcher sees them die, and kills us at once.
        """
        joined = self._start.joined
        patience = _AFTER_RECORD if well else 0.0 if joined and self._outcome.failed is None else _LEAVING
        left = processes.outliving(self._pids(), self._program, patience)
        if not well and not joined:
            left += processes.marked(self._mark)
        if left and joined and not well:
            afterwards.later(lambda: processes.kill(left))
        elif left:
            processes.kill(left)
        if not well:
            segments.sweep()

    def _pids(self) -> list[int]:
        """Pids of ranks on this host; those on others are their launcher's to end."""
        if self._outcome.started is None:
            return []
        here = os.uname().nodename
        return [rank.pid for rank in self._outcome.started.ranks if rank.host == here]


def _let_go(child: subprocess.Popen[bytes]) -> None:
    """Ends a child that waits until we have said why the job failed."""
    _close(child)
    try:
        child.wait(_LEAVING)
    except subprocess.TimeoutExpired:
        child.kill()


def _close(child: subprocess.Popen[bytes]) -> None:
    for stream in (child.stdin, child.stdout, child.stderr):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()
