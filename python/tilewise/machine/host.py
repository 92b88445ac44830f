"""Which host this is, and whether a path means the same file to two processes."""

from __future__ import annotations

import glob
import os

REPORTED_AFTER = 2  # seconds that Linux lets free pages be before it reports them
_BALLOONS = "/sys/bus/virtio/drivers/virtio_balloon/virtio*/features"
_REPORTING = 5  # VIRTIO_BALLOON_F_REPORTING, the place of its bit


def name() -> str:
    """This host's name, as ranks tell theirs."""
    return os.uname().nodename


def free_page_reporting(balloons: str = _BALLOONS) -> bool:
    """Whether this is a virtual machine that tells its host which pages are free, and the host takes them.

    The next program that touches them waits until it gives them back: a file of 200 MB is then written in
    0.2 to 0.5 s instead of 0.07.
    """
    for path in glob.glob(balloons):
        try:
            with open(path, encoding="ascii") as file:
                if file.read()[_REPORTING : _REPORTING + 1] == "1":
                    return True
        except OSError:
            continue
    return False


def file_view() -> str:
    """The same for two processes only where a path means the same file to both.

    That is the host, since when it runs, and the mounts that the process sees, of which a container has its
    own. `cpp/tilewise/base/host.cpp` makes the same text.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    try:
        mounts = os.readlink("/proc/self/ns/mnt")
    except OSError:
        mounts = ""
    return f"{name()} {boot} {mounts}"
