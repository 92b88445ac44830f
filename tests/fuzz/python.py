"""Fuzzes a target of the Python side with atheris: python tests/fuzz/python.py TARGET [SECONDS [OPTIONS]]."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import atheris

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]

with atheris.instrument_imports(
    include=["tilewise", "tifffile", "PIL.PngImagePlugin", "PIL.JpegImagePlugin"]
):
    import mutate
    import targets
    import watch


def main() -> None:
    """Runs until the time is over or something is found; the finding's input lies in build/fuzz/found."""
    os.environ.setdefault("MPLCONFIGDIR", tempfile.gettempdir())
    name, seconds = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "60"
    target = targets.TARGETS[name]
    work = Path("build/fuzz/python") / name
    found = Path("build/fuzz/found")
    for each in (work, found):
        each.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        (work / f"seed-{hashlib.sha256(seed).hexdigest()[:12]}").write_bytes(seed)
    kept = HERE / "corpus" / name
    folder = Path(
        tempfile.mkdtemp(prefix="tilewise-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    )
    for path in [*work.iterdir(), *(kept.iterdir() if kept.is_dir() else ())]:
        targets.called(target, path.read_bytes(), folder, watching=False)  # imports what is imported late
    watch.limit_memory()

    def one(data: bytes) -> None:
        targets.called(target, data, folder)

    def custom(data: bytes, most: int, seed: int) -> bytes:
        changed = mutate.mutated(data, seed) if seed % 4 else atheris.Mutate(data, most)
        return bytes(changed[:most])

    # With a mutator of ours the alarm finds no handler, and would end the program.
    alarm = "-timeout=7200" if target.structured else "-timeout=30"
    options = [
        alarm,
        "-max_len=200000",
        f"-max_total_time={seconds}",
        f"-artifact_prefix={found}/{name}-",
    ]
    words = [sys.argv[0], *options, "-print_final_stats=1", "-rss_limit_mb=3000", *sys.argv[3:], str(work)]
    if kept.is_dir():
        words.append(str(kept))
    more = {"custom_mutator": custom} if target.structured else {}
    atheris.Setup(words, one, **more)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
