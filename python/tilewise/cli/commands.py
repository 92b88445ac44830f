"""The table of commands, and the overview page that is made from it without importing anything."""

from __future__ import annotations

from tilewise.operations import OPERATIONS

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
