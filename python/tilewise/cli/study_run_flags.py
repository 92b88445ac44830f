"""The flags of `tilewise study run`."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from tilewise.base.declare import CLUSTER, FOLDER, HOW, SHOW, WHAT, WHERE, Parameter, Value


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunFlags:
    """The flags of `study run`."""

    scale: Annotated[
        str,
        Parameter(name="--scale", group=WHAT, help="Its size.", choices=("tiny", "default", "report")),
    ] = "default"
    only: Annotated[
        tuple[str, ...],
        Parameter(
            name="--only",
            value=Value("K=V[,V…]"),
            group=WHAT,
            help="Only points with these values of an axis: AXIS=VALUE[,VALUE…].",
        ),
    ] = ()
    point: Annotated[
        str,
        Parameter(name="--point", value=Value("KEY"), group=WHAT, help="Only the point with this key."),
    ] = ""
    resume: Annotated[
        bool, Parameter(name="--resume", group=HOW, help="Continue the newest run of this study.")
    ] = False
    retry: Annotated[
        bool, Parameter(name="--retry", group=HOW, help="With --resume: run failed points again.")
    ] = False
    until_decided: Annotated[
        int,
        Parameter(
            name="--until-decided",
            value=Value("N"),
            group=HOW,
            help="Repeat launches for undecided claims, at most N of a point.",
        ),
    ] = 0
    simulate: Annotated[
        str,
        Parameter(
            name="--simulate",
            value=CLUSTER,
            group=HOW,
            help="Simulate all jobs on a cluster: 64x2:12.5GB/s:1.5us, or a platform file of SimGrid.",
        ),
    ] = ""
    dry_run: Annotated[
        bool, Parameter(name="--dry-run", group=HOW, help="Print every command line and run nothing.")
    ] = False
    results: Annotated[
        str,
        Parameter(name="--results", value=FOLDER, group=WHERE, help="Write to STUDY/DATE in here."),
    ] = "results"
    into: Annotated[
        str | None,
        Parameter(
            name="--into", value=FOLDER, group=WHERE, help="Write to this folder; continue if it has results."
        ),
    ] = None
    work: Annotated[
        str | None,
        Parameter(
            name="--work",
            value=FOLDER,
            group=WHERE,
            help="Folder for the matrices.",
            default="work, next to the points",
        ),
    ] = None
    keep: Annotated[bool, Parameter(name="--keep", group=WHERE, help="Keep the generated matrices.")] = False
    machine: Annotated[
        str,
        Parameter(name="--machine", group=WHERE, help="Use one name for hosts that are alike."),
    ] = ""
    part: Annotated[
        str,
        Parameter(name="--part", group=WHERE, help="Write points.NAME.jsonl; several may run."),
    ] = ""
    submit: Annotated[
        str | None,
        Parameter(name="--submit", choices=("slurm",), group=WHERE, help="Write batch scripts; run nothing."),
    ] = None
    per_point: Annotated[
        bool, Parameter(name="--per-point", group=WHERE, help="With --submit: one script per point.")
    ] = False
    go: Annotated[
        bool, Parameter(name="--go", group=WHERE, help="With --submit: submit them with sbatch.")
    ] = False
    account: Annotated[str, Parameter(name="--account", group=WHERE, help="For the batch scripts.")] = ""
    partition: Annotated[str, Parameter(name="--partition", group=WHERE, help="For the batch scripts.")] = ""
    time: Annotated[
        str,
        Parameter(
            name="--time", value=Value("TIME"), group=WHERE, help="Time limit in the scripts: 01:00:00."
        ),
    ] = ""
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], group=SHOW, help="Print errors only.")] = False
    verbose: Annotated[
        bool, Parameter(name=["--verbose", "-v"], group=SHOW, help="Print each command line as it ends.")
    ] = False
