"""Supervision of a job to its end: its events are read, and nothing hangs or lingers."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable

import msgspec

from tilewise.base import processes
from tilewise.base.errors import Interrupted
from tilewise.launch import cleanup, events, signals, slurm, worker
from tilewise.launch.child import Feed, close_streams, let_go, spawn
from tilewise.launch.connections import Connections, Pieces
from tilewise.launch.join import cancel_step
from tilewise.launch.launcher import Start
from tilewise.launch.liveness import Beats, RankPidfds, stopped_ranks
from tilewise.launch.outcome import Hang, Outcome

_TICK = 0.05
_AFTER_ERROR = 3.0  # seconds a job may take to end once it said that it failed
_GRACE = 2.0  # of these, whatever --timeout says
_AFTER_RECORD = 30.0  # seconds it may take to leave MPI once it said that it is done
_LEAVING = 3.0  # seconds in which ranks may end after the first has, when the job has failed
_DRAIN = 0.3  # seconds for what is still in the pipes once the child has gone
_ANSWER = 0.3  # seconds in which ranks say where they are, before a job that takes too long is ended
_LOOK = 1.0  # from one look for ranks that cannot speak to the next, while the job starts
_KEPT = 400  # lines of chatter that are kept


class Supervisor:
    """Supervisor of one child. `on_progress` hears of progress, `on_chatter` of each line that is not ours.

    `on_snapshot` hears of snapshots that are complete, `on_standstill` of ranks of which none gets on, where
    that ends no job, `on_survived` of deaths after which the others have gone on. `deadline` is what `Beats`
    takes.
    """

    def __init__(
        self,
        start: Start,
        program: str,
        caught: signals.Signals,
        *,
        timeout: float | None = None,
        deadline: float | None = None,
        on_running: Callable[[], None] = lambda: None,
        on_progress: Callable[[str, float], None] = lambda phase, done: None,
        on_chatter: Callable[[str], None] = lambda line: None,
        on_snapshot: Callable[[int], None] = lambda index: None,
        on_standstill: Callable[[Hang], None] = lambda hang: None,
        on_survived: Callable[[events.Survived], None] = lambda event: None,
    ) -> None:
        # No two runs have the same: one child is started by this process at a time.
        self._mark = f"{worker.RUN}={os.getpid()}-{time.monotonic_ns()}"
        name, _, value = self._mark.partition("=")
        self._connections = Connections(value, start.ranks, start.remote, self._line, start.hosts)
        phase = {worker.PHASE: worker.NO_PHASE}
        variables = {**start.environment, **phase, name: value, **self._connections.environment}
        self._start = msgspec.structs.replace(start, environment=variables)
        self._joined = start.launcher.joined
        self._program = program
        self._signals = caught
        self._timeout = timeout
        self._on_running = on_running
        self._on_progress = on_progress
        self._on_chatter = on_chatter
        self._on_snapshot = on_snapshot
        self._on_standstill = on_standstill
        self._on_survived = on_survived
        self._beats = Beats(deadline)
        self._outcome = Outcome(ranks=start.ranks)
        self._pieces: dict[int, Pieces] = {}
        self._deadline: float | None = None
        self._feed = Feed()
        self._start_by: float | None = None
        self._look_by = time.monotonic() + _LOOK
        self._left_at: float | None = None  # when all ranks had left in peace
        self._ended_by: float | None = None  # when a rank's SIGTERM is no longer taken for the launcher's

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
                child = spawn(self._start)
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
            if self._joined and not self._agreed():
                signals.keep(cancel_step)
            if child is not None and not self._waited_for():
                close_streams(child)
            if not self._waited_for():
                self._connections.close()
        if self._waited_for():
            # What ends a rank by accident makes the launcher kill us: that comes when we have said why.
            if self._outcome.lost is not None or self._outcome.hang is not None:
                self._end_others(well=False)
            signals.keep(lambda: let_go(child, self._connections, self._outcome))
            return self._outcome
        returncode = child.wait()
        survived = self._start.survives and self._outcome.record is not None
        self._outcome.returncode = 0 if self._outcome.outlived or survived else returncode
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
            self._feed.open(selector, child.stdin, job)
            bell = processes.pidfd(child.pid)
            if bell is not None:
                selector.register(bell, selectors.EVENT_READ)
            self._connections.listen(selector)
            pidfds = RankPidfds(selector, self._connections)
            running = watched = False
            try:
                gone_at: float | None = None
                while True:
                    self._signals.check()
                    ready = selector.select(_TICK)
                    rung = [key.fd for key, _ in ready if key.fd in pidfds]
                    with self._signals.hold():  # what is heard is not heard twice
                        pidfds.hear(rung)
                    for key, _ in ready:
                        if key.fd in rung:
                            continue
                        if key.fileobj is child.stdin:
                            self._feed.write(selector)
                        elif key.fileobj is bell:
                            selector.unregister(bell)
                        else:
                            self._read(selector, key)
                    self._feed.resume(selector)
                    if self._outcome.started is None:
                        self._hear_stopped(child.pid)
                        if self._start.proxies:
                            pidfds.watch_start(child.pid)
                    elif not watched:
                        watched = True
                        pidfds.watch(self._outcome.started.ranks, child.pid)
                    if not running:
                        running = True
                        cleanup.sweep()
                        self._on_running()
                    now = time.monotonic()
                    if gone_at is None and child.poll() is not None:
                        gone_at = now
                    streams = [
                        key
                        for key in selector.get_map().values()
                        if key.events == selectors.EVENT_READ and key.fd not in pidfds
                    ]
                    if gone_at is not None and (not streams or now > gone_at + _DRAIN):
                        break
                    if gone_at is None and self._too_late(now, pidfds):
                        self._outcome.stopped = processes.stopped(child.pid)
                        if self._waited_for():
                            break
                        self._end(child)
                        gone_at = now
                if self._waited_for():  # the launcher, which ends us now, must not have the last word
                    self._signals.disregard()
            except Interrupted:
                if not self._explained(selector, pidfds):
                    raise
                self._signals.disregard()
            finally:
                self._outcome.first_gone, self._outcome.silent = pidfds.first_gone, pidfds.silent
                self._outcome.first_host, self._outcome.over = pidfds.first_host, self._connections.over
                self._outcome.called = sorted(self._connections.hosts())
                pidfds.close()
                if bell is not None:
                    os.close(bell)
        for pieces in self._pieces.values():
            if pieces.rest:
                self._line(bytes(pieces.rest))

    def _explained(self, selector: selectors.BaseSelector, pidfds: RankPidfds) -> bool:
        """Return whether it was for a lost rank that somebody else's launcher interrupted us."""
        if not self._joined or self._outcome.record is not None:
            return False
        until, late = time.monotonic() + _DRAIN, False
        while not (self._waited_for() or late):
            rung = [key.fd for key, _ in selector.select(_TICK) if key.fd in pidfds]
            pidfds.hear(rung)
            self._outcome.lost = pidfds.lost
            late = not rung and time.monotonic() > until  # what has come is heard, whenever we get to it
        if not self._waited_for() and (down := slurm.down_nodes(os.environ)):
            self._outcome.lost = down[0]
        return self._waited_for()

    def _too_late(self, now: float, pidfds: RankPidfds) -> bool:
        """Return whether the job is to be ended, for a reason that is in the outcome then."""
        outcome = self._outcome
        decided = outcome.record is not None or outcome.failed is not None or outcome.signalled is not None
        if self._ended_by is not None and pidfds.lost is not None:
            outcome.lost = pidfds.lost  # ranks that a signal ends wait for us: this one ended by itself
            return True
        if outcome.record is not None and self._connections.all_left:
            # A launcher whose own process on some host was killed waits on, with nothing left to wait for.
            self._left_at = self._left_at or now
            outcome.outlived = now > self._left_at + _LEAVING
            if outcome.outlived:
                return True
        if self._deadline is not None and now > self._deadline:
            if decided:
                outcome.hung = True
            elif not outcome.timed_out:
                outcome.timed_out = True
                self._ask_ranks()
                self._deadline = now + _ANSWER
                return False
            return True
        if outcome.started is None and self._start_by is not None and now > self._start_by and not decided:
            outcome.unstarted = self._start.patience
            return True
        if self._start.survives:
            for host, pid in pidfds.gone:
                self._beats.forget(pid, host)
            pidfds.gone.clear()
            hang = self._beats.look()
            if hang is not None and not decided and pidfds.lost is not None:  # they could not go on
                outcome.lost = pidfds.lost
                return True
            if pidfds.lost is not None:
                return False
        else:
            if not decided and pidfds.left_alone():
                outcome.lost = pidfds.lost
                return True
            hang = self._beats.look()
        if hang is None or decided or outcome.timed_out or pidfds.lost is not None:
            return False
        if self._beats.ends(hang):
            outcome.hang = hang
            return True
        self._on_standstill(hang)
        return False

    def _hear_stopped(self, child: int) -> None:
        """Count ranks that were stopped before they could beat as having beaten once."""
        if time.monotonic() > self._look_by:
            self._look_by = time.monotonic() + _LOOK
            alone = child if self._start.launcher.alone else 0
            for beat in stopped_ranks(self._mark, alone, self._beats.heard):
                self._beats.hear(beat)

    def _ask_ranks(self) -> None:
        """Ask the ranks on this host for their phase, and the kernel for their state."""
        here = os.uname().nodename
        for rank in self._outcome.places:
            if rank.host == here and processes.living(rank.pid, self._program) is not None:
                self._outcome.states[rank.rank] = processes.state(rank.pid)
                with contextlib.suppress(OSError):
                    os.kill(rank.pid, signal.SIGUSR2)

    def _read(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        try:
            data = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            selector.unregister(key.fileobj)
        for line in self._pieces.setdefault(key.fd, Pieces()).lines(data):
            self._line(line)

    def _line(self, line: bytes) -> None:
        chatter, event = events.split_line(line)
        if event is not None:
            self._event(event)
        text = chatter.decode(errors="replace").rstrip()
        if text:
            if len(self._outcome.chatter) < _KEPT:
                self._outcome.chatter.append(text)
            self._on_chatter(text)

    def _event(self, event: events.Event) -> None:
        now = time.monotonic()
        if isinstance(event, events.Progress):
            self._outcome.phase = event.phase
            self._on_progress(event.phase, event.done)
        elif isinstance(event, events.Beat):
            self._beats.hear(event)
        elif isinstance(event, events.JobRead):
            self._feed.read_there = event.bytes
            if self._start.patience is not None:
                self._start_by = now + self._start.patience
        elif isinstance(event, events.Snapshot):
            self._on_snapshot(event.index)
        elif isinstance(event, events.Survived):
            self._on_survived(event)
        elif isinstance(event, events.Signalled) and self._start.survives and event.number != signal.SIGUSR2:
            pass  # the others go on; where they cannot, the launcher says who died
        elif isinstance(event, events.Started):
            self._outcome.started = event
        elif isinstance(event, events.Signalled) and event.number == signal.SIGUSR2:
            self._outcome.where[event.rank] = event.phase
        elif isinstance(event, events.Failed | events.Signalled):
            if self._outcome.failed is None and self._outcome.signalled is None:  # the first one is the cause
                if isinstance(event, events.Failed):
                    self._outcome.failed = event
                else:
                    self._outcome.signalled = event
                    if self._joined and event.number == signal.SIGTERM:
                        self._ended_by = now + _DRAIN
            self._tighten(self._ended_by or (now if self._waited_for() else now + _AFTER_ERROR))
        else:
            self._outcome.record = event
            self._outcome.timed_out = False  # it was done while the ranks were asked
            # A --timeout still holds, but what is done is not thrown away for a moment more.
            limit = now + _AFTER_RECORD
            self._deadline = (
                limit if self._deadline is None else min(limit, max(self._deadline, now + _GRACE))
            )

    def _waited_for(self) -> bool:
        """Return whether a rank of somebody else's launcher waits until we have said why the job failed."""
        outcome = self._outcome
        aborts = outcome.failed is not None and outcome.failed.aborts
        known = aborts or (outcome.signalled is not None and time.monotonic() >= (self._ended_by or 0))
        return self._joined and (known or outcome.lost is not None or outcome.hang is not None)

    def _agreed(self) -> bool:
        """Return whether all ranks know how the job ends, and leave by themselves."""
        failed = self._outcome.failed
        return self._outcome.record is not None or (failed is not None and not failed.aborts)

    def _tighten(self, deadline: float) -> None:
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Ends all that runs."""
        if not self._joined:
            self._connections.end_local()  # at once: while many spin, to find all that runs takes seconds
            self._connections.close()
        processes.end_tree(child, () if self._joined else self._pids(), self._program, self._mark)

    def _end_others(self, well: bool) -> None:
        """Ends what lives on without the child, and removes what dead ranks have left in shared memory.

        When a job has failed whose ranks belong to somebody else's launcher, that waits until we have said
        why: the launcher sees them die, and kills us at once.
        """
        joined = self._joined
        patience = _AFTER_RECORD if well else 0.0 if joined and self._outcome.failed is None else _LEAVING
        left = processes.outliving(self._pids(), self._program, patience)
        if not well and not joined:
            left += processes.marked(self._mark)
        if left and joined and not well:
            signals.keep(lambda: processes.kill(left))
        elif left:
            processes.kill(left)
        if not well:
            cleanup.sweep()

    def _pids(self) -> list[int]:
        """Pids of ranks on this host; those on others are their launcher's to end."""
        here = os.uname().nodename
        return [rank.pid for rank in self._outcome.places if rank.host == here]
