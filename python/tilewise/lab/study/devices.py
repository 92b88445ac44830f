"""Figures of real graphics processors, and of those that the tests' driver plays: never on one page."""

from __future__ import annotations

from collections.abc import Iterable

from tilewise.base.errors import UsageError
from tilewise.lab.study.store import Entry


def refuse_mixture(where: str, environments: Iterable[object]) -> None:
    """Raises UsageError where some `environments` of records had real devices and others simulated ones.

    They are those of `where`.
    """
    sorts = {
        bool(told.get("simulated_devices"))
        for told in environments
        if isinstance(told, dict) and told.get("devices")
    }
    if len(sorts) > 1:
        raise UsageError(
            f"{where}: figures of real graphics processors and of simulated ones, which no page mixes",
            "one page for each; tilewise study run … --into another folder",
        )


def environments_of(entries: Iterable[Entry]) -> list[object]:
    """What their records say of where they ran."""
    return [(entry.record or {}).get("environment") for entry in entries]
