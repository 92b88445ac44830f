"""Links with a delay, for kernels without netem: a program that hands packets on after a while.

node1 lan (tun) ─┐           the packet's own address says where it goes; it leaves when the sender's link
node2 lan (tun) ─┤ Relay     and the receiver's have carried what came before, and arrives DELAY later
node3 lan (tun) ─┘
"""

from __future__ import annotations

import collections
import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
DEVICE = "/dev/net/tun"
LARGEST = 1 << 16


def open_in(pid: int, name: str) -> int:
    """A descriptor for a new network device of that name in the network of process `pid`."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/proc/{pid}/ns/net", "rb") as network:
        if libc.setns(network.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns to the network of {pid}")
    tun = os.open(DEVICE, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return tun


class Link:
    """A host's cable, each way: when it is free again, and what is under way to the host."""

    def __init__(self, tun: int) -> None:
        self.tun = tun
        self.up = self.down = 0.0
        self.coming: collections.deque[tuple[float, bytes]] = collections.deque()


def relay(links: dict[bytes, Link], rate: float, delay: float) -> None:
    """Hands packets on for ever, `rate` bytes a second on each cable and way."""
    by_tun = {link.tun: link for link in links.values()}
    while True:
        due = min((link.coming[0][0] for link in links.values() if link.coming), default=None)
        wait = None if due is None else max(0.0, due - time.monotonic())
        for tun in select.select(list(by_tun), [], [], wait)[0]:
            _take(by_tun[tun], links, rate, delay)
        now = time.monotonic()
        for link in links.values():
            while link.coming and link.coming[0][0] <= now:
                _write(link.tun, link.coming.popleft()[1])


def _take(link: Link, links: dict[bytes, Link], rate: float, delay: float) -> None:
    for _ in range(64):
        try:
            packet = os.read(link.tun, LARGEST)
        except BlockingIOError:
            return
        there = links.get(packet[16:20]) if packet[0] >> 4 == 4 else None
        if there is None:  # a broadcast, or IPv6's greetings
            continue
        took = len(packet) / rate
        link.up = max(link.up, time.monotonic()) + took
        there.down = max(there.down + took, link.up)
        there.coming.append((there.down + delay, packet))


def _write(tun: int, packet: bytes) -> None:
    try:
        os.write(tun, packet)
    except OSError as error:
        if error.errno not in (errno.EIO, errno.EAGAIN, errno.ENOBUFS):  # link down, or no room: lost
            raise


def main(words: list[str]) -> None:
    """`far.py RATE DELAY PID=ADDRESS…`: bytes and seconds; says `ready` when every host has its `lan`."""
    rate, delay = float(words[0]), float(words[1])
    links = {}
    for word in words[2:]:
        pid, address = word.split("=")
        links[socket.inet_aton(address)] = Link(open_in(int(pid), "lan"))
    print("ready", flush=True)
    relay(links, rate, delay)


if __name__ == "__main__":
    main(sys.argv[1:])
