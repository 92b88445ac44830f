"""Finds out, before a build starts, whether this machine has a C++20 compiler.

Has no syntax newer than Python 3.7: `tools/bootstrap.py` imports it before it has looked at the Python.
"""

from __future__ import annotations

import pathlib
import shlex
import shutil
import subprocess
import tempfile

CXX20_PROBE = """
#include <concepts>
#include <span>
template <std::integral T> T first(std::span<const T> s) { return s[0]; }
int main() { const int a[] = {0}; return first(std::span<const int>(a)); }
"""


def missing_compiler(chosen: str | None = None) -> str | None:
    """Why nothing can be compiled and what to do about it, or None where a compiler works.

    Compiles five lines of C++20 with `chosen`, or else with each of the compilers that CMake looks for.
    """
    tried = []
    for name in [chosen] if chosen else ["c++", "g++", "clang++"]:
        command = shlex.split(name)
        if shutil.which(command[0]) is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "probe.cpp")
            source.write_text(CXX20_PROBE, encoding="ascii")
            run = [*command, "-std=c++20", str(source), "-o", str(source.with_suffix(""))]
            if subprocess.run(run, capture_output=True, check=False).returncode == 0:
                return None
        tried.append(name)
    found = "{} cannot compile C++20".format(" and ".join(tried)) if tried else "none was found"
    if chosen and not tried:
        found = f"{chosen} was not found"
    return (
        f"A C++20 compiler is needed (GCC 11, Clang 14 or newer): {found}. Try, on Debian or Ubuntu: "
        "apt install g++. To use another compiler, set CXX=/path/to/c++"
    )
