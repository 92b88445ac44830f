"""Jobs over two hosts, two ranks on each: every exchange, where ranks sit, and how they end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))

from account import make_inputs, surroundings
from cluster import Cluster, NoClusterError, cluster
from stopwatch import Stopwatch, within

ROOT = Path(__file__).resolve().parents[2]
OPEN_MPI = Path(os.environ.get("TILEWISE_OPENMPI_WORKER", ROOT / "build" / "openmpi" / "tilewise-worker"))
LINK = 125e6  # bytes per second of a link
BURST = 1 << 17  # bytes that may pass at once: the shaper's, on both ends, and what is in flight

Done = subprocess.CompletedProcess[str]


class Site:
    """What a user of a cluster has: hosts, a file that lists them, a way to start things, and a folder."""

    def __init__(self, made: Cluster, folder: Path) -> None:
        self.made = made
        self.folder = folder
        self.hosts = made.hostfile(slots=2)
        self.environment = {
            **surroundings(folder),
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": str(made.launcher),
            "OMPI_MCA_plm_rsh_agent": str(made.launcher),
        }

    def words(self, *words: object) -> list[str]:
        """`tilewise words…` on four ranks over the hosts, where the words do not say otherwise."""
        spread = () if "--hosts" in words else ("--hosts", self.hosts)
        ranks = () if "-n" in words else ("-n", 4)
        return [sys.executable, "-m", "tilewise", *map(str, (*words, *ranks, *spread, "--force"))]

    def __call__(self, *words: object, fault: str = "") -> Done:
        """Runs them on the first host."""
        environment = {**self.environment, "TILEWISE_FAULT": fault} if fault else self.environment
        return self.made.run(self.words(*words), self.folder, environment, timeout=250)

    def record(self, *words: object) -> dict[str, Any]:
        """The record of a job that must end well, leaving nothing on any host."""
        result = self(*words, "--json", "-")
        assert result.returncode == 0, result.stderr
        assert self.left_after(2) == []
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def left_after(self, seconds: float) -> list[str]:
        """What is still on the hosts when nothing goes any more, or when the time is over."""
        watch = Stopwatch()
        while (left := self.made.left()) and watch.seconds < seconds:
            time.sleep(0.02)
        watch.stop()
        return left


@contextmanager
def two_hosts() -> Iterator[Cluster]:
    """Two hosts; where there can be none, or no worker, the tests are skipped with the reason."""
    from tilewise.launch import worker

    if worker.find() is None:
        pytest.skip("the worker is not built")
    try:
        with cluster(2) as made:
            yield made
    except NoClusterError as reason:
        pytest.skip(f"no virtual cluster: {reason}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two hosts; the folder has A.npy (67×53), B.npy (53×41) and what one rank makes of them."""
    with two_hosts() as made:
        folder = tmp_path_factory.mktemp("shared")
        make_inputs(folder)
        site = Site(made, folder)
        alone = (*STENCIL, "-o", "alone.npy", "-n", 1, "--kernel", "plain", "--exchange", "blocking")
        assert site(*alone).returncode == 0
        yield site


STENCIL = ("stencil", "A.npy", "--steps", 5, "--boundary", "periodic")
OVER_NODES = (
    "synchronous",
    "blocking",
    "nonblocking",
    "overlap",
    "collective",
    "one_sided_fence",
    "one_sided_lock",
)


def hosts_of(record: dict[str, Any]) -> list[str]:
    return [place["host"] for place in record["placement"]]


def one_message(result: Done, code: int) -> str:
    """Checks that it ended with `code`, and with one message and at most one line of advice."""
    assert result.returncode == code, result.stderr
    lines = result.stderr.splitlines()
    assert lines and lines[0].startswith("tilewise: ") and len(lines) <= 2, result.stderr
    assert all(line.startswith("  try: ") for line in lines[1:]), result.stderr
    return result.stderr


# ---- every exchange ------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", [*OVER_NODES, "persistent", "one_sided_pscw"])
def test_stencils_have_the_bits_of_one_rank(site: Site, exchange: str) -> None:
    record = site.record(*STENCIL, "-o", "S.npy", "--grid", "2x2", "--depth", 2, "--exchange", exchange)
    assert hosts_of(record) == ["node1", "node1", "node2", "node2"] and record["messages"] > 0
    assert (site.folder / "S.npy").read_bytes() == (site.folder / "alone.npy").read_bytes()


@pytest.mark.parametrize("exchange", [*OVER_NODES, "one_sided_pscw"])
def test_transpositions(site: Site, exchange: str) -> None:
    algorithm = "gather" if exchange in ("blocking", "one_sided_fence") else "swap"
    record = site.record(
        "transpose", "A.npy", "-o", "T.npy", "--algorithm", algorithm, "--exchange", exchange
    )
    assert record["bytes"]["exchanged"] > 0 and len(set(hosts_of(record))) == 2
    assert numpy.array_equal(numpy.load(site.folder / "T.npy"), numpy.load(site.folder / "A.npy").T)


@pytest.mark.parametrize(
    ("algorithm", "exchange"),
    [
        ("summa", "overlap"),
        ("summa", "collective"),
        ("summa", "one_sided_lock"),
        ("cannon", "persistent"),
        ("cannon", "synchronous"),
        ("replicated", "one_sided_fence"),
    ],
)
def test_products(site: Site, algorithm: str, exchange: str) -> None:
    how = ("--algorithm", algorithm, "--exchange", exchange, "--verify", "serial")
    record = site.record("multiply", "A.npy", "B.npy", "-o", "C.npy", *how)
    assert record["verification"]["passed"] is True and record["messages"] > 0
    product = numpy.load(site.folder / "A.npy") @ numpy.load(site.folder / "B.npy")
    assert numpy.allclose(numpy.load(site.folder / "C.npy"), product, rtol=0, atol=1e-12)


def test_conversions(site: Site) -> None:
    site.record("convert", "A.npy", "-o", "A.txt", "--verify", "fast")
    site.record("convert", "A.txt", "-o", "again.npy", "--io", "two_phase:collective")
    assert numpy.array_equal(numpy.load(site.folder / "again.npy"), numpy.load(site.folder / "A.npy"))


@pytest.mark.parametrize(
    "words",
    [
        ("multiply", "A.npy", "B.npy", "-o", "C.npy"),
        ("transpose", "A.npy", "-o", "C.npy"),
        (*STENCIL, "-o", "C.npy"),
    ],
)
def test_shared_memory_is_refused_between_hosts(site: Site, words: tuple[object, ...]) -> None:
    said = one_message(site(*words, "--exchange", "shared"), 2)
    assert "shared works within one node, not over 2" in said and "overlap" in said


# ---- where ranks sit -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "form", "expected"),
    [
        ("core", "{host}:2", [1, 1, 2, 2]),
        ("node", "{host}:2", [1, 2, 1, 2]),
        ("core", "{host}", [1, 1, 2, 2]),
        ("node", "{host} slots=1  # one of two", [1, 2, 1, 2]),
    ],
)
def test_places(site: Site, tmp_path: Path, place: str, form: str, expected: list[int]) -> None:
    listed = tmp_path / "hosts"
    listed.write_text("".join(form.format(host=host.name) + "\n" for host in site.made.hosts))
    record = site.record(*STENCIL, "-o", "S.npy", "--place", place, "--hosts", listed)
    assert hosts_of(record) == [f"node{number}" for number in expected]
    assert [expected[placed["node"]] for placed in record["placement"]] == expected
    assert len({placed["node"] for placed in record["placement"]}) == 2
    assert all(host.name in record["environment"]["launcher"] for host in site.made.hosts)


def test_a_launcher_of_the_users_hears_of_the_hosts(site: Site) -> None:
    mpiexec = Path(sys.executable).parent / "mpiexec"
    launcher = f"{mpiexec} -launcher ssh -launcher-exec {site.made.launcher}"
    record = site.record(*STENCIL, "-o", "S.npy", "--launcher", launcher)
    assert hosts_of(record) == ["node1", "node1", "node2", "node2"] and record["warnings"] == []
    record = site.record(*STENCIL, "-o", "S.npy", "--launcher", f"{launcher} -hosts node2")
    assert set(hosts_of(record)) == {"node2"}
    assert "4 on node2, instead of 2 on node1 and 2 on node2" in " ".join(record["warnings"])


# ---- the link ------------------------------------------------------------------------------------


def test_matrices_go_over_the_link(site: Site) -> None:
    """16 MiB on two hosts: half of each block crosses, 4 MiB there and 4 MiB back."""
    numpy.save(site.folder / "large.npy", numpy.arange(2.0**21).reshape(2048, 1024))
    how = ("--algorithm", "swap", "--exchange", "nonblocking", "-n", 2)
    record = site.record("transpose", "large.npy", "-o", "T.npy", *how)
    moved = record["bytes"]["exchanged_max_rank"]
    assert moved == 2**22
    assert record["seconds"]["exchange"]["max"] > (moved - BURST) / LINK


def test_messages_go_over_the_link(site: Site) -> None:
    """300 small messages there and back: none in less than 10 µs, as only shared memory has it."""
    steps = 300
    how = ("--steps", steps, "--depth", 1, "-n", 2, "--exchange", "blocking", "--verify", "off")
    record = site.record("stencil", "A.npy", "-o", "S.npy", *how)
    assert record["messages"] == 2 * steps
    assert record["seconds"]["exchange"]["max"] / steps > 10e-6


# ---- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["kill:3:compute", "kill:1:compute", "throw:3:exchange", "hang:2:compute"])
def test_a_rank_that_fails_ends_all(site: Site, fault: str) -> None:
    with within(12):
        result = site(*STENCIL, "-o", "F.npy", *(("--timeout", 3) if "hang" in fault else ()), fault=fault)
    said = one_message(result, 1)
    expected = {"kill": "rank ", "throw": "rank 3 on node2: told to fail", "hang": "--timeout"}
    assert expected[fault.partition(":")[0]] in said
    assert site.left_after(3) == []
    assert not list(site.folder.glob("*F.npy*"))


@pytest.mark.parametrize(("rank", "host"), [(0, "node1"), (3, "node2")])
def test_a_rank_that_is_stopped_is_found_on_every_host(site: Site, rank: int, host: str) -> None:
    """Its own host ends it: what is stopped does not hear that the front has closed its line."""
    fault = f"signal-{signal.SIGSTOP.value}:{rank}:compute"
    with within(12):
        said = one_message(site(*STENCIL, "-o", "F.npy", "--deadline", "4s", fault=fault), 1)
    assert f"rank {rank} (pid " in said and f" on {host}) " in said and "for 4 s, since " in said
    assert ("was stopped by a signal in compute" if rank == 0 else "did not answer, last in ") in said
    assert site.left_after(3) == []
    assert not list(site.folder.glob("*F.npy*"))


def ranks_on(site: Site, host: str) -> int:
    """How many ranks of the worker live there."""
    programs = [line.split() for line in site.made.left()]
    return sum(words[0] == f"{host}:" and words[1].endswith("/tilewise-worker") for words in programs)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_end_from_outside_reaches_all_hosts(site: Site, number: int) -> None:
    environment = {**site.environment, "TILEWISE_FAULT": "hang:3:compute"}
    child = site.made.start(site.words(*STENCIL, "-o", "F.npy"), site.folder, environment)
    deadline = time.monotonic() + 60
    while ranks_on(site, "node2") < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    assert ranks_on(site, "node1") == ranks_on(site, "node2") == 2
    site.made.interrupt(child, number)
    _, said = child.communicate(timeout=60)
    assert site.left_after(2) == []
    if number == signal.SIGINT:
        assert child.returncode == 130 and said.count("\n") == 1 and "interrupted by SIGINT" in said
    assert not list(site.folder.glob("*F.npy*"))


# ---- Open MPI ------------------------------------------------------------------------------------


@pytest.fixture
def open_mpi(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The same hosts for the worker on Open MPI."""
    if not os.access(OPEN_MPI, os.X_OK) or shutil.which("mpiexec.openmpi") is None:
        pytest.skip(f"Open MPI is not installed, or there is no worker on it at {OPEN_MPI}")
    monkeypatch.setitem(site.environment, "TILEWISE_WORKER", str(OPEN_MPI))
    return site


@pytest.mark.parametrize("place", ["core", "node"])
def test_open_mpi(open_mpi: Site, place: str) -> None:
    record = open_mpi.record(*STENCIL, "-o", "S.npy", "--exchange", "overlap", "--place", place)
    assert hosts_of(record) == [f"node{n}" for n in ([1, 2, 1, 2] if place == "node" else [1, 1, 2, 2])]
    assert "-x OPENBLAS_NUM_THREADS" in record["environment"]["launcher"]
    assert (open_mpi.folder / "S.npy").read_bytes() == (open_mpi.folder / "alone.npy").read_bytes()


def test_open_mpi_without_one_sided_messages(open_mpi: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 4 has none over TCP as it is; then the message says what to do, and that helps."""
    words = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "--exchange", "one_sided_fence")
    result = open_mpi(*words)
    if result.returncode != 0:
        assert "OMPI_MCA_osc=pt2pt" in one_message(result, 1)
        monkeypatch.setitem(open_mpi.environment, "OMPI_MCA_osc", "pt2pt")
        open_mpi.record(*words)


def test_a_rank_that_dies_under_open_mpi(open_mpi: Site) -> None:
    said = one_message(open_mpi(*STENCIL, "-o", "F.npy", fault="kill:3:compute"), 1)
    assert "rank 3" in said and "node2" in said
    assert open_mpi.left_after(3) == []
