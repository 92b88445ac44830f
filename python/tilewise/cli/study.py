"""`tilewise study …`: lists, shows and runs studies, compares, exports and queries their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from tilewise.base.declare import WHAT, Parameter, arguments_of
from tilewise.base.errors import UsageError
from tilewise.launch.join import Join

SUBCOMMANDS = ("list", "show", "run", "compare", "export")


def request(
    subcommand: Annotated[
        str, Parameter(name="SUBCOMMAND", choices=SUBCOMMANDS, group=WHAT, help="The subcommand.")
    ],
    /,
    *arguments: Annotated[str, Parameter(name="ARGUMENT", group=WHAT, help="Its arguments.")],
) -> None:
    """Sweep, tabulate, compare. A study is a TOML file that says which jobs to run over which values, and
    which tables and plots to make of them.

    Examples:
        tilewise study list
            The studies that come with the package.
        tilewise study run quick
            Run one, and show its tables.
    """


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    if not words or words[0] in ("-h", "--help"):
        from tilewise.cli.help import page

        print(page("study", request.__doc__ or "", arguments_of(request)))
        return 0
    if joined is not None:
        raise UsageError("a study starts its own ranks", "tilewise study … without mpiexec")
    from tilewise.cli import study_results, study_run

    known: dict[str, Callable[[list[str]], int]] = {
        "list": study_run.list_all,
        "show": study_run.show,
        "run": study_run.run,
        "compare": study_results.compare,
        "export": study_results.export,
    }
    if words[0] not in known:
        raise UsageError(
            f"study has no subcommand {words[0]!r}; choose from {', '.join(known)}", "tilewise study --help"
        )
    return known[words[0]](words[1:])
