"""The door for ranks before anybody has shown the token: floods, long words, silence, and where it is."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator

import pytest
from fronts import ListeningFront
from tilewise.launch import connections, launcher
from tilewise.launch.connections import Pieces
from tilewise.launch.job import quit_job
from tilewise.launch.liveness import RankPidfds

HERE = os.uname().nodename


class Front(ListeningFront):
    """The front's side of a door that strangers find."""

    def __init__(self, hosts: tuple[str, ...] = (HERE,)) -> None:
        super().__init__(hosts)
        self.pidfds = RankPidfds(self.selector, self.connections)

    def listen(self, seconds: float = 0.05) -> None:
        """Hears all that is there to be heard."""
        while ready := self.selector.select(seconds):
            self.pidfds.hear([key.fd for key, _ in ready])
        self.pidfds.hear([])

    def call(self, words: bytes) -> socket.socket:
        """A caller that says `words`."""
        made = socket.create_connection((self.addresses[0], int(self.port)), timeout=10)
        made.sendall(words)
        return made

    def greets(self, pid: int) -> bool:
        """Whether a rank that calls now is let in."""
        made = self.call(f"{self.token} far {pid}\n".encode())
        self.listen()
        made.settimeout(1)
        with contextlib.suppress(OSError):
            return made.recv(1) == b"."
        return False


@pytest.fixture
def front() -> Iterator[Front]:
    made = Front()
    try:
        yield made
    finally:
        made.close()


def ended(caller: socket.socket) -> bool:
    """Whether the front has ended that connection."""
    try:
        return caller.recv(1) == b""
    except ConnectionResetError:
        return True


def test_wrong_tokens_leave_the_door_open(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    front.connections._capacity[True] = 40
    for _ in range(100):
        with front.call(b"guessed far 7\n"):
            front.listen(0.001)
    assert front.greets(7)


def test_no_rank_is_kept_out_by_those_who_say_nothing(front: Front) -> None:
    held = [front.call(b"") for _ in range(connections._UNIDENTIFIED + 20)]
    front.listen()
    assert front.greets(7) and len(front.connections._unidentified) <= connections._UNIDENTIFIED
    assert ended(held[0])
    for each in held:
        each.close()


def test_a_rank_that_has_spoken_is_not_pushed_out(front: Front) -> None:
    """Its words wait to be read while others call."""
    rank = front.call(f"{front.token} far 7\n".encode())
    held = [front.call(b"") for _ in range(2 * connections._UNIDENTIFIED)]
    front.listen()
    assert rank.recv(1) == b"."
    for each in held:
        each.close()


def test_a_greeting_has_an_end(front: Front) -> None:
    caller = front.call(b"x" * connections._GREETING)
    front.listen()
    assert ended(caller)


def test_a_greeting_comes_in_time(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = front.call(b"slow")
    front.listen()
    monkeypatch.setattr(connections, "_GREETED_IN", 0.0)
    front.listen()
    assert ended(caller)
    assert connections._GREETING <= 512


@pytest.mark.parametrize("pid", ["0", "²", "-1", ""])
def test_a_process_has_a_number(front: Front, pid: str) -> None:
    caller = front.call(f"{front.token} far {pid}\n".encode())
    front.listen()
    assert ended(caller) and front.connections.hosts() == set()


def test_the_end_of_the_ranks_here_is_not_ours(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    """Process 0 of kill(2) is the caller's whole group."""
    caller = front.call(b"silent")
    front.listen()
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append((pid, number)))
    front.connections.end_local()
    assert killed == []
    caller.close()


def test_long_lines_cost_what_they_are_long() -> None:
    pieces, data = Pieces(), b"x" * 4096
    begin = time.process_time()
    for _ in range(8192):  # 32 MiB, which took a minute
        assert pieces.lines(data) == []
    assert pieces.lines(b"\nrest") == [data * 8192] and pieces.rest == b"rest"
    assert time.process_time() - begin < 5


def test_a_flood_of_others_does_not_hold_the_front(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers of another user at the abstract socket are turned away; there may be no end of them."""
    door = next(door for door, remote in front.connections._listeners.values() if not remote)
    called: list[socket.socket] = []

    class Flooded:
        def _accept(self) -> tuple[int, object]:
            assert len(called) < 10_000, "the front does nothing else"
            ours, theirs = socket.socketpair()
            called.append(theirs)
            return ours.detach(), None

        def fileno(self) -> int:
            return door.fileno()

    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    front.connections._accept_ranks(Flooded(), False)  # type: ignore[arg-type]
    assert called and all(map(ended, called))


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [((HERE,), ["127.0.0.1"]), (("127.0.0.1", HERE), ["127.0.0.1"]), (("::1",), ["127.0.0.1"])],
)
def test_it_listens_where_the_ranks_are(hosts: tuple[str, ...], expected: list[str]) -> None:
    made = Front(hosts)
    with contextlib.closing(made.connections):
        listening = {door.getsockname()[0] for door, remote in made.connections._listeners.values() if remote}
        assert (made.addresses, listening) == (expected, set(expected))


def test_it_listens_on_all_addresses_where_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    for hosts in ((), ("no-such-host.invalid",)):
        made = Front(hosts)
        with contextlib.closing(made.connections):
            assert {door.getsockname()[0] for door, far in made.connections._listeners.values() if far} <= {
                "::",
                "0.0.0.0",
            }


def test_a_launcher_that_is_told_of_no_hosts_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = launcher.find_worker()
    mpiexec = launcher.mpiexec_path(worker.build)
    if launcher.kind_of(mpiexec or "") is not launcher.HYDRA and worker.mpi != "wheel":
        pytest.skip("this build's launcher is not hydra")
    variant = quit_job().variant
    start = launcher.own_start(worker, variant, [], str(mpiexec), False)
    assert start.remote and start.hosts == (HERE,)
    for words, named in ((f"{mpiexec} -hosts a,b", []), (str(mpiexec), ["a", "b"])):
        start = launcher.own_start(worker, variant, named, words, False)
        assert start.hosts == tuple(named)
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert launcher.own_start(worker, variant, [], str(mpiexec), False).hosts == ()
