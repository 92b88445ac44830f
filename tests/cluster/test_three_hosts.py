"""Every operation on three hosts that share one folder and nothing else: the bits are those of one host.

Each host has its own /tmp, /var/tmp, home, caches and shared memory. `near` is 1 Gbit/s; `far` adds 5 ms to
each way, and one host has half as much processor time as the others.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy
import pytest
import scipy.io
from cluster import NoClusterError, cluster
from PIL import Image
from test_jobs import Site

HOSTS, RANKS = 3, 6
DELAY = 0.005  # seconds from one host to another


class Job(NamedTuple):
    """A command; `how` it is to be done, which one rank alone does not know; the ending of its output.

    `same`: one rank alone makes the same bits, too.
    """

    what: tuple[object, ...]
    how: tuple[object, ...] = ()
    ending: str = "npy"
    same: bool = True


PRODUCT = ("multiply", "A.npy", "B.npy")
TURN = ("transpose", "A.npy")
SVD = ("svd", "A.npy", "--verify", "fast")
STENCIL = ("stencil", "A.npy", "--steps", 4, "--boundary", "periodic")
JOBS = {
    "summa": Job(PRODUCT, ("--algorithm", "summa", "--grid", "2x3"), same=False),
    "cannon": Job(PRODUCT, ("--algorithm", "cannon", "-n", 4), same=False),
    "replicated": Job(PRODUCT, ("--algorithm", "replicated", "-n", 4), same=False),
    "swap": Job(TURN, ("--algorithm", "swap", "--grid", "3x2")),
    "swap-collective": Job(TURN, ("--algorithm", "swap", "--exchange", "collective")),
    "gather": Job(TURN, ("--algorithm", "gather")),
    "reread": Job(TURN, ("--algorithm", "reread")),
    "staged": Job(TURN, ("--algorithm", "staged")),
    "root-collective": Job(TURN, ("--algorithm", "swap", "--io", "root_collective")),
    "two-phase": Job(TURN, ("--algorithm", "swap", "--io", "two_phase:collective")),
    "jacobi": Job(SVD, ("--algorithm", "jacobi"), "", same=False),
    "randomized": Job((*SVD, "--components", 5), ("--algorithm", "randomized"), "", same=False),
    "rows": Job(STENCIL, ("--decomposition", "rows")),
    "grid": Job(STENCIL, ("--decomposition", "grid", "--depth", 2)),
    "picture": Job(("stencil", "colours.png", "--steps", 3), (), "png"),
    "convert": Job(("convert", "A.npy", "--dtype", "float32", "--order", "F")),
    "text-out": Job(("convert", "A.npy"), (), "txt"),
    "text-in": Job(("convert", "A.csv")),
    "sparse-in": Job(("convert", "A.mtx")),
    "container-in": Job(("transpose", "A.h5:/A")),
    "container-out": Job(("convert", "A.npy"), (), "h5:/B"),
    "tiles-out": Job(("convert", "A.npy"), ("--grid", "2x3"), "tiles", same=False),
    "tiles-in": Job(("transpose", "parts.tiles")),
}


class Three(Site):
    """Three hosts of two slots each; six ranks where the words do not say otherwise."""

    def words(self, *words: object) -> list[str]:
        return super().words(*words, *(() if "-n" in words else ("-n", RANKS)))

    def digest(self, name: str) -> list[str]:
        """The checksums of an output's files in order, of a container's dataset; not of manifests."""
        path, _, member = name.partition(":")
        if member:
            with h5py.File(self.folder / path) as file:
                return [_sum(file[member][...].tobytes())]
        there = self.folder / path
        files = sorted(there.iterdir()) if there.is_dir() else [there]
        found = [_sum(file.read_bytes()) for file in files if file.suffix != ".json"]
        assert found
        return found


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def inputs(folder: Path) -> None:
    """A (67×53) in several formats, B (53×41), a small picture; L and M, a few hundred each way."""
    random = numpy.random.default_rng(1)
    a = random.standard_normal((67, 53))
    numpy.save(folder / "A.npy", a)
    numpy.save(folder / "B.npy", random.standard_normal((53, 41)))
    numpy.save(folder / "L.npy", random.standard_normal((467, 353)))
    numpy.save(folder / "M.npy", random.standard_normal((353, 241)))
    numpy.savetxt(folder / "A.csv", a, delimiter=",")
    scipy.io.mmwrite(folder / "A.mtx", a, precision=17)
    with h5py.File(folder / "A.h5", "w") as file:
        file.create_dataset("A", data=a, chunks=(16, 16), compression="gzip")
    Image.fromarray(random.integers(0, 256, (40, 30, 3), dtype=numpy.uint8)).save(folder / "colours.png")


WORLDS: dict[str, dict[str, Any]] = {
    "near": {},
    "far": {"delay": DELAY, "slowed": {"node3": (os.cpu_count() or 1) / HOSTS / 2}},
}
_ALONE: dict[tuple[str, ...], list[str]] = {}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all hosts see."""
    from tilewise.launch import worker

    if worker.find() is None:
        pytest.skip("the worker is not built")
    folder = tmp_path_factory.mktemp("shared")
    inputs(folder)
    return folder


@pytest.fixture(scope="module", params=WORLDS)
def three(request: pytest.FixtureRequest, shared: Path) -> Iterator[Three]:
    try:
        with cluster(HOSTS, shared=[shared], **WORLDS[request.param]) as made:
            site = Three(made, shared)
            site.environment.update(HOME="/tmp/home", TMPDIR="/tmp")
            del site.environment["XDG_CACHE_HOME"]
            if not (shared / "parts.tiles").exists():
                site.record("convert", "A.npy", "-o", "parts.tiles", "--grid", "3x2")
            yield site
    except NoClusterError as reason:
        pytest.skip(f"no virtual cluster: {reason}")


def on_one_host(site: Three, name: str, *words: object) -> list[str]:
    """What these words make on the first host; run once, however many worlds ask."""
    key = (name, *map(str, words))
    if key not in _ALONE:
        alone = site.folder / "one-host"
        alone.write_text(f"node1:{RANKS}\n")
        output = f"{name}-alone.{JOBS[name].ending}"
        record = site.record(*words, "-o", output, "--hosts", alone)
        assert {place["host"] for place in record["placement"]} == {"node1"}
        _ALONE[key] = site.digest(output)
    return _ALONE[key]


@pytest.mark.parametrize("name", JOBS)
def test_three_hosts_make_the_bits_of_one(three: Three, name: str) -> None:
    job = JOBS[name]
    ranks = 4 if "-n" in job.how else RANKS
    output = f"{name}.{job.ending}"
    spread = ("--place", "node") if ranks < RANKS else ()
    record = three.record(*job.what, *job.how, "-o", output, *spread)
    turns = [f"node{1 + rank % HOSTS}" for rank in range(ranks)]
    dealt = turns if spread else sorted(turns)
    assert [place["host"] for place in record["placement"]] == dealt
    assert [dealt[place["node"]] for place in record["placement"]] == dealt
    assert len({place["node"] for place in record["placement"]}) == HOSTS
    made = three.digest(output)
    assert made == on_one_host(three, name, *job.what, *job.how)
    if job.same:
        assert made == on_one_host(three, name, *job.what, "-n", 1)


@pytest.mark.parametrize("name", ["randomized", "jacobi", "replicated", "summa"])
def test_where_neighbours_are_changes_no_bit(three: Three, name: str) -> None:
    """Ranks that share a node are not next to each other; sums are still taken in the order of ranks."""
    job = JOBS[name]
    what = ["L.npy" if word == "A.npy" else "M.npy" if word == "B.npy" else word for word in job.what]
    for place in ("core", "node"):
        three.record(*what, "--algorithm", name, "-o", f"{name}-{place}.{job.ending}", "--place", place)
    assert three.digest(f"{name}-node.{job.ending}") == three.digest(f"{name}-core.{job.ending}")


_ECHO = """import socket, sys, time
if sys.argv[1:]:
    with socket.create_connection((sys.argv[1], 5000)) as there:
        begin = time.perf_counter()
        there.sendall(b'.')
        assert there.recv(1) == b'.'
        print(time.perf_counter() - begin)
else:
    with socket.create_server(('', 5000)) as door:
        print('ready', flush=True)
        there = door.accept()[0]
        there.sendall(there.recv(1))
"""


def test_the_hosts_are_what_they_are_said_to_be(three: Three) -> None:
    """Files in /tmp and the home are a host's own; messages take their time; the slow host is held back."""
    first, *_, last = three.made.hosts
    mine = three.made.run(["sh", "-c", "touch /tmp/mine ~/mine"], three.folder, three.environment)
    assert mine.returncode == 0, mine.stderr
    look = [three.made.launcher, last.name, f"ls /tmp/mine ~/mine {three.folder}/A.npy"]
    found = three.made.run(look, three.folder, three.environment)
    assert found.stdout.split() == [f"{three.folder}/A.npy"], found.stderr
    server = subprocess.Popen(
        last.command([sys.executable, "-c", _ECHO], Path("/")), stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    asked = three.made.run([sys.executable, "-c", _ECHO, last.name], Path("/"), three.environment)
    server.communicate(timeout=60)
    assert first.slow is None
    if last.slow is not None:
        assert float(asked.stdout) > 2 * DELAY
        before = last.slow.held_back
        busy = "import time\nwhile time.process_time() < 0.1: pass"
        for _ in range(20):  # where other programs hold it back as well, it may not look busy
            there = last.command([sys.executable, "-c", busy], Path("/"))
            assert subprocess.run(there, check=False).returncode == 0
            if last.slow.held_back > before:
                break
        assert last.slow.held_back > before


def test_side_files_lie_in_the_folder_they_were_named_in(three: Three) -> None:
    """A timeline, the record; samples of `measure file`, which go again; nothing anywhere else."""
    three.record(*TURN, "--algorithm", "swap", "-o", "S.npy", "--trace", "t.json")
    traced = json.loads((three.folder / "t.json").read_text())
    assert {event["pid"] for event in traced["traceEvents"]} >= set(range(RANKS))
    before = set(three.folder.iterdir())
    few = ("--block", "64K", "--blocks-per-rank", 2, "--io", "positioned", "--launches", 1, "--runs", 1)
    words = ("measure", "file", "-n", RANKS, *few, "--no-store", "--hosts", three.hosts)
    command = [sys.executable, "-m", "tilewise", *map(str, words)]
    done = three.made.run(command, three.folder, three.environment)
    assert done.returncode == 0, done.stderr
    assert set(three.folder.iterdir()) == before
    done = three.made.run([*command, "--folder", "/tmp"], three.folder, three.environment)
    assert done.returncode in (1, 2) and "on node2" in done.stderr, done.stderr
    for host in three.made.hosts:
        there = three.made.run([three.made.launcher, host.name, "ls -A /tmp"], Path("/"), three.environment)
        assert not [name for name in there.stdout.split() if "measure" in name]
