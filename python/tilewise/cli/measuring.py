"""The road of a measurement: look, plan the launches, run them, make lines of them, keep them."""

from __future__ import annotations

import datetime
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import msgspec

import tilewise
from tilewise.cli import side_files
from tilewise.cli.measure_flags import MeasureFlags
from tilewise.cli.measure_show import tell
from tilewise.errors import TilewiseError, UsageError
from tilewise.files.target import check_folder
from tilewise.launch import assemble, environment, signals
from tilewise.launch.describe import describe, no_graphics
from tilewise.launch.launcher import find_worker
from tilewise.launch.record import Storage
from tilewise.machine import cpu, network, storage, topology
from tilewise.machine.facts import Facts, gather
from tilewise.measure import compute, files, lines, memory, messages, stored
from tilewise.measure.points import Launch
from tilewise.measure.request import Request
from tilewise.measure.result import Level, Measurement
from tilewise.measure.run import Ran, Runner
from tilewise.measure.scratch import Scratch
from tilewise.report.progress import ProgressBar


def measure(request: Request, flags: MeasureFlags, store: bool) -> int:
    """Measures what `request` asks for; returns the exit code. Raises TilewiseError for what goes wrong."""
    from tilewise.measure import fit, statistics  # noqa: F401 - a fault there must not cost a measurement

    begin = time.perf_counter()
    _check_outputs(flags)
    facts = gather()
    with signals.watched() as caught:
        found, chatter, failure = _measured(request, flags, facts, caught, begin)
        caught.check()
    whole = store and failure is None
    kept = stored.keep(found, facts) if whole else []
    if whole and not kept:
        found.warnings.append(
            "the profile cannot be written, so that nothing of this is kept; XDG_CACHE_HOME"
        )
    tell(found, flags, _stored_text(request, found, kept, store, failure), chatter)
    if failure is not None:
        raise failure
    return 0


def _check_outputs(flags: MeasureFlags) -> None:
    others: list[str] = []
    for flag, path in (("--json", flags.json), ("--html", flags.html)):
        if flag == "--html" and path == "-":
            raise UsageError("--html wants a file name, not -")
        side_files.check(flag, path, others, force=False)
        others += [path] if path else []
    for flag, folder in (("--plots", flags.plots), ("--tables", flags.tables)):
        if folder is None:
            continue
        real = os.path.realpath(folder)
        if not folder or (os.path.exists(real) and not os.path.isdir(real)):
            raise UsageError(f"{flag} wants a folder, not {folder!r}")
        if real in {os.path.realpath(other) for other in others}:
            raise UsageError(f"{flag} {folder} is also the file of another flag")
        above = real if os.path.isdir(real) else os.path.dirname(real)
        check_folder(above, f"{flag} {folder}")


def _measured(
    request: Request, flags: MeasureFlags, facts: Facts, caught: signals.Signals, begin: float
) -> tuple[Measurement, list[str], TilewiseError | None]:
    bar = ProgressBar(wanted=not flags.quiet, whole=True)
    with ExitStack() as stack:
        stack.callback(bar.close)
        samples, hosts = "", ""
        if "file" in request.kinds:
            with caught.hold():
                scratch = Scratch(request.folder, "--folder", files.sample_names(request, facts))
                stack.callback(scratch.remove)
            samples = scratch.path("sample")
        if "ping" in request.kinds and messages.hosts_known(request):
            with caught.hold():
                scratch = Scratch(tempfile.gettempdir(), "TMPDIR", ["hosts", "hosts.all"])
                stack.callback(scratch.remove)
            hosts = scratch.path("hosts")
        there, launches = _launches(request, facts, hosts, samples)
        runner = Runner(
            launches,
            request.launches,
            request.seed,
            caught,
            user_launcher=request.launcher,
            timeout=flags.timeout,
            fault=os.environ.get("TILEWISE_FAULT", ""),
            progress=bar.wanted,
            update=bar.update,
            say=_sayer(flags.verbose),
        )
        ran = runner.run()
    found = _measurement(request, facts, launches, ran, there)
    found.seconds = time.perf_counter() - begin
    return found, ran.chatter, ran.error


def _sayer(verbose: bool) -> Callable[[str], None]:
    return lambda line: print(line, file=sys.stderr, flush=True) if verbose else None


def _launches(request: Request, facts: Facts, hosts: str, samples: str) -> tuple[list[Level], list[Launch]]:
    """Everything that is asked for. Raises UsageError where that is nothing that can be run."""
    there: list[Level] = []
    found: list[Launch] = []
    if "ping" in request.kinds:
        known = topology.read()
        others = messages.Hosts(request, hosts)
        there = messages.levels(request, known, others)
        found += messages.launches(request, facts, known, others, there)
    if "file" in request.kinds:
        found += files.launches(request, facts, samples, _no_gpu(request))
    if "memory" in request.kinds:
        found += memory.launches(request, facts)
    elif {"ping", "file"} & set(request.kinds):
        found += memory.carriers(request, facts)
    if "compute" in request.kinds:
        found += compute.launches(request, facts)
    if request.kinds == ("ping",) and not any(one.level for one in found):
        raise UsageError(
            "no two ranks can talk here: " + "; ".join(dict.fromkeys(level.missing for level in there))
        )
    _require_something(
        request, [ask.skipped for one in found if one.kind in request.kinds for ask in one.asks]
    )
    return there, found


def _no_gpu(request: Request) -> str:
    """Why ranks on this host have no buffers of a graphics processor; empty where nobody wants to know."""
    if request.hosts or set(request.buffers or ()) <= {"malloc"}:
        return ""
    described, _ = describe(find_worker().path)  # a worker that cannot start will say so itself
    return no_graphics(described) if described is not None else ""


def _require_something(request: Request, skipped: Sequence[str]) -> None:
    if skipped and all(skipped):
        raise UsageError(f"nothing of {' and '.join(request.kinds)} can be run: {skipped[0]}")


def _measurement(
    request: Request, facts: Facts, launches: Sequence[Launch], ran: Ran, there: list[Level]
) -> Measurement:
    from tilewise.measure.fit import fit
    from tilewise.measure.statistics import summarise

    found = lines.lines_of(launches, ran, summarise)
    asked = [line.skipped for line in found if line.kind in (*request.kinds, "collective")]
    if ran.error is not None and all(asked):
        raise ran.error
    _require_something(request, asked)
    links = network.links()
    lines.add_shares(found, links)
    kept = [Storage(os.path.realpath(request.folder), storage.file_system(request.folder), "")]
    around = assemble.environment_of(
        ran.last.done,
        facts,
        bind=ran.last.final.bind,
        launcher=shlex.join(ran.last.start.command),
        storage=kept if "file" in request.kinds else [],
        variables=ran.last.start.environment,
        oversubscribed=ran.last.launch.oversubscribed,
    )
    told = msgspec.to_builtins(around)
    told["binding"] = _binding(launches, str(told.get("binding", "")))
    told["caches"] = {f"L{level}": size for level in (1, 2, 3) if (size := cpu.cache_bytes(level))}
    told["links"] = links
    told["virtual"] = "hypervisor" in facts.flags
    return Measurement(
        tilewise=tilewise.__version__,
        command=["tilewise", *sys.argv[1:]],
        time=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        seconds=0.0,
        kinds=list(request.kinds),
        launches=request.launches,
        seed=request.seed,
        environment=told,
        clock=ran.clock,
        levels=there,
        lines=found,
        matrices=lines.matrices_of(launches, ran),
        disturbances=ran.disturbances,
        model=fit(found),
        warnings=environment.blas_warnings(os.environ, facts) if "compute" in request.kinds else [],
    )


def _binding(launches: Sequence[Launch], usual: str) -> str:
    """Where ranks and threads of each kind are; `usual` is how ranks of jobs are bound."""
    places = {
        "ping": "messages: a core each" if any(one.cpus for one in launches) else "",
        "file": f"files: {usual or 'as jobs'}",
        "memory": "memory, arithmetic: all cores",
    }
    places["compute"] = places["memory"]
    kinds = dict.fromkeys(one.kind for one in launches if any(not ask.skipped for ask in one.asks))
    return "; ".join(dict.fromkeys(filter(None, (places.get(kind, "") for kind in kinds)))) or usual


def _stored_text(
    request: Request, found: Measurement, kept: list[str], store: bool, failure: TilewiseError | None
) -> str:
    if kept:
        disturbed = sum(bool(line.labels) for line in found.lines)
        much = (
            f" (disturbed: {disturbed} of {len(found.lines)} lines)"
            if 2 * disturbed > len(found.lines)
            else ""
        )
        return ", ".join(kept) + much
    if failure is not None:
        return "no, as a launch failed"
    if store or request.whole:
        return ""
    return "no, as flags left a part out or made it less sure; --store keeps it as this machine's profile"
