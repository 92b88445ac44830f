"""Changes honest inputs at random and gives them to tilewise: no signal, no hang, nothing touched outside.

python tests/fuzz/mutations.py [--count 20000] [--seed 1] [TARGET …]

Each target of `targets.py` gets its share, in a child under limits of memory and time. Two more are run as
whole programs: `worker`, a rank with a changed job on real files, and `seam`, the command with a worker that
says changed events. All run in a folder of their own, under strace where it is there: whatever they make,
change or remove lies in that folder, or is shared memory. Findings lie in build/fuzz/found.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
FOUND = Path("build/fuzz/found")
SECONDS = 30  # that one input may take
MEMORY = 2 << 30  # bytes of data that a program may have
PROGRAMS = ("worker", "seam")
SHARE = 20  # inputs of a target in a child for one of a program, which takes as long
BEGIN = "/fuzz-begins-here"  # no such file; what was opened before it is what Python imports
_CALLS = (
    "open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,"
    "symlinkat,truncate,chmod,fchmodat,chown,fchownat,mknodat"
)
_CALL = re.compile(r"(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)")
_PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SHARED = ("/dev/null", "/dev/shm/", "/dev/tty", "/proc/self/", "/proc/")


def bytes_changed(data: bytes, chosen: random.Random) -> bytes:
    """`data` with a few bits, bytes, numbers or stretches changed."""
    changed = bytearray(data)
    for _ in range(chosen.choice((1, 1, 2, 3, 8))):
        if not changed:
            break
        at = min(len(changed) - 1, int(len(changed) * chosen.random() ** chosen.choice((1, 3))))
        what = chosen.randrange(6)
        if what == 0:
            changed[at] ^= 1 << chosen.randrange(8)
        elif what == 1:
            changed[at] = chosen.choice((0, 1, 0x7F, 0x80, 0xFF, chosen.randrange(256)))
        elif what == 2:
            width = chosen.choice((2, 4, 8))
            value = chosen.choice(
                (0, 1, (1 << 8 * width) - 1, 1 << 8 * width - 1, chosen.getrandbits(8 * width))
            )
            changed[at : at + width] = value.to_bytes(width, chosen.choice(("little", "big")))
        elif what == 3:
            del changed[at : at + chosen.choice((1, 4, 64, len(changed)))]
        elif what == 4:
            end = at + chosen.choice((1, 8, 64))
            changed[at:at] = changed[at:end] * chosen.choice((1, 2, 50))
        else:
            digits = re.search(rb"\d+", changed[at:])
            if digits:
                number = chosen.choice((b"0", b"-1", b"4294967296", b"9223372036854775807", b"1e308"))
                changed[at + digits.start() : at + digits.end()] = number
    return bytes(changed[:200_000])


def inputs(name: str, count: int, seed: int) -> Iterator[bytes]:
    """So many changed inputs of a target, always the same ones."""
    import mutate
    import targets

    target = targets.TARGETS[name]
    honest = list(target.seeds())
    chosen = random.Random(f"{name} {seed}")
    for number in range(count):
        data = honest[number % len(honest)]
        tree = target.structured and number % 3
        yield mutate.mutated(data, chosen.getrandbits(32)) if tree else bytes_changed(data, chosen)


def child(name: str, count: int, seed: int, first: int, folder: Path) -> None:
    """Does a target's inputs from number `first` on; writes down which one it is at, and what was found."""
    import matplotlib.font_manager  # noqa: F401 - it makes folders and a list of fonts when it comes in
    import targets
    import watch

    target, inside = targets.TARGETS[name], folder / "in"
    inside.mkdir()
    for data in target.seeds():
        targets.called(target, data, inside, watching=False)
    watch.limit_memory()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    at = os.open(folder / "at", os.O_CREAT | os.O_WRONLY)
    found = open(folder / "found", "w")  # noqa: SIM115 - until the end
    with contextlib.suppress(FileNotFoundError):
        os.open(BEGIN, os.O_RDONLY)
    for number, data in enumerate(inputs(name, count, seed)):
        if number < first:
            continue
        os.pwrite(at, b"%20d" % number, 0)
        signal.alarm(SECONDS)
        try:
            targets.called(target, data, inside)
        except Exception as error:  # anything that reaches us is a finding
            found.write(json.dumps([number, f"{type(error).__name__}: {error}"[:300]]) + "\n")
            found.flush()
            shutil.rmtree(inside)
            inside.mkdir()
        signal.alarm(0)
    os.pwrite(at, b"%20d" % count, 0)


def traced(folder: Path, words: list[str]) -> list[str]:
    """`words` under strace, where that is there."""
    if not shutil.which("strace"):
        return words
    quick = ["strace", "-f", "-qq", "--seccomp-bpf"]  # which stops at these calls only
    return [*quick, "-e", f"trace={_CALLS}", "-o", str(folder / "trace"), *words]


def outside(folder: Path, begun: bool) -> list[str]:
    """Calls that made, changed or removed something elsewhere, of a trace; from BEGIN on, or of all."""
    path, found = folder / "trace", []
    if not path.exists():
        return []
    for line in path.read_text(errors="replace").splitlines():
        begun = begun or BEGIN in line
        call = _CALL.match(line)
        if not begun or call is None or int(call[3]) < 0:
            continue
        if call[1] in ("open", "openat") and not re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", call[2]):
            continue
        for each in _PATH.findall(call[2]):
            where = os.path.normpath(os.path.join(folder, each))
            if not where.startswith((str(folder), *_SHARED)):
                found.append(line[:300])
    path.unlink()
    return found


def in_children(name: str, count: int, seed: int) -> list[str]:
    """Findings of a target of `targets.py`."""
    findings, first = [], 0
    while first < count:
        folder = Path(tempfile.mkdtemp(prefix="tilewise-fuzz-"))
        words = [sys.executable, __file__, "--child", name, str(count), str(seed), str(first), str(folder)]
        # What it says is of the libraries.
        code = subprocess.run(
            traced(folder, words),
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder)},
            capture_output=True,
            check=False,
        )
        at = int((folder / "at").read_text()) if (folder / "at").exists() else -1
        said = (folder / "found").read_text().splitlines() if at >= 0 else []
        everything = list(inputs(name, count, seed))
        for number, what in map(json.loads, said):
            findings.append(keep(name, number, everything[number], what))
        findings += [
            keep(name, max(0, at), b"", f"touched outside: {line}") for line in outside(folder, False)
        ]
        if at < count:
            end = code.stderr.decode(errors="replace")[-300:]
            findings.append(keep(name, at, everything[at], f"ended with {code.returncode} {end}"))
            if at < 0:
                break
        shutil.rmtree(folder, ignore_errors=True)
        first = at + 1
    return findings


def keep(name: str, number: int, data: bytes, what: str) -> str:
    """The finding in words; its input is kept."""
    FOUND.mkdir(parents=True, exist_ok=True)
    path = FOUND / f"{name}-mutation-{number}"
    path.write_bytes(data)
    return f"{name} {number}: {what} ({path})"


_TELLING = """#!/bin/sh
case " $* " in *" --version "*|*" --"[a-z]*) exec {worker} "$@";; esac
cat >{folder}/job.json
cp -a {folder}/work {folder}/kept
{worker} "$@" <{folder}/job.json 2>{folder}/errors | tee {folder}/events
"""
_SAYING = """#!/bin/sh
case " $* " in *" --version "*|*" --"[a-z]*) exec {worker} "$@";; esac
cat >/dev/null
exec cat {folder}/said
"""
_JOBS = (
    ("multiply", "A.npy", "B.txt", "-o", "C.npy"),
    ("transpose", "A.npy", "-o", "C.npy", "--algorithm", "staged", "--memory", "40MiB"),
    ("stencil", "A.npy", "-o", "C.npy", "--steps", "3", "--checkpoint", "1s"),
    ("svd", "A.npy", "-o", "D", "--algorithm", "jacobi"),
    ("norm", "A.h5"),
    ("convert", "T.tiles", "-o", "C.csv"),
)
_KEPT = ("id", "protocol", "constants")  # of a job, whose change is refused at once


def limited() -> None:
    """What a program may take."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def in_programs(name: str, count: int, seed: int) -> list[str]:
    """Findings of `worker` or `seam`."""
    findings = []
    chosen = random.Random(f"{name} {seed}")
    for number, words in enumerate(_JOBS):
        folder = Path(tempfile.mkdtemp(prefix="tilewise-fuzz-"))
        share = count // len(_JOBS) + (number < count % len(_JOBS))
        findings += _program(name, words, share, chosen, folder)
        shutil.rmtree(folder, ignore_errors=True)
    return findings


def _program(name: str, words: tuple[str, ...], count: int, chosen: random.Random, folder: Path) -> list[str]:
    import mutate
    from tilewise.launch import worker

    work, program = folder / "work", folder / "tilewise-worker"
    work.mkdir()
    told = {
        **os.environ,
        "TMPDIR": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "TILEWISE_NO_LEARN": "1",
    }
    tilewise = [str(Path(sys.executable).with_name("tilewise"))]

    def script(text: str) -> None:
        program.write_text(text.format(worker=worker.find(), folder=folder))
        program.chmod(0o700)
        told["TILEWISE_WORKER"] = str(program)

    for made in ("A.npy", "B.txt", "A.h5", "T.tiles"):
        subprocess.run(
            [*tilewise, "generate", "-o", made, "--shape", "30x30", "-q"], cwd=work, env=told, check=True
        )
    script(_TELLING)
    done = subprocess.run(
        [*tilewise, *words, "-n", "1"], cwd=work, env=told, capture_output=True, check=False
    )
    if done.returncode or not (folder / "job.json").exists():
        return [f"{name}: {words[0]} does not run: {done.stderr.decode()[-300:]}"]
    kept = folder / "kept"
    job, events = ((folder / each).read_bytes() for each in ("job.json", "events"))
    script(_SAYING)
    findings = []
    for number in range(count):
        shutil.rmtree(work)
        shutil.copytree(kept, work, symlinks=True)
        if name == "worker":
            data = _job_changed(job, chosen)
            command, given = [str(worker.find())], data
        else:
            for left in work.glob(".*"):  # of the job that was told
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            data = (
                mutate.mutated(events, chosen.getrandbits(32))
                if number % 2
                else bytes_changed(events, chosen)
            )
            (folder / "said").write_bytes(data)
            command, given = [*tilewise, *words, "--force", "--timeout", "20"], b""
        at = f"{words[0]}-{number}"
        begun = subprocess.Popen(
            traced(folder, command),
            **{"cwd": work, "env": told, "start_new_session": True, "preexec_fn": limited},
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE},
        )
        try:
            said = begun.communicate(given, SECONDS)[1].decode(errors="replace")
            if begun.returncode < 0 or begun.returncode > 128 or "Traceback" in said:
                findings.append(keep(name, at, data, f"ended with {begun.returncode}: {said[-300:]}"))
        except subprocess.TimeoutExpired:
            os.killpg(begun.pid, signal.SIGKILL)
            begun.communicate()
            findings.append(keep(name, at, data, f"no end within {SECONDS} s"))
        findings += [keep(name, at, data, f"touched outside: {line}") for line in outside(folder, True)]
    return findings


def _job_changed(job: bytes, chosen: random.Random) -> bytes:
    """A real job with one to three values changed; paths stay, as the worker is told them by us."""
    import mutate

    tree = json.loads(job)
    places = [
        (above, key)
        for above, key in mutate._places(tree)
        if not (isinstance(above[key], str) and "/" in above[key])
        and key not in ("id", "protocol", "constants")
    ]
    for above, key in chosen.sample(places, chosen.randint(1, 3)):
        if isinstance(above[key], str):
            above[key] = chosen.choice(("", "auto", mutate.MARKUP, "x" * 5000, "float32", "collective"))
        else:
            above[key] = chosen.choice((*mutate.NUMBERS, *mutate.OTHERS, 2, 31, 4096))
    return json.dumps(tree).encode() + b"\n"


def main() -> int:
    """Runs all that is asked for; 1 where anything was found."""
    if sys.argv[1:2] == ["--child"]:
        name, count, seed, first, folder = sys.argv[2:]
        child(name, int(count), int(seed), int(first), Path(folder))
        return 0
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument(
        "--count", type=int, default=20000, help="changed inputs, of all targets together (20000)"
    )
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("targets", nargs="*", help="all, unless some are named")
    given = asked.parse_args()
    import targets

    names = given.targets or [*targets.TARGETS, *PROGRAMS]
    weights = {name: 1 if name in PROGRAMS or name in ("result", "points") else SHARE for name in names}
    least, findings = sum(weights.values()), 0
    for name in names:
        count = -(-given.count * weights[name] // least)
        run: Callable[[str, int, int], list[str]] = in_programs if name in PROGRAMS else in_children
        found = run(name, count, given.seed)
        print(f"{name}: {count} inputs, {len(found)} findings", flush=True)
        for each in found[:20]:
            print(f"  {each}", flush=True)
        findings += len(found)
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
