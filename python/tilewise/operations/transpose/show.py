"""Words about a transposition."""

from __future__ import annotations

from typing import ClassVar

from tilewise.operations.show import Show


class ShowTranspose(Show):
    """Words for people."""

    methods: ClassVar[dict[str, str]] = {
        "fast": "fingerprints of both files",
        "serial": "comparing both files, number by number, on one rank",
    }
