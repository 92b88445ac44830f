"""`make release`: the source archive and the wheels of a version in dist/, checked and tried out.

Refuses uncommitted changes, versions that differ, a source archive that is not what git has, and wheels that
auditwheel or twine object to. Then it installs the wheel for this processor into an empty environment for
each Python of this machine, with no compiler on PATH, makes the product of `make demo` there, and compares it
with NumPy's. The worker of a wheel for another processor is started in an emulator, where one is installed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import wheel
from wheel import OUT, ROOT

SIZE = 4096  # rows and columns, as in the demo
TOLERANCE = 1e-12  # relative to the largest element of the product
LOAD = 'import numpy; a, b, c = (numpy.load(f"{name}.npy") for name in "ABC");'
COMPARE = f"{LOAD} print(abs(c - a @ b).max() / abs(c).max())"
PROBE = "import sys, venv; print(*sys.version_info[:3], sep='.')"
OWN = ("PYTHON", "LD_LIBRARY_PATH", "SLURM_", "PMI", "TILEWISE_", "CC", "CXX")
LIBC = Path(os.environ.get("QEMU_LD_PREFIX", "/usr/aarch64-linux-gnu"))
VERSIONS = {  # where files other than pyproject.toml have the version
    "python/tilewise/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "CHANGELOG.md": r"^## (\S+) \(",
}
MPI = "libmpi_abi.so.1"  # of the mpich package, or the site's
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
VERSION: str = PROJECT["project"]["version"]
OLDEST: str = PROJECT["project"]["requires-python"]
Row = tuple[str, ...]


class ReleaseError(Exception):
    """This tree must not be released; the text says why."""


def output(*words: object, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Standard output of a command that has to succeed."""
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def agree(found: dict[str, str | None]) -> None:
    """Refuses versions that differ from pyproject.toml's."""
    if wrong := [f"{name} has {each or 'none'}" for name, each in found.items() if each != VERSION]:
        raise ReleaseError(f"The version in pyproject.toml is {VERSION}, but {', '.join(wrong)}")


def first(pattern: str, text: str) -> str | None:
    """The group of the pattern's first match."""
    match = re.search(pattern, text, re.MULTILINE)
    return match and match[1]


def versions() -> dict[str, str | None]:
    """The version that each file of the tree has."""
    return {name: first(pattern, (ROOT / name).read_text("utf-8")) for name, pattern in VERSIONS.items()}


def check_tree(dirty: bool) -> None:
    """Refuses a tree that is not what its commit and its tag say."""
    agree(versions())
    tags = [tag for tag in output("git", "tag", "--points-at", "HEAD").split() if re.match(r"v\d", tag)]
    agree({f"the tag {tag}": tag.removeprefix("v") for tag in tags})
    if tags and f"## {VERSION} (unreleased)" in (ROOT / "CHANGELOG.md").read_text("utf-8"):
        raise ReleaseError(f"CHANGELOG.md says that {VERSION} is unreleased; give the day of {tags[0]}")
    if not dirty and (changed := output("git", "status", "--porcelain")):
        raise ReleaseError(f"Not committed:\n{changed}To try it all the same: --dirty")


def differing_files(archived: Iterable[str], kept: Iterable[str], left_out: Iterable[str]) -> list[str]:
    """Files of git that the source archive lacks (-), and others that it has beside them (+)."""
    patterns = [each for name in left_out for each in (name, f"{name}/*")]
    wanted = {name for name in kept if not any(fnmatch.fnmatch(name, each) for each in patterns)}
    has = {*archived} - {"PKG-INFO"}
    return [f"-{name}" for name in sorted(wanted - has)] + [f"+{name}" for name in sorted(has - wanted)]


def check_archive(path: Path) -> str:
    """Compares the source archive with git."""
    with tarfile.open(path) as archive:
        names = [each.name.partition("/")[2] for each in archive.getmembers() if not each.isdir()]
    left_out = PROJECT["tool"]["scikit-build"]["sdist"]["exclude"]
    if wrong := differing_files(names, output("git", "ls-files", "-z").split("\0")[:-1], left_out):
        raise ReleaseError(f"{path.name} is not what is in git: {' '.join(wrong[:20])}")
    return f"{len(names):,} files, as in git"


def versions_in(path: Path) -> dict[str, str | None]:
    """The versions of a wheel: of its metadata, of its Python sources and of its worker."""
    with zipfile.ZipFile(path) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        package, built = (archive.read(f"tilewise/{name}") for name in ("__init__.py", "bin/build.json"))
        return {
            f"{path.name}'s metadata": first(r"^Version: (.+)$", archive.read(metadata).decode()),
            f"{path.name}'s package": first(VERSIONS["python/tilewise/__init__.py"], package.decode()),
            f"{path.name}'s worker": json.loads(built).get("version"),
        }


def objections(audit: dict[str, Any], name: str) -> list[str]:
    """Auditwheel's findings against the wheel of that name."""
    others, platforms = {*audit["external_libs"]} - {MPI}, Path(name).stem.rpartition("-")[2].split(".")
    newer = [] if audit["sym_tag"] in platforms else [f"runs on {audit['sym_tag']} only"]
    return [*newer, *(f"needs {other}, which it does not bring" for other in sorted(others))]


def check_wheel(path: Path) -> str:
    """Refuses a wheel of another version, and one that promises to run where it does not."""
    agree(versions_in(path))
    audit = json.loads(output(sys.executable, "-m", "auditwheel", "show", "--json", path))
    if against := objections(audit, path.name):
        raise ReleaseError(f"{path.name} {', '.join(against)}")
    return f"auditwheel: {audit['sym_tag']}"


def numbers(version: str) -> tuple[int, ...]:
    """The numbers by which versions are ordered."""
    return tuple(map(int, re.findall(r"\d+", version)))


def interpreters(folders: Iterable[Path], oldest: str) -> dict[str, Path]:
    """Every working Python in the folders that is new enough, one for each version."""
    found: dict[str, Path] = {}
    for path in [path for folder in folders for path in sorted(folder.glob("python3*"))]:
        if re.fullmatch(r"python3(\.\d+)?", path.name) and os.access(path, os.X_OK):
            done = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, check=False)
            if done.returncode == 0 and numbers(done.stdout) >= numbers(oldest):
                found.setdefault(done.stdout.strip(), path)
    return dict(sorted(found.items(), key=lambda each: numbers(each[0])))


def try_wheel(path: Path, version: str, python: Path) -> Row:
    """Installs the wheel without a compiler, makes the demo's product and compares it with NumPy's."""
    with tempfile.TemporaryDirectory() as name:
        folder, venv = Path(name), Path(name, "venv")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(OWN)}
        bare = {**kept, "PATH": str(venv / "bin"), "HOME": name}
        seconds = []

        def timed(*words: object, env: dict[str, str] = bare) -> str:
            start = time.monotonic()
            said = output(*words, cwd=folder, env=env)
            seconds.append(time.monotonic() - start)
            return said

        output(python, "-m", "venv", "--without-pip", venv, env=kept)
        pip = (*wheel.PIP, "--python", venv / "bin/python")
        timed(*pip, "install", "--only-binary=:all:", path, env=kept)
        tilewise, shape = venv / "bin/tilewise", f"{SIZE}x{SIZE}"
        for seed, matrix in enumerate("AB", 1):
            timed(tilewise, "generate", "-o", f"{matrix}.npy", "--shape", shape, "--seed", seed, "-q")
        timed(tilewise, "multiply", "A.npy", "B.npy", "-o", "C.npy", "--verify", "fast", "-q")
        difference = float(timed(venv / "bin/python", "-c", COMPARE))
    installing, *generating, multiplying, _ = seconds
    if not difference <= TOLERANCE:
        raise ReleaseError(f"The product differs from NumPy's by {difference}")
    times = (f"{each:.1f} s" for each in (installing, sum(generating), multiplying))
    return version, *times, f"{difference:.0e}"


def try_everywhere(path: Path) -> None:
    """Tries the wheel under each Python, shows a table, and fails if one of them failed."""
    folders = [*map(Path, os.get_exec_path()), *sorted((Path.home() / ".pyenv/versions").glob("*/bin"))]
    rows, failures = [], []
    for version, python in interpreters(folders, OLDEST).items():
        print(f"Trying Python {version}: {python}", flush=True)
        try:
            rows.append(try_wheel(path, version, python))
        except ReleaseError as error:
            rows.append((version, *["failed"] * 4))
            failures.append(f"Python {version}: {error}")
    table(("Python", "install", "generate", "multiply", "difference"), *rows)
    if failures or not rows:
        raise ReleaseError("\n".join(failures) or f"no Python {OLDEST} was found")


def emulate(path: Path, machine: str) -> str:
    """Starts the worker of a wheel for another processor."""
    qemu = shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")
    if qemu is None or not LIBC.is_dir():
        return f"{path.name} was not tried: no emulator. Try: apt install qemu-user-static libc6-arm64-cross"
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
        worker = Path(folder, "tilewise/bin/tilewise-worker")
        worker.chmod(0o755)
        mpi = f"LD_LIBRARY_PATH={ROOT}/build/manylinux/{machine}/packages/lib"
        said = output(qemu, "-L", LIBC, "-E", mpi, worker, "--version")
    agree({f"the worker of {path.name}": said.strip()})
    return f"{path.name}: its worker starts in {Path(qemu).name}"


def build(machines: Iterable[str]) -> None:
    """Fills dist/ with this version, and with no other."""
    for old in OUT.glob("tilewise-*"):
        old.unlink()
    output(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", OUT)
    for machine in machines:
        start = time.monotonic()
        output(sys.executable, ROOT / "tools/wheel.py", "--machine", machine)
        print(f"The wheel for {machine} was built in {time.monotonic() - start:.0f} s", flush=True)


def table(*rows: Row) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def release(asked: argparse.Namespace) -> None:
    check_tree(asked.dirty)
    if not asked.built:
        build(asked.machines)
    archive = OUT / f"tilewise-{VERSION}.tar.gz"
    wheels = {machine: path for machine in asked.machines for path in OUT.glob(f"tilewise-*_{machine}.whl")}
    if not archive.exists() or [*wheels] != asked.machines:
        raise ReleaseError(f"dist/ lacks {archive.name} or a wheel for {' or '.join(asked.machines)}")
    checked = {archive: check_archive(archive), **{path: check_wheel(path) for path in wheels.values()}}
    output(sys.executable, "-m", "twine", "check", "--strict", *checked)
    rows = [(path.name, f"{path.stat().st_size / 1e6:.1f} MB", said) for path, said in checked.items()]
    table(("file in dist/", "size", "checked"), *rows)
    for machine, path in wheels.items():
        if machine == platform.machine():
            try_everywhere(path)
        else:
            print(emulate(path, machine))
    ready = f"tilewise {VERSION} is ready. To publish it: twine upload dist/tilewise-{VERSION}*"
    print("Not to be published: this may not be the commit" if asked.dirty or asked.built else ready)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--machines", nargs="+", choices=wheel.MACHINES, default=[*wheel.MACHINES])
    parser.add_argument("--built", action="store_true", help="check what dist/ has, and build nothing")
    parser.add_argument("--dirty", action="store_true", help="try it with uncommitted changes")
    try:
        release(parser.parse_args())
    except ReleaseError as error:
        sys.exit(f"No release: {error}")


if __name__ == "__main__":
    main()
