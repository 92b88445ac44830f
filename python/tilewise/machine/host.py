"""Which host this is, and whether a path means the same file to two processes."""

from __future__ import annotations

import os


def name() -> str:
    """This host's name, as ranks tell theirs."""
    return os.uname().nodename


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
