"""Proofs that read the output back do so for every format, whoever wrote it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import InProcess, Tilewise, one_message
from oracle import matrix, save
from tilewise import files

TEXTS = ("C.txt", "C.csv", "C.tsv", "C.mtx")
OTHERS = ("C.npy", "C.raw", "C.tiles", "C.zarr", "C.h5:/x/C", "C.nc", "C.png", "C.pgm", "C.tif")
COMMANDS = {
    "multiply": ("multiply", "A.npy", "B.npy"),
    "transpose": ("transpose", "A.npy"),
    "stencil": ("stencil", "A.npy", "--steps", 5),
}


def proved(inside: InProcess, tilewise: Tilewise, *words: object) -> dict[str, Any]:
    ended = inside(*words, "--force", "-q", "--json", "r.json")
    assert ended.returncode == 0, ended.stderr
    proof = json.loads((tilewise.folder / "r.json").read_text())["verification"]
    assert proof["passed"] is True and proof["share"] == 1, words
    return dict(proof)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_format_is_read_back(tilewise: Tilewise, inside: InProcess, command: str) -> None:
    """Each with one way to prove on few ranks and the other on more; pictures hold small integers."""
    for at, name in enumerate((*TEXTS, *OTHERS)):
        kind = "uint8" if name.endswith(("png", "pgm")) else ("float64", "int32", "float32")[at % 3]
        if kind == "uint8" and command == "multiply":
            continue  # a product of integers has 64 bits, and no picture has
        if command == "multiply" and name in ("C.tif", "C.nc", "C.mtx") and kind == "int32":
            kind = "float64"
        save(tilewise.folder, matrix((17, 13), kind, 1), matrix((13, 19), kind, 2))
        for ranks, method in ((1 + at % 3, "serial"), (1 + (at + 1) % 3, "fast")):
            proved(inside, tilewise, *COMMANDS[command], "-o", name, "-n", ranks, "--verify", method)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("dtype", ["complex128", "int64", "float32"])
def test_products_in_texts(tilewise: Tilewise, inside: InProcess, name: str, dtype: str) -> None:
    left, right = matrix((11, 7), dtype, 1), matrix((7, 5), dtype, 2)
    save(tilewise.folder, left, right)
    words = (*COMMANDS["multiply"], "-o", name, "-n", 2)
    proved(inside, tilewise, *words, "--verify", "serial")
    found = files.inspect(str(tilewise.folder / name))
    assert (found.rows, found.columns) == (11, 5)
    tilewise.environment["TILEWISE_FAULT"] = "element"
    one_message(tilewise(*words, "--force", "--verify", "serial"), 3)


def test_conversions_are_read_back(tilewise: Tilewise, inside: InProcess) -> None:
    for at, name in enumerate((*TEXTS, *OTHERS)):
        kind = "uint8" if name.endswith(("png", "pgm")) else "float64"
        save(tilewise.folder, matrix((17, 13), kind, 1), matrix((1, 1)))
        words = ("convert", "A.npy", "-o", name, "-n", 1 + at % 3, "--verify", "fast")
        assert proved(inside, tilewise, *words)["method"] == "read_back"
