"""A cluster on one machine: hosts that are namespaces, joined by links of a stated speed.

    node1 ──lan──┐                 each host: its own name, processes, network, /dev/shm, /etc/hosts
    node2 ──lan──┤ switch          each link: both ends shaped, so 1 Gbit/s there and 1 Gbit/s back
    node3 ──lan──┘ (a bridge)      shared:    the file system, or the folders that are named

A host is a process that sleeps in namespaces without names. The kernel kills it when the process that
started it ends, however that ends, and all that runs on it, the links and the mounts go too. Nothing
outside is touched: the switch, too, is in a namespace. Only a folder of a few files can be left, which the
next run removes. Needs root. Hosts do not see each other's processes, files in /dev/shm and System V memory,
so that MPI must use the links: UCX finds what it can share behind a network of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import far
import psutil
from remote import Door
from slow import Slow, slow
from tilewise.base.processes import death_signal

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOLS = ("ip", "tc", "unshare", "nsenter", "mount", "mountpoint", "hostname")
PREFIX = "tilewise-cluster-"
LIFETIME = 3600  # seconds after which a host ends by itself
_MTU = 9000  # so that a program written in Python can hand on 1 Gbit/s
SETUP = 60.0  # seconds that any step of setting up, or of killing, may take

# Ignored, children that are handed to this first process of the host go at once when they end.
_SLEEP = f"trap '' CHLD; exec sleep {LIFETIME}"
_ENTER = 'cd "$0" && exec "$@"'
# A network's devices are in a view of /sys of its own; what is mounted there, as the memory limit, must stay.
_MOUNTS = """mount --bind '{names}' /etc/hosts
mount -t tmpfs -o size=256m tmpfs /dev/shm
mkdir -p '{kept}'
if mountpoint -q /sys/fs/cgroup; then mount --rbind /sys/fs/cgroup '{kept}'; fi
mount -t sysfs sysfs /sys
if mountpoint -q '{kept}'; then mount --move '{kept}' /sys/fs/cgroup; fi"""
# A /tmp and /var/tmp of the host's own, in which the folders that are named ($@) are everybody's.
HOME = "/tmp/home"
_OWN = f"""mkdir /dev/shm/kept
count=0
for folder in "$@"; do
  count=$((count + 1))
  mkdir /dev/shm/kept/$count
  mount --rbind "$folder" /dev/shm/kept/$count
done
mount -t tmpfs -o mode=1777,size=1g tmpfs /tmp
mount -t tmpfs -o mode=1777,size=256m tmpfs /var/tmp
count=0
for folder in "$@"; do
  count=$((count + 1))
  mkdir -p "$folder"
  mount --move /dev/shm/kept/$count "$folder"
done
rmdir /dev/shm/kept/* /dev/shm/kept
mkdir {HOME}"""


class NoClusterError(Exception):
    """This machine cannot have such hosts; says why."""


class Host:
    """One machine of the cluster: a name, an address, and a process whose namespaces it is."""

    def __init__(self, name: str, address: str, pid: int, slow: Slow | None = None) -> None:
        self.name = name
        self.address = address
        self.pid = pid
        self.slow = slow

    def command(self, words: Sequence[object], folder: Path) -> list[str]:
        """The words that run `words` on this host, in `folder`."""
        enter = ["nsenter", "-t", str(self.pid), "-n", "-u", "-m", "-i", "-p"]
        slowed = f"echo $$ > '{self.slow.enter}' && " if self.slow else ""
        entered = [*enter, "--", "sh", "-c", _ENTER, str(folder), *map(str, words)]
        return ["sh", "-c", f'{slowed}exec "$@"', "sh", *entered] if slowed else entered

    def processes(self) -> list[psutil.Process]:
        """What lives on this host besides its first process."""
        mine = os.readlink(f"/proc/{self.pid}/ns/pid")
        return [
            process
            for process in psutil.process_iter()
            if process.pid != self.pid and _runs_in(process, mine)
        ]

    @property
    def shared_memory(self) -> Path:
        """This host's /dev/shm, as seen from outside."""
        return Path(f"/proc/{self.pid}/root/dev/shm")


class Cluster:
    """Hosts `node1`, `node2`…; `launcher` is a program that does what ssh does, from any of them to any."""

    def __init__(self, hosts: list[Host], folder: Path, door: Door) -> None:
        self.hosts = hosts
        self.folder = folder
        self.launcher = door.client

    def hostfile(self, slots: int, text: str = "{host}:{slots}") -> Path:
        """A file for --hosts with every host."""
        path = self.folder / "hosts"
        path.write_text("".join(text.format(host=host.name, slots=slots) + "\n" for host in self.hosts))
        return path

    def start(
        self, words: Sequence[object], folder: Path, environment: Mapping[str, str], host: Host | None = None
    ) -> subprocess.Popen[str]:
        """Starts `words` on the first host, or on another, as somebody does who is logged in there."""
        return subprocess.Popen(
            (host or self.hosts[0]).command(words, folder),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_dies_with_us,  # noqa: PLW1509 - what the new process does is one system call
        )

    def run(
        self, words: Sequence[object], folder: Path, environment: Mapping[str, str], timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """The same to its end; what is left on the hosts after `timeout` seconds is killed."""
        return finish(self.start(words, folder, environment), timeout, self.end)

    def interrupt(self, child: subprocess.Popen[str], number: int = signal.SIGINT) -> None:
        """Sends a signal to what `start` started, past the program that entered the host for it."""
        for process in psutil.Process(child.pid).children():
            process.send_signal(number)

    def end(self) -> None:
        """Kills all that runs on the hosts, and returns when it is gone.

        Again and again: what was killed takes a while to go, and may just have started something.
        """
        deadline = time.monotonic() + SETUP
        while living := [process for host in self.hosts for process in host.processes()]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"still there after {SETUP:.0f} s of SIGKILL: {self.left()}")
            for process in living:
                _kill(process)
            time.sleep(0.002)

    def left(self) -> list[str]:
        """What runs on the hosts or lies in their shared memory."""
        found = []
        for host in self.hosts:
            found += [f"{host.name}: {_words(process)}" for process in host.processes()]
            found += [f"{host.name}: /dev/shm/{path.name}" for path in host.shared_memory.iterdir()]
        return found


def finish(
    child: subprocess.Popen[str], timeout: float, end: Callable[[], None]
) -> subprocess.CompletedProcess[str]:
    """What `child` says to its end; `end` sees to that where it takes longer than `timeout` seconds."""
    try:
        out, err = child.communicate(timeout=timeout)
    except BaseException:
        end()
        child.communicate()
        raise
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


@contextmanager
def cluster(
    count: int = 2,
    rate: str = "1gbit",
    names: Sequence[str] = (),
    *,
    delay: float = 0.0,
    queue: float = 0.01,
    congestion: str = "",
    shared: Sequence[Path] | None = None,
    slowed: Mapping[str, float] | None = None,
) -> Iterator[Cluster]:
    """`count` hosts, or those of `names`, whose links carry `rate`, for as long as the context lasts.

    `delay`: seconds on the way from any host to another. `queue`: seconds that a packet waits for a link at
    most, or is lost. `congestion`: what TCP does about that, if not as on this machine. `shared`: hosts have
    a /tmp, a home and caches of their own, apart from these folders. `slowed`: hosts that get so many
    processors' time. Takes about 0.2 s.
    Raises NoClusterError, saying why, where such hosts cannot be.
    """
    if os.geteuid() != 0:
        raise NoClusterError("only root can make network namespaces")
    if lacking := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise NoClusterError(f"{', '.join(lacking)} missing")
    _sweep()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-")))
        groups = {
            name: stack.enter_context(_slow(f"{folder.name}-{name}", processors))
            for name, processors in (slowed or {}).items()
        }
        switch = stack.enter_context(_sleeper("--net"))
        _within(switch, "ip link add name switch type bridge && ip link set switch up")
        names = names or [f"node{index + 1}" for index in range(count)]
        addresses = [f"10.77.0.{index + 1}" for index in range(len(names))]
        known = folder / "etc-hosts"
        known.write_text(
            "".join(f"{a} {n}\n" for a, n in zip(addresses, names, strict=True)) + "127.0.0.1 localhost\n"
        )
        hosts = []
        for name, address in zip(names, addresses, strict=True):
            pid = stack.enter_context(_sleeper("--net", "--uts", "--mount", "--ipc", "--pid", "--mount-proc"))
            _within(pid, _MOUNTS.format(names=known, kept=folder / "cgroup"), "-m")
            _within(pid, f"hostname {name}; ip link set lo up", "-u")
            if shared is not None:
                _within(pid, _OWN, "-m", words=_seen_by_all([*shared, folder]))
            if not delay:
                _wire(switch, pid, name, address, f"rate {rate} burst 32kb latency {1e3 * queue:g}ms")
            if congestion:
                _within(pid, f"echo {congestion} > /proc/sys/net/ipv4/tcp_congestion_control")
            hosts.append(Host(name, address, pid, groups.get(name)))
        if delay:
            stack.enter_context(_relay(hosts, rate, delay))
        home = HOME if shared is not None else None
        door = stack.enter_context(Door(folder, {host.name: host.command for host in hosts}, home))
        made = Cluster(hosts, folder, door)
        stack.callback(made.end)
        yield made


def _seen_by_all(folders: Sequence[Path]) -> list[Path]:
    """These, and where the program under test is installed, if a /tmp of the host's own would hide that."""
    installed = [ROOT, Path(sys.prefix), Path(sys.base_prefix)]
    hidden = [path for path in installed if path.is_relative_to("/tmp") or path.is_relative_to("/var/tmp")]
    return [*folders, *(path for path in hidden if not any(path.is_relative_to(one) for one in folders))]


def _sweep() -> None:
    """Removes the folders of runs that were killed; their names say which."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _wire(switch: int, host: int, name: str, address: str, limits: str) -> None:
    """One cable: `lan` on the host, a port of the host's name at the switch, both ends within `limits`."""
    shape = f"root tbf {limits}"
    _within(
        switch,
        f"ip link add {name} type veth peer name lan netns {host} && ip link set {name} master switch up"
        f" && tc qdisc add dev {name} {shape}",
    )
    _within(host, f"ip addr add {address}/24 dev lan && ip link set lan up && tc qdisc add dev lan {shape}")


@contextmanager
def _relay(hosts: Sequence[Host], rate: str, delay: float) -> Iterator[None]:
    """Cables with a delay: see far.py."""
    words = [sys.executable, far.__file__, str(_bytes(rate)), str(delay)]
    words += [f"{host.pid}={host.address}" for host in hosts]
    child = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_dies_with_us,  # noqa: PLW1509 - as above
    )
    try:
        assert child.stdout is not None and child.stderr is not None
        if child.stdout.readline() != "ready\n":
            raise NoClusterError(f"no link with a delay: {child.stderr.read().strip().splitlines()[-1:]}")
        for host in hosts:
            _within(host.pid, f"ip addr add {host.address}/24 dev lan && ip link set lan up mtu {_MTU}")
        yield
    finally:
        child.kill()
        child.communicate()


def _bytes(rate: str) -> float:
    """Bytes a second of a rate in tc's words."""
    number, unit = re.fullmatch(r"(\d+)([gm])bit", rate).groups()  # type: ignore[union-attr]
    return float(number) * {"g": 125e6, "m": 125e3}[unit]


@contextmanager
def _slow(name: str, processors: float) -> Iterator[Slow]:
    with ExitStack() as stack:
        try:
            group = stack.enter_context(slow(name, processors))
        except OSError as error:
            raise NoClusterError(f"no host can be slowed down: {error}") from None
        yield group


@contextmanager
def _sleeper(*namespaces: str) -> Iterator[int]:
    """The pid of a process that sleeps in new namespaces of these kinds."""
    words = ["unshare", *namespaces, "--fork", "--kill-child", "sh", "-c", _SLEEP]
    child = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_dies_with_us,  # noqa: PLW1509 - as above
    )
    try:
        yield _asleep(child)
    finally:
        child.kill()
        child.communicate()


def _asleep(child: subprocess.Popen[str]) -> int:
    deadline = time.monotonic() + SETUP
    while time.monotonic() < deadline and child.poll() is None:
        for process in psutil.Process(child.pid).children():
            if _words(process).startswith("sleep"):
                return process.pid
        time.sleep(0.002)
    assert child.stderr is not None
    said = child.stderr.read().strip() if child.poll() is not None else "no process came up in time"
    raise NoClusterError(f"no namespaces: {said}")


def _within(pid: int, script: str, *spaces: str, words: Sequence[object] = ()) -> None:
    done = subprocess.run(
        ["nsenter", "-t", str(pid), "-n", *spaces, "--", "sh", "-ec", script, "sh", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=SETUP,
        check=False,
    )
    if done.returncode != 0:
        raise NoClusterError(f"{script!r}: {done.stderr.strip()}")


def _runs_in(process: psutil.Process, namespace: str) -> bool:
    try:
        return (
            os.readlink(f"/proc/{process.pid}/ns/pid") == namespace
            and process.status() != psutil.STATUS_ZOMBIE
        )
    except (OSError, psutil.Error):
        return False


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()) or process.name()
    except psutil.Error:
        return ""


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.Error:  # it has gone by itself
        return


_dies_with_us = death_signal()
