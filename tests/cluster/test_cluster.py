"""The virtual cluster itself: hosts are apart, links are as slow as said, and nothing is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cluster as module
import psutil
import pytest
from cluster import Cluster, NoClusterError, cluster

HERE = Path(__file__).resolve().parent

# Sends 8 MiB from one host to another and says how long that took.
_SENDER = """import socket, time
with socket.create_connection(('node3', 5000)) as there:
    begin = time.perf_counter()
    there.sendall(bytes(8 << 20))
    there.shutdown(socket.SHUT_WR)
    assert there.recv(1) == b'.'
    print(time.perf_counter() - begin)
"""
_RECEIVER = """import socket
with socket.create_server(('', 5000)) as door:
    print('ready', flush=True)
    there = door.accept()[0]
    while there.recv(1 << 16):
        pass
    there.sendall(b'.')
"""
_LEADER = """import time
from cluster import cluster
with cluster(2) as made:
    made.start(['sleep', '60'], made.folder, {'PATH': '/bin:/usr/bin'})
    print(made.folder, *(host.pid for host in made.hosts), flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """Three hosts, or the reason why there are none."""
    try:
        with cluster(3) as made:
            yield made
    except NoClusterError as reason:
        pytest.skip(f"no virtual cluster: {reason}")


def _run(made: Cluster, *words: object) -> subprocess.CompletedProcess[str]:
    return made.run(words, Path("/"), os.environ, timeout=60)


def _lives(pid: str) -> bool:
    try:
        return psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _devices() -> list[str]:
    listed = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    return sorted(line.split(": ")[1] for line in listed.splitlines())


def test_hosts_are_apart(three: Cluster) -> None:
    (three.hosts[0].shared_memory / "mine").write_text("")
    said = _run(three, "sh", "-c", "hostname; ls /sys/class/net /dev/shm; ps -e -o comm= | head -1").stdout
    assert said.split() == ["node1", "/dev/shm:", "mine", "/sys/class/net:", "lan", "lo", "sleep"]
    there = _run(three, three.launcher, "node2", "hostname; ls -x /sys/class/net; ls /dev/shm")
    assert there.stdout.split() == ["node2", "lan", "lo"]
    assert three.left() == ["node1: /dev/shm/mine"]
    (three.hosts[0].shared_memory / "mine").unlink()
    assert not any(name.startswith(("switch", "node", "lan")) for name in _devices())


def test_the_launcher_does_what_ssh_does(three: Cluster) -> None:
    words = ("-x", "node3", "echo 'a  b' $SECRET; cat; exit 3")
    command = ["sh", "-c", 'echo in | SECRET=1 "$@"', "sh", three.launcher, *words]
    result = _run(three, *command)
    assert (result.stdout, result.returncode) == ("a  b\nin\n", 3)
    nowhere = _run(three, three.launcher, "node9", "true")
    assert nowhere.returncode == 255 and "no such host" in nowhere.stderr


def test_links_carry_what_they_should(three: Cluster) -> None:
    """8 MiB at 125 MB/s take 67 ms; a few packets go ahead."""
    receiver = subprocess.Popen(
        three.hosts[2].command([sys.executable, "-c", _RECEIVER], Path("/")),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert receiver.stdout is not None and receiver.stdout.readline() == "ready\n"
        sender = _run(three, sys.executable, "-c", _SENDER)
        assert sender.returncode == 0, sender.stderr
        assert 0.06 < float(sender.stdout) < 30
    finally:
        receiver.communicate(timeout=60)


def test_what_runs_too_long_is_ended(three: Cluster) -> None:
    """Half a gibibyte takes the kernel some time to free: killed is not yet gone."""
    hoard = f"{sys.executable} -c 'import time; held = bytes(range(256)) * (1 << 21); time.sleep(60)'"
    with pytest.raises(subprocess.TimeoutExpired):
        three.run(
            ["sh", "-c", f"{hoard} & {three.launcher} node2 sleep 60"], Path("/"), os.environ, timeout=1
        )
    assert three.left() == []


def test_nothing_outlives_a_killed_run(three: Cluster) -> None:
    before = _devices()
    child = subprocess.Popen([sys.executable, "-c", _LEADER], cwd=HERE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    folder, *pids = child.stdout.readline().split()
    assert len(pids) == 2 and all(_lives(pid) for pid in pids)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    deadline = time.monotonic() + 60
    while any(_lives(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(_lives(pid) for pid in pids)
    assert _devices() == before
    with cluster(1):  # the next one removes the folder
        assert not os.path.exists(folder)
    assert not list(Path(tempfile.gettempdir()).glob(f"{module.PREFIX}{child.pid}-*"))


def test_a_machine_that_cannot_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    if os.geteuid() == 0:
        with pytest.raises(NoClusterError, match="ip, tc, unshare"), cluster():
            pass
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NoClusterError, match="root"), cluster():
        pass
