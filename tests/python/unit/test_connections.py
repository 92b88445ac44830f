"""The connections that ranks hold to the front: who may come in, what is said, and whose end is heard."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from fronts import ListeningFront
from tilewise.launch import constants
from tilewise.launch.connections import End
from tilewise.launch.events import RankPlace
from tilewise.launch.liveness import RankPidfds

HERE = os.uname().nodename


class Front(ListeningFront):
    """The front's side, for a test that is its own ranks."""

    def listen(self) -> list[End]:
        """All ends that are there to be heard."""
        ends = []
        while ready := self.selector.select(0.1):
            ends += [end for key, _ in ready if (end := self.connections.hear(key.fd)) is not None]
        return ends

    def call(self, host: str, pid: int, token: str | None = None) -> socket.socket:
        """A rank that has called."""
        made = socket.create_connection(("localhost", int(self.port)), timeout=10)
        made.sendall(f"{self.token if token is None else token} {host} {pid}\n".encode())
        self.listen()
        return made


@pytest.fixture
def front() -> Iterator[Front]:
    made = Front()
    try:
        yield made
    finally:
        made.close()


def test_the_end_of_a_rank_is_heard_and_told_to_the_others(front: Front) -> None:
    first, second = front.call("far", 7), front.call("farther", 8)
    assert first.recv(1) == second.recv(1) == b"." and front.connections.hosts() == {"far", "farther"}
    first.close()
    assert front.listen() == [End("far", 7, False)]
    assert second.recv(1) == b"L"
    assert front.call("late", 9).recv(2) == b".L"


def test_an_end_that_was_announced_means_nothing(front: Front) -> None:
    rank = front.call("far", 7)
    rank.sendall(b"some\nwords\nbye\n")
    rank.close()
    assert front.listen() == [] and front.heard == [b"some", b"words"]


def test_when_all_ranks_have_left(front: Front) -> None:
    ranks = [front.call("far", pid) for pid in range(1, 5)]
    for rank in ranks[:3]:
        rank.sendall(b"bye\n")
        rank.close()
    front.listen()
    assert not front.connections.over and not front.connections.all_left
    ranks[3].close()
    front.listen()
    assert front.connections.over and not front.connections.all_left  # the last has not said that it was done


def test_who_does_not_know_the_token_gets_no_answer(front: Front) -> None:
    stranger = front.call("far", 7, token="guessed")
    assert stranger.recv(1) == b"" and front.listen() == [] and front.connections.hosts() == set()


def test_the_end_of_the_front_reaches_ranks(front: Front) -> None:
    rank = front.call("far", 7)
    front.connections.close()
    assert rank.recv(9) == b"."
    assert rank.recv(1) == b""


def test_the_kernel_asks_whether_the_other_side_is_there(front: Front) -> None:
    front.call("far", 7)
    held = next(line.socket for line in front.connections._connections.values())
    assert held.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert (
        held.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == constants.seam().line_patience * 1000
    )


def test_a_host_that_does_not_answer_is_told_from_a_rank_that_ended(front: Front) -> None:
    pidfds = RankPidfds(front.selector, front.connections)
    pidfds.watch([RankPlace(0, HERE, 1), RankPlace(1, "far", 7), RankPlace(2, "farther", 8)], os.getpid())
    front.call("far", 7)
    cut = next(fd for fd, line in front.connections._connections.items() if line.host == "far")
    front.connections._connections[cut].socket = _Cut()  # type: ignore[assignment]
    pidfds.hear([cut])
    assert (pidfds.first_gone, pidfds.lost, pidfds.silent) == (1, "far", ["far"])
    rank = front.call("farther", 8)
    rank.close()
    pidfds.hear([key.fd for key, _ in front.selector.select(1)])
    assert (pidfds.first_gone, pidfds.silent) == (1, ["far"])


@pytest.mark.skipif(sys.platform != "linux", reason="ranks connect by a socket of Linux")
def test_neither_beats_that_wait_nor_slow_ends_hide_which_rank_closed_first(front: Front) -> None:
    """Rank 1 closes first, and dies last: as one does that is not given a processor while it ends."""
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", _RANK, front.run], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in "ab"
    ]
    for rank in ranks:
        _answered(rank)
        front.listen()
    pidfds = RankPidfds(front.selector, front.connections)
    pidfds.watch([RankPlace(index, HERE, rank.pid) for index, rank in enumerate(ranks)], os.getpid())
    for rank in ranks:
        _told(rank)  # to beat
    beats = [key.fd for key, _ in front.selector.select(1)]
    _told(ranks[1])  # to close
    for rank in ranks:
        rank.kill()
        rank.communicate()
    pidfds.hear(beats)
    for _ in range(3):
        pidfds.hear([key.fd for key, _ in front.selector.select(0.1)])
    assert pidfds.first_gone == 1 and len(pidfds.gone) == 2
    pidfds.close()


def _told(rank: subprocess.Popen[bytes]) -> None:
    assert rank.stdin is not None
    rank.stdin.write(b"\n")
    rank.stdin.flush()
    _answered(rank)


def _answered(rank: subprocess.Popen[bytes]) -> None:
    assert rank.stdout is not None and rank.stdout.read(1) == b"."


_RANK = """
import os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(chr(0) + "tilewise-" + sys.argv[1])
for act in (lambda: line.send(b"beat"), line.close, sys.exit):
    os.write(1, b".")
    os.read(0, 1)
    act()
"""


class _Cut:
    """A connection behind which nobody answers."""

    def recv(self, size: int) -> bytes:
        raise TimeoutError(110, os.strerror(110))

    def close(self) -> None:
        pass
