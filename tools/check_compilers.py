"""`make compilers`: has other compilers read every C++ source of the package as the build compiles it.

It takes the command lines of a build folder and changes the compiler; no code is made. Kernels, whose
built-in functions are judged only when code is made, are compiled. Each source is read by itself and without
the precompiled header, so that it includes what it needs.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
# Warnings are for the compilers that the builds use: this is about errors.
LEFT_OUT = ("-Werror", "-Wconversion")


def sources(build: Path) -> list[tuple[Path, Path, list[str]]]:
    """Each C++ source with the folder and the options that it is compiled with."""
    units = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        source = Path(entry["file"])
        # Tests may use what the oldest lack: Clang 15 and older capture no structured bindings.
        if source.suffix == ".cpp" and not source.is_relative_to(TESTS):
            first = 2 if Path(words[0]).name == "ccache" else 1
            output = words.index("-o")
            kept = [word for word in words[first:output] + words[output + 2 :] if word not in LEFT_OUT]
            if "-include" in kept:  # the precompiled header, which hides what a file should include itself
                at = kept.index("-include")
                del kept[at : at + 2]
            units.append((source, Path(entry["directory"]), kept))
    return units


def complaint(compiler: str, entry: tuple[Path, Path, list[str]]) -> str:
    """What the compiler refuses; empty where it takes the source."""
    source, folder, options = entry
    mode = ["-o", os.devnull] if "kernel" in source.parts else ["-fsyntax-only"]
    done = subprocess.run(
        [compiler, *options, "-w", *mode], cwd=folder, capture_output=True, text=True, check=False
    )
    return f"{compiler} {source}:\n{done.stderr.strip()}" if done.returncode != 0 else ""


def main(build: str, *words: str) -> int:
    wrong = 0
    for compiler in words:
        if shutil.which(compiler) is None:
            print(f"{compiler} is not here", file=sys.stderr)
            return 2
        started = time.monotonic()
        every = sources(Path(build))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            said = [text for text in pool.map(partial(complaint, compiler), every) if text]
        print("\n".join(said), end="\n" if said else "", file=sys.stderr)
        took = time.monotonic() - started
        print(f"{compiler}: {len(every) - len(said)} of {len(every)} in {took:.0f} s")
        wrong += len(said)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
