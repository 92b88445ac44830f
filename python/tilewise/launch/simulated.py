"""Starts ranks on a simulated cluster: one process that loads the worker once for each.

Design: docs/design/simulation.md.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import Any

from tilewise.base import programs
from tilewise.base.errors import UsageError
from tilewise.launch import environment
from tilewise.launch.job import Variant
from tilewise.launch.launcher import LauncherKind, Start
from tilewise.machine.cluster import FLAG, Cluster

NAME = "tilewise-simulated"
_LAUNCHER = "smpirun"
# The network is as the platform says: no factors that were once measured on another one, no acknowledgements
# that take bandwidth, no window of TCP's. Messages up to this size leave before the receiver asks for them.
# A look whether something has arrived takes as long each time: if looks grew with their number, ranks that
# wait for another would be late by as long as that one worked.
_EAGER = 65536
_NETWORK = (
    "smpi/bw-factor:0:1",
    "smpi/lat-factor:0:1",
    "network/crosstraffic:0",
    "network/TCP-gamma:0",
    "smpi/coll-selector:mpich",
    *(
        "smpi/allreduce:rdb",
        "smpi/bcast:binomial_tree",
    ),  # MPICH's for what is short, without asking who shares a host
    "smpi/test:1e-5",
    "smpi/grow-injected-times:no",
    f"smpi/async-small-thresh:{_EAGER}",
    f"smpi/send-is-detached-thresh:{_EAGER}",
)
_STACK = 1024  # KiB of each rank
_SHARED = 64 << 20  # bytes that blocks without numbers share, over and over: a process may have few mappings


class Smpirun(LauncherKind):
    """SimGrid's launcher, whose ranks are all in one process."""

    name = "smpirun"


class Paper:
    """A text that another process can open by `path` while this object lives; it lies in no folder."""

    def __init__(self, name: str, text: str) -> None:
        self._file = os.memfd_create(name)
        self.path = f"/proc/{os.getpid()}/fd/{self._file}"
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)

    def __del__(self) -> None:
        os.close(self._file)


def find() -> str:
    """The worker for simulated ranks; UsageError, saying how to get it, where there is none."""
    named = os.environ.get("TILEWISE_SIMULATED_WORKER")
    path = programs.first([os.path.abspath(named)] if named else programs.places(NAME))
    if shutil.which(_LAUNCHER) is None:
        raise UsageError(f"{FLAG} needs SimGrid, and there is no {_LAUNCHER}", "apt install libsimgrid-dev")
    if path is None:
        raise UsageError(
            f"{FLAG} needs the worker for simulated ranks, and there is none",
            "make simulator, where tilewise was installed from",
        )
    return path


def start(variant: Variant, cluster: Cluster, dealt: Sequence[str], numbers: bool) -> Start:
    """`variant` on `cluster`, with the ranks on the hosts that they were `dealt` to.

    Without `numbers` blocks have no memory of their own, and kernels only say how long they would take.
    """
    program = find()
    papers: list[Any] = [Paper("platform.xml", cluster.xml), Paper("hosts", "\n".join(dealt) + "\n")]
    variables = environment.for_ranks(os.environ, variant.threads, oversubscribed=False, own_launcher=True)
    if cluster.counted:
        variables["TILEWISE_SIMULATED_OPERATIONS"] = repr(cluster.operations)
        variables["TILEWISE_SIMULATED_BYTES"] = repr(cluster.bytes)
    variables["TILEWISE_SIMULATED_NUMBERS"] = "yes" if numbers else "no"
    settings = [
        *_NETWORK,
        "smpi/privatization:dlopen",
        "smpi/shared-malloc:global",
        f"smpi/shared-malloc-blocksize:{_SHARED}",
        f"smpi/simulate-computation:{'no' if cluster.counted else 'yes'}",
        f"smpi/host-speed:{cluster.speed:.9g}f",
        f"contexts/stack-size:{_STACK}",
    ]
    places = ["-np", str(variant.ranks), "-platform", papers[0].path, "-hostfile", papers[1].path]
    options = [*(f"--cfg={setting}" for setting in settings), "--log=root.thres:error"]
    return Start(
        [shutil.which(_LAUNCHER) or _LAUNCHER, *places, *options, program],
        variables,
        Smpirun(),
        ranks=variant.ranks,
        kept=papers,
    )
