"""The command line: help, mistakes in one line, and what reaches the worker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from conftest import InProcess, Tilewise, one_message
from tilewise.cli import COMMANDS
from tilewise.launch.job import PROTOCOL
from tilewise.operations import options_of
from tilewise.operations.multiply.options import ALGORITHMS as MULTIPLY
from tilewise.planning.choices import exchanges_of
from tilewise.planning.names import IO

MULTIPLY_WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy")


def test_overview_is_short_and_names_every_command(fake: Tilewise) -> None:
    result = fake("--help")
    assert result.returncode == 0
    assert all(f"  {name} " in result.stdout for name in COMMANDS)
    assert len(result.stdout.splitlines()) <= 20
    assert result.stdout == fake().stdout


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["--complete", "tilewise multiply --kernel=b"]])
def test_what_people_wait_for_imports_nothing_heavy(fake: Tilewise, words: list[str]) -> None:
    code = (
        f"import sys; from tilewise.cli import main; main({words}); "
        "heavy = {'argparse', 'numpy', 'msgspec', 'rich', 'psutil', 'subprocess'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=fake.environment, check=True
    )
    assert result.stdout.splitlines()[-1] == "[]" and len(result.stdout.splitlines()) > 1


def test_help_of_a_job_groups_its_flags(fake: Tilewise) -> None:
    page = fake("multiply", "--help").stdout
    places = [page.index(f"\n{group}\n") for group in ("What", "How", "Where", "Show")]
    assert places == sorted(places)
    for flag in ("--transpose-a", "--grid", "--memory", "--trace", "--no-verify", "--timeout"):
        assert flag in page
    for name in (*MULTIPLY, *exchanges_of(options_of("multiply")), *IO):
        assert name in page
    assert "jacobi" not in page and "[default: auto]" in page


def test_version(fake: Tilewise) -> None:
    assert fake("--version").stdout == "tilewise 0.1.0\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("multply",), "tilewise multiply"),
        (("eigen", "A.npy", "-o", "B.npy"), "not a command"),
        ((*MULTIPLY_WORDS, "--io", "root:pigeon"), "'pigeon'"),
        ((*MULTIPLY_WORDS, "--io", "root:ordered"), "ordered only reads"),
        ((*MULTIPLY_WORDS, "--io", "per_rank"), "expects a folder of tiles"),
        ((*MULTIPLY_WORDS, "--grid", "2"), "2x2"),
        ((*MULTIPLY_WORDS, "-n", "4", "--grid", "3x1"), "-n 3"),
        ((*MULTIPLY_WORDS, "--grid", "0x1"), "1 or more"),
        ((*MULTIPLY_WORDS, "-n", "3", "--algorithm", "cannon"), "square rank counts"),
        ((*MULTIPLY_WORDS, "-n", "2", "--algorithm", "local"), "1 rank only"),
        ((*MULTIPLY_WORDS, "-n", "1", "--algorithm", "replicated"), "2 ranks or more"),
        ((*MULTIPLY_WORDS, "-n", "6", "--algorithm", "replicated", "--grid", "2x2"), "-n 8"),
        ((*MULTIPLY_WORDS, "-n", "4", "--algorithm", "cannon", "--grid", "1x4"), "--grid 2x2"),
        ((*MULTIPLY_WORDS, "-n", "2", "--algorithm", "summa", "--exchange", "persistent"), "it takes"),
        ((*MULTIPLY_WORDS, "--algorithm", "local", "--exchange", "blocking"), "omit it"),
        ((*MULTIPLY_WORDS, "--memory", "lots"), "512MiB"),
        ((*MULTIPLY_WORDS, "--memory", "1MiB"), "--memory allows 1.00 MiB"),
        ((*MULTIPLY_WORDS, "--hosts", "nowhere"), "nowhere"),
        ((*MULTIPLY_WORDS, "--hint", "cb_nodes"), "KEY=VALUE"),
        ((*MULTIPLY_WORDS, "--hint", "a=1", "--hint", "a=2"), "twice"),
        ((*MULTIPLY_WORDS, "--verify", "fast", "--no-verify"), "contradict"),
        ((*MULTIPLY_WORDS, "--launcher", "nosuchprogram -x"), "nosuchprogram"),
        ((*MULTIPLY_WORDS, "--json", "nowhere/r.json"), "nowhere does not exist"),
        ((*MULTIPLY_WORDS, "--json", "."), "folder"),
        ((*MULTIPLY_WORDS, "--json", "A.npy"), "also an input"),
        ((*MULTIPLY_WORDS, "--trace", "nowhere/t.json"), "nowhere does not exist"),
        (("multiply", "A.npy", "nope.npy", "-o", "C.npy"), "nope.npy does not exist"),
        (("multiply", "A.npy", "A.npy", "-o", "C.npy"), "--transpose-a"),
        (("multiply", "A.npy", "B.npy", "-o", "C.npy", "--transpose-a"), "transposed to 4×6"),
        (("multiply", "random:9:float64", "B.npy", "-o", "C.npy"), "4096x4096"),
        (("multiply", "A.npy", "B.npy", "-o", "C.xyz"), "expected one of .npy"),
        (("multiply", "A.npy", "B.npy", "-o", "nowhere/C.npy"), "nowhere does not exist"),
        (("svd", "random:9000000x9000000", "-o", "S/"), "80 % of"),
        (("generate", "-o", "C.npy", "--shape", "4"), "4096x4096"),
        (("generate", "-o", "C.npy", "--shape", "4x-1"), "4096x4096"),
        (("generate", "-o", "C.npy", "--shape", "4x4", "--dtype", "triple"), "float64"),
        (("generate", "-o", "C.npy", "--shape", "4x4", "--kind", "normal", "--dtype", "int8"), "fractions"),
        (("info", "nope.npy"), "does not exist"),
        (("show", "A.npy", "9"), "there is no row 9"),
        (("show", "A.npy", "x"), "0:5"),
        (("show", "random:3x3"), "generate"),
        (("plan", "--all"), "plan takes the arguments of a job (multiply,"),
        (("plan", "--forget", "norm"), "--forget takes nothing else"),
        (("plan", "norm", "A.npy", "--machine", "m", "--machine", "m"), "--machine was given more than once"),
        (("plan", "doctor"), "multiply, transpose, svd, stencil, generate, convert"),
        (("doctor", "now"), "'now'"),
    ],
)
def test_wrong_requests_end_with_2_one_sentence_and_no_trace(
    fake: Tilewise, here: InProcess, words: tuple[str, ...], said: str
) -> None:
    before = fake.files()
    message = one_message(here(*words), 2)
    assert said in message
    assert fake.files() == before


def test_the_job_says_everything(fake: Tilewise) -> None:
    fake.environment["FAKE_JOB"] = str(fake.folder / "job.json")
    numpy.save(fake.folder / "A.npy", numpy.zeros((4, 6), ">f4", order="F"))
    words = "--transpose-a -n 6 -t 2 --algorithm replicated --exchange blocking --io root:positioned"
    more = "--grid 1x3 --kernel plain --remainder last --hint cb_nodes=2 --repeat 3 --warmup 1 --sync"
    result = fake(
        *MULTIPLY_WORDS, *words.split(), *more.split(), "--verify", "serial", "--place", "node", "-q"
    )
    assert result.returncode == 0, result.stderr
    job = json.loads((fake.folder / "job.json").read_text())
    assert job["variant"] == {
        "algorithm": "replicated",
        "exchange": "blocking",
        "between_nodes": "",
        "read": "root",
        "write": "positioned",
        "grid": [1, 3],
        "copies": 2,
        "ranks": 6,
        "threads": 2,
        "kernel": "plain",
        "remainder": "last",
        "root_write": "",
        "tile": [0, 0],
        "streaming": False,
        "decomposition": "",
        "depth": 0,
        "halo": "",
        "reorder": False,
        "blocks": 0,
        "start": "",
        "inner": "",
    }
    left = job["inputs"][0]
    assert (left["rows"], left["columns"], left["transposed"]) == (4, 6, True)
    assert (left["dtype"], left["byte_order"], left["order"]) == ("float32", "big", "F")
    assert left["offset"] == 128 and left["file_bytes"] == 128 + 4 * 6 * 4
    assert (job["dtype"], job["verify"], job["repeat"], job["warmup"]) == ("float64", "serial", 3, 1)
    assert (job["sync"], job["place"], job["hints"], job["protocol"]) == (
        True,
        "node",
        {"cb_nodes": "2"},
        PROTOCOL,
    )
    assert job["bind"] is False  # more threads than there are cores
    assert Path(job["output"]["path"]).parent == fake.folder
    assert (job["output"]["rows"], job["output"]["columns"]) == (6, 3)


def test_generate_tells_its_generator(fake: Tilewise) -> None:
    fake.environment["FAKE_JOB"] = str(fake.folder / "job.json")
    words = "--shape 5x7 --dtype float32 --kind graded --seed 9"
    assert fake("generate", "-o", "G.npy", *words.split(), "-q").returncode == 0
    job = json.loads((fake.folder / "job.json").read_text())
    assert job["command"] == "generate"
    source = job["inputs"][0]
    assert (source["path"], source["generator"], source["seed"], source["file_bytes"]) == (
        "",
        "graded",
        9,
        -1,
    )
    made = numpy.load(fake.folder / "G.npy")
    assert made.shape == (5, 7) and made.dtype == numpy.float32


def test_plan_runs_nothing(fake: Tilewise) -> None:
    before = fake.files()
    fake.environment["TILEWISE_WORKER"] = "/nowhere"
    result = fake("plan", *MULTIPLY_WORDS, "-n", "2")
    assert result.returncode == 0, result.stderr
    assert "summa" in result.stdout and "memory" in result.stdout and "because" in result.stdout
    assert fake.files() == before


@pytest.mark.parametrize(("job", "name"), [("transpose", "result.npy"), ("svd", "result/: U.npy")])
def test_a_plan_needs_no_output(fake: Tilewise, job: str, name: str) -> None:
    """It is for one in this folder, beside whatever is called as that would be."""
    planned = fake("plan", job, "A.npy")
    assert planned.returncode == 0 and f"/{name}" in planned.stdout
    (fake.folder / "result.npy").touch()
    (fake.folder / "result").mkdir()
    planned = fake("plan", job, "A.npy")
    assert planned.returncode == 0 and f"/{name.replace('result', 'result1')}" in planned.stdout


def test_a_missing_worker_is_said(fake: Tilewise) -> None:
    fake.environment["TILEWISE_WORKER"] = "/nowhere/worker"
    message = one_message(fake(*MULTIPLY_WORDS), 2)
    assert "/nowhere/worker" in message and "doctor" in message


def test_info_and_its_json(fake: Tilewise) -> None:
    assert "6×4" in fake("info", "A.npy").stdout
    facts = json.loads(fake("info", "A.npy", "--json", "-", "--stats").stdout)
    assert facts["shape"] == [6, 4] and facts["offset"] == 128 and facts["bytes"] == 192
    assert facts["statistics"] == {"min": 0.0, "max": 23.0, "mean": 11.5, "non_finite": 0}
    assert "generated" in fake("info", "random:3x4:int8").stdout


def test_info_counts_what_is_not_finite(fake: Tilewise) -> None:
    numbers = numpy.full((3, 3), 1e308)
    numbers[0] = numpy.nan, numpy.inf, -numpy.inf
    numpy.save(fake.folder / "odd.npy", numbers)
    facts = json.loads(fake("info", "odd.npy", "--json", "-", "--stats").stdout)
    assert facts["statistics"]["non_finite"] == 3
    assert facts["statistics"]["min"] == facts["statistics"]["max"] == 1e308
    numpy.save(fake.folder / "nothing.npy", numpy.zeros((0, 3)))
    facts = json.loads(fake("info", "nothing.npy", "--json", "-", "--stats").stdout)
    assert facts["statistics"] == {"min": None, "max": None, "mean": None, "non_finite": 0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("0:2", "1"), "1.0\n5.0\n"),
        (("-1",), "20.0 21.0 22.0 23.0\n"),
        (("::3", ":2"), "0.0 1.0\n12.0 13.0\n"),
        (("4:2",), ""),
    ],
)
def test_show_prints_what_was_asked_for(fake: Tilewise, words: tuple[str, ...], said: str) -> None:
    result = fake("show", "A.npy", *words)
    assert (result.returncode, result.stdout) == (0, said)


def test_show_prints_corners(fake: Tilewise) -> None:
    numpy.save(fake.folder / "large.npy", numpy.asfortranarray(numpy.arange(10000.0).reshape(100, 100)))
    lines = fake("show", "large.npy").stdout.splitlines()
    assert len(lines) == 7 and lines[0].split() == ["0", "1", "2", "…", "97", "98", "99"]
    assert lines[-1].split()[-1] == "9999"


def test_a_reader_that_leaves_is_no_fault(fake: Tilewise) -> None:
    numpy.save(fake.folder / "tall.npy", numpy.zeros((200_000, 1)))
    command = " ".join(fake.command("show", "tall.npy", ":"))
    result = subprocess.run(
        f"set -o pipefail; {command} | head -1",
        shell=True,
        executable="/bin/bash",
        cwd=fake.folder,
        env=fake.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "0.0\n", "")


def test_doctor_starts_two_ranks(fake: Tilewise) -> None:
    result = fake("doctor")
    assert result.returncode == 0, result.stdout
    assert "jobs can run here" in result.stdout and "two ranks" in result.stdout


def test_doctor_says_why_buffers_cannot_be_on_graphics_processors(fake: Tilewise) -> None:
    (line,) = [line for line in fake("doctor").stdout.splitlines() if line.startswith("devices")]
    assert "no graphics processor (no driver), so measure --buffer only supports malloc" in line


def test_doctor_names_the_traps(fake: Tilewise) -> None:
    fake.environment["OPENBLAS_CORETYPE"] = "Prescott"
    assert "unset OPENBLAS_CORETYPE" in fake("doctor").stdout
    fake.environment["TILEWISE_WORKER"] = "/nowhere"
    result = fake("doctor")
    assert result.returncode == 1 and "jobs cannot run here" in result.stdout
