"""A hidden folder for files that live as long as a measurement, however that ends."""

from __future__ import annotations

import os
import shutil
import tempfile

from tilewise.base.claim import Claim
from tilewise.base.errors import UsageError
from tilewise.launch.cleanup import Guardian

_LEAD = "the measurement was killed and its sample files are removed"


class Scratch:
    """A new folder in `parent`, which `flag` named. `names` are the files that may come to lie in it.

    A guardian removes them, and the folder, when this process is killed.
    """

    def __init__(self, parent: str, flag: str, names: list[str]) -> None:
        try:
            self._folder = os.path.realpath(tempfile.mkdtemp(prefix=".tilewise-measure-", dir=parent))
        except OSError as error:
            raise UsageError(
                f"{flag} {parent} cannot be written: {error.strerror or error}", f"{flag} with another place"
            ) from None
        claim = Claim("", "", undo=[*map(self.path, names), self._folder])
        self._guardian = Guardian([claim], _LEAD)

    def path(self, name: str) -> str:
        """Of a file in the folder."""
        return os.path.join(self._folder, name)

    def remove(self) -> None:
        """Takes away the folder with all that is in it; safe to call twice."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._guardian.dismiss()
