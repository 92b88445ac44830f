"""The processor: its name, what it can do, which of its cores are ours, and how they share memory."""

from __future__ import annotations

import os
import platform

from tilewise.base.errors import Interrupted
from tilewise.machine.microarchitecture import design

_SYS = "/sys/devices/system"


def cpu_list(text: str) -> set[int]:
    """The numbers in a kernel list such as `0-3,8`."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def allowed_cpus() -> set[int]:
    """Logical processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def physical_cores(cpus: set[int], sys: str = _SYS) -> int:
    """How many cores `cpus` are: siblings that share a core's arithmetic count once. At least 1."""
    siblings = set()
    for cpu in cpus:
        text = text_of(f"{sys}/cpu/cpu{cpu}/topology/thread_siblings_list")
        siblings.add(min(cpu_list(text) or {cpu}) if text else cpu)
    return max(1, len(siblings))


def quota(path: str = "/sys/fs/cgroup/cpu.max") -> int | None:
    """Whole processors that a container's time limit is worth, or None where there is no limit."""
    fields = text_of(path).split()
    if len(fields) != 2 or not fields[0].isdigit():
        return None
    return max(1, -(-int(fields[0]) // int(fields[1])))


def numa_nodes(cpus: set[int], sys: str = _SYS) -> list[set[int]]:
    """The memory domains that have some of `cpus`, each as the set of its processors. Never empty."""
    nodes = []
    try:
        names = sorted(os.listdir(f"{sys}/node"))
    except OSError:
        names = []
    for name in names:
        if name.startswith("node") and name[4:].isdigit():
            mine = cpu_list(text_of(f"{sys}/node/{name}/cpulist")) & cpus
            if mine:
                nodes.append(mine)
    return nodes or [cpus]


def model_and_flags(path: str = "/proc/cpuinfo") -> tuple[str, frozenset[str]]:
    """The processor's name, with its design where we know it, and its feature flags.

    `AMD EPYC (Zen 5)`; archspec's name where the kernel tells none, as on Arm.
    """
    told: dict[str, str] = {}
    for line in text_of(path, 65536).splitlines():
        key, _, value = line.partition(":")
        if not line.strip() and told:
            break  # the first processor's lines end
        told.setdefault(key.strip(), value.strip())
    name = told.get("model name", "") or _archspec_name()
    numbers = told.get("cpu family", ""), told.get("model", "")
    known = design(told.get("vendor_id", ""), *map(int, numbers)) if all(map(str.isdigit, numbers)) else ""
    flags = frozenset((told.get("flags") or told.get("Features", "")).split())
    return f"{name} ({known})" if known else name, flags


def cache_bytes(level: int, sys: str = _SYS) -> int:
    """Bytes of the first core's data or unified cache of `level`, 0 where unknown."""
    for index in range(8):
        folder = f"{sys}/cpu/cpu0/cache/index{index}"
        if (
            text_of(f"{folder}/level").strip() == str(level)
            and text_of(f"{folder}/type").strip() != "Instruction"
        ):
            size = text_of(f"{folder}/size").strip()
            if size[:-1].isdigit():
                return int(size[:-1]) * {"K": 1024, "M": 1024**2}.get(size[-1], 0)
    return 0


def _archspec_name() -> str:
    try:
        import archspec.cpu  # type: ignore[import-untyped]

        return str(archspec.cpu.host().name)
    except Interrupted:
        raise
    except Exception:  # a nicety of the record: no reason of archspec's is worth failing a job for
        return platform.processor() or platform.machine()


def text_of(path: str | os.PathLike[str], most: int = -1) -> str:
    """What a file of the kernel says, without white space around, or its first `most` characters; empty where
    there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(most).strip()
    except OSError:
        return ""
