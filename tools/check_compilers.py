"""`make compilers`: has other compilers read every C++ source of the package as the build compiles it.

It takes the command lines of a build folder and changes the compiler; no code is made. Kernels, whose
built-in functions are judged only when code is made, are compiled. `--built=FOLDER` names a build by one of
these compilers that is up to date, with no precompiled header: it is spared the sources that it compiled
there, but those that speak to MPI, which is another library there.
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
MPI = ROOT / "cpp/tilewise/mpi"
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


def built(folder: Path, compiler: str) -> set[Path]:
    """The sources that the compiler has compiled in that build folder, those that speak to MPI left out."""
    found = set()
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        words, source = shlex.split(entry["command"]), Path(entry["file"])
        made = Path(entry["directory"], words[words.index("-o") + 1]).exists()
        if made and Path(words[0]).name == Path(compiler).name and "-include" not in words:
            found.add(source)
    return {source for source in found if not source.is_relative_to(MPI)}


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
    others = [word.removeprefix("--built=") for word in words if word.startswith("--built=")]
    for compiler in words[len(others) :]:
        if shutil.which(compiler) is None:
            print(f"{compiler} is not here", file=sys.stderr)
            return 2
        started = time.monotonic()
        spared = {source for other in others for source in built(Path(other), compiler)}
        every = [unit for unit in sources(Path(build)) if unit[0] not in spared]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            said = [text for text in pool.map(partial(complaint, compiler), every) if text]
        print("\n".join(said), end="\n" if said else "", file=sys.stderr)
        print(
            f"{compiler}: {len(every) - len(said)} of {len(every)} in {time.monotonic() - started:.0f} s"
            + (f"; {len(spared)} more were compiled in {', '.join(others)}" if spared else "")
        )
        wrong += len(said)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
