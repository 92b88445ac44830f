"""`tilewise study list`, `show` and `run`."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import sys
import time
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import msgspec

from tilewise.base.declare import WHAT, Parameter, Value
from tilewise.base.errors import Interrupted, UsageError, clean
from tilewise.base.units import plural
from tilewise.cli.flags import check_words, flags_of
from tilewise.cli.parse import parse
from tilewise.cli.study_results import show_results, tell, tell_notes
from tilewise.cli.study_run_flags import RunFlags

if TYPE_CHECKING:
    from tilewise.lab.study.points import Point
    from tilewise.lab.study.store import Entry, Environment
    from tilewise.lab.study.study import Study
    from tilewise.launch.signals import Signals


def _shipped() -> tuple[str, ...]:
    """Names of the studies that come with the package."""
    from tilewise.lab.study import shipped

    return tuple(shipped.names())


STUDY = Value("STUDY", (".toml",), _shipped)


def list_all(words: list[str]) -> int:
    """What is shipped, a line each."""
    if parse("study list", list_request, words) is None:
        return 0
    from tilewise.lab.report.render.terminal import Screen, show
    from tilewise.lab.study import shipped
    from tilewise.lab.study.study import read

    screen = Screen()
    screen.pairs((name, read(shipped.path_of(name)).file.title) for name in shipped.names())
    show(screen)
    return 0


def list_request() -> bool:
    """List the built-in studies.

    Examples:
        tilewise study list
            Names and titles.
    """
    return True


def show(words: list[str]) -> int:
    """What a study is: its points, what is out of reach here, its tables and its file."""
    asked = parse("study show", show_request, words)
    if asked is None:
        return 0
    from tilewise.lab.study import shipped, store

    holds = store.points_in(store.newest(asked[0]))
    if holds or (os.path.isdir(asked[0]) and asked[0] not in shipped.names()):
        show_results(asked[0])
        return 0
    from tilewise.lab.study.foretold import foretold
    from tilewise.lab.study.local_points import points_of
    from tilewise.lab.study.run import left_of
    from tilewise.lab.study.study import read

    study = read(shipped.path_of(asked[0]), asked[1])
    environment, points = points_of(study, ".", "", flags_of, check_words)
    there = sum(not point.reason for point in points)
    print(clean(f"{study.name}: {study.file.title}\n{study.file.description.strip()}".rstrip() + "\n"))
    print(clean(f"source: {study.file.source}")) if study.file.source else None
    print(f"scale {study.scale}: {plural(there, 'point')} to run here, {len(points) - there} out of reach")
    launches = left_of(study, points, [], environment)
    print(foretold(launches, launches, there, study.minutes, os.getloadavg()[0]))
    for run in study.runs:
        own = [point for point in points if point.run == run.name]
        axes = "; ".join(f"{axis}: {', '.join(map(str, values))}" for axis, values in run.axes.items())
        print(clean(f"  {run.name}: {run.command}, {plural(len(own), 'point')}; {axes}"))
    for kind in ("tables", "plots"):
        for each in getattr(study.file, kind):
            print(clean(f"  {kind[:-1]} {each.name}: {each.title or each.name}"))
    for claim in study.file.claims:
        print(clean(f"  claim: {claim.text}"))
    print(f"\n{study.path}")
    return 0


def show_request(
    name: Annotated[
        str,
        Parameter(
            name="NAME", value=STUDY, group=WHAT, help="A built-in study, a TOML file, or a results folder."
        ),
    ],
    /,
    *,
    scale: Annotated[
        str,
        Parameter(name="--scale", group=WHAT, help="Its size.", choices=("tiny", "default", "report")),
    ] = "default",
) -> tuple[str, str]:
    """Show what a study runs and reports; of a results folder, show the tables.

    Examples:
        tilewise study show quick
            What the study quick would run here.
        tilewise study show results/quick
            The tables of its newest results.
    """
    return name, scale


def run_request(
    name: Annotated[
        str, Parameter(name="NAME", value=STUDY, group=WHAT, help="A built-in study, or a TOML file.")
    ],
    /,
    *,
    flags: Annotated[RunFlags, Parameter(name="*", group=WHAT)] = RunFlags(),  # noqa: B008 - a frozen value
) -> tuple[str, RunFlags]:
    """Run every point of a study, store each result as it arrives, and show the tables.

    Examples:
        tilewise study run quick --scale tiny
            A small one, to see what comes out.
        tilewise study run quick --dry-run
            The command lines that it would run.
        tilewise study run quick --resume
            Go on with what was interrupted.
    """
    return name, flags


def run(words: list[str]) -> int:
    """Runs a study; returns its exit code."""
    given: tuple[str, RunFlags] | None = parse("study run", run_request, words)
    if given is None:
        return 0
    name, wanted = given
    from tilewise.lab.study import inputs, shipped, store
    from tilewise.lab.study.local_points import existing, picked, points_of
    from tilewise.lab.study.run import left_of
    from tilewise.lab.study.simulated import on_cluster
    from tilewise.lab.study.study import NAME, read
    from tilewise.launch import signals

    if wanted.until_decided < 0:
        raise UsageError(f"--until-decided expects a number of launches, not {wanted.until_decided}")
    if "" in (wanted.into, wanted.work):
        raise UsageError("--into and --work want the name of a folder, and got nothing")
    if wanted.part and not re.fullmatch(NAME, wanted.part):
        raise UsageError(f"--part expects a name of letters, digits, '.', '-' and '_', not {wanted.part!r}")
    study = read(shipped.path_of(name), wanted.scale)
    if wanted.simulate:
        study = on_cluster(study, wanted.simulate)
    folder = wanted.into or store.folder_for(wanted.results, study.name, wanted.resume)
    work = wanted.work or os.path.join(folder, inputs.FOLDER)
    if wanted.part:  # others run at the same time, and remove what they have made
        work = os.path.join(work, wanted.part)
    environment, points = points_of(
        study, existing(work), wanted.machine, flags_of, check_words, submits=wanted.submit is not None
    )
    whole = left_of(study, points, [], environment)
    points = picked(points, wanted.only, wanted.point)
    if wanted.dry_run:
        return _dry_run(points)
    submitted = wanted.submit is not None or wanted.go or wanted.per_point
    if all(point.reason for point in points) and (submitted or not wanted.part):  # a part says so in its file
        raise UsageError(f"{study.path}: no point can run here; {points[0].reason}")
    if submitted:
        return _submit(study, points, wanted, folder, environment)
    with signals.watched() as caught:
        return _run(study, points, name, wanted, folder, work, environment, whole, caught)


def _tell_programs(study: Study, points: list[Point], setup: list[str]) -> None:
    """Says what a study of somebody's, as ours have none, has run that is not tilewise."""
    words = (pair for point in points if not point.reason for pair in pairwise([*point.words, ""]))
    lines = [
        value if flag == "--launcher" else flag.partition("=")[2]
        for flag, value in words
        if flag.partition("=")[0] == "--launcher"
    ]
    for line in dict.fromkeys([*setup, *lines]):
        tell_notes([f"{study.path} runs {line}"])


def _tell_people(said: str) -> None:
    """A note for who waits in front of a terminal; programs did not ask."""
    if sys.stderr.isatty():
        tell_notes([said])


def _dry_run(points: list[Point]) -> int:
    """Prints every command line, those that make inputs too; returns the exit code."""
    shown: set[str] = set()
    for point in points:
        for made in point.inputs:
            if made.generate and made.word not in shown and not point.reason:
                shown.add(made.word)
                print(shlex.join(["tilewise", *made.generate]))
        print(f"# not run: {point.reason}: {point.line()}" if point.reason else point.line())
    return 0


def _run(
    study: Study,
    points: list[Point],
    name: str,
    wanted: RunFlags,
    folder: str,
    work_folder: str,
    environment: Environment,
    whole: int,
    caught: Signals,
) -> int:
    from tilewise.lab.report.progress import progress
    from tilewise.lab.study import evaluation, store
    from tilewise.lab.study import run as running
    from tilewise.lab.study.deciding import until_decided
    from tilewise.lab.study.foretold import foretold, time_text
    from tilewise.lab.study.inputs import Work
    from tilewise.lab.study.store import Store
    from tilewise.lab.study.sweeping import own, sweep

    inside = wanted.work is None
    work = Work(work_folder, wanted.keep, ours=inside or bool(wanted.part), alone=inside, owner=folder)
    try:
        kept = Store(folder, wanted.part)
        try:
            sweep(os.path.dirname(work.folder) if wanted.part else work.folder)
            if wanted.part:
                work.again()  # another part may have swept what was left of us
                own(work.folder, kept.path)
            kept.keep(study.text, study.scale, environment, study.name)
        except BaseException:
            kept.close()
            raise
    except BaseException:
        work.close()
        raise
    tell_notes(kept.notes)
    if not wanted.quiet:
        _tell_programs(study, points, [])
        left = running.left_of(study, points, kept.entries, environment, wanted.retry)
        there = sum(not point.reason for point in points)
        _tell_people(foretold(left, whole, there, study.minutes, os.getloadavg()[0]))
    begun = time.monotonic()
    bar = progress(wanted=not wanted.quiet, whole=True)
    ended = 0

    def told(entry: Entry) -> None:
        nonlocal ended
        ended += 1
        caught.check()
        if wanted.verbose:
            said = f"{entry.seconds:.2f} s" if entry.status == store.DONE else f"failed: {entry.message}"
            print(f"tilewise {shlex.join(entry.command)}: {said}", file=sys.stderr, flush=True)

    try:
        outcome = running.run(
            study, points, kept, work, environment, progress=bar.update, retry=wanted.retry, told=told
        )
        if wanted.until_decided:
            again = partial(
                running.run, study, points, kept, work, environment, progress=bar.update, told=told
            )
            more = until_decided(
                wanted.until_decided,
                lambda: evaluation.load(folder),
                lambda keys: again(once_more=keys),
                lambda said: None if wanted.quiet else tell_notes([said]),
            )
            if more is not None:
                more.launched += outcome.launched
                more.reused, more.notes = outcome.reused, outcome.notes
                outcome = more
    except (Interrupted, KeyboardInterrupt):
        command = shlex.join(["tilewise", *_words(wanted, name, folder, wanted.work)])
        count = plural(ended, "result")
        raise Interrupted(f"interrupted; {count} of this run are kept in {folder}", command) from None
    finally:
        bar.close()
        work.close()
        kept.close()
    tell_notes(outcome.notes)
    if study.file.claims:
        evaluation.keep_claims(evaluation.load(folder))
    if not wanted.quiet and not wanted.part:
        tell(folder, outcome)
    if not wanted.quiet and outcome.launched:
        _tell_people(f"{plural(outcome.launched, 'launch')} in {time_text((time.monotonic() - begun) / 60)}")
    error = running.errors_of(outcome, folder)
    if error is not None:
        raise error
    return 0


def _words(wanted: RunFlags, name: str, folder: str, work: str | None) -> list[str]:
    """`study run …` that goes on with just what is asked for, in `folder`."""
    words = ["study", "run", name, "--scale", wanted.scale, "--into", folder]
    words += [*(["-q"] if wanted.quiet else []), *(["-v"] if wanted.verbose else [])]
    for each in wanted.only:
        words += ["--only", each]
    for flag, value in (
        ("machine", wanted.machine),
        ("part", wanted.part),
        ("point", wanted.point),
        ("work", work),
        ("until-decided", str(wanted.until_decided or "")),
    ):
        words += [f"--{flag}", value] if value else []
    words += [f"--{flag}" for flag in ("keep", "retry") if getattr(wanted, flag)]
    return words


def _submit(
    study: Study, points: list[Point], wanted: RunFlags, folder: str, environment: Environment
) -> int:
    from tilewise.lab.study import run as running
    from tilewise.lab.study import slurm

    if wanted.submit != "slurm":
        if wanted.submit is None:
            flag = "--go" if wanted.go else "--per-point"
            raise UsageError(f"{flag} makes no sense without --submit", f"--submit slurm {flag}")
        raise UsageError(f"--submit {wanted.submit} is unknown; expected slurm", "--submit slurm")
    sbatch = slurm.require() if wanted.go else ""
    given = {key: getattr(wanted, key) for key in ("account", "partition", "time") if getattr(wanted, key)}
    settings = msgspec.structs.replace(study.file.slurm, **given)
    folder = os.path.abspath(folder)
    if not wanted.quiet:
        _tell_programs(study, points, settings.setup)
    if wanted.machine:  # else nobody knows which host will be asked
        left = running.unfinished(study, points, folder, environment, wanted.retry)
        if all(point.reason for point in left):
            print(f"every point of {wanted.machine} was measured already: {folder}")
            return 0
        points = left if wanted.per_point else points
    plain = dataclasses.replace(wanted, quiet=True, verbose=False)
    if wanted.per_point:
        plain = dataclasses.replace(plain, part="", point="")
    work = os.path.abspath(wanted.work) if wanted.work else None
    words = _words(plain, os.path.abspath(study.path), folder, work)
    paths = slurm.write(slurm.scripts(study.name, points, words, settings, folder, wanted.per_point), folder)
    if sbatch:
        slurm.submit(sbatch, paths, lambda said: print(said, flush=True))
    else:
        print("\n".join(paths))
    beyond = sum(bool(point.reason) for point in points)
    if beyond and not wanted.quiet:
        print(
            f"tilewise: note: {plural(beyond, 'point')} cannot run on this host; the scripts do not"
            " request what they need",
            file=sys.stderr,
        )
    return 0
