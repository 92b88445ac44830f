"""The table of commands, and the overview page that is made from it without importing anything."""

from __future__ import annotations

# Adding a command is one module in this folder with `main(words, joined)`, and one line here.
COMMANDS = {
    "multiply": "multiply two matrix files:  tilewise multiply A.npy B.npy -o C.npy",
    "transpose": "rows become columns:        tilewise transpose A.npy -o AT.npy",
    "svd": "singular values, vectors:   tilewise svd A.npy -o svd/",
    "stencil": "smooth it, or diffuse:      tilewise stencil A.npy -o B.npy --steps 200",
    "generate": "make a matrix:              tilewise generate -o A.npy --shape 4096x4096",
    "convert": "change format or type:      tilewise convert A.txt -o A.npy",
    "info": "say what a matrix file is:  tilewise info A.npy",
    "show": "print some of its numbers:  tilewise show A.npy 0:3 0:5",
    "measure": "how fast this machine is:   tilewise measure",
    "plan": "say what a job would do:    tilewise plan multiply A.npy B.npy -o C.npy",
    "study": "sweep, tabulate, compare:   tilewise study run quick",
    "report": "a page of results:          tilewise report results/quick -o report.html",
    "doctor": "say what is installed and what will go wrong",
}
JOBS = ("multiply", "transpose", "svd", "stencil", "convert", "generate")


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
            "tilewise COMMAND --help tells more; tilewise --version says which this is.",
        ]
    )
