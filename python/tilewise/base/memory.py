"""Memory that a job may still take: what the kernel calls available, or less in a control group."""

from __future__ import annotations

import os

_PROC = "/proc"
_CGROUP = "/sys/fs/cgroup"
SHARED_OF_RANK = 6 << 20  # bytes that MPICH and UCX want in /dev/shm at the start, for each rank
_UNLIMITED = 1 << 60  # version 1 writes a huge number for "no limit"


def available_memory(proc: str = _PROC, cgroup: str = _CGROUP) -> int:
    """Bytes that can be taken without swapping, never more than the tightest control group leaves."""
    available = _meminfo(proc)
    if available is None:
        import psutil

        available = int(psutil.virtual_memory().available)
    return min([available, *_group_rooms(proc, cgroup)])


def total_memory(proc: str = _PROC) -> int:
    """Bytes of memory this machine has."""
    total = _meminfo(proc, "MemTotal:")
    if total is None:
        import psutil

        total = int(psutil.virtual_memory().total)
    return total


def shared_memory_room(path: str = "/dev/shm") -> int:
    """Bytes free where MPI keeps shared memory; 0 where there is no such place."""
    try:
        status = os.statvfs(path)
    except OSError:
        return 0
    return status.f_bavail * status.f_frsize


def _meminfo(proc: str, field: str = "MemAvailable:") -> int | None:
    try:
        with open(f"{proc}/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith(field):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _group_rooms(proc: str, cgroup: str) -> list[int]:
    """Bytes that each control group above us leaves: its limit minus its use, file cache not counted."""
    rooms = []
    for folder, limit_name, usage_name, prefix in _groups(proc, cgroup):
        limit = _number(f"{folder}/{limit_name}")
        if limit is None or limit >= _UNLIMITED:
            continue
        usage = _number(f"{folder}/{usage_name}") or 0
        rooms.append(max(0, limit - usage + _cache(f"{folder}/memory.stat", prefix)))
    return rooms


def _groups(proc: str, cgroup: str) -> list[tuple[str, str, str, str]]:
    """Every group of this process, up to the root, for both versions.

    Its folder, the files with its limit and its use, and what fields of its statistics begin with.
    """
    try:
        with open(f"{proc}/self/cgroup", encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    groups = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            root, names = cgroup, ("memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            root = f"{cgroup}/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        else:
            continue
        while True:
            groups.append((root + path.rstrip("/"), *names))
            if path in ("", "/"):
                break
            path = os.path.dirname(path)
    return groups


def _number(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):  # "max" is not a number: no limit
        return None


def _cache(path: str, prefix: str) -> int:
    """Bytes of files in memory: those used of late, too, are given up before a process has to end."""
    fields, found = (f"{prefix}inactive_file", f"{prefix}active_file"), 0
    try:
        with open(path, encoding="ascii") as file:
            for line in file:
                key, _, value = line.partition(" ")
                if key in fields:
                    found += int(value)
    except (OSError, ValueError):
        pass
    return found
