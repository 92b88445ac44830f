"""`tilewise doctor`: what is installed, which MPI and BLAS, and what will go wrong."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from tilewise import __version__
from tilewise.base.errors import TilewiseError
from tilewise.base.memory import total_memory
from tilewise.base.units import bytes_text, plural
from tilewise.cli import doctor_devices, doctor_start
from tilewise.cli.doctor_start import Finding
from tilewise.cli.parse import parse
from tilewise.lab.report.render.terminal import Screen, show
from tilewise.launch import environment, launcher
from tilewise.launch.constants import describe
from tilewise.launch.join import Join
from tilewise.machine import facts as machine
from tilewise.machine import profile

_LABEL = len("BLAS kernel")


def request() -> bool:
    """Check the installation. The exit code is 0 if jobs can run here, else 1.

    Examples:
        tilewise doctor
            What to look at first when a job does not start.
    """
    return True


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    if parse("doctor", request, words) is None:
        return 0
    failed = False
    for finding in findings():
        failed |= finding.verdict == "FAIL"
        mark = "" if finding.verdict == "ok" else f"{finding.verdict}: "
        advice = [("", f"  try: {finding.advice}")] if finding.advice else []
        _say((finding.label, f"{mark}{finding.text}"), *advice)
    print()
    _say(("verdict", "jobs cannot run here" if failed else "jobs can run here"))
    return 1 if failed else 0


def _say(*rows: tuple[str, str]) -> None:
    """Shows rows as soon as they are known."""
    screen = Screen()
    screen.pairs(rows, _LABEL)
    show(screen)


def findings() -> Iterator[Finding]:
    """Every finding, in the order it is shown; none of them raises."""
    yield Finding("tilewise", f"{__version__}, Python {platform.python_version()} at {sys.executable}")
    facts = machine.gather()
    yield from _machine(facts)
    yield from (Finding("BLAS", warning, "note") for warning in environment.blas_warnings(os.environ, facts))
    yield _cache()
    yield _measured(facts)
    try:
        worker = launcher.find_worker()
    except TilewiseError as error:
        yield Finding("worker", error.message, "FAIL", "pip install --force-reinstall tilewise")
        return
    yield from _worker(worker)
    yield from doctor_start.launcher_of(worker)
    yield from doctor_devices.findings(worker.path)


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
        "a container needs --shm-size=2g or more for --exchange shared and for MPI within a node"
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
    if os.access(above, os.W_OK):
        return Finding("cache", folder)
    return Finding(
        "cache", f"{folder} cannot be written, so nothing measured is stored", "note", "XDG_CACHE_HOME"
    )


def _measured(facts: machine.Facts) -> Finding:
    """When the kinds of `tilewise measure` were stored for this machine."""
    known = profile.load().measured.get(profile.host_key(facts.host, facts.cpu))
    if known is None:
        return Finding("measured", "no measurement of this machine is stored", advice="tilewise measure")
    return Finding("measured", ", ".join(f"{kind} {time}" for kind, time in known.times.items()))


def _worker(worker: launcher.Worker) -> Iterator[Finding]:
    yield Finding("worker", worker.path)
    described, last = describe(worker.path)
    if described is None:
        reason = f": {last}" if last else ""
        yield Finding("worker", f"it cannot start{reason}", "FAIL", "pip install --force-reinstall tilewise")
        return
    facts = {
        **worker.build,
        **{k: v for k, v in described.get("build", described).items() if isinstance(v, str)},
    }
    if not worker.build:
        yield Finding(
            "build", "build.json is missing next to the worker; the mpich package is assumed", "note"
        )
    for key, label in (
        ("mpi_library", "MPI"),
        ("mpi_file", "MPI library"),
        ("blas", "BLAS"),
        ("blas_kernel", "BLAS kernel"),
        ("compiler", "compiler"),
    ):
        if facts.get(key):
            yield Finding(label, facts[key])
    if "backends" in described:
        yield _kernels(described["backends"])


def _kernels(rows: list[dict[str, Any]]) -> Finding:
    """The worker's table of backends."""
    able = {row["name"]: row["used"] for row in rows if row["supported"]}
    text = ", ".join(name + (" (used)" if used else "") for name, used in able.items())
    if lacking := [row["name"] for row in rows if not row["supported"]]:
        text += f"; not {', '.join(lacking)}"
    if any(able.values()):
        return Finding("kernels", text)
    forced = os.environ.get("TILEWISE_KERNELS", "")
    return Finding("kernels", f"{text}, and TILEWISE_KERNELS is {forced}", "FAIL", "unset TILEWISE_KERNELS")
