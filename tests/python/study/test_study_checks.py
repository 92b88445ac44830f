"""What no launch could do is refused before anything runs: words, inputs, stops; and what inputs are."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import h5py
import numpy
import pytest
from conftest import InProcess, Tilewise, one_message, wait_for
from studies import Runner, points, run
from test_study_run import REAL, lines, write
from tilewise.lab.study import export
from tilewise.lab.study.inputs import PreparedInput
from tilewise.lab.study.store import load_entries
from tilewise.lab.study.work import Work, write_stamp

JOB = 'title = "T"\ncommand = "multiply"\nwords = ["A.npy", "B.npy"]\noutput = "C.npy"\n'
MEASURE = 'title = "T"\ncommand = "measure compute"\n'
INPUT = JOB.replace('words = ["A.npy", "B.npy"]', 'inputs.B.path = "s.toml"')
STENCIL = 'title = "T"\ncommand = "stencil"\nwords = ["A.npy"]\noutput = "C.npy"\nflags.steps = 2\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (JOB + 'axes.io = ["root", "rooot"]', "multiply A.npy B.npy -o C-.*--io 'rooot' is unknown"),
        (JOB + 'axes.json = ["x.json"]', "--json is set by the study itself, line 5"),
        (JOB + 'axes.o = ["x.npy"]', "'o' is not a flag of multiply"),
        (JOB + 'flags.output = "x.npy"', "--output is set by the study itself"),
        (JOB + "flags.repeat = 0", "--repeat 0 makes no sense"),
        (JOB + 'flags.memory = "much"', "--memory"),
        (JOB + "flags.verify = ['off', 'fast']", "given more than once"),
        (JOB.replace('output = "C.npy"', ""), "multiply needs --output"),
        (JOB.replace(', "B.npy"', ""), "multiply needs B"),
        (JOB + 'flags.algorithm = "cannon"\naxes.ranks = [1, 2]', "cannon takes square rank.*--ranks 2"),
        (
            JOB + 'axes.ranks = [1, 2]\naxes.algorithm = ["summa", "cannon"]',
            "cannon takes square rank counts",
        ),
        (JOB.replace("C.npy", "C.zz"), "unknown extension '.zz'"),
        (JOB + "axes.ranks = 2", "axes.ranks: expected a list, not 2, line 5"),
        (JOB + "[[runs]]\nname = 'r'\naxes.ranks = 2", "runs 1, axes.ranks: expected a list, not 2, line 7"),
        (
            JOB + '[[tables]]\nname = "t"\nrows = "run"\nvalue = "seconds.totl.max"',
            "t asks for 'seconds.totl.max', line 8, but there is no seconds.totl; expected one of input,",
        ),
        (
            JOB + '[[tables]]\nname = "t"\nrows = "run"\ncolumns = [{title = "a", value = "bytes.reed / 2"}]',
            "tables t asks for 'bytes.reed', line 8",
        ),
        (
            JOB + '[[plots]]\nname = "p"\nx = "run"\nvalue = "messagess"',
            "asks for 'messagess', line 8, but there is no messagess",
        ),
        (
            JOB + 'axes.ranks = [1, 2]\n[[tables]]\nname = "t"\nrows = "ranks"\nbase = { ranks = 3 }',
            "base: no point has ranks = 3, line 9; it is one of 1, 2",
        ),
        (
            JOB + '[[claims]]\ntext = "c"\nholds = "value(\'seconds.inputt.max\') > 1"',
            "asks for 'seconds.inputt.max'.*there is no seconds.inputt",
        ),
        (MEASURE + 'output = "C.npy"', "measure has no flag -o"),
        (MEASURE + "flags.ranks = '2'", "--ranks belongs to ping and file, not to compute"),
        (MEASURE + "flags.schema = true", "--schema is set by the study itself"),
        (MEASURE.replace("compute", "nonsense"), "KIND 'nonsense' is unknown"),
        (INPUT + 'inputs.A = { shape = "4x4", kind = "zz" }', "inputs.A: --kind 'zz' is unknown"),
        (INPUT + 'inputs.A = { shape = "0x5" }', "inputs.A.shape 0x5 has no elements"),
        (INPUT + 'inputs.A = { shape = "4x4", dtype = "float65" }', "inputs.A: dtype.*float65"),
        (INPUT + 'inputs.A = { shape = "4x4", seed = -1 }', "inputs.A: .*a seed is a whole number"),
        (INPUT + 'inputs.A = { shape = "4x4", format = "zz" }', "inputs.A: .*unknown extension '.zz'"),
        (INPUT + 'inputs.A = { shape = "4x4", format = "png" }', "inputs.A: a .png file cannot hold float64"),
        (INPUT + 'inputs.A = { shape = "4x4", format = "pgm" }', "inputs.A: a .pgm file cannot hold float64"),
        (JOB + "stop.metric = 'seconds.totl.max'", "has no seconds.totl; expected one of .*total"),
        (JOB + "stop.metric = 'nonsense'", "stop.metric asks for 'nonsense', line 5, but .* has no nonsense"),
        (JOB + "stop.metric = 'seconds.total'", "no number at seconds.total"),
        (JOB + "stop.metric = 'seconds.wall.max'", "nothing below seconds.wall"),
        (JOB + "stop.metric = 'command'", "no number at command"),
        (MEASURE + "stop.relative = 0.1", "a record of measure compute has nothing below seconds"),
        (STENCIL + "flags.weights = 'star7'", "--weights 'star7' is unknown"),
    ],
)  # fmt: skip
def test_before_anything_runs(here: InProcess, text: str, said: str) -> None:
    import re

    Path("s.toml").write_text(text)
    for more in ([], ["--dry-run"]):
        told = one_message(here("study", "run", "s.toml", *more), 2)
        assert re.search(said, told), told
    assert not Path("results").exists()


@pytest.mark.parametrize(
    "text",
    [
        JOB + "stop.metric = 'median(samples.compute) + command_seconds'",
        JOB + "stop.metric = 'fraction_of_peak'",
        MEASURE + "stop.metric = 'lines.summary.median[0]'",
        STENCIL + "flags.weights = 'W.npy'",  # in the work folder, not here
        STENCIL + 'flags.weights = "{W}"\ninputs.W = { shape = "3x3" }',
        'title = "T"\ncommand = "measure memory"\naxes.threads = [1, 2]\nflags.bytes = "4MiB"',
    ],
)
def test_what_makes_sense_passes(here: InProcess, text: str) -> None:
    Path("s.toml").write_text(text)
    done = here("study", "run", "s.toml", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")


def test_every_value_is_checked_but_not_every_combination() -> None:
    from studies import study
    from tilewise.lab.study.checks import check_lines

    text = f"command = 'multiply'\naxes.ranks = {list(range(1, 51))}\naxes.threads = {list(range(1, 51))}\n"
    seen: list[list[str]] = []
    check_lines(study(text), points(text), seen.append)
    assert len(seen) == 99 and {words[2] for words in seen} == {str(n) for n in range(1, 51)}


def test_a_stop_without_a_figure_is_told(fake: Tilewise) -> None:
    write(
        fake.folder, REAL.replace("launches = 2", 'stop = {metric = "samples.nonsense", least = 2, most = 3}')
    )
    done = fake("study", "run", "s.toml", "--into", "r")
    assert done.returncode == 0 and "12 launches, 4 points done" in done.stdout
    assert (
        "4 points reached the maximum number of launches without samples.nonsense, the metric of stop"
        in done.stderr
    )


def test_files_count_as_input_bytes(tmp_path: Path) -> None:
    numpy.save(tmp_path / "A.npy", numpy.zeros((100, 100)))
    (tmp_path / "B.tiles").mkdir()
    (tmp_path / "B.tiles" / "one").write_bytes(b"x" * 1000)
    text = f"command = 'multiply'\ninputs.A.path = '{tmp_path}/A.npy'\ninputs.B.path = '{tmp_path}/B.tiles'\n"
    (point,) = points(text + "limits = ['input_bytes <= 81127']")
    assert point.reason == "needs input_bytes <= 81127; here input_bytes is 81128"
    (point,) = points(text + "limits = ['input_bytes <= 81128']")
    assert not point.reason


def test_an_input_may_be_a_slice_of_a_dataset(tilewise: Tilewise) -> None:
    a, b = numpy.random.default_rng(1).random((2, 5, 5))
    with h5py.File(tilewise.folder / "both.h5", "w") as book:
        book["A"], book["g/B"] = numpy.stack([b, a]), b
    (tilewise.folder / "s.toml").write_text(
        'title = "T"\ncommand = "multiply"\noutput = "C.npy"\n'
        'inputs.A.path = "both.h5:/A[1]"\ninputs.B.path = "both.h5:g/B"\n'
    )
    done = tilewise("study", "run", "s.toml", "--into", "r")
    assert done.returncode == 0, done.stderr
    (line,) = lines(tilewise.folder / "r")
    folder = tilewise.folder
    assert line["command"][1:3] == [f"{folder}/both.h5:/A[1]", f"{folder}/both.h5:g/B"]
    assert line["status"] == "done" and [each["shape"] for each in line["record"]["inputs"]] == [[5, 5]] * 2
    text = (tilewise.folder / "s.toml").read_text()
    (tilewise.folder / "s.toml").write_text(
        text.replace("both.h5:/A[1]", "both.h5:/B").replace("both", "none")
    )
    assert "none.h5: No such file" in one_message(tilewise("study", "run", "s.toml"), 2)


MADE = """
title = "T"
command = "multiply"
launches = 2
axes.ranks = [1, 2]
flags = { verify = "off" }
inputs.A = { shape = "6x6" }
inputs.B = { shape = "6x4", seed = 1, format = "%s" }
output = "C.npy"
"""


@pytest.mark.parametrize("format", ["npy", "h5", "tiles"])
def test_a_file_that_is_there_is_compared(tilewise: Tilewise, format: str) -> None:
    (tilewise.folder / "s.toml").write_text(MADE % format)
    work = tilewise.folder / "w"
    work.mkdir()
    name = f"random-6x4-float64-1.{format}"
    words = ("study", "run", "s.toml", "--into", "r", "--work", "w")
    tilewise("generate", "-o", work / name, "--shape", "6x4", "--seed", "2")
    said = one_message(tilewise(*words), 2)
    assert f"{work}/{name} already exists and is not the matrix that the input B asks for" in said
    assert os.listdir(work) == [name]
    tilewise("generate", "-o", work / name, "--shape", "6x4", "--seed", "1", "--force")
    done = tilewise(*words)
    assert done.returncode == 0 and "4 launches" in done.stdout, done.stderr
    assert os.listdir(work) == [name]


def test_inputs_of_a_killed_study_go_in_the_end(fake: Tilewise, processes) -> None:
    """With --work, where a file of the user's would stay; also one whose making was cut short."""
    (fake.folder / "s.toml").write_text(REAL.replace('words = ["A.npy", "B.npy"]\n', ""))
    work = fake.folder / "w"
    work.mkdir()
    owner = str(fake.folder / "r")
    text = REAL.replace('words = ["A.npy", "B.npy"]\n', "").replace("[1, 2, 3, 4]", "[1, 2]")
    text = text.replace('inputs.A = { path = "A.npy" }', 'inputs.A = { shape = "6x4" }')
    (fake.folder / "s.toml").write_text(text)
    words = ("study", "run", "s.toml", "--into", "r", "--work", "w")
    name = "random-6x4-float64-0.npy"
    made = numpy.zeros((6, 4))
    numpy.save(work / name, made)
    write_stamp(str(work / name), owner, made=True)  # as the study leaves it when it is killed
    child = fake.start(*words, how="hang")
    wait_for(processes)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    wait_for(lambda: not processes())
    assert (work / name).exists() and (work / f".{name}.made").exists()
    done = fake(*words)
    assert done.returncode == 0, done.stderr
    assert not os.listdir(work)


def test_whose_a_stamped_file_is(tmp_path: Path) -> None:
    from tilewise.engine.child import Ended

    made = PreparedInput(name="A", word="a.npy", identity="a", bytes=1, generate=["generate", "-o", "a.npy"])
    path, stamp = tmp_path / "a.npy", tmp_path / ".a.npy.made"
    calls: list[list[str]] = []

    def generate(words: list[str], folder: str, timeout: float | None) -> Ended:
        calls.append(words)
        Path(folder, words[2]).write_text("made")
        return Ended(0, b"", "", 0.0)

    def one(owner: str, keep: bool = False) -> None:
        calls.clear()
        work = Work(str(tmp_path), keep, ours=False, alone=False, owner=owner)
        for _ in range(2):
            work.prepare(made, generate)
        work.close()

    one("r", keep=True)  # kept for all: nobody removes it, and nobody makes it again
    assert len(calls) == 1 and path.exists() and stamp.exists()
    one("r")
    assert not calls and path.exists()
    told = path.stat()
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns + 1))  # somebody has touched it: compared
    one("q")
    assert [words[2] for words in calls] == ["check-a.npy"] and path.exists()

    write_stamp(str(path), os.path.abspath("r"), made=True)
    one("q")  # another study's, which is there and may remove it
    assert not calls and path.exists()
    one("r")
    assert not calls and os.listdir(tmp_path) == []

    write_stamp(str(path), os.path.abspath("r"), made=False)
    path.write_text("cut short")
    one("r")
    assert [words[2] for words in calls] == ["a.npy"] and os.listdir(tmp_path) == []


def test_axes_called_like_columns_are_columns_of_their_own(tmp_path: Path) -> None:
    text = 'command = "multiply"\nzip = [["ranks", "point", "message", "environment", "status"]]\n'
    text += "".join(
        f"axes.{axis} = [1, 2]\n" for axis in ("ranks", "point", "message", "environment", "status")
    )
    run(tmp_path, text, Runner())
    one, _ = export.rows(str(tmp_path))
    kept = lines(tmp_path)[0]
    for axis in ("point", "message", "environment", "status"):
        assert one[f"axes.{axis}"] == kept["axes"][axis] and one[axis] == kept[axis]
    assert one["ranks"] == kept["axes"]["ranks"]


def test_lines_that_are_none_are_told(here: InProcess, tmp_path: Path) -> None:
    text = 'command = "multiply"\naxes.ranks = [1, 2]\nlaunches = 3\n'
    for name in ("a", "b"):
        run(tmp_path / name, text, Runner())
    whole = Path("a/points.jsonl").read_text().splitlines(keepends=True)
    Path("a/points.jsonl").write_text("".join([whole[0], '{"no": 1}\n', *whole[1:]]))
    assert len(load_entries("a")[0]) == 6
    said = "points.jsonl, line 2 is not an entry and was left out"
    assert said in here("study", "show", "a").stdout
    for words in (("export", "a", "--csv", "x.csv"), ("compare", "a", "b"), ("compare", "b", "a")):
        done = here("study", *words)
        assert done.returncode == 0 and done.stderr.count(said) == 1, done.stderr
    assert here("study", "compare", "b", "b").stderr == ""
