"""`tilewise study run`, and the command lines that a study may have."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tilewise.base.declare import CLUSTER, FOLDER, HOW, SHOW, TIME, WHERE, Flag, Flags, Value
from tilewise.base.errors import Interrupted, UsageError
from tilewise.base.units import plural
from tilewise.cli import JOBS, jobs, page_of
from tilewise.cli.parse import parse
from tilewise.cli.study import SCALES, STUDY, show_results, tell_notes
from tilewise.files.formats import format_module, split_name
from tilewise.operations.operation import Operation

if TYPE_CHECKING:
    from tilewise.lab.study.points import StudyPoint
    from tilewise.lab.study.run import StudyOutcome
    from tilewise.lab.study.store import Entry, StudyEnvironment
    from tilewise.lab.study.study import Study
    from tilewise.launch.signals import Signals

SWEPT = (*JOBS, "measure")


class StudyRunFlags(Flags, frozen=True, kw_only=True):
    """Run every point of a study, store each result as it arrives, and show the tables.

    Examples:
        tilewise study run quick --scale tiny
            Run a small version, to see the output.
        tilewise study run quick --dry-run
            Print the command lines without running them.
        tilewise study run quick --resume
            Resume an interrupted run.
    """

    name: Annotated[str, Flag("A built-in study, or a TOML file.", value=STUDY, place=True)]
    scale: Annotated[str, Flag("Size of the study.", choices=SCALES)] = "default"
    only: Annotated[
        tuple[str, ...],
        Flag("Run only points with these values of an axis: AXIS=VALUE[,VALUE…].", value=Value("K=V[,V…]")),
    ] = ()
    point: Annotated[str, Flag("Run only the point with this key.", value=Value("KEY"))] = ""
    resume: Annotated[bool, Flag("Continue the newest run of this study.", HOW)] = False
    retry: Annotated[bool, Flag("With --resume: run failed points again.", HOW)] = False
    until_decided: Annotated[
        int, Flag("Repeat launches for undecided claims, at most N per point.", HOW, least=0)
    ] = 0
    simulate: Annotated[
        str,
        Flag(
            "Simulate all jobs on a cluster: 64x2:12.5GB/s:1.5us, or a platform file of SimGrid.",
            HOW,
            value=CLUSTER,
        ),
    ] = ""
    dry_run: Annotated[bool, Flag("Print every command line and run nothing.", HOW)] = False
    results: Annotated[str, Flag("Folder for the results, in STUDY/DATE.", WHERE, value=FOLDER)] = "results"
    into: Annotated[
        str | None, Flag("Write to this folder, and continue the results in it.", WHERE, value=FOLDER)
    ] = None
    work: Annotated[
        str | None, Flag("Folder for the matrices.", WHERE, value=FOLDER, default="work, next to the points")
    ] = None
    keep: Annotated[bool, Flag("Keep the generated matrices.", WHERE)] = False
    machine: Annotated[str, Flag("One name for a group of identical hosts.", WHERE)] = ""
    part: Annotated[str, Flag("Write to points.NAME.jsonl, so runs can share the work.", WHERE)] = ""
    submit: Annotated[
        str | None, Flag("Write batch scripts, and run nothing.", WHERE, choices=("slurm",))
    ] = None
    per_point: Annotated[
        bool, Flag("With --submit: one script per point.", WHERE, needs="--submit slurm")
    ] = False
    go: Annotated[bool, Flag("With --submit: submit scripts with sbatch.", WHERE, needs="--submit slurm")] = (
        False
    )
    account: Annotated[str, Flag("Account for the batch scripts.", WHERE)] = ""
    partition: Annotated[str, Flag("Partition for the batch scripts.", WHERE)] = ""
    time: Annotated[str, Flag("Time limit in the scripts: 01:00:00.", WHERE, value=TIME)] = ""
    quiet: Annotated[bool, Flag("Print errors only.", SHOW, short="-q")] = False
    verbose: Annotated[bool, Flag("Print each command line as it ends.", SHOW, short="-v")] = False


def run(words: list[str]) -> int:
    """Run a study; return its exit code."""
    flags = parse("study run", StudyRunFlags, words)
    from tilewise.lab.study import shipped, store
    from tilewise.lab.study.local_points import existing, on_cluster, picked, points_of
    from tilewise.lab.study.run import left_of
    from tilewise.lab.study.study import NAME, read
    from tilewise.lab.study.work import FOLDER as INPUTS
    from tilewise.launch import signals

    if "" in (flags.into, flags.work):
        raise UsageError("--into and --work need a folder name")
    if flags.part and not re.fullmatch(NAME, flags.part):
        raise UsageError(f"--part expects a name of letters, digits, '.', '-' and '_', not {flags.part!r}")
    study = read(shipped.path_of(flags.name), flags.scale)
    if flags.simulate:
        study = on_cluster(study, flags.simulate)
    folder = flags.into or store.folder_for(flags.results, study.name, flags.resume)
    work = flags.work or os.path.join(folder, INPUTS)
    if flags.part:  # others run at the same time, and remove what they have made
        work = os.path.join(work, flags.part)
    environment, points = points_of(
        study, existing(work), flags.machine, flags_of, check_words, submits=flags.submit is not None
    )
    whole = left_of(study, points, [], environment)
    points = picked(points, flags.only, flags.point)
    if flags.dry_run:
        return _dry_run(points)
    submitted = flags.submit is not None
    if all(point.reason for point in points) and (submitted or not flags.part):  # a part says so in its file
        raise UsageError(f"{study.path}: no point can run here; {points[0].reason}")
    if submitted:
        return _submit(study, points, flags, folder, environment)
    with signals.watched() as caught:
        return _run(study, points, flags, folder, work, environment, whole, caught)


def _tell_programs(study: Study, points: list[StudyPoint], setup: list[str]) -> None:
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


def _dry_run(points: list[StudyPoint]) -> int:
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
    points: list[StudyPoint],
    flags: StudyRunFlags,
    folder: str,
    work_folder: str,
    environment: StudyEnvironment,
    whole: int,
    caught: Signals,
) -> int:
    from tilewise.lab.report.progress import progress
    from tilewise.lab.study import evaluation, store
    from tilewise.lab.study import run as running
    from tilewise.lab.study.run import foretold, time_text, until_decided
    from tilewise.lab.study.store import Store
    from tilewise.lab.study.work import Work, own, sweep

    inside = flags.work is None
    work = Work(work_folder, flags.keep, ours=inside or bool(flags.part), alone=inside, owner=folder)
    try:
        kept = Store(folder, flags.part)
        try:
            sweep(os.path.dirname(work.folder) if flags.part else work.folder)
            if flags.part:
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
    if not flags.quiet:
        _tell_programs(study, points, [])
        left = running.left_of(study, points, kept.entries, environment, flags.retry)
        there = sum(not point.reason for point in points)
        _tell_people(foretold(left, whole, there, study.minutes, os.getloadavg()[0]))
    begun = time.monotonic()
    bar = progress(wanted=not flags.quiet, whole=True)
    ended = 0

    def told(entry: Entry) -> None:
        nonlocal ended
        ended += 1
        caught.check()
        if flags.verbose:
            said = f"{entry.seconds:.2f} s" if entry.status == store.DONE else f"failed: {entry.message}"
            print(f"tilewise {shlex.join(entry.command)}: {said}", file=sys.stderr, flush=True)

    try:
        outcome = running.run(
            study, points, kept, work, environment, progress=bar.update, retry=flags.retry, told=told
        )
        if flags.until_decided:
            again = partial(
                running.run, study, points, kept, work, environment, progress=bar.update, told=told
            )
            more = until_decided(
                flags.until_decided,
                lambda: evaluation.load(folder),
                lambda keys: again(once_more=keys),
                lambda said: None if flags.quiet else tell_notes([said]),
            )
            if more is not None:
                more.launched += outcome.launched
                more.reused, more.notes = outcome.reused, outcome.notes
                outcome = more
    except (Interrupted, KeyboardInterrupt):
        command = shlex.join(["tilewise", *_words(flags, flags.name, folder, flags.work)])
        count = plural(ended, "result")
        raise Interrupted(f"interrupted; {count} of this run are kept in {folder}", command) from None
    finally:
        bar.close()
        work.close()
        kept.close()
    tell_notes(outcome.notes)
    if study.file.claims:
        evaluation.keep_claims(evaluation.load(folder))
    if not flags.quiet and not flags.part:
        tell(folder, outcome)
    if not flags.quiet and outcome.launched:
        _tell_people(f"{plural(outcome.launched, 'launch')} in {time_text((time.monotonic() - begun) / 60)}")
    error = running.errors_of(outcome, folder)
    if error is not None:
        raise error
    return 0


def _words(flags: StudyRunFlags, name: str, folder: str, work: str | None) -> list[str]:
    """`study run …` that goes on with just what is asked for, in `folder`."""
    words = ["study", "run", name, "--scale", flags.scale, "--into", folder]
    words += [*(["-q"] if flags.quiet else []), *(["-v"] if flags.verbose else [])]
    for each in flags.only:
        words += ["--only", each]
    for flag, value in (
        ("simulate", flags.simulate),
        ("machine", flags.machine),
        ("part", flags.part),
        ("point", flags.point),
        ("work", work),
        ("until-decided", str(flags.until_decided or "")),
    ):
        words += [f"--{flag}", value] if value else []
    words += [f"--{flag}" for flag in ("keep", "retry") if getattr(flags, flag)]
    return words


def _submit(
    study: Study, points: list[StudyPoint], flags: StudyRunFlags, folder: str, environment: StudyEnvironment
) -> int:
    from tilewise.lab.study import run as running
    from tilewise.lab.study import slurm

    sbatch = slurm.require() if flags.go else ""
    given = {key: getattr(flags, key) for key in ("account", "partition", "time") if getattr(flags, key)}
    settings = msgspec.structs.replace(study.file.slurm, **given)
    folder = os.path.abspath(folder)
    if not flags.quiet:
        _tell_programs(study, points, settings.setup)
    if flags.machine:  # else nobody knows which host will be asked
        left = running.unfinished(study, points, folder, environment, flags.retry)
        if all(point.reason for point in left):
            print(f"every point of {flags.machine} was measured already: {folder}")
            return 0
        points = left if flags.per_point else points
    plain = msgspec.structs.replace(flags, quiet=True, verbose=False)
    if flags.per_point:
        plain = msgspec.structs.replace(plain, part="", point="")
    work = os.path.abspath(flags.work) if flags.work else None
    words = _words(plain, os.path.abspath(study.path), folder, work)
    paths = slurm.write(slurm.scripts(study.name, points, words, settings, folder, flags.per_point), folder)
    if sbatch:
        slurm.submit(sbatch, paths, lambda said: print(said, flush=True))
    else:
        print("\n".join(paths))
    beyond = sum(bool(point.reason) for point in points)
    if beyond and not flags.quiet:
        print(
            f"tilewise: note: {plural(beyond, 'point')} cannot run on this host; the scripts do not"
            " request what they need",
            file=sys.stderr,
        )
    return 0


def tell(folder: str, outcome: StudyOutcome) -> None:
    """Tables, claims, and where everything is."""
    show_results(folder)
    counts = ["1 launch" if outcome.launched == 1 else f"{outcome.launched} launches"]
    if outcome.reused:
        counts.append(f"{outcome.reused} reused")
    counts.append(f"{plural(outcome.done, 'point')} done")
    counts += [f"{plural(outcome.left, 'launch')} left to other parts"] if outcome.left else []
    counts += [f"{outcome.failed} failed"] if outcome.failed else []
    counts += [f"{outcome.not_run} not run"] if outcome.not_run else []
    print(f"\n{', '.join(counts)}; results are in {folder}")


def flags_of(command: str) -> Mapping[str, Any]:
    """Every spelling of a flag of `command` and its value's type; UsageError for what no study runs."""
    name = command.split(maxsplit=1)[0] if command.split() else ""
    if name not in SWEPT:
        raise UsageError(f"a study cannot run {command!r}; it can run {', '.join(SWEPT)}")
    return {spelt: flag.kind for spelt, flag in page_of(name).arguments.flags.items()}


def _check_job(operation: Operation) -> None:
    """Raise UsageError for what a plan refuses whatever the inputs are."""
    ranks, name = getattr(operation, "ranks", None), getattr(operation, "algorithm", None)
    algorithm = operation.algorithms.get(name or "")
    if algorithm is not None and ranks is not None and not algorithm.takes(ranks):
        raise UsageError(f"{name} takes {algorithm.takes_text}, not --ranks {ranks}")
    if operation.writes and not operation.several and operation.output and not operation.nowhere:
        format_module(split_name(operation.output)[0])


def check_words(words: list[str]) -> None:
    """Raises UsageError for a command line that its command refuses before it looks at any file."""
    if words[0] in JOBS:
        _check_job(jobs.asked_of(words[0], words[1:]).request.operation)
    else:
        from tilewise.lab.measurement.request import MeasureRequest

        parse(words[0], MeasureRequest, words[1:])
