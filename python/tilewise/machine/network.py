"""The links to other machines: their names and stated speeds, as the kernel knows them."""

from __future__ import annotations

import os

from tilewise.machine import cpu

_NET = "/sys/class/net"


def links(folder: str = _NET) -> dict[str, float]:
    """Bytes a second in each direction of every link that is up and states its speed.

    Virtual ones (a bridge, one end of a container's link) state a speed that means nothing, and are left out;
    so are those of a virtual machine whose host does not tell.
    """
    speeds: dict[str, float] = {}
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return speeds
    for name in names:
        if not os.path.exists(f"{folder}/{name}/device") or cpu.text_of(f"{folder}/{name}/operstate") != "up":
            continue
        speed = cpu.text_of(f"{folder}/{name}/speed")
        if speed.isdigit() and int(speed) > 0:
            speeds[name] = int(speed) * 1e6 / 8
    return speeds
