"""Batch scripts for Slurm: one for a whole study, or one for each point; `sbatch` takes them with --go."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import msgspec

from tilewise.base import programs
from tilewise.base.errors import RunError, UsageError
from tilewise.lab.study.points import StudyPoint
from tilewise.lab.study.schema import Slurm

_ASKS_FOR_DEVICES = re.compile(r"--gpus|--gres|-G")


class Script(msgspec.Struct, frozen=True):
    """A batch script and the name of its file."""

    name: str
    text: str


def scripts(
    study: str, points: list[StudyPoint], words: list[str], settings: Slurm, folder: str, per_point: bool
) -> list[Script]:
    """The scripts that run `words` (of `tilewise`), which is `study run …` with everything but the points.

    One for all asks for the most ranks and threads of any point; each point's own for just that point's, and
    its script writes its entries into a file of its own. Either asks for graphics processors where
    buffers are to be on them.
    """
    there = [point for point in points if not point.reason]
    if not per_point:
        ranks = max((_ranks(point) for point in there), default=1)
        threads = max((_number(point, "threads") for point in there), default=1)
        devices = max((_devices(point) for point in there), default=0)
        return [Script(f"{study}.sbatch", _text(study, (ranks, threads, devices), words, settings, folder))]
    made = []
    for point in there:
        short = point.key[:8]
        own = [*words, "--point", short, "--part", short]
        size = _ranks(point), _number(point, "threads"), _devices(point)
        text = _text(f"{study}-{short}", size, own, settings, folder)
        made.append(Script(f"{study}-{short}.sbatch", text))
    return made


def _text(name: str, size: tuple[int, int, int], words: list[str], settings: Slurm, folder: str) -> str:
    """A script for `size`: ranks, threads of each, and graphics processors of a node."""
    ranks, threads, devices = size
    told = any(_ASKS_FOR_DEVICES.match(option) for option in settings.options)
    if "\\" in folder:  # Slurm takes patterns of names with one as they stand, if at all
        raise UsageError(f"sbatch cannot write to a folder with a backslash in its name: {folder}")
    options = [
        f"--job-name={name}",
        f"--ntasks={ranks}",
        f"--cpus-per-task={threads}",
        *([f"--gpus-per-node={devices}"] if devices and not told else []),
        f"--output={os.path.join(folder, name).replace('%', '%%')}-%j.out",
        *(
            f"--{key}={value}"
            for key in ("account", "partition", "time")
            if (value := getattr(settings, key))
        ),
        *(re.sub(r"^(--[\w-]+)[ \t]+(?=\S)", r"\1=", option) for option in settings.options),
    ]
    for option in options:
        if "\n" in option:
            raise UsageError(f"an option of sbatch has more than one line: {option!r}")
        if '"' in option:  # Slurm's own reader of these lines knows no way to write one
            raise UsageError(
                f"an option of sbatch cannot have a quotation mark in it: {option}",
                "--into FOLDER, if it is in a folder's name",
            )
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH {_quoted(option)}" for option in options),
            # A script's shell may not know `module`; and no `set -u`, by which sites' own scripts fail.
            *(["type module > /dev/null 2>&1 || . /etc/profile"] if settings.modules else []),
            "set -e",
            *(f"module load {shlex.quote(module)}" for module in settings.modules),
            *settings.setup,
            f"cd {shlex.quote(os.getcwd())}",
            f"exec {shlex.join(programs.command(words))}",
            "",
        ]
    )


def _quoted(option: str) -> str:
    """Slurm reads its lines as a shell would, up to quotes only."""
    return option if re.fullmatch(r"[^\s\"']*", option) else f'"{option}"'


def _ranks(point: StudyPoint) -> int:
    """How many ranks a point has; of a `measure ping`, those of its pairs."""
    ranks = _number(point, "ranks")
    return max(ranks, 2 * _number(point, "pairs")) if point.words[:2] == ["measure", "ping"] else ranks


def _devices(point: StudyPoint) -> int:
    """How many graphics processors of a node a point needs: for buffers on them one, or `--gpus`."""
    kinds = str(_said(point, "buffer") or "malloc").split(",")
    return 0 if kinds == ["malloc"] else _number(point, "gpus")


def _said(point: StudyPoint, name: str) -> Any:
    """Value of a flag of a point, by its axis or its words; None where it says nothing."""
    if name in point.axes or f"--{name}" not in point.words:
        return point.axes.get(name)
    return point.words[point.words.index(f"--{name}") + 1]


def _number(point: StudyPoint, name: str) -> int:
    """How many ranks, threads or devices a point has; 1 where it does not say."""
    value = _said(point, name)
    try:
        return max(int(each) for each in str(value).split(",")) if value is not None else 1
    except ValueError:
        return 1


def write(made: list[Script], folder: str) -> list[str]:
    """Writes the scripts into `folder`; returns their paths."""
    paths = []
    try:
        os.makedirs(folder, exist_ok=True)
        for script in made:
            path = os.path.join(folder, script.name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(script.text)
            os.chmod(path, 0o755)
            paths.append(path)
    except OSError as error:
        raise RunError(f"batch scripts cannot be written to {folder}: {error.strerror or error}") from None
    return paths


def require() -> str:
    """The path of sbatch; UsageError where there is none."""
    sbatch = shutil.which("sbatch")
    if sbatch is None:
        raise UsageError("--go needs sbatch, which is not installed", "omit --go to only write the scripts")
    return sbatch


def submit(sbatch: str, paths: list[str], say: Callable[[str], None]) -> None:
    """Hands every script over; `say` hears of each what sbatch said. RunError at the first refusal."""
    for count, path in enumerate(paths):
        try:
            done = subprocess.run([sbatch, path], capture_output=True, text=True, check=False)
        except OSError as error:
            raise RunError(f"{sbatch} cannot be started: {error.strerror or error}") from None
        if done.returncode:
            reason = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            raise RunError(
                f"sbatch refused {path} after {count} of {len(paths)} scripts: {reason}",
                f"run again with --into {shlex.quote(os.path.dirname(path))} once that is fixed;"
                " no point is run twice",
            )
        say(done.stdout.strip())
