"""Simulated ranks beside real ones, phase by phase: on virtual hosts, and on this machine.

What is simulated is the real cluster as `tilewise measure ping` finds it there; the simulator times what
ranks compute. Sides take turns. Ranks that share a core compute in turns, too, which the simulator does not
know: on links of 100 Mbit/s that hardly matters.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from harness import BIN, ROOT, NotRun, Row, Setting, alternate, clean_environment, compare, run, say
from tilewise.launch.worker import ALGORITHMS, YIELDING
from tilewise.machine.cluster import Network, measured_network

HOSTS, CORES = 3, 2
# Where many send to one host its link's queue overflows. Reno lives with that; BBR, which some machines have
# for what leaves them, loses a quarter of the link.
QUEUE, CONGESTION = 0.02, "reno"
WITHIN = 0.2
PHASES = ("compute", "exchange")
PING = (
    "--pairs",
    1,
    "--exchange",
    "blocking",
    "--pattern",
    "roundtrip",
    "--collectives",
    "none",
    "--no-matrix",
)
SIZES = ("--bytes", "1,64,1KiB,16KiB,256KiB,1MiB,4MiB", "--launches", 3)
Record = dict[str, Any]
Run = Callable[..., str]


class Job(NamedTuple):
    """A command that spends its time between ranks: what it is called, its words, and how many ranks."""

    name: str
    words: tuple[object, ...]
    ranks: int


def _square(command: str, n: int, *words: object) -> tuple[object, ...]:
    return (command, *[f"random:{n}x{n}"] * (2 if command == "multiply" else 1), *words)


def _jobs(n: int, turned: int, ranks: int, *stencil: object) -> dict[str, Job]:
    """The same five on hosts and here: products of `n`, a transposition of `turned`, sweeps."""
    overlap, nonblocking = ("--exchange", "overlap"), ("--exchange", "nonblocking")
    summa = _square("multiply", n, "--algorithm", "summa", *overlap)
    cannon = _square("multiply", n, "--algorithm", "cannon", *overlap)
    turn = _square("transpose", turned, "--algorithm", "swap", *nonblocking)
    jobs = {
        "summa": Job(f"product {n}², SUMMA", summa, ranks),
        "cannon": Job(f"product {n}², Cannon", cannon, 4),
        "transpose": Job(f"transposition {turned}²", turn, ranks),
        "stencil": Job(
            f"{stencil[1]} sweeps over {stencil[0]}", ("stencil", *_swept(*stencil), *nonblocking), ranks
        ),
    }
    return {name: job for name, job in jobs.items() if job.ranks <= ranks}


def _swept(shape: object, steps: object) -> tuple[object, ...]:
    return (f"random:{shape}", "--steps", steps, "--decomposition", "rows")


class Side(NamedTuple):
    """Real ranks: how to run a command there, the flags that say where, and what the cluster is called."""

    run: Run
    where: tuple[object, ...]
    simulated: str
    ranks: str


def hosts(setting: Setting) -> list[Row]:
    """Three virtual hosts of two ranks each, with links of 1 Gbit/s."""
    return _hosts(setting, "hosts", "1gbit", steps=50)


def slow_hosts(setting: Setting) -> list[Row]:
    """The same with links of 100 Mbit/s, which decide, however busy the processors are."""
    return _hosts(setting, "slow-hosts", "100mbit", steps=10)


def _hosts(setting: Setting, name: str, rate: str, steps: int) -> list[Row]:
    with on_hosts(setting, name, rate) as side:
        jobs = _jobs(256 if setting.quick else 768, 1024 if setting.quick else 3072, 6, "96x65536", steps)
        n = 96 if setting.quick else 384
        jobs["svd"] = Job(f"decomposition of {n}²", _square("svd", n, "--algorithm", "jacobi"), 6)
        return _rows(setting, name, side, jobs)


def here(setting: Setting) -> list[Row]:
    """Two and four ranks of this machine, whose messages go through memory."""
    file = setting.work / "here.json"
    run([BIN / "tilewise", "measure", "ping", "--levels", "core", *PING, *SIZES, "--json", file, "-q"])
    setting.facts["network_here"] = _told(measured_network(str(file), 1))
    rows = []
    for ranks in (2, 4):
        side = Side(_here, ("-t", 1), f"1x{ranks}:{file}", f"{ranks} ranks here")
        jobs = _jobs(512 if setting.quick else 3072, 1024 if setting.quick else 6144, ranks, "4096x4096", 50)
        rows += _rows(setting, f"here-{ranks}", side, jobs)
    return rows


def _here(*words: object) -> str:
    return run([BIN / "tilewise", *words])


@contextmanager
def on_hosts(setting: Setting, name: str, rate: str, processors: float | None = None) -> Iterator[Side]:
    """The hosts, once they have been measured; each has the time of so many `processors`, if not of all."""
    sys.path.append(str(ROOT / "tests" / "cluster"))
    from cluster import NoClusterError, cluster

    try:
        slowed = {} if processors is None else {f"node{host + 1}": processors for host in range(HOSTS)}
        with cluster(HOSTS, rate, queue=QUEUE, congestion=CONGESTION, slowed=slowed) as made:
            ssh = {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(made.launcher)}
            told = clean_environment(
                UCX_TLS="tcp,self", **ssh
            )  # what shares this machine's memory is no network
            where = ("--hosts", made.hostfile(slots=CORES))

            def there(*words: object, **more: str) -> str:
                done = made.run([BIN / "tilewise", *words], setting.work, {**told, **more}, timeout=400)
                if done.returncode != 0:
                    raise NotRun(f"tilewise {words[0]} ended with {done.returncode}: {done.stderr[-200:]}")
                return done.stdout

            def shared(*words: object, **more: str) -> str:  # hosts think that they have cores of their own
                return there(*words, **YIELDING, **ALGORITHMS, **more)

            file = setting.work / f"{name}.json"
            there("measure", "ping", "--levels", "core,node", *PING, *SIZES, *where, "--json", file, "-q")
            setting.facts[f"network_of_{name}"] = _told(measured_network(str(file), HOSTS))
            yield Side(shared, (*where, "-t", 1), f"{HOSTS}x{CORES}:{file}", f"{HOSTS}×{CORES} ranks, {rate}")
    except NoClusterError as reason:
        raise NotRun(f"no virtual cluster: {reason}") from None


def _told(network: Network) -> dict[str, float]:
    return {
        f"{name}_{what}": getattr(getattr(network, name), what)
        for name in ("between", "within")
        for what in ("bandwidth", "latency")
    }


def _rows(setting: Setting, name: str, side: Side, jobs: dict[str, Job]) -> list[Row]:
    rows = []
    for short, job in jobs.items():
        say(f"  {side.ranks}: {job.name}")
        try:
            rows += _job(setting, f"simulated-{name}-{short}", side, job)
        except NotRun as reason:
            rows.append(
                Row(f"simulated-{name}-{short}", f"{side.ranks}, {job.name}", "", 0, note=str(reason))
            )
    return rows


def _job(setting: Setting, name: str, side: Side, job: Job) -> list[Row]:
    """A row for each phase and one for both: simulated seconds over real ones."""
    record = setting.work / "record.json"
    svd = job.words[0] == "svd"
    again = () if svd else ("--warmup", 1, "--repeat", 3)
    output = setting.work / ("factors" if svd else "result.npy")
    words = (*job.words, *again, "--verify", "off", "-n", job.ranks, "-o", output, "--force", "-q")
    seen: dict[str, list[tuple[float, float]]] = {"simulated": [], "real": []}

    def measured(kind: str) -> list[float]:
        where = ("--simulate", side.simulated) if kind == "simulated" else side.where
        (_here if kind == "simulated" else side.run)(*words, *where, "--json", record)
        found = json.loads(record.read_text())
        samples = found["samples"] or [{phase: found["seconds"][phase]["max"] for phase in PHASES}]
        both = [(sample["compute"], sample["exchange"]) for sample in samples]
        seen[kind].append((statistics.median(b[0] for b in both), statistics.median(b[1] for b in both)))
        return [sum(each) for each in both]

    total = alternate(
        {"simulated": lambda: measured("simulated"), "real": lambda: measured("real")}, setting.rounds
    )
    figures = {
        phase: {k: [v[i] for v in values] for k, values in seen.items()} for i, phase in enumerate(PHASES)
    }
    crowded = job.ranks > len(os.sched_getaffinity(0))
    rows = []
    for phase, samples in {**figures, "in all": total}.items():
        bound = "" if phase == "compute" and crowded else "within"
        row = Row(f"{name}-{phase.replace(' ', '-')}", f"{side.ranks}, {job.name}, {phase}", bound, WITHIN)
        row.samples = samples
        row.note = ", ".join(
            f"{kind} {1e3 * statistics.median(each):.3g} ms" for kind, each in samples.items()
        )
        rows.append(compare(row, samples["simulated"], samples["real"]) if min(samples["real"]) > 0 else row)
    return rows
