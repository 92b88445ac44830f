"""The worker's constants: whose they are, where they are sought, and what is said where they are missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tilewise.base.errors import UsageError
from tilewise.launch import constants as module
from tilewise.launch import worker
from tilewise.launch.constants import constants, digest
from tilewise.launch.job import quit_job

Build = Callable[[dict[str, Any]], None]


class Sizes(msgspec.Struct, frozen=True):
    panel_width: int


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Build:
    """Names a worker beside which lie such facts."""

    def made(facts: dict[str, Any]) -> None:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / worker.NAME).touch(mode=0o755)
        (folder / worker.FACTS).write_text(json.dumps(facts))
        monkeypatch.setenv("TILEWISE_WORKER", str(folder / worker.NAME))

    return made


def test_they_are_those_of_the_worker_that_is_named(build: Build) -> None:
    build({"constants": {"digest": 7, "multiply.panel_width": 11, "svd.panel_width": 12}})
    assert constants("multiply", Sizes).panel_width == 11
    assert constants("svd", Sizes).panel_width == 12
    assert digest() == quit_job().constants == 7
    build({"constants": {"digest": 8, "multiply.panel_width": 13}})
    assert constants("multiply", Sizes).panel_width == 13
    assert digest() == 8


def test_where_nothing_lies_beside_the_worker_they_are_the_package_s(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILEWISE_WORKER", raising=False)
    if worker.find() is None:
        pytest.skip("the worker is not built")
    own = constants("multiply", Sizes), digest()
    assert own[1] != 0
    for facts in ({"mpi": "site"}, {"constants": None}):
        build(facts)
        assert (constants("multiply", Sizes), digest()) == own
    monkeypatch.setenv("TILEWISE_WORKER", "/nowhere")
    assert (constants("multiply", Sizes), digest()) == own


def test_what_is_missing_is_named(build: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    build({"constants": {"digest": 7, "multiply.panel": 11}})
    with pytest.raises(UsageError, match=r"build\.json .*of multiply .*panel_width"):
        constants("multiply", Sizes)
    monkeypatch.setenv("TILEWISE_WORKER", str(tmp_path / "nowhere"))
    monkeypatch.setattr(worker, "places", lambda: [])
    module._built.cache_clear()
    module._read.cache_clear()
    try:
        with pytest.raises(UsageError, match=r"constants are missing.*/build\.json"):
            constants("multiply", Sizes)
        assert digest() == 0
    finally:
        module._built.cache_clear()
        module._read.cache_clear()
