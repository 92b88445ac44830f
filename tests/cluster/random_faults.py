"""Random faults on a real Slurm: a rank, daemon, node, link or disk fails amid a job on three hosts.

    python tests/cluster/random_faults.py --count 50 --seed 1      prints a line for each, and what was wrong

After each the job must have ended within 30 s, the output must be the old one or the right one, one message
must name the host, and no rank may be left. What the job does not need may fail without its noticing.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy

sys.path += [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "python")]

from account import Account, make_inputs, messages
from cluster import Host
from slurm import Slurm, slurm
from tilewise.launch.liveness import shown_phase

LIMIT = 30.0  # seconds from the fault to the end of the job
GONE = 20.0  # seconds from there to the end of all ranks: behind a cut link they notice by themselves
_ENDLESS = 100000000
_WAYS = {
    "salloc, none": ("none", ["salloc", "-Q", "-N3", "-n6"], []),
    "salloc, pmi2": ("pmi2", ["salloc", "-Q", "-N3", "-n6"], []),
    "salloc, pmix": ("pmix", ["salloc", "-Q", "-N3", "-n6"], []),
    "--launcher srun": ("none", ["salloc", "-Q", "-N3", "-n6"], ["--launcher", "srun --mpi=pmi2"]),
    "srun": ("none", ["srun", "-Q", "-N3", "-n6", "--mpi=pmi2"], None),
    "srun -K": ("none", ["srun", "-Q", "-K", "-N3", "-n6", "--mpi=pmi2"], None),
}
# What is done, and how often where the job is to come to its end.
_OPERATIONS = {
    "stencil": (["stencil", "A.npy", "--verify", "off", "--steps"], 2000),
    "multiply": (["multiply", "A.npy", "B.npy", "--algorithm", "summa", "--verify", "off", "--repeat"], 200),
    "transpose": (["transpose", "A.npy", "--algorithm", "swap", "--verify", "off", "--repeat"], 200),
}


class Fault(NamedTuple):
    """What fails and how it is mended. `harmless`: the job may end well; `ends_all`: all there may end."""

    name: str
    strike: Callable[[Slurm, Host, random.Random], None]
    mend: Callable[[Slurm, Host], None] = lambda site, host: None
    harmless: bool = False
    ends_all: bool = False


def _kill_rank(site: Slurm, host: Host, chance: random.Random) -> None:
    chance.choice(site.ranks()[host.name]).kill()


def _kill_daemon(site: Slurm, host: Host, chance: random.Random) -> None:
    """What stands between the launcher and the ranks there."""
    names = ("hydra_pmi_proxy", "hydra_bstrap_proxy", "slurmstepd")
    chance.choice([p for p in host.processes() if p.name() in names]).kill()


def _kill_slurmd(site: Slurm, host: Host, chance: random.Random) -> None:
    next(p for p in host.processes() if p.name() == "slurmd").kill()


def _start_slurmd(site: Slurm, host: Host) -> None:
    subprocess.run(host.command(["slurmd", "-N", host.name], site.folder), check=True, timeout=60)


def _drain(site: Slurm, host: Host, chance: random.Random) -> None:
    site.ask("scontrol", "update", f"nodename={host.name}", "state=drain", "reason=test")


def _down(site: Slurm, host: Host, chance: random.Random) -> None:
    _kill_slurmd(site, host, chance)  # else it is back at once
    site.ask("scontrol", "update", f"nodename={host.name}", "state=down", "reason=test")


def _bring_back(site: Slurm, host: Host) -> None:
    _start_slurmd(site, host)
    _resume(site, host)


def _resume(site: Slurm, host: Host) -> None:
    words = ["scontrol", "update", f"nodename={host.name}", "state=resume"]
    # Refused where the node has come back by itself.
    subprocess.run(site.login.command(words, site.folder), capture_output=True, check=False, timeout=60)


def link(host: Host, state: str) -> None:
    """Sets the host's only cable `up` or `down`."""
    subprocess.run(
        ["nsenter", "-t", str(host.pid), "-n", "ip", "link", "set", "lan", state], check=True, timeout=60
    )


def _cut(site: Slurm, host: Host, chance: random.Random) -> None:
    link(host, "down")


def _join(site: Slurm, host: Host) -> None:
    link(host, "up")


def _fill(site: Slurm, host: Host, chance: random.Random) -> None:
    with (host.shared_memory / "full").open("wb") as file:
        file.truncate(1 << 40)
        try:
            while True:
                file.write(bytes(1 << 20))
        except OSError:
            return


def _empty(site: Slurm, host: Host) -> None:
    (host.shared_memory / "full").unlink()


FAULTS = (
    Fault("a rank is killed", _kill_rank),
    Fault("a launcher's daemon is killed", _kill_daemon, harmless=True, ends_all=True),
    Fault("slurmd is killed", _kill_slurmd, _start_slurmd, harmless=True),
    Fault("a node is drained", _drain, _resume, harmless=True),
    Fault("a node is set down", _down, _bring_back, ends_all=True),
    Fault("a link is cut", _cut, _join, ends_all=True),
    Fault("shared memory is full", _fill, _empty, harmless=True),
)


class Case(NamedTuple):
    """One fault in one job, and what was wrong with its end (empty: nothing)."""

    text: str
    seconds: float
    code: int
    said: str
    wrong: list[str]


def run_case(
    account: Account, chance: random.Random, fault: Fault, way: str, operation: str, pause: float = 0.0
) -> Case:
    """Starts the job, has `fault` strike a node when all ranks are there, and judges the end.

    By then MPI may still be starting. With a `pause` it is not: every rank is in a phase of the job, and some
    seconds have passed.
    """
    site = account.site
    mpi, before, after = _WAYS[way]
    site.mpi(mpi)
    # Where srun has started the front as well, it is on n1: what ends all there leaves nobody to say so.
    host = chance.choice(site.nodes[1:] if after is None and fault.ends_all else site.nodes)
    old = account.folder / "C.npy"
    numpy.save(old, numpy.zeros((2, 2)))
    kept = old.read_bytes()
    what, count = _OPERATIONS[operation]
    if operation == "stencil" and not (account.folder / "swept.npy").exists():
        alone = ["tilewise", *what, count, "-o", "swept.npy", "-n", 1]
        site.run(alone, account.folder, account.environment)
    # Ranks that srun itself started die with their daemon; hydra's may not.
    harmless = fault.harmless and not (after is None and fault.ends_all)
    words = [*what, count if harmless else _ENDLESS, "-o", "C.npy", "--force", "-q"]
    ranks = ["-n", 6, *after] if after is not None else []
    child = site.start([*before, "tilewise", *words, *ranks], account.folder, account.environment)
    begin = time.monotonic()
    wrong = []
    try:
        while (
            (_ranks(site) < 6 or (pause and not _begun(site)))
            and child.poll() is None
            and time.monotonic() < begin + 30
        ):
            time.sleep(0.02)
        time.sleep(pause + chance.uniform(0.0, 1.5))
        struck = child.poll() is None and bool(site.ranks().get(host.name))
        if struck:
            fault.strike(site, host, chance)
        begin = time.monotonic()
        try:
            _, said = child.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            wrong.append(f"no end within {LIMIT:g} s: {site.processes()}")
            site.end()
            _, said = child.communicate(timeout=60)
        seconds = time.monotonic() - begin
        while site.ranks() and time.monotonic() < begin + seconds + GONE:
            time.sleep(0.05)
        if site.ranks():
            wrong.append(f"ranks are left: {site.ranks()}")
    finally:
        if struck:
            fault.mend(site, host)
        site.end()
    new = old.read_bytes()
    if child.returncode == 0:
        if not _right(operation, account.folder, numpy.load(old)):
            wrong.append("the output is wrong")
        if not harmless:
            wrong.append("it ended well all the same")
    else:
        if new != kept:
            wrong.append("the old output is gone")
        ours = messages(said)
        if len(ours) != 1:
            wrong.append(f"{len(ours)} messages")
        if not any(re.search(rf"\b{host.name}\b", line) for line in ours):
            wrong.append(f"no word of {host.name}")
    for left in [path for path in account.folder.iterdir() if path.name.startswith(".C")]:
        wrong.append(f"left behind: {left.name}")
        left.unlink()
    text = f"{fault.name}, {operation}, {way}, {host.name}"
    return Case(text, seconds, child.returncode, said, wrong)


def _ranks(site: Slurm) -> int:
    return sum(len(there) for there in site.ranks().values())


def _begun(site: Slurm) -> bool:
    """Whether every rank shows a phase."""
    return all(shown_phase(rank.pid) for there in site.ranks().values() for rank in there)


def _right(operation: str, folder: Path, found: numpy.ndarray) -> bool:
    """Whether `found` is what the operation makes of A.npy and B.npy."""
    a = numpy.load(folder / "A.npy")
    if operation == "transpose":
        return numpy.array_equal(found, a.T)
    if operation == "multiply":
        return numpy.allclose(found, a @ numpy.load(folder / "B.npy"), rtol=0, atol=1e-10)
    return numpy.array_equal(found, numpy.load(folder / "swept.npy"))


@contextmanager
def made_account() -> Iterator[Account]:
    """An account on a Slurm of three nodes, with small matrices."""
    with slurm() as site, tempfile.TemporaryDirectory(prefix="tilewise-faults-") as folder:
        made = Account(site, Path(folder))
        make_inputs(made.folder)
        yield made


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="part of a fault's, operation's or way's name")
    wanted = parser.parse_args()
    every = [
        (fault, way, operation)
        for fault in FAULTS
        for way in _WAYS
        for operation in _OPERATIONS
        if wanted.only in f"{fault.name}, {operation}, {way}"
        # Ranks that srun itself started find each other through slurmd, until they have left MPI.
        and not (fault.name == "slurmd is killed" and "srun" in way)
    ]
    chance = random.Random(wanted.seed)
    bad = []
    with made_account() as account:
        for number in range(wanted.count):
            case = run_case(account, chance, *chance.choice(every))
            print(f"{number + 1:3} {case.text}: exit {case.code} after {case.seconds:.1f} s", flush=True)
            if case.code:
                print(
                    "     " + "\n     ".join(x for x in case.said.splitlines() if "srun:" not in x),
                    flush=True,
                )
            if case.wrong:
                bad.append(case)
                print("     WRONG: " + "; ".join(case.wrong), flush=True)
    print(f"{wanted.count - len(bad)} of {wanted.count} as they should be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
