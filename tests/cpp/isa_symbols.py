"""Fails where code compiled for one instruction set defines what another object may define, too.

Of functions that several objects have (inline ones, templates) the linker keeps any. One compiled for AVX-512
would then be called on every processor.
"""

from __future__ import annotations

import subprocess
import sys


def shared_functions(nm: str, path: str) -> list[str]:
    """The functions in the object at `path` of which the linker keeps one for the whole program."""
    listed = subprocess.run([nm, "-C", "--defined-only", path], capture_output=True, text=True, check=True)
    symbols = (line.split(maxsplit=2) for line in listed.stdout.splitlines())
    return [name for _, kind, name in symbols if kind == "W"]


def main(nm: str, paths: list[str]) -> int:
    """Prints what is shared, and by which object."""
    found = [f"{path}: {name}" for path in paths for name in shared_functions(nm, path)]
    print("\n".join(found) or f"{len(paths)} objects share no function")
    return 1 if found or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
