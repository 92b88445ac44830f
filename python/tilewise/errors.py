"""The ways a command can fail, each with its exit code and, where there is one, an advice.

An error carries one sentence for standard error and at most one line that says what to do next. Everything
below the command line raises these; only `tilewise.cli.main` prints them, once.
"""

from __future__ import annotations

# Not printable and yet harmless: line ends, and what joins letters and emoji or keeps them apart.
_KEPT = "\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"


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
