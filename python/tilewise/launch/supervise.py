"""Runs one job to its end: feeds it, reads its events, and lets nothing hang or linger."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable
from typing import IO

import msgspec

from tilewise.launch import afterwards, processes, segments
from tilewise.launch.events import Done, Event, Failed, Progress, Reading, Snapshot, Started, split_line
from tilewise.launch.launcher import Start
from tilewise.launch.proxies import PATIENCE, connections, death_bell
from tilewise.launch.signals import Signals

_TICK = 0.05
_AFTER_ERROR = 3.0  # seconds a job may take to end once it said that it failed
_AFTER_RECORD = 30.0  # seconds it may take to leave MPI once it said that it is done
_LEAVING = 3.0  # seconds in which ranks may end after the first has, when the job has failed
_DRAIN = 0.3  # seconds for what is still in the pipes once the child has gone
_LOOK = 0.2  # seconds from one look at the ranks' shared memory to the next
_KEPT = 400  # lines of chatter that are kept
_AHEAD = 32768  # bytes of a job that go out before the worker says what it has read; the worker knows it too
_WATCHED = 256  # ranks on this host whose ends are watched one by one


class Outcome(msgspec.Struct):
    """All that was seen of a run. `returncode` is the child's, negative for a signal."""

    started: Started | None = None
    record: Done | None = None
    failed: Failed | None = None
    returncode: int = 0
    chatter: list[str] = []
    timed_out: bool = False
    hung: bool = False
    first_gone: int | None = None  # the rank that ended before all others on this host, where that was seen
    lost: str | None = None  # where (empty: not known) a rank ended and the launcher let the others wait
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
        self._start = start
        self._program = program
        self._signals = signals
        self._timeout = timeout
        self._on_running = on_running
        self._on_progress = on_progress
        self._on_chatter = on_chatter
        self._on_snapshot = on_snapshot
        self._outcome = Outcome()
        self._rest: dict[int, bytes] = {}
        self._deadline: float | None = None
        self._bells: dict[int, int] = {}  # of ranks on this host
        self._lines: dict[int, str] = {}  # of connections to others
        self._lines_known = False
        self._lost: tuple[float, str] | None = None  # when the first rank was seen to end, and its host
        self._segments: set[str] = set()
        self._sent = 0  # bytes of the job
        self._read_there = 0  # of those, what rank 0 said that it has read
        self._waits = False  # for rank 0 to read more
        self._look_at = 0.0

    def run(self, job: bytes) -> Outcome:
        """Starts the child, hands it `job`, and returns when it and all below it have gone.

        Raises Interrupted after a signal, and whatever a callback raises; the whole tree is ended first then.
        """
        begin = time.monotonic()
        child: subprocess.Popen[bytes] | None = None
        try:
            self._signals.check()
            with self._signals.hold():
                child = processes.spawn(self._start)
            if self._timeout is not None:
                self._deadline = begin + self._timeout
            self._watch(child, memoryview(job))
        except BaseException:
            if child is not None:
                self._end(child)
                self._end_others(well=False)
            raise
        finally:
            if child is not None:
                for stream in (child.stdin, child.stdout, child.stderr):
                    _close(stream)
            for bell in (*self._bells, *self._lines):
                os.close(bell)
        self._outcome.returncode = child.wait()
        self._end_others(well=self._outcome.returncode == 0)
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
            told = False
            try:
                gone_at: float | None = None
                while True:
                    self._signals.check()
                    ready = selector.select(_TICK)
                    self._hear_ranks(selector, [key.fd for key, _ in ready if key.fd in self._bells])
                    self._hear_lines(selector, [key.fd for key, _ in ready if key.fd in self._lines])
                    for key, _ in ready:
                        if key.fd in self._bells or key.fd in self._lines:
                            continue
                        if key.fileobj is child.stdin:
                            job = self._feed(selector, child, job)
                        elif key.fileobj is bell:
                            selector.unregister(bell)
                        else:
                            self._read(selector, key)
                    self._feed_on(selector, child)
                    self._watch_ranks(selector)
                    self._watch_lines(selector, child.pid)
                    if not told:
                        told = True
                        self._on_running()
                    now = time.monotonic()
                    self._look_at_segments(now)
                    if gone_at is None and child.poll() is not None:
                        gone_at = now
                    streams = [
                        key
                        for key in selector.get_map().values()
                        if key.events == selectors.EVENT_READ and key.fd not in {*self._bells, *self._lines}
                    ]
                    if gone_at is not None and (not streams or now > gone_at + _DRAIN):
                        break
                    if gone_at is None and self._deadline is not None and now > self._deadline:
                        self._give_up(child)
                        gone_at = now
                    if gone_at is None and self._lost is not None and self._left_alone(now):
                        self._outcome.lost = self._lost[1]
                        self._end(child)
                        gone_at = now
            finally:
                if bell is not None:
                    os.close(bell)
        for fileno, rest in self._rest.items():
            if rest:
                self._line(rest, fileno)

    def _watch_ranks(self, selector: selectors.BaseSelector) -> None:
        """Once the ranks are known: a launcher kills all when one dies, and may then name any of them."""
        if self._bells or self._outcome.started is None or self._outcome.first_gone is not None:
            return
        here = self._pids()
        if not 1 < len(here) <= _WATCHED:
            return
        for rank in self._outcome.started.ranks:
            if rank.pid in here and (bell := death_bell(rank.pid)) is not None:
                self._bells[bell] = rank.rank
                selector.register(bell, selectors.EVENT_READ)

    def _hear_ranks(self, selector: selectors.BaseSelector, rung: list[int]) -> None:
        """The first to go is the cause, unless several went before we looked."""
        if not rung:
            return
        if self._outcome.first_gone is None:
            self._outcome.first_gone = self._bells[rung[0]] if len(rung) == 1 else -1
            self._lose(os.uname().nodename)
        for bell in rung:
            selector.unregister(bell)

    def _watch_lines(self, selector: selectors.BaseSelector, launcher: int) -> None:
        """Once the ranks are known, and some are elsewhere."""
        if self._lines_known or self._outcome.started is None:
            return
        self._lines_known = True
        hosts = {rank.host for rank in self._outcome.started.ranks}
        if len(hosts) < 2:
            return
        self._lines = connections(launcher, hosts)
        for bell in self._lines:
            selector.register(bell, selectors.EVENT_READ)

    def _hear_lines(self, selector: selectors.BaseSelector, rung: list[int]) -> None:
        """A connection that ends while the job runs is a rank that died over there."""
        for bell in rung:
            selector.unregister(bell)
            self._lose(self._lines[bell])

    def _lose(self, host: str) -> None:
        """A rank on `host` has ended: the launcher shall end the others, and if it does not, we do."""
        if self._lost is None:
            self._lost = (time.monotonic(), host)

    def _left_alone(self, now: float) -> bool:
        """Whether a rank has ended some time ago, and nothing has come of it."""
        silent = self._outcome.record is None and self._outcome.failed is None
        return silent and self._lost is not None and now > self._lost[0] + PATIENCE

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
            _close(child.stdin)
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
            self._on_progress(event.phase, event.done)
        elif isinstance(event, Reading):
            self._read_there = event.bytes
        elif isinstance(event, Snapshot):
            self._on_snapshot(event.index)
        elif isinstance(event, Started):
            self._outcome.started = event
            if event.ranks and event.ranks[0].pid in self._pids():  # rank 0 is on this host
                self._segments |= segments.segments_of(event.segments)
        elif isinstance(event, Failed):
            if self._outcome.failed is None:  # the first one is the cause
                self._outcome.failed = event
            self._tighten(now + _AFTER_ERROR)
        else:
            self._outcome.record = event
            self._deadline = now + _AFTER_RECORD

    def _tighten(self, deadline: float) -> None:
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def _give_up(self, child: subprocess.Popen[bytes]) -> None:
        if self._outcome.record is None and self._outcome.failed is None:
            self._outcome.timed_out = True
        else:
            self._outcome.hung = True
        self._end(child)

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Ends all that runs, having looked what it would leave in shared memory."""
        self._segments |= segments.mapped([*processes.descendants(child.pid), *self._pids()])
        processes.end_tree(child, () if self._start.joined else self._pids(), self._program)

    def _end_others(self, well: bool) -> None:
        """Ends ranks that live on without the child, and removes what they have left in shared memory.

        When a job has failed whose ranks belong to somebody else's launcher, that waits until we have said
        why: the launcher sees them die, and kills us at once.
        """
        joined = self._start.joined
        patience = _AFTER_RECORD if well else 0.0 if joined and self._outcome.failed is None else _LEAVING
        left = processes.outliving(self._pids(), self._program, patience)
        segments.remove(self._segments)
        if left and joined and not well:
            afterwards.later(lambda: processes.kill(left))
        elif left:
            processes.kill(left)
        segments.remove(self._segments)

    def _look_at_segments(self, now: float) -> None:
        """Now and then: ranks that somebody kills cannot be asked afterwards. One rank has all segments."""
        if now >= self._look_at and (here := self._pids()):
            self._look_at = now + _LOOK
            self._segments |= segments.mapped(here[:1])

    def _pids(self) -> list[int]:
        """Pids of ranks on this host; those on others are their launcher's to end."""
        if self._outcome.started is None:
            return []
        here = os.uname().nodename
        return [rank.pid for rank in self._outcome.started.ranks if rank.host == here]


def _close(stream: IO[bytes] | None) -> None:
    with contextlib.suppress(OSError):
        if stream is not None:
            stream.close()
