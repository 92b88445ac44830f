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

Design: docs/design/failures.md.
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
_UNIDENTIFIED = 256  # of these, callers at a time that have yet to say who they are
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


class _Connection(msgspec.Struct):
    socket: _socket.socket
    remote: bool
    host: str = ""
    pid: int = 0  # 0: it has yet to say who it is
    pieces: Pieces = msgspec.field(default_factory=Pieces)
    done: bool = False  # it said that its end will mean nothing


class Connections:
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
        self._connections: dict[int, _Connection] = {}
        self._unidentified: dict[int, float] = {}  # when each called, the first one first
        self._token = os.urandom(16).hex()
        self._listeners: dict[int, tuple[_socket.socket, bool]] = {}
        self._capacity = {False: _LOCAL, True: _REMOTE}
        self._lost = False
        self._ranks, self._left, self._announced = ranks, 0, 0
        self.environment: dict[str, str] = {}
        if (local := _abstract(run)) is not None:
            self._listeners[local.fileno()] = local, False
        ways = _addresses_towards(hosts) if remote else ()
        if remote and (listeners := _tcp(ways)):
            self._listeners |= {listener.fileno(): (listener, True) for listener in listeners}
            self._capacity[True] = min(_REMOTE, _descriptors() - _LOCAL - _SPARED)
            port = str(listeners[0].getsockname()[1])
            self.environment[FRONT] = " ".join([self._token, port, *(ways or _addresses())])

    def listen(self, selector: selectors.BaseSelector) -> None:
        """Register all sockets with `selector`."""
        self._selector = selector
        for descriptor in self._listeners:
            self._register(descriptor)

    def close(self) -> None:
        """Ends all connections, and with them the ranks on other hosts."""
        for descriptor in (*self._listeners, *self._connections):
            self._unregister(descriptor)
        for listener, _ in self._listeners.values():
            listener.close()
        for peer in self._connections.values():
            peer.socket.close()
        self._listeners.clear()
        self._connections.clear()
        if self._ends is not None:
            self._ends.close()

    def dismiss(self, last: tuple[str, int] | None, patience: float) -> None:
        """Asks all ranks to leave, and `last` (host, process) once the others have gone; waits for that.

        Where one of them holds no line, or does not leave, `last` is not asked, and may abort the job.
        """
        late = time.monotonic() + patience
        held = [peer for peer in self._connections.values() if peer.pid]
        final = [peer for peer in held if (peer.host or os.uname().nodename, peer.pid) == last]
        if len(held) + self._left >= self._ranks and self._have_left(
            [x for x in held if x not in final], late
        ):
            self._have_left(final, late)

    @staticmethod
    def _have_left(lines: list[_Connection], late: float) -> bool:
        """Ask the ranks of these connections to leave, and return whether they have by then."""
        with selectors.DefaultSelector() as selector:
            for peer in lines:
                with contextlib.suppress(OSError):
                    peer.socket.send(_LEAVE)
                selector.register(peer.socket.fileno(), selectors.EVENT_READ, peer.socket)
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
        return descriptor in self._listeners or descriptor in self._connections

    def local_pids(self) -> set[int]:
        """Return the PIDs on this host that hold a connection."""
        return {peer.pid for peer in self._connections.values() if peer.pid and not peer.host}

    def end_local(self) -> None:
        """Ask the ranks on this host to end."""
        for pid in self.local_pids():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)

    def hosts(self) -> set[str]:
        """Return the other hosts of which a rank has called."""
        return {peer.host for peer in self._connections.values() if peer.host}

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
        return [descriptor for descriptor, _ in self._ends.poll(0) if descriptor in self._connections]

    def hear(self, descriptor: int, *, closed: bool = False) -> End | None:
        """Reads what has come there, up to the end if the other side has `closed` it.

        Returns the end of a connection, if it means something.
        """
        if descriptor in self._listeners:
            self._accept_ranks(*self._listeners[descriptor])
            return None
        peer = self._connections[descriptor]
        trouble = 0
        while True:
            try:
                data = peer.socket.recv(1 << 16 if peer.pid else _GREETING - len(peer.pieces.rest))
            except BlockingIOError:
                return None
            except OSError as error:
                data, trouble = b"", error.errno or 0
            if not data:
                break
            self._take(descriptor, peer, data)
            if not closed or descriptor not in self._connections:
                return None
        self._drop(descriptor)
        if not peer.pid:
            return None
        self._left += 1
        self._announced += peer.done
        if peer.done:
            return None
        if not self._lost:  # the others are told first, before the loss of this one makes them fail
            self._lost = True
            for other in self._connections.values():
                with contextlib.suppress(OSError):
                    other.socket.send(_LOST)
        return End(peer.host or os.uname().nodename, peer.pid, trouble in _UNREACHABLE)

    def _take(self, descriptor: int, peer: _Connection, data: bytes) -> None:
        for text in peer.pieces.lines(data):
            if not peer.pid:
                words = text.split()
                if len(words) != 3 or words[0] != self._token.encode() or not words[2].lstrip(b"0").isdigit():
                    self._drop(descriptor)
                    return
                peer.host, peer.pid = words[1].decode(errors="replace"), int(words[2])
                del self._unidentified[descriptor]
                with contextlib.suppress(OSError):  # its end will be heard
                    peer.socket.send(b"." + (_LOST if self._lost else b""))
            elif text == b"bye":
                peer.done = True
            else:
                self._on_line(text)
        if not peer.pid and len(peer.pieces.rest) >= _GREETING:
            self._drop(descriptor)

    def _accept_ranks(self, listener: _socket.socket, remote: bool) -> None:
        """Accept callers, so many at a time; where there is no room they wait until there is."""
        for _ in range(_UNIDENTIFIED):
            if self._capacity[remote] < 1:
                self._unregister(listener.fileno())
                return
            try:
                held = _socket.socket(fileno=listener._accept()[0])  # type: ignore[attr-defined]
            except OSError:
                return
            held.setblocking(False)
            peer = _Connection(held, remote)
            if remote:
                with contextlib.suppress(OSError):  # who has gone already is heard of later
                    keep_asking(held)
                self._unidentified[held.fileno()] = time.monotonic()
            else:
                peer.pid, uid, _ = struct.unpack(
                    "3i", held.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
                )
                if uid != os.geteuid():
                    held.close()
                    continue
            self._capacity[remote] -= 1
            self._connections[held.fileno()] = peer
            self._register(held.fileno())
            if self._ends is not None:
                self._ends.register(held.fileno(), select.EPOLLRDHUP)
            if len(self._unidentified) > _UNIDENTIFIED:
                first = next(iter(self._unidentified))
                self.hear(first)  # it may have said who it is
                if first in self._unidentified:
                    self._drop(first)

    def drop_unidentified(self) -> None:
        """Ends the connections of those who have not said in time who they are."""
        late = time.monotonic() - _GREETED_IN
        for descriptor in [each for each, called in self._unidentified.items() if called < late]:
            self._drop(descriptor)

    def _drop(self, descriptor: int) -> None:
        self._unregister(descriptor)
        self._unidentified.pop(descriptor, None)
        peer = self._connections.pop(descriptor)
        if self._ends is not None:
            with contextlib.suppress(OSError):
                self._ends.unregister(descriptor)
        peer.socket.close()
        self._capacity[peer.remote] += 1
        for listener, (_, remote) in self._listeners.items():
            if remote == peer.remote:
                self._register(listener)

    def _register(self, descriptor: int) -> None:
        """Register the descriptor; it may be already, and the selector may be closed."""
        if self._selector is not None:
            with contextlib.suppress(KeyError, ValueError, RuntimeError):
                self._selector.register(descriptor, selectors.EVENT_READ)

    def _unregister(self, descriptor: int) -> None:
        """Unregister the descriptor; the selector may be closed already."""
        if self._selector is not None:
            with contextlib.suppress(KeyError, ValueError, RuntimeError):
                self._selector.unregister(descriptor)


def keep_asking(peer: _socket.socket) -> None:
    """Enable keep-alive: the kernel asks the other side whether it is there, and gives up at last."""
    times = constants.seam()
    asked = (times.line_patience - times.line_asked_after) // times.line_asked_every
    peer.setsockopt(_socket.SOL_SOCKET, _socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", times.line_asked_after),
        ("TCP_KEEPINTVL", times.line_asked_every),
        ("TCP_KEEPCNT", asked),
        ("TCP_USER_TIMEOUT", times.line_patience * 1000),
    ):
        if (option := getattr(_socket, name, None)) is not None:
            peer.setsockopt(_socket.IPPROTO_TCP, option, value)


def _abstract(run: str) -> _socket.socket | None:
    """Return the socket for ranks on this host, by a name in no folder; None where that cannot be."""
    if sys.platform != "linux":
        return None
    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        listener.bind(f"\0tilewise-{run}")
        listener.listen(_LOCAL)
        listener.setblocking(False)
    except OSError:
        listener.close()
        return None
    return listener


def _addresses_towards(hosts: Sequence[str]) -> list[str]:
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
            listeners: list[_socket.socket] = []
            try:
                for address in ways or [anywhere]:
                    family = _socket.AF_INET6 if ":" in address else _socket.AF_INET
                    listeners.append(_socket.socket(family, _socket.SOCK_STREAM))
                    if address == "::":
                        listeners[0].setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 0)
                    listeners[-1].bind((address, listeners[0].getsockname()[1] if len(listeners) > 1 else 0))
                    listeners[-1].listen(_REMOTE)
                    listeners[-1].setblocking(False)
                return listeners
            except OSError:
                for listener in listeners:
                    listener.close()
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
