"""What makes no sense with `--simulate`, whatever the job is."""

from __future__ import annotations

from collections.abc import Iterable

from tilewise.base.errors import UsageError
from tilewise.planning.names import MPI_IO


def check(launcher: str, hosts: str, threads: int | None, io: Iterable[str | None]) -> None:
    """Raises UsageError for flags that speak of real ranks, and for what the simulator cannot do."""
    for flag, given in (("--launcher", launcher), ("--hosts", hosts)):
        if given:
            raise UsageError(f"{flag} makes no sense with --simulate, which starts no ranks")
    if threads not in (None, 1):
        raise UsageError(f"--threads {threads}: simulated ranks have one thread each", "more --ranks")
    if mpi_io := next((name for name in io if name in MPI_IO), ""):
        raise UsageError(f"--io {mpi_io}: files are not simulated, and MPI-IO not at all", "--io positioned")
