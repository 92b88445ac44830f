"""Slips of the keyboard and of thought: the message says what is there, and the advice works."""

from __future__ import annotations

import json

import numpy
import pytest
from conftest import InProcess, Tilewise, one_message


@pytest.mark.parametrize(
    ("words", "said", "advice"),
    [
        ("info nope", "nope does not exist", ""),
        ("info file.foo", "file.foo does not exist", ""),
        ("multiply A.npy B.npy -o C.npy --algoritm local", "no flag --algoritm", "--algorithm"),
        ("multiply A.npy B.npy -o C.npy --xyz", "no flag --xyz", "tilewise multiply --help"),
        ("multiply A.npy B.npy -o C.npy --algorithm canon", "'canon' is unknown", "--algorithm cannon"),
        ("multiply A.npy B.npy", "multiply needs --output", "-o C.npy"),
        ("svd A.npy", "svd needs --output", "-o results"),
        ("stencil A.npy -o B2.npy", "stencil needs --steps", "tilewise stencil --help"),
        ("convert A.npy -o /dev/stdout", "/dev/stdout has no extension", "-o - --to npy"),
        ("info results", "a folder of results with U.npy, s.npy in it", "results/U.npy"),
        ("multiply results B.npy -o C.npy", "a folder of results with U.npy", "results/U.npy"),
    ],
)
def test_a_slip(fake: Tilewise, here: InProcess, words: str, said: str, advice: str) -> None:
    folder = fake.folder / "results"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"tilewise": 1, "command": "svd", "files": []}))
    numpy.save(folder / "U.npy", numpy.eye(2))
    numpy.save(folder / "s.npy", numpy.ones(2))

    message = one_message(here(*words.split()), 2)

    assert said in message.splitlines()[0]
    assert message.splitlines()[1:] == ([f"  try: {advice}"] if advice else [])


@pytest.mark.parametrize(
    ("words", "said"),
    [("5000:5003", "A.npy has 6 rows"), ("0:2 9:", "A.npy has 4 columns")],
)
def test_what_is_beyond_the_matrix_is_not_silence(here: InProcess, words: str, said: str) -> None:
    ended = here("show", "A.npy", *words.split())

    assert ended.returncode == 0 and not ended.stdout.strip()
    assert f"{said}, and none of them was asked for" in ended.stderr
