"""The table of commands, and the overview page that is made from it without importing anything."""

from __future__ import annotations

from tilewise.operations import OPERATIONS

# Adding a command that is no job is one module in this folder, with `main(words, joined)`, and one line here.
COMMANDS = {
    **OPERATIONS,
    "info": "say what a matrix file is:  tilewise info A.npy",
    "show": "print some of its numbers:  tilewise show A.npy 0:3 0:5",
    "measure": "how fast this machine is:   tilewise measure",
    "plan": "say what a job would do:    tilewise plan multiply A.npy B.npy -o C.npy",
    "study": "sweep, tabulate, compare:   tilewise study run quick",
    "report": "a page of results:          tilewise report results/quick -o report.html",
    "doctor": "say what is installed and what will go wrong",
}
JOBS = tuple(OPERATIONS)


def overview() -> str:
    """The first help page."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()]
    return "\n".join(
        [
            "tilewise works on dense matrices in files, in parallel over MPI, and verifies its results.",
            "",
            "usage: tilewise COMMAND …",
            "",
            *lines,
            "",
            "tilewise COMMAND --help tells more. Also: tilewise --version, tilewise --install-completion.",
        ]
    )
