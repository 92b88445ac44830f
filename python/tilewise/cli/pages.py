"""Every command and subcommand with what it declares: help, completion and the manual are made from these."""

from __future__ import annotations

import importlib
from typing import NamedTuple

from tilewise.base.declare import (
    Arguments,
    Example,
    arguments_of,
    arguments_of_structs,
    description_of,
    examples_of,
)
from tilewise.cli.commands import COMMANDS, JOBS

# What is no job declares its arguments with a function of a module in this folder.
_DECLARED = {
    "info": ("info", "request"),
    "show": ("show", "request"),
    "measure": ("measure", "request"),
    "measure compare": ("measure", "compare"),
    "plan": ("plan", "request"),
    "study": ("study", "request"),
    "study list": ("study_run", "list_request"),
    "study show": ("study_run", "show_request"),
    "study run": ("study_run", "run_request"),
    "study compare": ("study_results", "compare_request"),
    "study export": ("study_results", "export_request"),
    "report": ("report", "request"),
    "doctor": ("doctor", "request"),
    "--install-completion": ("completion", "install_request"),
    "--show-completion": ("completion", "show_request"),
}


class Page(NamedTuple):
    """One command: what it is called behind `tilewise`, its docstring, what it takes."""

    name: str
    doc: str
    arguments: Arguments

    @property
    def description(self) -> str:
        """What the command does."""
        return description_of(self.doc)

    @property
    def examples(self) -> list[Example]:
        """Command lines worth seeing."""
        return examples_of(self.doc)


def names() -> list[str]:
    """Names of all pages, as the overview has them, subcommands behind their command."""
    others = [name for name in _DECLARED if name not in COMMANDS]
    return [
        each
        for command in (*COMMANDS, "--install-completion", "--show-completion")
        for each in (command, *(name for name in others if name.startswith(f"{command} ")))
    ]


def page_of(name: str) -> Page:
    """The page called `name`, one of `names()`."""
    if name in JOBS:
        from tilewise.cli import jobs

        kinds = jobs.declaring(name)
        return Page(name, kinds[0].__doc__ or "", arguments_of_structs(*kinds))
    module, declared = _DECLARED[name]
    function = getattr(importlib.import_module(f"tilewise.cli.{module}"), declared)
    return Page(name, function.__doc__ or "", arguments_of(function))


def subcommands(name: str) -> list[str]:
    """Names of the pages below that of the command `name`."""
    return [each for each in names() if each.startswith(f"{name} ")]
