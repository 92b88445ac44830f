"""Connections that ranks hold to the front for as long as they live: either side hears of the other's end.

rank on this host ── an abstract socket, @tilewise-RUN ──┐
                                                         ├── front
rank on node2 ── TCP, to one of the front's addresses ───┘

rank → front   "TOKEN HOST PID", the first words of a connection by TCP, which the front answers with "."
               a beat every second
               "bye": the end that follows means nothing
               other events, of ranks of somebody else's job: its launcher would show them on the terminal
front → rank   "L": a rank is lost; what goes wrong now is no news
               "E": leave; to ranks of somebody else's job, whose launcher then takes no end for an accident
               the end: end at once, also when the front was killed or its host is not reached any more
"""

from __future__ import annotations

import _socket  # what is behind `socket`, whose import takes longer than all else that is imported here
import contextlib
import errno
import os
import select
import selectors
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from tilewise.launch import constants
from tilewise.launch.worker import FRONT

_LOCAL, _REMOTE = 256, 4096  # ranks that are let in
_STRANGERS = 256  # of these, callers at a time that have yet to say who they are
_GREETING, _GREETED_IN = 512, 5.0  # bytes and seconds in which they say it
_ATTEMPTS = 8  # to find a port that is free on several addresses
_SPARED = 64  # descriptors that the front needs for other things
_LOST, _LEAVE = b"L", b"E"
_UNREACHABLE = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)
_INTERNAL = ("127.", "::1", "fe80:")  # addresses that only this host or cable knows by that number


class End(msgspec.Struct, frozen=True):
    """A connection that ended: of which process on which host, and whether that host does not answer."""

    host: str
    pid: int
    unreachable: bool


class Pieces:
    """Lines out of what comes in pieces, at a cost that grows as their length does."""

    def __init__(self) -> None:
        self.rest = bytearray()  # of a line that has not ended

    def lines(self, data: bytes) -> list[bytes]:
        """Return the lines that end within `data`."""
        *ended, rest = data.split(b"\n")
        if ended:
            ended[0] = bytes(self.rest) + ended[0]
            self.rest.clear()
        self.rest += rest
        return ended


class _Line(msgspec.Struct):
    socket: _socket.socket
    remote: bool
    host: str = ""
    pid: int = 0  # 0: it has yet to say who it is
    pieces: Pieces = msgspec.field(default_factory=Pieces)
    done: bool = False  # it said that its end will mean nothing


class Lines:
    """Listening sockets, and the connections of ranks. `remote`: ranks may be on other hosts.

    `on_line` hears each line that a rank sends: beats, and what a launcher's terminal is not to show. `hosts`
    are where ranks are, empty where nobody knows.
    """

    def __init__(
        self,
        run: str,
        ranks: int,
        remote: bool,
        on_line: Callable[[bytes], None],
        hosts: Sequence[str] = (),
    ) -> None:
        self._on_line = on_line
        self._selector: selectors.BaseSelector | None = None
        self._ends = select.epoll() if sys.platform == "linux" else None
        self._held: dict[int, _Line] = {}
        self._strangers: dict[int, float] = {}  # when each called, the first one first
        self._token = os.urandom(16).hex()
        self._doors: dict[int, tuple[_socket.socket, bool]] = {}
        self._room = {False: _LOCAL, True: _REMOTE}
        self._lost = False
        self._ranks, self._left, self._announced = ranks, 0, 0
        self.environment: dict[str, str] = {}
        if (here := _abstract(run)) is not None:
            self._doors[here.fileno()] = here, False
        ways = _ways(hosts) if remote else ()
        if remote and (doors := _tcp(ways)):
            self._doors |= {door.fileno(): (door, True) for door in doors}
            self._room[True] = min(_REMOTE, _descriptors() - _LOCAL - _SPARED)
            port = str(doors[0].getsockname()[1])
            self.environment[FRONT] = " ".join([self._token, port, *(ways or _addresses())])

    def listen(self, selector: selectors.BaseSelector) -> None:
        """Register all sockets with `selector`."""
        self._selector = selector
        for descriptor in self._doors:
            self._listen_to(descriptor)

    def close(self) -> None:
        """Ends all connections, and with them the ranks on other hosts."""
        for descriptor in (*self._doors, *self._held):
            self._deaf(descriptor)
        for door, _ in self._doors.values():
            door.close()
        for line in self._held.values():
            line.socket.close()
        self._doors.clear()
        self._held.clear()
        if self._ends is not None:
            self._ends.close()

    def dismiss(self, last: tuple[str, int] | None, patience: float) -> None:
        """Asks all ranks to leave, and `last` (host, process) once the others have gone; waits for that.

        Where one of them holds no line, or does not leave, `last` is not asked, and may abort the job.
        """
        late = time.monotonic() + patience
        held = [line for line in self._held.values() if line.pid]
        final = [line for line in held if (line.host or os.uname().nodename, line.pid) == last]
        if len(held) + self._left >= self._ranks and self._gone([x for x in held if x not in final], late):
            self._gone(final, late)

    @staticmethod
    def _gone(lines: list[_Line], late: float) -> bool:
        """Ask the ranks of these connections to leave, and return whether they have by then."""
        with selectors.DefaultSelector() as selector:
            for line in lines:
                with contextlib.suppress(OSError):
                    line.socket.send(_LEAVE)
                selector.register(line.socket.fileno(), selectors.EVENT_READ, line.socket)
            while selector.get_map() and (left := late - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    try:
                        over = not key.data.recv(1 << 16)
                    except OSError as error:
                        over = error.errno != errno.EAGAIN
                    if over:
                        selector.unregister(key.fd)
            return not selector.get_map()

    def __contains__(self, descriptor: int) -> bool:
        return descriptor in self._doors or descriptor in self._held

    def here(self) -> set[int]:
        """The processes on this host that hold a connection."""
        return {line.pid for line in self._held.values() if line.pid and not line.host}

    def end_here(self) -> None:
        """Asks those to end."""
        for pid in self.here():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)

    def hosts(self) -> set[str]:
        """Other hosts, of which a rank has called."""
        return {line.host for line in self._held.values() if line.host}

    @property
    def over(self) -> bool:
        """Return whether every rank held a connection and has ended it, in whatever way."""
        return self._left >= self._ranks

    @property
    def all_left(self) -> bool:
        """Return whether every rank has ended, and had said before that it was done."""
        return self._announced >= self._ranks

    def closed(self) -> list[int]:
        """Connections whose other side has closed them, in the sequence in which they were closed.

        The selector's is that of what was not read at once: a beat, where one waited on a connection.
        """
        if self._ends is None or self._ends.closed:
            return []
        return [descriptor for descriptor, _ in self._ends.poll(0) if descriptor in self._held]

    def hear(self, descriptor: int, *, closed: bool = False) -> End | None:
        """Reads what has come there, up to the end if the other side has `closed` it.

        Returns the end of a connection, if it means something.
        """
        if descriptor in self._doors:
            self._let_in(*self._doors[descriptor])
            return None
        line = self._held[descriptor]
        trouble = 0
        while True:
            try:
                data = line.socket.recv(1 << 16 if line.pid else _GREETING - len(line.pieces.rest))
            except BlockingIOError:
                return None
            except OSError as error:
                data, trouble = b"", error.errno or 0
            if not data:
                break
            self._take(descriptor, line, data)
            if not closed or descriptor not in self._held:
                return None
        self._drop(descriptor)
        if not line.pid:
            return None
        self._left += 1
        self._announced += line.done
        if line.done:
            return None
        if not self._lost:  # the others are told first, before the loss of this one makes them fail
            self._lost = True
            for other in self._held.values():
                with contextlib.suppress(OSError):
                    other.socket.send(_LOST)
        return End(line.host or os.uname().nodename, line.pid, trouble in _UNREACHABLE)

    def _take(self, descriptor: int, line: _Line, data: bytes) -> None:
        for text in line.pieces.lines(data):
            if not line.pid:
                words = text.split()
                if len(words) != 3 or words[0] != self._token.encode() or not words[2].lstrip(b"0").isdigit():
                    self._drop(descriptor)
                    return
                line.host, line.pid = words[1].decode(errors="replace"), int(words[2])
                del self._strangers[descriptor]
                with contextlib.suppress(OSError):  # its end will be heard
                    line.socket.send(b"." + (_LOST if self._lost else b""))
            elif text == b"bye":
                line.done = True
            else:
                self._on_line(text)
        if not line.pid and len(line.pieces.rest) >= _GREETING:
            self._drop(descriptor)

    def _let_in(self, door: _socket.socket, remote: bool) -> None:
        """Accept callers, so many at a time; where there is no room they wait until there is."""
        for _ in range(_STRANGERS):
            if self._room[remote] < 1:
                self._deaf(door.fileno())
                return
            try:
                held = _socket.socket(fileno=door._accept()[0])  # type: ignore[attr-defined]
            except OSError:
                return
            held.setblocking(False)
            line = _Line(held, remote)
            if remote:
                with contextlib.suppress(OSError):  # who has gone already is heard of later
                    keep_asking(held)
                self._strangers[held.fileno()] = time.monotonic()
            else:
                line.pid, uid, _ = struct.unpack(
                    "3i", held.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
                )
                if uid != os.geteuid():
                    held.close()
                    continue
            self._room[remote] -= 1
            self._held[held.fileno()] = line
            self._listen_to(held.fileno())
            if self._ends is not None:
                self._ends.register(held.fileno(), select.EPOLLRDHUP)
            if len(self._strangers) > _STRANGERS:
                first = next(iter(self._strangers))
                self.hear(first)  # it may have said who it is
                if first in self._strangers:
                    self._drop(first)

    def forget_strangers(self) -> None:
        """Ends the connections of those who have not said in time who they are."""
        late = time.monotonic() - _GREETED_IN
        for descriptor in [each for each, called in self._strangers.items() if called < late]:
            self._drop(descriptor)

    def _drop(self, descriptor: int) -> None:
        self._deaf(descriptor)
        self._strangers.pop(descriptor, None)
        line = self._held.pop(descriptor)
        if self._ends is not None:
            with contextlib.suppress(OSError):
                self._ends.unregister(descriptor)
        line.socket.close()
        self._room[line.remote] += 1
        for door, (_, remote) in self._doors.items():
            if remote == line.remote:
                self._listen_to(door)

    def _listen_to(self, descriptor: int) -> None:
        """Register the descriptor; it may be already, and the selector may be closed."""
        if self._selector is not None:
            with contextlib.suppress(KeyError, ValueError, RuntimeError):
                self._selector.register(descriptor, selectors.EVENT_READ)

    def _deaf(self, descriptor: int) -> None:
        """Unregister the descriptor; the selector may be closed already."""
        if self._selector is not None:
            with contextlib.suppress(KeyError, ValueError, RuntimeError):
                self._selector.unregister(descriptor)


def keep_asking(connection: _socket.socket) -> None:
    """Enable keep-alive: the kernel asks the other side whether it is there, and gives up at last."""
    times = constants.seam()
    asked = (times.line_patience - times.line_asked_after) // times.line_asked_every
    connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", times.line_asked_after),
        ("TCP_KEEPINTVL", times.line_asked_every),
        ("TCP_KEEPCNT", asked),
        ("TCP_USER_TIMEOUT", times.line_patience * 1000),
    ):
        if (option := getattr(_socket, name, None)) is not None:
            connection.setsockopt(_socket.IPPROTO_TCP, option, value)


def _abstract(run: str) -> _socket.socket | None:
    """Return the socket for ranks on this host, by a name in no folder; None where that cannot be."""
    if sys.platform != "linux":
        return None
    door = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        door.bind(f"\0tilewise-{run}")
        door.listen(_LOCAL)
        door.setblocking(False)
    except OSError:
        door.close()
        return None
    return door


def _ways(hosts: Sequence[str]) -> list[str]:
    """This host's addresses on the ways to `hosts`; none where it is not known where ranks are."""
    ways: dict[str, None] = {}
    for host in dict.fromkeys(hosts):
        try:
            for family, _, _, _, address in (
                _socket.getaddrinfo(host, 9, 0, _socket.SOCK_DGRAM) if host != os.uname().nodename else ()
            ):
                with contextlib.closing(_socket.socket(family, _socket.SOCK_DGRAM)) as asked:
                    asked.connect(address)  # which sends nothing
                    ways[asked.getsockname()[0]] = None
        except OSError:
            return []
    return [way for way in ways if not way.startswith(_INTERNAL)] or ["127.0.0.1"] * bool(hosts)


def _tcp(ways: Sequence[str]) -> list[_socket.socket]:
    """Return sockets for ranks on other hosts, all on one port that the system chooses.

    On these addresses only; without any, on all that there are.
    """
    for anywhere in ("::", "0.0.0.0"):
        for _ in range(_ATTEMPTS):
            doors: list[_socket.socket] = []
            try:
                for address in ways or [anywhere]:
                    family = _socket.AF_INET6 if ":" in address else _socket.AF_INET
                    doors.append(_socket.socket(family, _socket.SOCK_STREAM))
                    if address == "::":
                        doors[0].setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 0)
                    doors[-1].bind((address, doors[0].getsockname()[1] if len(doors) > 1 else 0))
                    doors[-1].listen(_REMOTE)
                    doors[-1].setblocking(False)
                return doors
            except OSError:
                for door in doors:
                    door.close()
    return []


def _addresses() -> Iterator[str]:
    """This host's addresses that others may know it by, its name last."""
    import psutil

    for addresses in psutil.net_if_addrs().values():
        for each in addresses:
            internet = each.family in (_socket.AF_INET, _socket.AF_INET6)
            if internet and not each.address.startswith(_INTERNAL):
                yield each.address
    yield os.uname().nodename


def _descriptors() -> int:
    """Raise the limit of open files as far as allowed, and return it."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * _REMOTE if hard == resource.RLIM_INFINITY else min(hard, 2 * _REMOTE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return soft if soft != resource.RLIM_INFINITY else wanted
