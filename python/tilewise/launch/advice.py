"""What to do next, by what went wrong: one line for each system's reason, kind of error and signal."""

from __future__ import annotations

import signal

from tilewise.base.errors import BY_ERRNO

AGAIN = "run again with -v"
LONGER = "a longer --timeout; tilewise plan … predicts how long the job takes"
STOPPED = "find out what stopped it, such as a debugger or a batch system, and run again"
SILENT = "is that host frozen, or out of memory? A debugger there wants --deadline off"
FILE = "does its disk or file server answer? A longer --deadline, where it is only slow"
STUCK = "run again with --deadline off, and gdb -p PID -ex bt where it hangs; report it if it happens again"
MEMORY = "fewer ranks, or a --memory cap; a larger limit of the container or batch job, where it has one"
START = "run again with -v to see what MPI printed, and tilewise doctor"

_KIND: dict[str, str] = {
    "memory": "fewer ranks, or a smaller --memory cap",
    "io": "check that the file is complete and its disk healthy, then run again",
    "mpi": "run again with -v to see what MPI printed, and tilewise doctor",
    "launcher": "tilewise doctor, or another --launcher",
    "internal": "run again with -v, and report this with what it prints",
}
_SIGNAL: dict[int, str] = {
    signal.SIGKILL: "find out what killed it: an operator, a batch system, or the kernel (its log then says "
    "'out of memory'; fewer ranks or a --memory cap need less)",
    signal.SIGTERM: "find out what ended it: a batch system's limit, or an operator",
    signal.SIGINT: "find out what interrupted that rank alone; to end a job, interrupt tilewise",
    signal.SIGXCPU: "ulimit -t unlimited, or fewer repetitions: its limit of processor time was reached",
    signal.SIGBUS: "a disk or /dev/shm may be full (see df), or an input may have shrunk while it was read",
    signal.SIGSEGV: "run again with -v and report this; where ulimit -s is small, a larger one",
    signal.SIGABRT: "run again with -v to see what the ranks printed",
    signal.SIGFPE: "run again with -v and report this",
    signal.SIGILL: "TILEWISE_KERNELS=baseline, where that host's processor is older; else report this",
}


def of_failure(kind: str, number: int) -> str:
    """What to try after a failure of that kind, with the system's reason, or 0."""
    return BY_ERRNO.get(number) or _KIND.get(kind, "")


def of_signal(number: int) -> str:
    """What to try after a rank was killed by that signal."""
    return _SIGNAL.get(number, AGAIN)
