"""Which ranks go to which host, in the words of each launcher.

Launchers read hosts files differently (hydra refuses `slots=`, and where no slots are said deals one rank a
host in turn; `srun` knows no slots), and within a Slurm allocation deal by the tasks that it was asked for,
so we deal ourselves and say what we want. 5 ranks on a:2 and b:2:

    core, socket   a a a b b      neighbouring ranks share a host
    node           a b a b a      neighbouring ranks are on different hosts
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import cycle

from tilewise.base.errors import UsageError

_NAMED_BY = {
    "hydra": {"f", "hosts", "host", "hostfile", "machine", "machines", "machinefile", "ppn", "rankmap"},
    "openmpi": {"host", "H", "hostfile", "machinefile", "default-hostfile", "map-by", "npernode", "N"},
    "srun": {"nodelist", "w", "nodefile", "F", "nodes", "N", "ntasks-per-node", "distribution", "m"},
}
# A launcher must not take a host for an option, or for two; nor may a terminal be moved by one.
_HOST = re.compile(r"[^\W_][\w.-]*")
_COUNT = re.compile(r"[0-9]{0,9}")


def read_hosts(path: str) -> dict[str, int]:
    """Hosts and their slots (0: not said) out of `host`, `host:4` or `host slots=4` lines."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--hosts {path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    hosts: dict[str, int] = {}
    for line in lines:
        words = line.split("#")[0].split()
        if not words:
            continue
        host, _, count = words[0].partition(":")
        for word in words[1:]:
            if word.startswith("slots="):
                count = word[6:]
        if not _HOST.fullmatch(host) or not _COUNT.fullmatch(count):
            raise UsageError(
                f"--hosts {path}: {line.strip()[:99]!r} is not a host with a number of slots, such as node7:4"
            )
        hosts[host] = hosts.get(host, 0) + int(count or 0)
    if not hosts:
        raise UsageError(f"--hosts {path} names no host")
    return hosts


def deal(hosts: dict[str, int], ranks: int, place: str) -> list[str]:
    """The host of each rank.

    Dealt in turn, as the plan counts them: to hosts with slots left (not said: always), then to all.
    """
    limit = sum(hosts.values()) if all(hosts.values()) else ranks
    counts = dict.fromkeys(hosts, 0)
    dealt: list[str] = []
    turn = cycle(hosts)
    while len(dealt) < ranks:
        host = next(turn)
        if len(dealt) >= limit or not hosts[host] or counts[host] < hosts[host]:
            counts[host] += 1
            dealt.append(host)
    return dealt if place == "node" else [host for host, count in counts.items() for _ in range(count)]


def options(kind: str, dealt: Sequence[str], place: str) -> list[str]:
    """What hydra, Open MPI's launcher or srun wants to hear, so that rank i goes to `dealt[i]`."""
    counts = Counter(dealt)  # in the order of their first ranks
    listed = ",".join(f"{host}:{count}" for host, count in counts.items())
    if kind == "openmpi":
        return ["--host", listed, "--map-by", "node" if place == "node" else "slot"]
    if kind == "srun":
        each = set(counts.values())
        if len(each) > 1:  # srun would fill the first hosts, as far as there are processors
            return [f"--nodelist={','.join(dealt)}", "--distribution=arbitrary"]
        order = "cyclic" if place == "node" else "block"
        spread = [f"--nodes={len(counts)}", f"--ntasks-per-node={each.pop()}"]
        return [f"--nodelist={','.join(counts)}", *spread, f"--distribution={order}"]
    if place != "node":
        return ["-hosts", listed]
    number = {host: index for index, host in enumerate(counts)}
    return ["-hosts", listed, "-rankmap", ",".join(str(number[host]) for host in dealt)]


def named_in(kind: str, words: Sequence[str]) -> bool:
    """Whether the words of a launcher of that kind say themselves where ranks go."""
    named = _NAMED_BY.get(kind, set())

    def names(word: str) -> bool:
        joined = kind == "srun" and not word.startswith("--")  # such as -N3
        return word.startswith("-") and (word[1:2] if joined else word.lstrip("-").partition("=")[0]) in named

    return any(map(names, words))


def placed_by(words: Sequence[str]) -> bool:
    """The same of a launcher whose kind nobody has found out yet."""
    return any(named_in(kind, words) for kind in _NAMED_BY)
