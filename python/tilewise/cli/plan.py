"""`tilewise plan CMD …`: what a job would do, and why; runs nothing and writes nothing."""

from __future__ import annotations

from tilewise.cli.commands import JOBS
from tilewise.errors import UsageError
from tilewise.launch.join import Join


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code. Takes all words of a job, and only plans it."""
    if not words or words[0] in ("-h", "--help"):
        print(
            f"usage: tilewise plan {'|'.join(JOBS)} …\n\nSays what that job would do and why; runs nothing."
        )
        return 0
    name, rest = words[0], words[1:]
    if name not in JOBS:
        raise UsageError(f"plan takes the words of a job: {', '.join(JOBS)}; not {name!r}")
    import importlib

    from tilewise.cli import jobs, room
    from tilewise.cli.parse import parse
    from tilewise.report.planned import planned
    from tilewise.report.terminal import show

    request: jobs.Request | None = parse(name, importlib.import_module(f"tilewise.cli.{name}").request, rest)
    if request is not None:
        prepared = jobs.prepare(request, joined)
        disks = room.needed(prepared.plan, prepared.place)
        show(planned(prepared.plan, prepared.place.target.path, [each.text() for each in disks]))
        for each in disks:
            each.require()
    return 0
