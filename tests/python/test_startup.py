"""What a job costs beside its work: words and headers read without libraries, ranks that start at once."""

from __future__ import annotations

import functools
import importlib
import inspect
import io
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import Tilewise
from hypothesis import given
from hypothesis import strategies as st
from tilewise.cli import careful, plain
from tilewise.errors import UsageError
from tilewise.files import npy, npy_plain
from tilewise.files.dtypes import ITEMSIZE
from tilewise.launch import environment, launcher
from tilewise.launch.job import Variant
from tilewise.launch.one_node import ONE_NODE

HEAVY = {"cyclopts", "numpy", "psutil", "rich", "tempfile", "secrets", "socket", "shutil"}
COMMANDS = ("multiply", "transpose", "stencil", "convert", "generate")
WORDS = (
    "A.npy B x=y - -- -1 3 1e3 0x4 2.5 -o C.npy -n 4 --ranks 2 --ranks=3 --threads=x -q --force --force=true "
    "--json - --grid 2x2 --timeout 1.5 --hint a=b --kernel=plain --kernel= --transpose-a --no-verify -n4 "
    "--shape 3x4 --seed 7 --steps 9 --order F --until-change 0.5 --header --nothing --weights"
)
PIECES = [*WORDS.split(), "", "ü b"]


def bound(function: Any, positions: Any, named: dict[str, Any]) -> dict[str, Any]:
    found = inspect.signature(function).bind(*positions, **named)
    found.apply_defaults()
    return found.arguments


def as_cyclopts_says(name: str, function: Any, words: list[str]) -> dict[str, Any]:
    @functools.wraps(function)
    def spy(*positions: Any, **named: Any) -> dict[str, Any]:
        return bound(function, positions, named)

    said: dict[str, Any] = careful.parse(name, spy, words)
    return said


@pytest.mark.parametrize("command", COMMANDS)
def test_plain_words_mean_what_cyclopts_says(command: str) -> None:
    function = importlib.import_module(f"tilewise.cli.{command}").request
    needed = {"stencil": ["A", "-o", "B", "--steps", "2"], "generate": ["-o", "A", "--shape", "2x3"]}
    begin = needed.get(command, ["A", "B", "-o", "C"] if command == "multiply" else ["A", "-o", "B"])
    dice = random.Random(command)
    read = 0
    for _ in range(400):
        words = begin + dice.choices(PIECES, k=dice.randint(0, 4))
        dice.shuffle(words) if dice.random() < 0.3 else None
        found = plain.read(function, words)
        if found is not None:
            read += 1
            assert repr(bound(function, *found)) == repr(as_cyclopts_says(command, function, words)), words
    assert read > 20


@pytest.mark.parametrize(
    "words",
    [
        "",
        "A",
        "A B",
        "A B -o",
        "A B C -o D",
        "A B -o C -o D",
        "A B -o C --ranks -1",
        "A B -o C --help",
        "A B -o C --bogus",
        "A B -o C -q=1",
        "A B -o C -n 1.0",
        "A B -o C --hint a=b",
        "A B -o C --memory -",
    ],
)
def test_what_is_not_plain_is_left_to_cyclopts(words: str) -> None:
    from tilewise.cli.multiply import request

    assert plain.read(request, words.split()) is None


@given(
    st.tuples(st.integers(0, 10**18), st.integers(0, 10**18)),
    st.sampled_from([*ITEMSIZE, "bool"]),
    st.sampled_from("<>"),
    st.booleans(),
)
def test_headers_are_read_as_numpy_reads_them(
    shape: tuple[int, int], dtype: str, side: str, fortran: bool
) -> None:
    number = numpy.dtype(dtype).newbyteorder(side)
    written = io.BytesIO()
    fields = {"descr": number.str, "fortran_order": fortran, "shape": shape}
    numpy.lib.format.write_array_header_1_0(written, fields)
    written.write(b"numbers")
    written.seek(0)
    found = npy_plain.parse(written.getvalue())
    assert found is not None or max(shape) == 10**18
    assert found in (None, npy._parse(written, "x.npy", lists=False)[0])


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 5, 7), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (03, 5), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, -5), }",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (3, 5), }",
        "{'descr': '|f8', 'fortran_order': False, 'shape': (3, 5), }",
        "{'descr': '<f7', 'fortran_order': False, 'shape': (3, 5), }",
        "{'descr': '<U8', 'fortran_order': False, 'shape': (3, 5), }",
        "{'shape': (3, 5), 'descr': '<f8', 'fortran_order': False}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 5), } # hello",
    ],
)
def test_other_headers_are_left_to_numpy(text: str) -> None:
    line = text.encode() + b"\n"
    assert npy_plain.parse(b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line) is None


def test_a_header_that_is_cut_short_or_of_another_version_is_left_to_numpy() -> None:
    head = npy_plain.header_bytes((3, 5), "float64", "C")
    assert npy_plain.parse(head) is not None
    assert all(npy_plain.parse(head[:end]) is None for end in range(len(head)))
    assert npy_plain.parse(head[:6] + b"\x02" + head[7:]) is None


@pytest.mark.parametrize("words", [("multiply", "A.npy", "B.npy"), ("transpose", "A.npy")])
def test_a_quiet_job_imports_nothing_heavy(fake: Tilewise, words: tuple[str, ...]) -> None:
    code = (
        f"import sys; from tilewise.cli import main; assert main({[*words, '-o', 'C.npy', '-q']}) == 0; "
        f"print(sorted({HEAVY} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=fake.folder,
        env=fake.environment,
        check=True,
    )
    assert result.stdout.splitlines()[-1] == "[]"


def variant(ranks: int) -> Variant:
    return Variant(
        algorithm="local", exchange="none", read="root", write="root", grid=(1, ranks), ranks=ranks, threads=1
    )


@pytest.fixture
def mpiexec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> launcher.Worker:
    for key in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "HYDRA_LAUNCHER", *ONE_NODE):
        monkeypatch.delenv(key, raising=False)
    return launcher.Worker("/w", {"mpi": "wheel"})


@pytest.mark.parametrize("ranks", [1, 2])
def test_ranks_of_one_node_look_for_no_networks(
    mpiexec: launcher.Worker, ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("one:2\ntwo:2\n")

    def told(**more: str) -> set[str]:
        start = launcher.own_start(mpiexec, variant(ranks), more.get("hosts", ""), "", False)
        return {key for key in start.environment if key.startswith("UCX_")}

    assert told() == set(ONE_NODE)
    assert told(hosts=str(hosts)) == set()
    if ranks > 1:
        monkeypatch.setenv("SLURM_JOB_ID", "7")
        assert told() == set()
        monkeypatch.delenv("SLURM_JOB_ID")
    monkeypatch.setenv("UCX_LOG_LEVEL", "warn")
    assert told() == {"UCX_LOG_LEVEL"}


def test_other_mpis_and_launchers_are_told_nothing(mpiexec: launcher.Worker) -> None:
    site = launcher.Worker("/w", {"mpi": "site"})
    for start in (
        launcher.own_start(site, variant(1), "", "", False),
        launcher.own_start(mpiexec, variant(2), "", "env", False),
        launcher.join_start(mpiexec, variant(2), False),
    ):
        assert not any(key.startswith("UCX_") for key in start.environment)
    assert "UCX_TLS" not in environment.for_ranks({}, 1, False, own_launcher=True)


def test_a_name_that_cyclopts_must_refuse_is_refused() -> None:
    from tilewise.cli.multiply import request
    from tilewise.cli.parse import parse

    with pytest.raises(UsageError, match="no flag --bogus"):
        parse("multiply", request, ["A", "B", "-o", "C", "--bogus"])
