"""`tilewise doctor`: what is installed, which MPI and BLAS, and what will go wrong.

Findings are shown as they come: this machine, the worker, the launcher and whether it starts ranks, on
which nodes and by which MPI type, and graphics processors.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from tilewise import __version__
from tilewise.base.declare import Flags
from tilewise.base.errors import TilewiseError
from tilewise.base.memory import total_memory
from tilewise.base.units import bytes_text, listing, plural
from tilewise.cli.parse import parse
from tilewise.lab.measurement import device_trial
from tilewise.lab.measurement.result import ON_DEVICE
from tilewise.lab.report.terminal import Screen, show
from tilewise.launch import diagnose, environment, job, join, launcher, signals, slurm
from tilewise.launch.cleanup import Guardian
from tilewise.launch.constants import GraphicsDevice, describe, devices, no_graphics
from tilewise.launch.join import Join
from tilewise.launch.supervise import Supervisor
from tilewise.machine import allocation, profile
from tilewise.machine import facts as machine

_LABEL = len("BLAS kernel")
_PATIENCE = 60.0  # seconds for ranks to start and to leave
_MOST = 64  # ranks that are started for a look


class DoctorFlags(Flags, frozen=True, kw_only=True):
    """Check the installation. The exit code is 0 if jobs can run here, else 1.

    Examples:
        tilewise doctor
            Run this first if a job does not start.
    """


class Finding(NamedTuple):
    """One line: `verdict` is `ok`, `note` or `FAIL`; `advice` says what to do."""

    label: str
    text: str
    verdict: str = "ok"
    advice: str = ""


def main(words: list[str], joined: Join | None) -> int:
    """Run the command; return its exit code."""
    parse("doctor", DoctorFlags, words)
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
    yield from _launcher(worker)
    yield from _graphics(worker.path)


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
    """Times at which the kinds of `tilewise measure` were stored for this machine."""
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


def _launcher(worker: launcher.Worker) -> Iterator[Finding]:
    """The launcher, and whether it starts ranks: in a Slurm allocation, one on each of its nodes."""
    ours = launcher.mpiexec_path(worker.build)
    kind = "the mpich package" if worker.mpi == "wheel" else "the site's MPI"
    if ours is None:
        yield Finding(
            "mpiexec",
            f"the launcher of {kind} is missing; only one rank can run",
            "FAIL",
            "pip install mpich",
        )
        return
    yield Finding("mpiexec", f"{ours} ({'Slurm' if os.path.basename(ours) == 'srun' else kind})")
    onpath = shutil.which("mpiexec")
    if onpath is not None and os.path.realpath(onpath) != os.path.realpath(ours):
        theirs, mine = launcher.kind_of(onpath), launcher.kind_of(ours)
        foreign = mine not in (theirs, launcher.SRUN)
        yield Finding(
            "PATH",
            f"mpiexec there is {onpath}"
            + (f" of another MPI ({theirs.name})" if foreign else ", the same kind"),
            "note" if foreign else "ok",
            "tilewise CMD -n N starts the right one" if foreign else "",
        )
    granted = allocation.granted(os.environ)
    if granted is None:
        yield _ranks(worker, [])
        return
    yield Finding("Slurm", f"{granted.text()}{', in a step of it' if join.in_step(os.environ) else ''}")
    yield _mpi_type(worker)
    nodes = [node.name for node in granted.nodes[:_MOST]]
    yield _ranks(worker, nodes if len(nodes) > 1 else nodes * 2)


def _mpi_type(worker: launcher.Worker) -> Finding:
    """The MPI type of a step that names none, and whether the worker's MPI supports it."""
    told = os.environ.get("SLURM_MPI_TYPE", "")
    default = slurm.mpi_default()
    source = "MpiDefault" if not told else "this step's" if join.in_step(os.environ) else "SLURM_MPI_TYPE"
    kind, spoken = told or default or "not known", slurm.SPOKEN.get(worker.family, ())
    text = f"{kind} ({source}); tilewise … -n N selects the right one"
    offered = slurm.mpi_types("srun")
    able = [name for name in offered if name in spoken]
    if not spoken or kind in spoken:
        return Finding("MPI type", text)
    name = launcher.NAMES[worker.family]
    if able or not offered:
        return Finding(
            "MPI type",
            f"{text}, a plain srun tilewise … would fail: {name} does not support {kind}",
            "note",
            f"srun --mpi={(able or spoken)[0]} tilewise …, or SLURM_MPI_TYPE={(able or spoken)[0]}",
        )
    return Finding(
        "MPI type",
        f"{text}; srun tilewise … would fail: {name} needs {spoken[0]}, Slurm offers {listing(offered)}",
        "note",
        "tilewise … -n N, not srun tilewise …",
    )


def _ranks(worker: launcher.Worker, nodes: list[str]) -> Finding:
    """Starts a rank on each of `nodes`, or two here, and ends them: that tests what the lines above say."""
    ranks = max(2, len(nodes))
    variant = msgspec.structs.replace(job.quit_job().variant, ranks=ranks, grid=(1, ranks))
    nothing = job.Measure(stop=job.Stop(), points=[])
    looked = msgspec.structs.replace(job.quit_job(), command="measure", variant=variant, measure=nothing)
    label = "two ranks" if ranks == 2 else f"{ranks} ranks"
    guardian = Guardian([], "the trial was killed")
    try:
        with signals.watched() as caught:
            start = launcher.own_start(worker, variant, nodes, "", oversubscribed=True)
            outcome = Supervisor(start, worker.path, caught, timeout=_PATIENCE).run(job.encode(looked))
            wrong = diagnose.error_of(outcome, _PATIENCE, start)
    except TilewiseError as error:
        return Finding(label, error.message, "FAIL", error.advice)
    finally:
        guardian.dismiss()
    if wrong is not None:
        return Finding(label, f"did not start: {wrong.message}", "FAIL", wrong.advice)
    assert outcome.started is not None
    there = list(dict.fromkeys(rank.host for rank in outcome.started.ranks))
    hosts = f"on {listing(there)} " if nodes else ""
    return Finding(label, f"{hosts}started and ended within {outcome.wall:.2f} s")


def _graphics(worker: str) -> Iterator[Finding]:
    """Everything that --buffer depends on. One line where there is no device, as nothing is wrong then."""
    found = devices(worker)
    if why := no_graphics(found):
        yield Finding("devices", f"{why}, so measure --buffer only supports malloc")
        return
    played = " simulated by the driver of the tests" if found.simulated else ""
    driver = "" if found.simulated else module_version()
    count = plural(len(found.devices), "graphics processor")
    yield Finding("devices", f"{driver}CUDA {found.driver}, {count}{played}")
    for number, device in enumerate(found.devices):
        yield Finding(f"device {number}", _device(device))
    yield _messages()


def module_version(path: str = "/proc/driver/nvidia/version") -> str:
    """`driver 550.54.15, ` as the kernel's module says; empty where it does not."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(r"Kernel Module(?: for \S+)?\s+(\d[\d.]*)", file.read())
    except OSError:
        return ""
    return f"driver {found[1]}, " if found else ""


def _device(device: GraphicsDevice) -> str:
    said = [device.name, bytes_text(device.memory), f"compute {device.compute}"]
    said += [
        what if there else f"no {what}"
        for what, there in (
            ("unified addressing", device.unified_addressing),
            ("managed memory", device.managed),
            ("page migration", device.migrates),
        )
    ]
    peers = ", ".join(map(str, device.peers))
    return ", ".join([*said, f"peer access to {peers}" if peers else "no peer access"])


def _messages() -> Finding:
    """MPI's own word on addresses of devices, and the outcome of a trial with them."""
    said = {"yes": "MPI says it takes their addresses", "no": "MPI says it takes no addresses of theirs"}
    try:
        with signals.watched() as caught:
            asked = said.get(
                device_trial.says("", caught), "MPI does not report if it accepts their addresses"
            )
            answers = {kind: device_trial.tried(device_trial.here(), kind, "", caught) for kind in ON_DEVICE}
    except TilewiseError as error:
        return Finding("messages", f"no trial was possible: {error.message}", "note", error.advice)
    tried = "; ".join(
        f"from {kind} memory " + ("they arrive" if one.takes else f"they do not arrive: {one.why}")
        for kind, one in answers.items()
    )
    return Finding("messages", f"{asked}; tried, {tried}")
