"""The examples at the end of help and of the pages of the manual run, where that takes little time."""

from __future__ import annotations

import shlex

import h5py
import numpy
import pytest
from conftest import InProcess
from PIL import Image
from tilewise.cli import names, page_of

LONG = ("tilewise measure", "tilewise study run", "tilewise study show results", "tilewise study compare")
LONG += ("tilewise study export", "tilewise report", "tilewise doctor", "tilewise --")
BRIEF = ("tilewise study run quick --dry-run",)


def lines(name: str) -> list[str]:
    found = [line for line, _ in page_of(name).examples]
    return [line for line in found if line in BRIEF or not line.startswith(LONG)]


@pytest.mark.parametrize("name", [name for name in names() if lines(name)])
def test_examples_of_help_run(name: str, inside: InProcess) -> None:
    numbers = numpy.random.default_rng(7).random((40, 40))
    with h5py.File("results.h5", "w") as file:
        file["A"] = numbers
    Image.new("RGB", (30, 20)).save("photo.png")
    for line in lines(name):
        numpy.save("A.npy", numbers)
        numpy.save("B.npy", numbers)
        numpy.savetxt("A.txt", numbers)
        words = shlex.split(line)[1:]
        if words[0] in ("multiply", "transpose", "svd", "stencil", "generate", "convert"):
            words.append("--force")
        done = inside(*(word.replace("4096x4096", "64x64") for word in words))
        assert done.returncode == 0 and done.stdout, (line, done.stderr)
