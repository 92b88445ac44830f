"""What to do next, by what went wrong: one line for each system's reason, kind of error and signal."""

from __future__ import annotations

import errno
import signal

AGAIN = "run again with -v"
LONGER = "a longer --timeout; tilewise plan … says how long it is foreseen to take"
STOPPED = "look who stopped it, such as a debugger or a batch system, and run again"
MEMORY = "fewer ranks, or a --memory cap; a larger limit of the container or batch job, where it has one"
START = "run again with -v to see what MPI printed, and tilewise doctor"

_ERRNO: dict[int, str] = {
    errno.ENOSPC: "free some space on that disk (df tells), or name an output on another",
    errno.EDQUOT: "free some of your quota (quota -s tells), or name an output on another disk",
    errno.EFBIG: "ulimit -f unlimited, or a file system that takes files of that size",
    errno.EIO: "look for errors of that disk in its host's kernel log (dmesg), then run again",
    errno.EACCES: "look at the permissions of the file and its folder, on that host too",
    errno.EPERM: "look at permissions and attributes (lsattr) of the file and its folder, on that host too",
    errno.EROFS: "name an output on a file system that may be written to (findmnt tells)",
    errno.ENOENT: "look whether that host has the file under the same path, and who may have removed it",
    errno.ESTALE: "run again: another machine replaced the file, or its server was started anew",
    errno.EMFILE: "ulimit -n with a larger number, or fewer ranks",
    errno.ENFILE: "fewer ranks: that host has as many files open as its kernel allows",
    errno.ENOMEM: MEMORY,
    errno.EINTR: AGAIN,
    errno.EAGAIN: "run again: that host was short of a resource for a moment",
    errno.EBUSY: "run again once nothing else uses the file",
    errno.ETXTBSY: "run again once nothing else uses the file",
    errno.ETIMEDOUT: "look whether the file server answers, then run again",
    errno.ENOTCONN: "look whether the file server answers, then run again",
    errno.EINVAL: "another --io: that file system does not do what was asked of it",
    errno.EOPNOTSUPP: "another --io: that file system does not do what was asked of it",
    errno.ENODEV: "another --io: that file system does not do what was asked of it",
}
_KIND: dict[str, str] = {
    "memory": "fewer ranks, or a smaller --memory cap",
    "io": "look whether the file is whole, and its disk well, then run again",
    "mpi": "run again with -v to see what MPI printed, and tilewise doctor",
    "launcher": "tilewise doctor, or another --launcher",
    "internal": "run again with -v, and report this with what it prints",
}
_SIGNAL: dict[int, str] = {
    signal.SIGKILL: "find out who killed it: an operator, a batch system, or the kernel (its log then says "
    "'out of memory'; fewer ranks or a --memory cap need less)",
    signal.SIGTERM: "find out who ended it: a batch system's limit, or an operator",
    signal.SIGINT: "find out who interrupted that rank alone; to end a job, interrupt tilewise",
    signal.SIGXCPU: "ulimit -t unlimited, or fewer repetitions: its limit of processor time was reached",
    signal.SIGBUS: "a disk or /dev/shm may be full (df tells), or an input may have shrunk while it was read",
    signal.SIGSEGV: "run again with -v and report this; where ulimit -s is small, a larger one",
    signal.SIGABRT: "run again with -v to see what the ranks printed",
    signal.SIGFPE: "run again with -v and report this",
    signal.SIGILL: "TILEWISE_KERNELS=baseline, where that host's processor is older; else report this",
}


def of_failure(kind: str, number: int) -> str:
    """What to try after a failure of that kind, with the system's reason, or 0."""
    return _ERRNO.get(number) or _KIND.get(kind, "")


def of_signal(number: int) -> str:
    """What to try after a rank was killed by that signal."""
    return _SIGNAL.get(number, AGAIN)
