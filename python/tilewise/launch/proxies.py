"""Watches the connections to ranks on other hosts: what hydra does not end when a rank there dies, we must.

    front ── mpiexec ─┬─ hydra_pmi_proxy ── ranks here
                      └─ ssh node2 hydra_pmi_proxy …  ── ranks on node2

A child of mpiexec lives as long as the ranks of its host. When a rank dies, hydra ends the others; but now
and then it only closes the connection to that rank's host, and all others wait for ever (MPICH 5.0.2).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

PATIENCE = 4.0  # seconds from the end of a rank, or of a connection, to that of the job


def connections(launcher: int, hosts: Iterable[str]) -> dict[int, str]:
    """Descriptors that become readable when a child of hydra's mpiexec ends, with its host where it is told.

    Empty for other launchers: a child of theirs may end long before the ranks that it has started.
    """
    import psutil

    found: dict[int, str] = {}
    known = set(hosts)
    try:
        children = psutil.Process(launcher).children()
    except psutil.Error:
        return found
    for process in children:
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if any("hydra_" in word for word in words) and (bell := death_bell(process.pid)) is not None:
            found[bell] = next((word for word in words if word in known), "")
    return found


def death_bell(pid: int) -> int | None:
    """A descriptor that becomes readable when `pid` ends, so that no tick is waited for, or None."""
    if sys.platform == "linux" and hasattr(os, "pidfd_open"):
        try:
            return os.pidfd_open(pid)
        except OSError:
            return None
    return None
