"""Where a rank shows its phase to who can look into its memory: also when it is stopped, and says nothing.

It is one letter of its environment, as the kernel shows that in /proc; the worker changes it in place.
"""

from __future__ import annotations

VARIABLE, NONE = "TILEWISE_PHASE", "-"
_PHASES = ("input", "compute", "exchange", "output", "verify")  # each begins with another letter


def of(pid: int) -> str | None:
    """The phase of rank `pid` of this host, empty outside of a job; None where it cannot be seen."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return None
    begin = f"{VARIABLE}=".encode()
    letter = next((word[len(begin) :].decode() for word in words if word.startswith(begin)), None)
    if letter is None:
        return None
    return next((phase for phase in _PHASES if phase[0] == letter), "")
