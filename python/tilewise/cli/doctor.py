"""`tilewise doctor`: what is installed, which MPI and BLAS, and what will go wrong."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from tilewise import __version__
from tilewise.cli.parse import parse
from tilewise.errors import TilewiseError
from tilewise.launch import diagnose, environment, job, launcher, signals
from tilewise.launch.describe import describe, no_graphics
from tilewise.launch.join import Join
from tilewise.launch.supervise import Supervisor
from tilewise.machine import facts as machine
from tilewise.machine import profile
from tilewise.machine.memory import total_memory
from tilewise.units import bytes_text, plural

_PATIENCE = 60.0  # seconds for two ranks to start and to leave


class Finding(NamedTuple):
    """One line: `verdict` is `ok`, `note` or `FAIL`; `advice` says what to do."""

    label: str
    text: str
    verdict: str = "ok"
    advice: str = ""


def request() -> bool:
    """Say what is installed and what will go wrong; ends with 0 if jobs can run here, else with 1."""
    return True


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    if parse("doctor", request, words) is None:
        return 0
    failed = False
    for finding in findings():
        failed |= finding.verdict == "FAIL"
        mark = "" if finding.verdict == "ok" else f"{finding.verdict}: "
        print(f"{finding.label:<13}{mark}{finding.text}")
        if finding.advice:
            print(f"{'':<13}  try: {finding.advice}")
    print("\nverdict      " + ("jobs cannot run here" if failed else "jobs can run here"))
    return 1 if failed else 0


def findings() -> Iterator[Finding]:
    """Every finding, in the order it is shown; none of them raises."""
    yield Finding("tilewise", f"{__version__}, Python {platform.python_version()} at {sys.executable}")
    facts = machine.gather()
    yield from _machine(facts)
    yield from (Finding("BLAS", warning, "note") for warning in environment.blas_warnings(os.environ, facts))
    yield _cache()
    yield _measured(facts)
    try:
        found = launcher.find_worker()
    except TilewiseError as error:
        yield Finding("worker", error.message, "FAIL", "pip install --force-reinstall tilewise")
        return
    yield from _worker(found)
    yield from _launcher(found)


def _machine(facts: machine.Facts) -> Iterator[Finding]:
    yield Finding(
        "host", f"{facts.host}, Linux {platform.release()}" if sys.platform == "linux" else facts.host
    )
    domains = plural(facts.numa, "memory domain")
    yield Finding(
        "processor", f"{facts.cpu}: {plural(facts.cores, 'core')}, {facts.cpus} processors, {domains}"
    )
    yield Finding("memory", f"{bytes_text(facts.memory_available)} available of {bytes_text(total_memory())}")
    small = facts.shared_memory < 64 << 20
    yield Finding(
        "/dev/shm",
        f"{bytes_text(facts.shared_memory)} free",
        "note" if small else "ok",
        "a container wants --shm-size=2g or more for --exchange shared and for MPI within a node"
        if small
        else "",
    )
    temporary = tempfile.gettempdir()
    room = shutil.disk_usage(temporary).free
    yield Finding("temporary", f"{temporary}, {bytes_text(room)} free", "note" if room < 1 << 30 else "ok")


def _cache() -> Finding:
    folder = profile.folder()
    above = folder
    while not os.path.exists(above):
        above = os.path.dirname(above)
    peaks = plural(len(profile.load().peaks), "stored peak")
    if os.access(above, os.W_OK):
        return Finding("cache", f"{folder}, {peaks}")
    return Finding(
        "cache", f"{folder} cannot be written, so that measured peaks are not kept", "note", "XDG_CACHE_HOME"
    )


def _measured(facts: machine.Facts) -> Finding:
    """When the kinds of `tilewise measure` were stored for this machine."""
    known = profile.load().measured.get(profile.host_key(facts.host, facts.cpu))
    if known is None:
        return Finding("measured", "nothing is stored of this machine", advice="tilewise measure")
    return Finding("measured", ", ".join(f"{kind} {time}" for kind, time in known.times.items()))


def _worker(found: launcher.Worker) -> Iterator[Finding]:
    yield Finding("worker", found.path)
    described, last = describe(found.path)
    if described is None:
        reason = f": {last}" if last else ""
        yield Finding(
            "worker", f"it cannot be started{reason}", "FAIL", "pip install --force-reinstall tilewise"
        )
        return
    facts = {
        **found.build,
        **{k: v for k, v in described.get("build", described).items() if isinstance(v, str)},
    }
    if not found.build:
        yield Finding(
            "build", "build.json is missing beside the worker; the mpich package is assumed", "note"
        )
    for key, label in (
        ("mpi_library", "MPI"),
        ("blas", "BLAS"),
        ("blas_kernel", "BLAS kernel"),
        ("compiler", "compiler"),
    ):
        if facts.get(key):
            yield Finding(label, facts[key])
    if "cuda" in described:
        yield _graphics(described)


def _graphics(described: dict[str, Any]) -> Finding:
    """Whether `measure file` can have buffers on graphics processors."""
    if why := no_graphics(described):
        return Finding("CUDA", f"{why}, so that measure file --buffer has malloc only")
    return Finding("CUDA", f"{described['cuda']}, {plural(int(described['gpus']), 'graphics processor')}")


def _launcher(found: launcher.Worker) -> Iterator[Finding]:
    ours = launcher.mpiexec_path(found.build)
    kind = "the mpich package" if found.mpi == "wheel" else "the site's MPI"
    if ours is None:
        yield Finding(
            "mpiexec", f"that of {kind} is missing; only one rank can run", "FAIL", "pip install mpich"
        )
        return
    yield Finding("mpiexec", f"{ours} ({kind})")
    onpath = shutil.which("mpiexec")
    if onpath is not None and os.path.realpath(onpath) != os.path.realpath(ours):
        theirs, mine = launcher.flavour(onpath), launcher.flavour(ours)
        foreign = theirs != mine
        yield Finding(
            "PATH",
            f"mpiexec there is {onpath}" + (f" of another MPI ({theirs})" if foreign else ", the same kind"),
            "note" if foreign else "ok",
            "tilewise CMD -n N starts the right one by itself" if foreign else "",
        )
    yield _two_ranks(found)


def _two_ranks(found: launcher.Worker) -> Finding:
    """Starts two ranks and sends them home again: what is promised above, proved."""
    variant = job.Variant(
        algorithm="summa",
        exchange="blocking",
        read="positioned",
        write="positioned",
        grid=(1, 2),
        ranks=2,
        threads=1,
    )
    try:
        with signals.watched() as caught:
            start = launcher.own_start(found, variant, "", "", oversubscribed=True)
            outcome = Supervisor(start, found.path, caught, timeout=_PATIENCE).run(job.encode(job.quit_job()))
    except TilewiseError as error:
        return Finding("two ranks", error.message, "FAIL", error.advice)
    bad = outcome.returncode != 0 or outcome.timed_out or outcome.failed is not None
    wrong = diagnose.error_of(outcome, _PATIENCE) if bad else None
    if wrong is not None:
        return Finding("two ranks", f"did not start: {wrong.message}", "FAIL", wrong.advice)
    return Finding("two ranks", f"started and ended in {outcome.wall:.2f} s")
