"""A real Slurm on the virtual cluster: a login host with the controller, and nodes with a daemon each.

    login ── switch ── n1, n2, n3         each node: 2 processors, 4 GB, whatever this machine has
    slurmctld          slurmd each        one munged, whose socket all hosts see in the shared files

Needs root and Debian's `slurm-wlm`, `munge` and, for MPI type pmix, `libpmix-dev` (Slurm loads
`libpmix.so` by that name). Up in about a second; all of it ends with the hosts. Nothing of the system's
configuration is touched: /etc/slurm is another folder on these hosts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
from cluster import Cluster, Host, NoClusterError, cluster, finish

TOOLS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "salloc", "scontrol")
MPI_TYPES = ("none", "pmi2", "pmix")
_STARTING = 30.0  # seconds until every node is idle
_DAEMONS = ("munged", "slurmctld", "slurmscriptd", "slurmd", "sleep")

# Nodes claim two processors, however many there are (config_overrides). TmpFS keeps apart what mpi/pmix puts
# into /tmp by the same name on every node. A job that is queued again waits until its old credential has
# expired, else two minutes. linuxproc and task/none need no control group, which a container
# may not let us make: limits are told to jobs, not enforced.
_CONFIGURATION = """ClusterName=tilewise
SlurmctldHost=login
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=15
StateSaveLocation={folder}/login
SlurmctldLogFile={folder}/log/slurmctld
SlurmctldPidFile={folder}/login/slurmctld.pid
SlurmdSpoolDir={folder}/%n/spool
SlurmdLogFile={folder}/log/slurmd-%n
SlurmdPidFile={folder}/%n/slurmd.pid
TmpFS={folder}/%n/tmp
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
DebugFlags=NO_CONF_HASH
MaxArraySize=100
ReturnToService=2
KillWait=5
InactiveLimit=0
{settings}
NodeName=n[1-{nodes}] CPUs=2 RealMemory=4000
PartitionName=all Nodes=ALL Default=YES MaxTime=60 DefaultTime=10 OverSubscribe=NO
"""
_CORES = "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core"


class Slurm:
    """A site with a batch system. `made.hosts[0]` is `login`, the others are its nodes."""

    def __init__(self, made: Cluster, settings: str) -> None:
        self.made = made
        self.folder = made.folder / "slurm"
        self.login, *self.nodes = made.hosts
        self._settings = settings
        for name in ("etc", "log", *(host.name for host in made.hosts)):
            (self.folder / name / "spool").mkdir(parents=True)
            (self.folder / name / "tmp").mkdir()
        self.mpi("none")

    def mpi(self, default: str) -> None:
        """Makes `default` the MPI type of steps that name none, from now on: each srun reads it anew."""
        text = _CONFIGURATION.format(
            folder=self.folder,
            nodes=len(self.nodes),
            settings=f"MpiDefault={default}\n{self._settings}",
        )
        new = self.folder / "etc" / "slurm.conf.new"
        new.write_text(text)
        new.rename(self.folder / "etc" / "slurm.conf")

    def start(
        self, words: Sequence[object], folder: Path, environment: Mapping[str, str], host: Host | None = None
    ) -> subprocess.Popen[str]:
        """Starts `words` on the login host, or on another."""
        return self.made.start(words, folder, environment, host)

    def run(
        self,
        words: Sequence[object],
        folder: Path,
        environment: Mapping[str, str],
        timeout: float = 60,
        host: Host | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """The same to its end; after `timeout` seconds what is left is killed, and all jobs cancelled."""
        return finish(self.start(words, folder, environment, host), timeout, self.end)

    def ask(self, *words: object) -> str:
        """What a command of Slurm's says on the login host; it must end well."""
        done = subprocess.run(
            self.login.command(words, self.folder), capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout.strip()

    def processes(self) -> list[psutil.Process]:
        """All that runs on the hosts besides the daemons."""
        return [p for host in self.made.hosts for p in host.processes() if name(p) not in _DAEMONS]

    def ranks(self) -> dict[str, list[psutil.Process]]:
        """The workers on each node that has any."""
        found = {
            node.name: [p for p in node.processes() if name(p) == "tilewise-worker"] for node in self.nodes
        }
        return {name: there for name, there in found.items() if there}

    def left_after(self, seconds: float) -> list[str]:
        """What of jobs is still there when nothing goes any more, or when the time is over."""
        deadline = time.monotonic() + seconds
        while True:
            left = [f"{p.pid} {name(p)}" for p in self.processes()]
            left += [f"/dev/shm/{f.name}" for host in self.made.hosts for f in host.shared_memory.iterdir()]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.02)

    def end(self) -> None:
        """Cancels every job and kills what is left of them; the daemons stay, every node is idle again."""
        self.ask("scancel", "--full", "--signal=KILL", "--state=RUNNING")
        self.ask("scancel", "--state=PENDING")
        deadline = time.monotonic() + _STARTING
        while living := [p for p in self.processes() if name(p) != "slurmstepd"]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"still there: {living}")
            for process in living:
                try:
                    process.kill()
                except psutil.Error:
                    continue
            time.sleep(0.02)
        self.wait_idle()

    def wait_idle(self) -> None:
        """Returns when every node is idle; raises NoClusterError with the daemons' last words."""
        deadline = time.monotonic() + _STARTING
        while time.monotonic() < deadline:
            said = subprocess.run(
                self.login.command(["sinfo", "-h", "-t", "idle", "-o", "%D"], self.folder),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            if said.stdout.strip() == str(len(self.nodes)):
                return
            time.sleep(0.1)
        logs = [
            f"{log.name}: {log.read_text()[-300:]}"
            for log in (self.folder / "log").iterdir()
            if log.is_file()
        ]
        raise NoClusterError(f"Slurm's nodes are not idle after {_STARTING:g} s: {logs}")


@contextmanager
def slurm(nodes: int = 3, settings: str = _CORES, rate: str = "1gbit") -> Iterator[Slurm]:
    """Slurm with nodes `n1` and on, for as long as the context lasts; `settings` go into its configuration.

    Raises NoClusterError, saying why, where that cannot be.
    """
    if lacking := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise NoClusterError(f"{', '.join(lacking)} missing (apt-get install slurm-wlm munge)")
    names = ["login", *(f"n{index + 1}" for index in range(nodes))]
    with cluster(rate=rate, names=names) as made:
        site = Slurm(made, settings)
        for host in made.hosts:
            _on(host, site.folder, "mount", "--bind", site.folder / "etc", "/etc/slurm")
        key = site.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        socket, at_login = site.folder / "munge.socket", site.folder / "login"
        # --force: a folder that only its owner may enter is right here.
        _on(
            site.login,
            site.folder,
            *("munged", "--force", "--key-file", key, "--socket", socket),
            *("--pid-file", at_login / "munged.pid", "--seed-file", at_login / "munged.seed"),
            *("--log-file", site.folder / "log" / "munged"),
        )
        _on(site.login, site.folder, "slurmctld")
        for node in site.nodes:
            _on(node, site.folder, "slurmd", "-N", node.name)
        site.wait_idle()
        yield site


def _on(host: Host, folder: Path, *words: object) -> None:
    """Runs a command of the set-up to its end: a daemon returns when it stands."""
    with (folder / "log" / f"start-{host.name}").open("a") as log:
        done = subprocess.run(
            host.command(words, folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=60,
            check=False,
        )
    if done.returncode != 0:
        said = (folder / "log" / f"start-{host.name}").read_text()[-500:]
        raise NoClusterError(f"{words[0]} on {host.name}: {said}")


def name(process: psutil.Process) -> str:
    """What it runs; empty where it has gone."""
    try:
        return process.name()
    except psutil.Error:
        return ""
