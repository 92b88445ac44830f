"""The tests of numbers once more, with the kernels of other processors, and on a busy machine.

BLAS and the worker choose their kernels by the processor, and kernels differ in how they add. Each kernel of
BLAS and each set of the worker is forced in turn, as far as this processor can run it. The last that it can
run is its own choice, which `make test` has shown: with that, these tests and one of each operation run
beside two busy loops.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
# Where rounding in BLAS decides: sums near the largest and smallest number, small singular values, bounds.
# What takes kernels of ours alone, ctest runs with each set: kernels-avx2, kernels-baseline.
PYTHON_TESTS = ("job/test_proof_limits", "job/test_strassen", "slow/test_svd_hard")
CXX_TESTS = ("symmetric", "svd_kernel", "two_stage")
BUSY_TESTS = ("job/test_each_once",)
BUSY_LOOPS = 2


class Processor(NamedTuple):
    """A kernel of BLAS, a set of the worker's, and the instructions that a processor needs for both."""

    blas: str
    kernels: str
    flags: str = ""


AVX2 = "avx avx2 bmi2 fma"
PROCESSORS = (
    Processor("Prescott", "baseline"),
    Processor("Nehalem", "avx2", AVX2),
    Processor("Sandybridge", "baseline", "avx"),
    Processor("Haswell", "avx2", AVX2),
    Processor("SkylakeX", "avx512", f"{AVX2} avx512f avx512bw avx512cd avx512dq avx512vl"),
)


def commands(build: Path, also: tuple[str, ...]) -> list[list[str]]:
    """What is run for each processor: the C++ tests first, which are quick."""
    sources = ",".join(f"*test_{name}.cpp" for name in CXX_TESTS)
    files = [str(ROOT / f"tests/python/{name}.py") for name in (*PYTHON_TESTS, *also)]
    return [
        [str(build / "tests/cpp/tilewise-serial-tests"), f"--source-file={sources}"],
        [sys.executable, "-m", "pytest", "-q", "-n", "2", *files],
    ]


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keeps so many cores busy."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def fails(processor: Processor, build: Path, also: tuple[str, ...] = ()) -> bool:
    """Whether a test fails with these kernels; what it says is then printed."""
    here = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
    forced = {"OPENBLAS_CORETYPE": processor.blas, "TILEWISE_KERNELS": processor.kernels}
    forced["OPENBLAS_THREAD_TIMEOUT"] = "20"  # idle threads of BLAS sleep soon
    asked = {"TILEWISE_TEST_CORETYPE": processor.blas, "TILEWISE_TEST_KERNELS": processor.kernels}
    for words, more in zip(commands(build, also), (forced, asked), strict=True):
        done = subprocess.run(words, env={**here, **more}, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"{' '.join(words)}\n{done.stdout}{done.stderr}", file=sys.stderr)
            return True
    return False


def main(build: str) -> int:
    facts = Path("/proc/cpuinfo").read_text().split()
    able = [each for each in PROCESSORS if set(each.flags.split()) <= set(facts)]
    wrong = 0
    for processor in able:
        last = processor is able[-1]
        started = time.monotonic()
        with busy(BUSY_LOOPS if last else 0):
            failed = fails(processor, Path(build), BUSY_TESTS if last else ())
        wrong += failed
        said = "tests fail" if failed else "every test passes"
        seconds = time.monotonic() - started
        where = f", beside {BUSY_LOOPS} busy loops" if last else ""
        kernels = f"BLAS for {processor.blas}, kernels {processor.kernels}{where}"
        print(f"{kernels}: {said}, {seconds:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
