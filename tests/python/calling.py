"""Calls `tilewise.run` as other programs do, so many times, and prints how many came back right.

python calling.py beside|pool|loop COUNT FOLDER
beside: from the main thread while others multiply; pool: from the threads of a pool, beside the same;
loop: from the event loop of a thread, as a notebook's kernel has it. Each works under mpiexec too.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy
import tilewise

_PATIENCE = 60.0  # seconds of one call


@contextmanager
def computing(threads: int = 2) -> Iterator[None]:
    """Other threads multiply meanwhile, and BLAS has threads of its own."""
    done = threading.Event()
    busy = threading.Barrier(threads + 1)

    def multiply() -> None:
        a = numpy.random.default_rng(0).random((300, 300))
        a @ a
        busy.wait()
        while not done.is_set():
            a @ a

    crew = [threading.Thread(target=multiply, daemon=True) for _ in range(threads)]
    for each in crew:
        each.start()
    busy.wait()
    try:
        yield
    finally:
        done.set()
        for each in crew:
            each.join()


def call(folder: str, number: int) -> bool:
    """One job on two ranks; whether its result is right."""
    name = os.path.join(folder, f"{os.getpid()}-{number}")
    a = numpy.random.default_rng(number).random((12, 7))
    numpy.save(f"{name}.npy", a)
    record = tilewise.run(
        "transpose", f"{name}.npy", out=f"{name}-t.npy", ranks=2, timeout=_PATIENCE, verify="off"
    )
    right = numpy.array_equal(numpy.load(f"{name}-t.npy"), a.T)
    return right and record.variant.ranks == 2


def beside(count: int, folder: str) -> int:
    with computing():
        return sum(call(folder, number) for number in range(count))


def pool(count: int, folder: str) -> int:
    with computing(1), ThreadPoolExecutor(2) as crew:
        return sum(crew.map(lambda number: call(folder, number), range(count)))


def loop(count: int, folder: str) -> int:
    async def calls() -> int:
        return sum([call(folder, number) for number in range(count)])

    found = []
    with computing():
        thread = threading.Thread(target=lambda: found.append(asyncio.run(calls())))
        thread.start()
        thread.join()
    return found[0]


if __name__ == "__main__":
    how, words = sys.argv[1], sys.argv[2:]
    sys.stdout.write(f"{globals()[how](int(words[0]), words[1])}\n")
