"""The ways a command can fail, each with its exit code and, where there is one, an advice.

An error carries one sentence for standard error and at most one line that says what to do next. Everything
below the command line raises these; only `tilewise.cli.main` prints them, once.
"""

from __future__ import annotations

import errno
from types import TracebackType
from typing import Any

# What to do next, by what the system said.
BY_ERRNO = {
    errno.ENOSPC: "free space on that disk (see df), or write to another disk",
    errno.EDQUOT: "free some of your quota (see quota -s), or write to another disk",
    errno.EFBIG: "ulimit -f unlimited, or a file system that takes files of that size",
    errno.EIO: "check the host's kernel log (dmesg) for disk errors, then run again",
    errno.EACCES: "check the permissions of the file and its folder, on that host too",
    errno.EPERM: "check the permissions and attributes (lsattr) of the file and its folder, on that host too",
    errno.EROFS: "write to a file system that is not read-only (see findmnt)",
    errno.ENOENT: "check that the host has the file under the same path, and that nothing removed it",
    errno.ESTALE: "run again: another machine replaced the file, or its server was restarted",
    errno.EMFILE: "ulimit -n with a larger number, or fewer ranks",
    errno.ENFILE: "fewer ranks: that host has reached its limit of open files",
    errno.ENOMEM: "fewer ranks, a --memory cap, or a larger limit of the container or batch job",
    errno.EINTR: "run again with -v",
    errno.EAGAIN: "run again: that host was briefly short of a resource",
    errno.EBUSY: "run again once nothing else uses the file",
    errno.ETXTBSY: "run again once nothing else uses the file",
    errno.ETIMEDOUT: "check that the file server responds, then run again",
    errno.ENOTCONN: "check that the file server responds, then run again",
    errno.EINVAL: "another --io: that file system does not support the operation",
    errno.EOPNOTSUPP: "another --io: that file system does not support the operation",
    errno.ENODEV: "another --io: that file system does not support the operation",
}
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DISK_ADVICE = "check the kernel log for errors of that disk or file server, then run again"
_TRY = "  try: "  # begins the line that says what to do next
# Not printable and yet harmless: line ends, and what joins letters and emoji or keeps them apart.
_KEPT = "\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"


def advice_for(number: int) -> str:
    """Return advice on a file or disk that failed with errno `number` (0: not known)."""
    return BY_ERRNO.get(number, _DISK_ADVICE)


def clean(text: object) -> str:
    """`text`, somebody's words, without what would move a terminal's cursor or make XML ill-formed."""
    return "".join(c if c.isprintable() or c in _KEPT else "\N{REPLACEMENT CHARACTER}" for c in str(text))


WARNING = "tilewise: warning: "  # begins a line on standard error


def warning_line(text: str) -> str:
    """A warning as a line for standard error, to be written in one piece."""
    return f"{WARNING}{clean(text)}\n"


class TilewiseWarning(UserWarning):
    """The job goes on, or is done, but its result may not be what was meant."""


class TilewiseError(Exception):
    """Base of all errors that a user may see.

    `message` says what and where, `advice` what to do next (may be empty). `record` is that of a job that ran
    to its end.
    """

    exit_code = 1
    record: Any = None

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    @property
    def advice(self) -> str:
        """Advice on what to do next, or nothing. A traceback shows it as a note (PEP 678)."""
        return self._advice

    @advice.setter
    def advice(self, advice: str) -> None:
        self._advice = advice
        others = [note for note in getattr(self, "__notes__", ()) if not note.startswith(_TRY)]
        self.__notes__ = [clean(f"{_TRY}{advice}"), *others] if advice else others

    def text(self) -> str:
        """The whole message as it is printed, without a final newline."""
        lines = [f"tilewise: {self.message}"]
        if self.advice:
            lines.append(f"{_TRY}{self.advice}")
        return clean("\n".join(lines))

    def _render_traceback_(self) -> list[str]:
        """Return what Jupyter prints: the caller's lines, the message, the advice; no lines of ours."""
        from IPython import get_ipython  # type: ignore[import-not-found, unused-ignore]

        shown = get_ipython().InteractiveTB.structured_traceback(  # type: ignore[no-untyped-call, unused-ignore]
            type(self), self, _outside(self.__traceback__)
        )
        unsaid = [note for note in self.__notes__ if not any(note in line for line in shown)]
        return [*shown, *unsaid]  # older versions show no notes


def _outside(trace: TracebackType | None) -> TracebackType | None:
    """`trace` without the frames of this package."""
    ours = __name__.partition(".")[0]
    kept: list[TracebackType] = []
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0] != ours:
            kept.append(trace)
        trace = trace.tb_next
    for each in reversed(kept):
        trace = TracebackType(trace, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return trace


class UsageError(TilewiseError):
    """The request is wrong: nothing was started and nothing was changed."""

    exit_code = 2


class RunError(TilewiseError):
    """The job failed while it was running."""

    exit_code = 1


class StartError(RunError):
    """MPI itself crashed on one of several hosts before any rank had begun: a new start may well succeed."""


class TimeLimitError(RunError):
    """The job reached its time limit before anything was kept: another start would not help."""


class VerificationError(TilewiseError):
    """The job ran to its end, but its result is not right."""

    exit_code = 3


class Stopped(TilewiseError):  # noqa: N818 - it is no error of anybody
    """The job ended at its time limit, and can go on from what it has done."""

    exit_code = 4


class Interrupted(TilewiseError):  # noqa: N818 - what happened is no error of anybody
    """Ctrl-C, SIGTERM or SIGHUP ended the job."""

    exit_code = 130


def one_line(error: BaseException) -> str:
    """The text of an error in at most 200 characters without line ends, or its kind where it has none."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(shown.split())[:200] or type(error).__name__


def disk_failure(what: str, error: OSError) -> RunError:
    """Return the error of a failed file system; `what` begins the sentence."""
    return RunError(f"{what}: {one_line(error)}", advice_for(error.errno or 0))
