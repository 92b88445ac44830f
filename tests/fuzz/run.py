"""Fuzzes targets one after the other, those of C++ under libFuzzer and those of Python under atheris.

python tests/fuzz/run.py [--seconds 60] [TARGET …]

Findings lie in build/fuzz/found; once one is mended, its input goes into tests/fuzz/corpus/TARGET.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BUILD = Path("build/fuzz")
CXX = ("text", "format", "unpack", "job")


def build() -> bool:
    """Builds the C++ targets; False where there is no clang."""
    if not shutil.which("clang++"):
        print("clang++ is not installed: the targets in C++ are left out")
        return False
    targets = [f"tilewise-fuzz-{name}" for name in CXX]
    subprocess.run(["cmake", "--preset", "fuzz", f"-DPython_EXECUTABLE={sys.executable}"], check=True)
    subprocess.run(["cmake", "--build", str(BUILD / "cpp"), "--target", *targets], check=True)
    return True


def command(name: str, seconds: str) -> list[str]:
    """How a target is fuzzed: what it learns lies in build/fuzz, beside what is kept in corpus/."""
    if name not in CXX:
        return [sys.executable, str(HERE / "python.py"), name, seconds]
    learnt = BUILD / "learnt" / name
    learnt.mkdir(parents=True, exist_ok=True)
    limits = ["-max_len=4000", "-timeout=2", "-malloc_limit_mb=64", f"-max_total_time={seconds}"]
    found = f"-artifact_prefix={BUILD}/found/{name}-"
    dictionary = [f"-dict={HERE}/text.dict"] if name == "text" else []
    program = BUILD / "cpp" / "tests" / "fuzz" / f"tilewise-fuzz-{name}"
    return [str(program), *limits, found, *dictionary, str(learnt), str(HERE / "corpus" / name)]


def main() -> int:
    """Fuzzes all that is asked for; 1 where anything was found."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--seconds", default="60", help="for each target (60)")
    asked.add_argument("targets", nargs="*", help="all, unless some are named")
    given = asked.parse_args()
    sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
    import targets

    (BUILD / "found").mkdir(parents=True, exist_ok=True)
    names = given.targets or [*CXX, *targets.TARGETS]
    if set(names) & set(CXX) and not build():
        names = [name for name in names if name not in CXX]
    os.environ["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"
    broken = [name for name in names if subprocess.run(command(name, given.seconds), check=False).returncode]
    print(f"{len(names)} targets" + (f"; something was found in {', '.join(broken)}" if broken else ""))
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
