"""The table of commands, the overview made from it, and each command's page: what it says and declares.

Help, completion and the manual are made from the pages. The overview imports nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, NamedTuple

from tilewise.operations import OPERATIONS

if TYPE_CHECKING:
    from tilewise.base.declare import Arguments, Example

# Adding a command that is no job is one module in this folder, with `main(words, joined)`, and one line here.
COMMANDS = {
    **OPERATIONS,
    "info": "describe a matrix file:     tilewise info A.npy",
    "show": "print some elements:        tilewise show A.npy 0:3 0:5",
    "measure": "measure this machine:       tilewise measure",
    "plan": "show what a job would do:   tilewise plan multiply A.npy B.npy -o C.npy",
    "study": "run a series of jobs:       tilewise study run quick",
    "report": "make an HTML report:        tilewise report results/quick -o report.html",
    "doctor": "check the installation",
}
JOBS = tuple(OPERATIONS)
SUBCOMMANDS = {
    "measure": {"compare": "compare two measurements"},
    "study": {
        "list": "list the built-in studies",
        "show": "show what a study runs, or its results",
        "run": "run a study, and show its tables",
        "compare": "compare two results",
        "export": "write launches to CSV or Parquet",
    },
}
# The struct whose fields are what a command takes, and its module; jobs have several.
_DECLARED = {
    "info": ("cli.info", "InfoFlags"),
    "show": ("cli.show", "ShowFlags"),
    "measure": ("lab.measurement.request", "MeasureRequest"),
    "measure compare": ("lab.measurement.request", "CompareFlags"),
    "plan": ("cli.plan", "PlanFlags"),
    "study": ("cli.study", "StudyFlags"),
    "study list": ("cli.study", "StudyListFlags"),
    "study show": ("cli.study", "StudyShowFlags"),
    "study run": ("cli.study_run", "StudyRunFlags"),
    "study compare": ("cli.study", "StudyCompareFlags"),
    "study export": ("cli.study", "StudyExportFlags"),
    "report": ("cli.report", "ReportFlags"),
    "doctor": ("cli.doctor", "DoctorFlags"),
    "--install-completion": ("cli.completion", "InstallFlags"),
    "--show-completion": ("cli.completion", "ScriptFlags"),
}


class Page(NamedTuple):
    """One command: what it is called behind `tilewise`, its docstring, what it takes."""

    name: str
    doc: str
    arguments: Arguments

    @property
    def description(self) -> str:
        """The first paragraph of the docstring."""
        from tilewise.base.declare import description_of

        return description_of(self.doc)

    @property
    def examples(self) -> list[Example]:
        """Command lines worth seeing."""
        from tilewise.base.declare import examples_of

        return examples_of(self.doc)


def overview() -> str:
    """The first help page."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()]
    return "\n".join(
        [
            "tilewise works on dense matrices in files, in parallel with MPI, and verifies its results.",
            "",
            "usage: tilewise COMMAND …",
            "",
            *lines,
            "",
            "tilewise COMMAND --help tells more. Also: tilewise --version, tilewise --install-completion.",
        ]
    )


def names() -> list[str]:
    """Names of all pages, as the overview has them, subcommands behind their command."""
    commands = (*COMMANDS, "--install-completion", "--show-completion")
    return [each for command in commands for each in (command, *subcommands(command))]


def page_of(name: str) -> Page:
    """The page called `name`, one of `names()`."""
    from tilewise.base.declare import arguments_of

    if name in JOBS:
        from tilewise.cli.jobs import declaring

        kinds = declaring(name)
    else:
        module, kind = _DECLARED[name]
        kinds = (getattr(importlib.import_module(f"tilewise.{module}"), kind),)
    return Page(name, kinds[0].__doc__ or "", arguments_of(*kinds))


def subcommands(name: str) -> list[str]:
    """Names of the pages below that of the command `name`."""
    return [f"{name} {each}" for each in SUBCOMMANDS.get(name, {})]
