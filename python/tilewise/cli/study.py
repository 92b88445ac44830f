"""`tilewise study …`: lists, shows and runs studies, compares, exports and queries their results."""

from __future__ import annotations

from collections.abc import Callable

from tilewise.base.errors import UsageError
from tilewise.launch.join import Join

_USAGE = """usage: tilewise study list
       tilewise study show NAME|FILE.toml|DIR [--scale tiny|default|report]
       tilewise study run NAME|FILE.toml [--scale S] [--resume] [--dry-run] [--results DIR] [--only K=V] …
       tilewise study compare OLD NEW [--metric PATH] [--json FILE]
       tilewise study export DIR [--csv FILE] [--parquet FILE]
       tilewise study query DIR ["SQL"] [--csv FILE] [--json FILE]

A study is a TOML file that says which jobs to run over which values, and which tables and plots to make of
them; tilewise study SUBCOMMAND --help tells more."""


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    if not words or words[0] in ("-h", "--help"):
        print(_USAGE)
        return 0
    if joined is not None:
        raise UsageError("a study starts the ranks of its points itself", "tilewise study … without mpiexec")
    from tilewise.cli import study_query, study_results, study_run

    known: dict[str, Callable[[list[str]], int]] = {
        "list": study_run.list_all,
        "show": study_run.show,
        "run": study_run.run,
        "compare": study_results.compare,
        "export": study_results.export,
        "query": study_query.query,
    }
    if words[0] not in known:
        raise UsageError(f"study has no {words[0]!r}; there are {', '.join(known)}", "tilewise study --help")
    return known[words[0]](words[1:])
