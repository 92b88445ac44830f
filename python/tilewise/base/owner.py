"""Hidden files carry the process that made them in their names, so that what a dead one left is known.

.C.npy.node3-5d1f0a-93c2e0b14f6a7d58-12345-7f3a2-0a1b2c.part
       host  place  boot             pid   start token

A boot has a number that no other one has, here or on another machine, so that a process of this boot can be
looked for. Of another one it is not known whether it was this machine's: a clone has the same name, the same
`/etc/machine-id`, and on a shared folder the same files.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import time
import zlib

import msgspec

_PATTERN = r"([0-9A-Za-z_]{1,16})-([0-9a-f]{6})-([0-9a-f]{4,16})-(\d{1,10})-([0-9a-f]{1,16})-([0-9a-f]{6})"
_IDENTITY = re.compile(_PATTERN)
_HIDDEN = re.compile(rf"\.(.*)\.({_PATTERN})\.(.+)", re.DOTALL)
_UNKNOWN = "0000"  # boot
_NAME_MAX = 255  # bytes of one name on every common file system
_MORE = 4  # bytes for what may come behind the ending


class Owner(msgspec.Struct, frozen=True):
    """Job of a process. `place` tells process tables apart, `boot` the starts of machines.

    `started` is in clock ticks since the boot: with it a pid that was given again is not mistaken.
    """

    host: str
    place: str
    boot: str
    pid: int
    started: int
    token: str

    @property
    def identity(self) -> str:
        """Identity in the names of its files."""
        return f"{self.host}-{self.place}-{self.boot}-{self.pid}-{self.started:x}-{self.token}"

    def is_dead(self, path: str = "", own_disk: bool = False) -> bool:
        """Return whether it surely has ended; of other machines and containers that is not known.

        An earlier boot of this machine cannot be told from that of a clone, but for `path` on its `own_disk`,
        to which no other machine writes: what has not changed since this boot is of an earlier one.
        """
        place, boot = _here()
        if self.place != place or boot == _UNKNOWN:
            return False
        if self.boot == boot:
            return _is_gone(self.pid, self.started)
        return own_disk and _last_change(path) < time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    @property
    def is_foreign(self) -> bool:
        """Return whether it is of another boot, machine or container, so that it cannot be looked for."""
        return (self.place, self.boot) != _here()

    @property
    def is_me(self) -> bool:
        """Return whether it is this very process."""
        mine = (os.getpid(), _started(os.getpid()) or 0)
        return not self.is_foreign and (self.pid, self.started) == mine

    def text(self) -> str:
        """Return `pid 7 on node3`, for messages."""
        return f"pid {self.pid} on {self.host}"


class Hidden(msgspec.Struct, frozen=True):
    """A hidden name: what it was made beside, whose it is, and its `ending`.

    Of a long name `base` is the beginning; then it is `cut`, and several names may begin so.
    """

    base: str
    owner: Owner
    ending: str

    @property
    def cut(self) -> bool:
        """Return whether `base` may be the beginning of a longer name."""
        return len(os.fsencode(self.base)) > _room(f".{self.owner.identity}.part") - _MORE


def new_owner() -> Owner:
    """This process, with a token that none of its other jobs has."""
    place, boot = _here()
    host = re.sub("[^0-9A-Za-z]", "_", os.uname().nodename)[:16] or "_"
    return Owner(host, place, boot, os.getpid(), _started(os.getpid()) or 0, os.urandom(3).hex())


def owner_of(identity: str) -> Owner | None:
    """The owner that an identity names, or None where it is none."""
    match = _IDENTITY.fullmatch(identity)
    return _owner(*match.groups()) if match is not None else None


def hidden(entry: str) -> Hidden | None:
    """Parse the name of an entry of a folder; None where it is no hidden file of a job."""
    match = _HIDDEN.fullmatch(entry)
    if match is None:
        return None
    base, _, *words, ending = match.groups()
    return Hidden(base, _owner(*words), ending)


def part_path(path: str, identity: str, ending: str = "part") -> str:
    """The hidden name beside `path` for what is not finished, cut to what file systems take."""
    folder, base = os.path.split(path)
    tail = f".{identity}.{ending}"
    short = base.encode()[: _room(tail)].decode(errors="ignore")
    return os.path.join(folder, f".{short}{tail}")


def _room(tail: str) -> int:
    """Bytes of a name before `tail`."""
    return _NAME_MAX - len(tail.encode()) - 1 - _MORE


def _owner(host: str, place: str, boot: str, pid: str, started: str, token: str) -> Owner:
    return Owner(host, place, boot, int(pid), int(started, 16), token)


@functools.cache
def _here() -> tuple[str, str]:
    """This table of processes, of which a container has its own, and this boot of this machine."""
    table, machine, boot = "", b"", _UNKNOWN
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            number = file.read().replace("-", "")
        table = str(os.stat("/proc/self/ns/pid").st_ino)
        boot = number[:16]
        with open("/etc/machine-id", "rb") as file:
            machine = file.read()
    place = zlib.crc32(f"{os.uname().nodename} {table} ".encode() + machine)
    return f"{place & 0xFFFFFF:06x}", boot


def _is_gone(pid: int, started: int) -> bool:
    """Return whether process `pid`, which began then, is no more; one that may not be looked at lives."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        pass  # another user's
    now = _started(pid)
    return now is not None and started > 0 and now != started


def _started(pid: int) -> int | None:
    """When process `pid` began, in ticks since the boot; 0 where it has ended, None where that is hidden."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return 0 if words[0] in (b"Z", b"X") else int(words[19])


def _last_change(path: str) -> float:
    """Seconds since 1970; raises OSError."""
    status = os.lstat(path)
    return max(status.st_mtime, status.st_ctime)
