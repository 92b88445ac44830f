"""The command that installs a missing package, for each way in which tilewise may have been installed."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import pytest
from tilewise.base import programs

EXTRA = ("zarr", "zarr")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of its own, with pip, whose Python is not the one of the shell."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python3"))
    monkeypatch.setattr(programs, "find_spec", lambda package: package if package == "pip" else None)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").touch(0o755)
    return tmp_path


def test_an_environment_that_is_entered_or_not(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert programs.installing(*EXTRA) == f"{place}/bin/python3 -m pip install 'tilewise[zarr]'"
    monkeypatch.setenv("PATH", f"{place}/bin{os.pathsep}{os.environ['PATH']}")
    assert programs.installing(*EXTRA) == "python3 -m pip install 'tilewise[zarr]'"
    assert programs.installing("imagecodecs") == "python3 -m pip install imagecodecs"


def test_pipx(place: Path) -> None:
    (place / "pipx_metadata.json").touch()
    assert programs.installing(*EXTRA) == "pipx inject tilewise zarr"


def test_an_environment_of_uv(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find_spec", lambda package: None)
    assert programs.installing(*EXTRA) == f"uv pip install --python {place}/bin/python3 'tilewise[zarr]'"


def test_the_python_of_the_system(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "base_prefix", str(place))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(place))
    assert programs.installing("zarr") == f"{place}/bin/python3 -m pip install zarr"
    (place / "EXTERNALLY-MANAGED").touch()
    marked = " --user --break-system-packages"
    assert programs.installing("zarr") == f"{place}/bin/python3 -m pip install{marked} zarr"


def test_what_lacks_is_said_with_the_command(place: Path) -> None:
    assert programs.lacking("pip") == []
    (said,) = programs.lacking(*EXTRA)
    assert said == f"reading its numbers needs the package zarr: {programs.installing(*EXTRA)}"
