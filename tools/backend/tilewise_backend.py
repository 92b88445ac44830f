"""Builds the package by scikit-build-core; which MPI and BLAS are asked for decides what that needs.

A build on the site's MPI must neither fetch nor depend on the mpich package, whose `mpiexec` would hide the
site's. This module is the backend that `pyproject.toml` names, and the provider of the dependencies.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from scikit_build_core import build as _core
from scikit_build_core.settings.skbuild_read_settings import SettingsReader
from tilewise_compiler import missing_compiler

Settings = dict[str, Any] | None
_MPI, _BLAS = "TILEWISE_MPI_COMPILER", "TILEWISE_BLAS"
_asked: Settings = None  # the settings of the request being answered; providers are not told them


def _defined(settings: Settings) -> dict[str, str]:
    """What CMake is told, by `cmake.define`, `cmake.args`, their variables or CMAKE_ARGS."""
    told = SettingsReader.from_file("pyproject.toml", settings, state="wheel").settings.cmake
    definitions = {name: str(value) for name, value in told.define.items()}
    for word in [*told.args, *shlex.split(os.environ.get("CMAKE_ARGS", ""))]:
        if word.startswith("-D") and "=" in word:
            name, value = word[2:].split("=", 1)
            definitions[name.partition(":")[0]] = value
    return definitions


def _of_wheels(settings: Settings, mpi: list[str], blas: list[str]) -> list[str]:
    """Those of the packages that bring MPI and BLAS that are not the site's."""
    told = _defined(settings)
    return [*([] if told.get(_MPI) else mpi), *(blas if told.get(_BLAS, "wheel") == "wheel" else [])]


def dynamic_metadata(settings: Mapping[str, Any], _project: Mapping[str, Any]) -> dict[str, list[str]]:
    """What the package depends on where it is installed."""
    return {"dependencies": [*_of_wheels(_asked, settings["mpi"], []), *settings["always"]]}


def get_requires_for_dynamic_metadata(settings: Mapping[str, Any]) -> list[str]:
    """What a build needs beside the backend."""
    return _of_wheels(_asked, settings["mpi"], settings["blas"])


def _remember(settings: Settings) -> Settings:
    global _asked  # noqa: PLW0603
    _asked = settings
    return settings


def _announce(settings: Settings) -> None:
    """Says what a build does and how long it takes, which `pip -v` shows; ends one without a compiler."""
    told = _defined(settings).get("CMAKE_CXX_COMPILER")
    problem = missing_compiler(shlex.quote(told) if told else os.environ.get("CXX"))
    if problem:
        sys.exit(f"tilewise cannot be built. {problem}")
    print("Compiling the tilewise worker: two to three minutes on two cores", file=sys.stderr, flush=True)


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return _core.get_requires_for_build_wheel(_remember(config_settings))


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return _core.get_requires_for_build_editable(_remember(config_settings))


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    _remember(config_settings)
    return []  # an sdist is not compiled


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    return _core.prepare_metadata_for_build_wheel(metadata_directory, _remember(config_settings))


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: Settings = None) -> str:
    return _core.prepare_metadata_for_build_editable(metadata_directory, _remember(config_settings))


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    _announce(config_settings)
    return _core.build_wheel(wheel_directory, _remember(config_settings), metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    _announce(config_settings)
    return _core.build_editable(wheel_directory, _remember(config_settings), metadata_directory)


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    return _core.build_sdist(sdist_directory, _remember(config_settings))
