"""Hidden files carry the process that made them in their names, so that what a dead one left is known.

.C.npy.node3-5d1f0a-93c2-12345-7f3a2-0a1b2c.part
       host  place  boot pid   start token
"""

from __future__ import annotations

import functools
import os
import re
import zlib

import msgspec

_PATTERN = r"([0-9A-Za-z_]{1,16})-([0-9a-f]{6})-([0-9a-f]{4})-(\d{1,10})-([0-9a-f]{1,16})-([0-9a-f]{6})"
IDENTITY = re.compile(_PATTERN)
_NAME_MAX = 255  # bytes of one name on every common file system
_MORE = 4  # bytes for what may come behind the ending


class Owner(msgspec.Struct, frozen=True):
    """One job of one process. `place` tells process tables apart, `boot` the starts of a machine.

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
        """What stands in the names of its files."""
        return f"{self.host}-{self.place}-{self.boot}-{self.pid}-{self.started:x}-{self.token}"

    @property
    def dead(self) -> bool:
        """Whether it surely lives no more; of another machine's, or another container's, nobody knows."""
        place, boot = _here()
        if self.place != place:
            return False
        return self.boot != boot or _started(self.pid) != self.started

    @property
    def is_me(self) -> bool:
        """Whether it is this very process."""
        return (self.place, self.boot) == _here() and self.pid == os.getpid()

    def text(self) -> str:
        """For messages."""
        return f"pid {self.pid} on {self.host}"


def new_owner() -> Owner:
    """This process, with a token that none of its other jobs has."""
    place, boot = _here()
    host = re.sub("[^0-9A-Za-z]", "_", os.uname().nodename)[:16] or "_"
    return Owner(host, place, boot, os.getpid(), _started(os.getpid()) or 0, os.urandom(3).hex())


def owner_of(identity: str) -> Owner | None:
    """The owner that an identity names, or None where it is none."""
    match = IDENTITY.fullmatch(identity)
    if match is None:
        return None
    host, place, boot, pid, started, token = match.groups()
    return Owner(host, place, boot, int(pid), int(started, 16), token)


def part_path(path: str, identity: str, ending: str = "part") -> str:
    """The hidden name beside `path` for what is not finished, cut to what file systems take."""
    folder, base = os.path.split(path)
    tail = f".{identity}.{ending}"
    room = _NAME_MAX - len(tail.encode()) - 1 - _MORE
    short = base.encode()[:room].decode(errors="ignore")
    return os.path.join(folder, f".{short}{tail}")


@functools.cache
def _here() -> tuple[str, str]:
    """This table of processes, of which a container has its own, and this start of the machine."""
    try:
        table = str(os.stat("/proc/self/ns/pid").st_ino)
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read()
    except OSError:
        table, boot = "", ""
    place = zlib.crc32(f"{os.uname().nodename} {table}".encode())
    return f"{place & 0xFFFFFF:06x}", f"{zlib.crc32(boot.encode()) & 0xFFFF:04x}"


def _started(pid: int) -> int | None:
    """When process `pid` began, in ticks since the boot; None where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if words[0] in (b"Z", b"X") else int(words[19])
