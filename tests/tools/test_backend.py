"""What a build needs and the package then depends on: the mpich package only where MPI is not the site's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = "/usr/bin/mpicxx"
ASK = """
import json, sys
sys.path.insert(0, "tools/backend")
import tilewise_backend as backend
settings = json.loads(sys.argv[2])
needed = backend.get_requires_for_build_wheel(settings)
made = backend.prepare_metadata_for_build_wheel(sys.argv[1], settings)
print(json.dumps([needed, made]))
"""


def asked(
    tmp_path: Path, settings: dict[str, str] | None, variables: dict[str, str] | None = None
) -> tuple[set[str], set[str]]:
    """Names of the packages that the build needs, and of those that the package depends on."""
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed beside this Python")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("CMAKE_ARGS", "SKBUILD_CMAKE_DEFINE")
    }
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(tmp_path), json.dumps(settings)],
        cwd=ROOT,
        env={**kept, **(variables or {})},
        capture_output=True,
        text=True,
        check=True,
    )
    needed, made = json.loads(done.stdout.splitlines()[-1])
    lines = (tmp_path / made / "METADATA").read_text().splitlines()
    depends = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    return names(needed), names(depends)


def names(requirements: list[str]) -> set[str]:
    return {requirement.split(";")[0].split("=")[0].split(">")[0].strip() for requirement in requirements}


def test_by_default_mpi_and_blas_come_from_packages(tmp_path: Path) -> None:
    needed, depends = asked(tmp_path, None)
    assert {"mpich", "scipy-openblas32"} <= needed
    assert {"mpich", "numpy"} <= depends and "scipy-openblas32" not in depends


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        ({"cmake.define.TILEWISE_MPI_COMPILER": SITE}, {}),
        ({"cmake.args": f"-DTILEWISE_MPI_COMPILER:STRING={SITE}"}, {}),
        (None, {"SKBUILD_CMAKE_DEFINE": f"TILEWISE_MPI_COMPILER={SITE}"}),
        (None, {"CMAKE_ARGS": f"-DTILEWISE_MPI_COMPILER={SITE}"}),
    ],
)
def test_a_build_on_the_sites_mpi_has_no_mpich_package(
    tmp_path: Path, settings: dict[str, str] | None, variables: dict[str, str]
) -> None:
    needed, depends = asked(tmp_path, settings, variables)
    assert "mpich" not in needed | depends
    assert "scipy-openblas32" in needed and "numpy" in depends


def test_the_sites_blas_needs_no_package(tmp_path: Path) -> None:
    needed, depends = asked(tmp_path, {"cmake.define.TILEWISE_BLAS": "site"})
    assert "scipy-openblas32" not in needed and {"mpich"} <= needed & depends


def test_a_build_without_a_compiler_says_what_to_do(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed beside this Python")
    build = "import sys; sys.path.insert(0, 'tools/backend'); import tilewise_backend as b; b.build_wheel('')"
    done = subprocess.run(
        [sys.executable, "-c", build],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path), "CXX": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("tilewise cannot be built. A C++20 compiler is needed")
    assert "none was found" in done.stderr and "apt install g++" in done.stderr


def test_a_compiler_without_cxx20_is_named(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tools/backend"))
    import tilewise_compiler

    old = tmp_path / "old-c++"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)

    assert f"{old} cannot compile C++20" in str(tilewise_compiler.missing_compiler(str(old)))
    assert f"{old}er was not found" in str(tilewise_compiler.missing_compiler(f"{old}er"))
    assert tilewise_compiler.missing_compiler() is None
