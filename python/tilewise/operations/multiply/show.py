"""What is said of a product."""

from __future__ import annotations

from typing import ClassVar

from tilewise.operations.show import Show


class ShowMultiply(Show):
    """Words for people."""

    methods: ClassVar[dict[str, str]] = {
        "fast": "Freivalds' check",
        "freivalds": "Freivalds' check",
        "serial": "a plain product on one rank",
    }
