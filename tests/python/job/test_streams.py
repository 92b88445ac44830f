"""`-` as an input and as the output: pipes, formats, records, and what is refused; nothing is left behind."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
from typing import Any

import numpy
import pytest
from conftest import Tilewise, one_message, wait_for

A = numpy.random.default_rng(1).standard_normal((37, 23))
Done = subprocess.CompletedProcess[bytes]


def piped(tilewise: Tilewise, given: bytes, *words: object) -> Done:
    """`… | tilewise words…`; nothing new but what the words name may be left."""
    return tilewise(*words, input=given, text=False)


def npy(numbers: Any) -> bytes:
    stream = io.BytesIO()
    numpy.save(stream, numbers)
    return stream.getvalue()


def result(done: Done) -> Any:
    assert done.returncode == 0, done.stderr
    return numpy.load(io.BytesIO(done.stdout))


def test_from_a_pipe_into_a_pipe(tilewise: Tilewise) -> None:
    """Nothing else is on standard output, and nothing is left."""
    numpy.save(tilewise.folder / "B.npy", A.T)
    before = tilewise.files()
    for words, expected in (
        (("transpose", "-", "-o", "-"), A.T),
        (("multiply", "-", "B.npy", "-o", "-", "-n", "2"), A @ A.T),
        (("multiply", "B.npy", "-", "-o", "-"), A.T @ A),
        (("stencil", "-", "-o", "-", "--steps", "0"), A),
        (("convert", "-", "-", "--dtype", "f4"), A.astype("f4")),
    ):
        assert numpy.allclose(result(piped(tilewise, npy(A), *words)), expected, rtol=1e-13)
        assert tilewise.files() == before
    made = result(piped(tilewise, b"", "generate", "-o", "-", "--shape", "3x4", "--kind", "identity"))
    assert numpy.array_equal(made, numpy.eye(3, 4)) and tilewise.files() == before


def test_streams_of_other_formats(tilewise: Tilewise) -> None:
    text = piped(tilewise, npy(A), "convert", "-", "-o", "-", "--to", "csv").stdout
    assert numpy.array_equal(numpy.loadtxt(io.BytesIO(text), delimiter=","), A)
    raw = A.astype("<f4").tobytes()
    words = ("convert", "-", "-o", "-", "--from", "raw:37x23:float32", "--to", "tif")
    done = piped(tilewise, raw, *words)
    assert done.returncode == 0 and done.stdout[:2] == b"II"
    assert numpy.array_equal(result(piped(tilewise, text, "transpose", "-", "-o", "-", "--from", "csv")), A.T)
    assert tilewise.files() == set()


def test_the_record_names_streams(tilewise: Tilewise) -> None:
    done = piped(tilewise, npy(A), "transpose", "-", "-o", "-", "--json", "r.json")
    assert numpy.array_equal(result(done), A.T)
    text = (tilewise.folder / "r.json").read_text()
    record = json.loads(text)
    assert record["inputs"][0]["path"] == record["outputs"][0]["path"] == "-" and ".stream" not in text
    done = piped(tilewise, npy(A), "norm", "-", "--json", "-")
    assert json.loads(done.stdout)["result"]["frobenius"] == pytest.approx(numpy.linalg.norm(A))


@pytest.mark.parametrize(
    ("given", "words", "said"),
    [
        (b"", ("transpose", "-", "-o", "B.npy"), "standard input is empty, but a .npy file was expected"),
        (b"\x93NUMPY", ("transpose", "-", "-o", "B.npy"), "standard input is not a readable .npy file"),
        (npy(A)[:-8], ("transpose", "-", "-o", "-"), "it is truncated"),
        (npy(A), ("multiply", "-", "-", "-o", "-"), "can be read once"),
        (npy(A), ("transpose", "-", "-o", "-", "--json", "-"), "both need standard output"),
        (npy(A), ("transpose", "-", "-o", "B.npy", "--from", "doc"), "--from 'doc' is unknown"),
        (npy(A), ("plan", "transpose", "-", "-o", "B.npy"), "- is standard input or output"),
        (npy(A), ("svd", "-", "-o", "-"), "-o needs a value"),
        (b"1,2\n3,x\n", ("convert", "-", "-o", "-", "--from", "csv"), "standard input: line 2"),
        (npy(A), ("transpose", "-", "-o", "nowhere/B.npy"), "nowhere does not exist"),
    ],
)
def test_what_is_refused(tilewise: Tilewise, given: bytes, words: tuple[str, ...], said: str) -> None:
    done = piped(tilewise, given, *words)
    text = subprocess.CompletedProcess(done.args, done.returncode, "", done.stderr.decode())
    assert said in one_message(text, 2) and ".stream" not in text.stderr
    assert done.stdout == b"" and tilewise.files() == set()


def test_a_reader_that_leaves_and_a_job_that_is_interrupted(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.zeros((1000, 1000)))
    line = "-m tilewise transpose A.npy -o - | head -c 100 | wc -c"
    shell = f"set -o pipefail; {tilewise.command('')[0]} {line}"
    done = tilewise.run(["bash", "-c", shell], text=False)
    said = subprocess.CompletedProcess(done.args, done.returncode, "", done.stderr.decode())
    assert done.stdout.strip() == b"100" and "standard output was closed" in one_message(said, 1)
    source, target = os.pipe()
    with tilewise.start("transpose", "-", "-o", "B.npy", stdin=source) as waiting:
        wait_for(lambda: len(tilewise.files()) > 1)
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(20) == 130
    os.close(target)
    assert tilewise.files() == {"A.npy"}


def test_what_a_killed_job_stored_goes_with_the_next(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "A.npy", A)
    source, target = os.pipe()
    with tilewise.start("transpose", "-", "-o", "B.npy", stdin=source) as waiting:
        wait_for(lambda: len(tilewise.files()) > 1)
        waiting.kill()
    os.close(target)
    assert len(tilewise.files()) == 2
    assert tilewise("transpose", "A.npy", "-o", "B.npy").returncode == 0
    assert tilewise.files() == {"A.npy", "B.npy"}


def test_what_can_be_refused_is_refused_before_standard_input_is_read(tilewise: Tilewise) -> None:
    """Nobody writes to the pipe, and nobody closes it."""
    numpy.save(tilewise.folder / "A.npy", A)
    (tilewise.folder / "mine.json").write_text("{}")
    (tilewise.folder / "old").mkdir()
    before = tilewise.files()
    source, target = os.pipe()
    for words, said in (
        (("transpose", "-", "-o", "A.npy"), "A.npy exists already"),
        (("svd", "-", "-o", "old"), "old exists already"),
        (("multiply", "-", "none.npy", "-o", "B.npy"), "none.npy does not exist"),
        (("transpose", "-", "-o", "B.npy", "--json", "mine.json"), "was not written by tilewise"),
        (("convert", "-", "-o", "-", "--trace", "none/t.json"), "none does not exist"),
    ):
        done = tilewise(*words, stdin=source, timeout=60)
        assert said in one_message(done, 2), words
        assert tilewise.files() == before
    os.close(source)
    os.close(target)


def test_files_as_streams(tilewise: Tilewise) -> None:
    """`< A.npy` is read where it lies, unless some of it was read before; `>> B` adds to what is there."""
    folder = tilewise.folder
    numpy.save(folder / "A.npy", A)
    (folder / "behind").write_bytes(b"12345" + npy(A))
    (folder / "B").write_bytes(b"12345")
    for name, start in (("A.npy", 0), ("behind", 5)):
        with open(folder / name, "rb") as given, open(folder / "B", "ab") as taken:
            os.lseek(given.fileno(), start, os.SEEK_SET)
            words = ("transpose", "-", "-o", "-", "-n", "2", "--json", "r.json")
            assert tilewise(*words, stdin=given, stdout=taken).returncode == 0
        written = (folder / "B").read_bytes()
        assert written[:5] == b"12345" and numpy.array_equal(numpy.load(io.BytesIO(written[5:])), A.T)
        (folder / "B").write_bytes(b"12345")
        assert json.loads((folder / "r.json").read_text())["inputs"][0]["path"] == "-"
    assert tilewise.files() == {"A.npy", "behind", "B", "r.json"}
    assert numpy.array_equal(numpy.load(folder / "A.npy"), A)


def test_more_than_a_pipe_holds(tilewise: Tilewise) -> None:
    numbers = numpy.random.default_rng(2).random((1500, 1111))
    assert numpy.array_equal(result(piped(tilewise, npy(numbers), "transpose", "-", "-o", "-")), numbers.T)
