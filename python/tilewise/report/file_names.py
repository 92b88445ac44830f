"""Names of a report's parts, for files and for anchors of a page."""

from __future__ import annotations

import re

_LONGEST = 80


class FileNames:
    """Letters, digits and hyphens; each name once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, key: str) -> str:
        """`key` as a name that was not given yet."""
        base = re.sub(r"[^A-Za-z0-9]+", "-", key).strip("-")[:_LONGEST] or "part"
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}-{number}"
        self._taken.add(name)
        return name
