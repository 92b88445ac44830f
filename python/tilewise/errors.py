"""The ways a command can fail, each with its exit code and, where there is one, an advice.

An error carries one sentence for standard error and at most one line that says what to do next. Everything
below the command line raises these; only `tilewise.cli.main` prints them, once.
"""

from __future__ import annotations

import errno

# What to do next, by what the system said.
_ADVICE = {
    errno.ENOSPC: "make room on that disk, or name an output on another one",
    errno.EDQUOT: "make room within the quota, or name an output on another file system",
    errno.EFBIG: "another file system, or a larger limit (ulimit -f): no file may be so large here",
    errno.EACCES: "another folder, or the permission to write there",
    errno.EPERM: "another folder, or the permission to write there",
    errno.EROFS: "another folder: this file system is read-only",
    errno.ENOENT: "look whether that folder is still there, and run again",
    errno.ESTALE: "run again; where it comes back, look at the file server",
    errno.EMFILE: "a larger limit of open files (ulimit -n)",
    errno.ENFILE: "end other programs: the machine has too many files open",
    errno.ENOMEM: "fewer ranks, or a --memory cap",
    errno.EINTR: "run again: a signal kept cutting the call short",
    errno.ETIMEDOUT: "run again; where it comes back, look at the file server",
}
_DISK_ADVICE = "look at the kernel's log for errors of that disk or file server, and run again"
# Not printable and yet harmless: line ends, and what joins letters and emoji or keeps them apart.
_KEPT = "\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"


def advice_for(number: int) -> str:
    """What to do about a file or disk that failed with errno `number` (0: not known)."""
    return _ADVICE.get(number, _DISK_ADVICE)


def clean(text: object) -> str:
    """`text`, somebody's words, without what would move a terminal's cursor or make XML ill-formed."""
    return "".join(c if c.isprintable() or c in _KEPT else "\N{REPLACEMENT CHARACTER}" for c in str(text))


class TilewiseError(Exception):
    """Base of all errors that a user may see.

    `message` says what and where, `advice` what to do next (may be empty).
    """

    exit_code = 1

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def text(self) -> str:
        """The whole message as it is printed, without a final newline."""
        lines = [f"tilewise: {self.message}"]
        if self.advice:
            lines.append(f"  try: {self.advice}")
        return clean("\n".join(lines))


class UsageError(TilewiseError):
    """The request is wrong: nothing was started and nothing was changed."""

    exit_code = 2


class RunError(TilewiseError):
    """The job failed while it was running."""

    exit_code = 1


class VerificationError(TilewiseError):
    """The job ran to its end, but its result is not right."""

    exit_code = 3


class Interrupted(TilewiseError):  # noqa: N818 - what happened is no error of anybody
    """Ctrl-C, SIGTERM or SIGHUP ended the job."""

    exit_code = 130
