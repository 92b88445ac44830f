"""What a job costs beside its work: words and headers read without libraries, ranks that start at once."""

from __future__ import annotations

import argparse
import inspect
import io
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy
import pytest
from conftest import Tilewise
from hypothesis import given
from hypothesis import strategies as st
from tilewise.base.declare import Arguments
from tilewise.base.errors import UsageError
from tilewise.cli import page_of, parse
from tilewise.cli.jobs import asked_of
from tilewise.files.checks import byte_order, number_type
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import npy
from tilewise.launch import environment, launcher
from tilewise.launch.job import Variant
from tilewise.launch.worker import ONE_NODE

HEAVY = {"argparse", "jinja2", "numpy", "psutil", "rich", "tempfile", "secrets", "socket", "shutil"}
NPY = {"tilewise.files.formats.npy"}
COMMANDS = ("multiply", "transpose", "stencil", "convert", "generate")
WORDS = (
    "A.npy B x=y -1 3 1e3 2.5 -o C.npy -n 4 --ranks 2 --ranks=3 --threads=x -q --json r --grid 2x2 "
    "--timeout 1.5 --hint a=b --kernel=plain --kernel= --transpose-a --no-verify -n4 --shape 3x4 --seed 7 "
    "--seed=-7 --steps 9 --order F --until-change 0.5 --header --nothing --weights --timeout=-2"
)
PIECES = [*WORDS.split(), "", "ü b"]


def as_argparse_says(arguments: Arguments, words: list[str]) -> tuple[list[str], dict[str, Any]]:
    """The values by an oracle; ArgumentError for what it refuses."""

    class Oracle(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise argparse.ArgumentError(None, message)

    oracle = Oracle(add_help=False, allow_abbrev=False)
    for each in arguments.positions:
        needed = each.default is inspect.Parameter.empty
        oracle.add_argument(each.field, nargs=None if needed else "?", default=argparse.SUPPRESS)
    for flag in dict.fromkeys(arguments.flags.values()):
        how: dict[str, Any] = {"action": "store_true"} if flag.kind is bool else {"type": flag.kind}
        if flag.several:
            how["action"] = "append"
        oracle.add_argument(
            *flag.spellings,
            dest=f"-{flag.field}",
            required=flag.default is inspect.Parameter.empty,
            default=argparse.SUPPRESS,
            **how,
        )
    said = vars(oracle.parse_intermixed_args(words))
    positions = [said[each.field] for each in arguments.positions if each.field in said]
    return positions, {key[1:]: value for key, value in said.items() if key.startswith("-")}


@pytest.mark.parametrize("command", COMMANDS)
def test_words_mean_what_argparse_says(command: str) -> None:
    """But for flags given twice, and numbers in words of other forms, which are refused."""
    arguments = page_of(command).arguments
    needed = {"stencil": ["A", "-o", "B", "--steps", "2"], "generate": ["-o", "A", "--shape", "2x3"]}
    begin = needed.get(command, ["A", "B", "-o", "C"] if command == "multiply" else ["A", "-o", "B"])
    dice = random.Random(command)
    read = refused = 0
    for _ in range(600):
        words = begin + dice.choices(PIECES, k=dice.randint(0, 4))
        dice.shuffle(words) if dice.random() < 0.3 else None
        try:
            values = parse.read(command, arguments, words)
        except UsageError as error:
            refused += 1
            if "more than once" in error.message:
                continue
            with pytest.raises(argparse.ArgumentError):
                as_argparse_says(arguments, words)
            continue
        read += 1
        ours = {field: value for owner in values.values() for field, value in owner.items()}
        positions = [ours.pop(each.field) for each in arguments.positions if each.field in ours]
        wanted, said = as_argparse_says(arguments, words)
        theirs = {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}
        assert positions == wanted and ours == theirs, words
    assert read > 50 and refused > 50


def test_behind_two_hyphens_are_positions_only() -> None:
    words = ["-o", "C", "--", "-n", "--help"]
    values = parse.read("multiply", page_of("multiply").arguments, words)
    assert values["Multiply"] == {"a": "-n", "b": "--help", "output": "C"}


HELP = "tilewise multiply --help"


@pytest.mark.parametrize(
    ("words", "said", "advice"),
    [
        ("", "multiply needs A", HELP),
        ("A", "multiply needs B", HELP),
        ("A B", "multiply needs --output", "-o C.npy"),
        ("A B -o", "-o needs a value", HELP),
        ("A B C -o D E", "multiply does not take 'C' 'E'", HELP),
        ("A B -o C --memory -", "--memory needs a value", HELP),
        ("A B -o C -x", "multiply has no flag -x", HELP),
        ("A B -o C --rank 2", "multiply has no flag --rank", "--ranks"),
    ],
)
def test_mistakes_are_said_in_a_sentence(words: str, said: str, advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        asked_of("multiply", words.split())
    assert (caught.value.message, caught.value.advice) == (said, advice)


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
    found = npy.parse_plain(written.getvalue())
    assert found is not None or max(shape) == 10**18
    shape, fortran, read = npy.read_header(written, "x.npy")
    order = "F" if fortran else "C"
    known = npy.NpyHeader(
        shape[0], shape[1], number_type(read, "x.npy"), byte_order(read), order, written.tell()
    )
    assert found in (None, known)


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
    assert npy.parse_plain(b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line) is None


def test_a_header_that_is_cut_short_or_of_another_version_is_left_to_numpy() -> None:
    head = npy.header_bytes((3, 5), "float64", "C")
    assert npy.parse_plain(head) is not None
    assert all(npy.parse_plain(head[:end]) is None for end in range(len(head)))
    assert npy.parse_plain(head[:6] + b"\x02" + head[7:]) is None


@pytest.mark.parametrize("words", [("multiply", "A.npy", "B.npy"), ("transpose", "A.npy")])
def test_a_quiet_job_imports_nothing_heavy(fake: Tilewise, words: tuple[str, ...]) -> None:
    code = (
        f"import sys; from tilewise.cli import main; assert main({[*words, '-o', 'C.npy', '-q']}) == 0; "
        "formats = {name for name in sys.modules if name.startswith('tilewise.files.formats.')}; "
        f"print(sorted({HEAVY} & set(sys.modules) | formats - {NPY}))"
    )
    result = fake.run([sys.executable, "-c", code])
    assert result.returncode == 0, result.stderr
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
    mpiexec: launcher.Worker, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(dealt: Sequence[str] = ()) -> set[str]:
        start = launcher.own_start(mpiexec, variant(ranks), dealt, "", False)
        return {key for key in start.environment if key.startswith("UCX_")}

    assert told() == set(ONE_NODE)
    assert told(["one", "two"][:ranks]) == set()
    assert told([os.uname().nodename] * ranks) == set(ONE_NODE)
    if ranks > 1:
        monkeypatch.setenv("SLURM_JOB_ID", "7")
        assert told() == set()
        monkeypatch.delenv("SLURM_JOB_ID")
    monkeypatch.setenv("UCX_LOG_LEVEL", "warn")
    assert told() == {"UCX_LOG_LEVEL"}


def test_other_mpis_and_launchers_are_told_nothing(mpiexec: launcher.Worker) -> None:
    site = launcher.Worker("/w", {"mpi": "site"})
    for start in (
        launcher.own_start(site, variant(1), (), "", False),
        launcher.own_start(mpiexec, variant(2), (), "env", False),
        launcher.join_start(mpiexec, variant(2), False, False),
    ):
        assert not any(key.startswith("UCX_") for key in start.environment)
    assert "UCX_TLS" not in environment.for_ranks({}, 1, False, own_launcher=True)
