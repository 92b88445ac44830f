"""Removes part files when the front itself is killed: hydra, for one, kills all ranks at once."""

from __future__ import annotations

import contextlib
import subprocess

_PATIENCE = 60.0  # seconds; it takes a millisecond where it is given a core

# Waits for a word; an end of the input without one means that the front has gone.
_SCRIPT = """trap '' INT TERM HUP
read -r word && exit 0
gone=yes
for path; do if [ -d "$path" ]; then rmdir -- "$path"; else rm -f -- "$path"; fi || gone=no; done
for path; do
  if [ -d "$path.old" ]; then printf 'tilewise: the old folder is complete, as %s\\n' "$path.old" >&2; fi
done
[ $gone = yes ] && printf '%s\\n' "$TILEWISE_LAST_WORDS" >&2"""


class Guardian:
    """A shell of a few kilobytes, in a session of its own so that no killing of groups reaches it.

    It removes `paths`: files, and folders once what stands before them has left them empty. What an old
    folder is called while it changes names with a new one (`files/renaming.py`), it says.
    """

    def __init__(self, paths: list[str], last_words: str) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):  # where there is no shell, there is no guardian
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "tilewise-guardian", *paths],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env={"PATH": "/bin:/usr/bin", "TILEWISE_LAST_WORDS": last_words},
                start_new_session=True,
            )

    def dismiss(self) -> None:
        """Nothing is left to guard."""
        if self._process is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._process.communicate(b"done\n", timeout=_PATIENCE)
            self._process = None
