"""Study files: every mistake has one sentence with file, table and line; axes cross, zip, and are limited."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from studies import FLAGS, points, study
from tilewise.base.errors import UsageError
from tilewise.lab.study import shipped
from tilewise.lab.study.evaluation import check
from tilewise.lab.study.points import combinations
from tilewise.lab.study.schema import Run
from tilewise.lab.study.study import launches_of, read

MULTIPLY = 'command = "multiply"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("titel = 'x'", r"s.toml: unknown key 'titel' in the top of the file, line 2; did you mean 'title'"),
        (
            "[[runs]]\nname = 'a'\nlaunchs = 3",
            r"unknown key 'launchs' in runs 1, line 4; did you mean 'launches'",
        ),
        ("[[tables]]\nname = 'a'\nrow = 'x'", r"unknown key 'row' in tables 1, line 4"),
        ("[[tables]]\nname = 'a'", r"tables 1 lacks 'rows'"),
        ("launches = 'three'", r"launches: expected a whole number, got a text"),
        ("axes.ranks = 3", r"axes.*expected a list"),
        ("x = = 1", r"s.toml is not valid TOML: .*line 2"),
        ("", r"runs main: command is missing"),
        (MULTIPLY + "axes.ranks = []", r"the axis 'ranks' has no values, line 3"),
        (MULTIPLY + "axes.ranks = [1, 2, 1]", r"'ranks' has a value twice"),
        (MULTIPLY + "axes.io = [1979-05-27]", r"values that are not texts, numbers or booleans"),
        (MULTIPLY + "axes.io = [nan]", r"values that are not texts, numbers or booleans"),
        (MULTIPLY + "axes.output = [1]", r"an axis cannot be named 'output'"),
        (MULTIPLY + "axes.ranks = [1]\nzip = [['ranks', 'io']]", r"zip names 'io', which is not an axis"),
        (
            MULTIPLY + "axes.ranks = [1]\naxes.io = ['a', 'b']\nzip = [['ranks', 'io']]",
            r"need the same number of values, but ranks has 1, io has 2",
        ),
        (MULTIPLY + "launches = 0", r"launches = 0 makes no sense"),
        (MULTIPLY + "timeout = -1.0", r"timeout = -1 makes no sense"),
        (MULTIPLY + "launches = 2\nstop = {least = 3}", r"launches and stop contradict each other"),
        (MULTIPLY + "stop = {least = 3, most = 2}", r"2 <= least <= most"),
        (MULTIPLY + "[inputs.A]\nseed = 1", r"'A' needs either a shape or a path"),
        (MULTIPLY + "[[runs]]\nname = 'a'\n[[runs]]\nname = 'a'", r"two runs are named 'a'"),
        (MULTIPLY + "[[runs]]\nname = 'a/b'", r"a run's name"),
        (MULTIPLY + "[scales.huge]", r"scales.huge is unknown; expected one of tiny, default, report"),
        (
            MULTIPLY + "[scales.tiny]\naxes.size = [1]",
            r"scales.tiny changes the axis 'size', which no run has",
        ),
        (MULTIPLY + "[[tables]]\nname='t'\nrows='ranks'\nruns=['x']", r"tables t: runs 'x' is unknown"),
        (
            MULTIPLY + "[[tables]]\nname='t'\nrows='r'\naggregate='avg'",
            r"aggregate 'avg' is unknown; expected one of median",
        ),
        (MULTIPLY + "[[plots]]\nname='p'\nx='ranks'\nlog='z'", r"log 'z' is unknown"),
        (MULTIPLY + "[[claims]]\ntext='c'", r"claims 1 needs either 'holds'"),
    ],
)
def test_mistakes_of_files(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        study(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "axes.rank = [1]",
            r"the axis 'rank' is not a flag of multiply, and nothing has \{rank\} in it, line 3",
        ),
        ("flags = {algoritm = 'x'}", r"multiply has no flag --algoritm, line 3; did you mean --algorithm"),
        ("flags = {json = 'x'}", r"--json is set by the study itself"),
        ("flags = {ranks = 2}\naxes.ranks = [1]", r"'ranks' is both an axis and a fixed flag"),
        ("axes.ranks = [1, 'two']", r"the axis 'ranks' has 'two', but --ranks expects whole numbers, line 3"),
        ("trace = true", r"multiply has no timeline"),
        ("axes.ranks = [true]", r"--ranks expects whole numbers"),
        ("axes.sync = [1]", r"--sync expects true or false"),
        ("flags = {threads = 1.5}", r"flags.threads has 1.5, but --threads expects whole numbers"),
        (
            "axes.ranks = [3]\nconstraints = ['ranks <= 2', 'rnks > 1']",
            r"asks for 'rnks', line 4; expected one of ranks, cores",
        ),
        (
            "axes.ranks = [3]\nconstraints = ['square(ranks)']",
            r"the constraints leave no point: square\(ranks\)",
        ),
        (
            "axes.ranks = [3]\nconstraints = ['ranks +']",
            r"s.toml, line 4, constraint of runs main: 'ranks \+' is no",
        ),
        ("words = ['{A}']", r"asks for 'A'"),
        ("[inputs.A]\nshape = 'big'", r"inputs.A.shape expects two whole numbers"),
        ("[inputs.A]\npath = 'not-there.npy'", r"the input 'A' cannot be read"),
    ],
)
def test_mistakes_of_points(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        points(MULTIPLY + text)


def test_crossing_is_the_product_in_the_order_of_the_file() -> None:
    run = Run(name="r", axes={"b": [1, 2], "a": ["x", "y", "z"], "c": [True]})
    expected = [{"b": b, "a": a, "c": c} for b, a, c in itertools.product([1, 2], "xyz", [True])]
    assert combinations(run) == expected


@settings(max_examples=50)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(0, 2), st.integers(1, 3))
def test_zipping_against_itertools(sizes: list[int], pairs: int, length: int) -> None:
    """Axes 2i and 2i+1 are zipped for the first `pairs` pairs, all others crossed."""
    axes = {f"x{i}": [(i, v) for v in range(length if i < 2 * pairs else n)] for i, n in enumerate(sizes)}
    groups = [[f"x{2 * i}", f"x{2 * i + 1}"] for i in range(pairs) if f"x{2 * i + 1}" in axes]
    zipped = [name for group in groups for name in group]
    sources = [zip(*(axes[name] for name in group), strict=True) for group in groups]
    sources += [((value,) for value in axes[name]) for name in axes if name not in zipped]
    expected = {frozenset(itertools.chain(*picked)) for picked in itertools.product(*sources)}
    found = [frozenset(each.values()) for each in combinations(Run(name="r", axes=axes, zip=groups))]
    assert len(found) == len(set(found)) and set(found) == expected


def test_constraints_against_a_plain_loop() -> None:
    found = points(
        MULTIPLY
        + "axes.algorithm = ['cannon', 'summa']\naxes.ranks = [1, 2, 3, 4, 6, 9]\n"
        + "constraints = [\"algorithm != 'cannon' or square(ranks)\", 'ranks <= 6']"
    )
    expected = [
        (a, r)
        for a in ("cannon", "summa")
        for r in (1, 2, 3, 4, 6, 9)
        if (a != "cannon" or round(r**0.5) ** 2 == r) and r <= 6
    ]
    assert [(p.axes["algorithm"], p.axes["ranks"]) for p in found] == expected
    assert all(not p.reason for p in found)


def test_out_of_reach_is_said_not_dropped() -> None:
    found = points(
        MULTIPLY + "axes.ranks = [1, 2, 8, 64]\nconstraints = ['ranks <= 2 * cores']\n"
        "limits = ['input_bytes < disk']\n[inputs.A]\nshape = '{ranks * 16}x1024'",
        disk=300_000,
    )
    reasons = {p.axes["ranks"]: p.reason for p in found}
    assert reasons[1] == "" and reasons[2] == ""
    assert reasons[8] == "needs 4 cores; this machine has 2"
    assert points(
        MULTIPLY + "axes.ranks=[4]\nlimits=['input_bytes < disk']\ninputs.A.shape='4096x4096'", disk=100
    )[0].reason.startswith("needs 128 MiB of free disk space; this machine has 100 bytes")


def test_command_lines() -> None:
    found = points(
        MULTIPLY + "words = ['{A}', '{A}', '{2 * ranks}']\noutput = 'C.h5'\naxes.ranks = [2]\n"
        "axes.sync = [false, true]\nflags = {verify = 'off', hint = ['a=1', 'b={ranks}'], tolerance = 0.5}\n"
        "inputs.A = {shape = '{ranks}x3', dtype = 'float32', seed = '{ranks + 1}', format = 'txt'}\n"
        "launcher = {launcher = 'srun --mpi=pmix'}"
    )
    plain, synced = found
    made = "random-2x3-float32-3.txt"
    assert plain.output == f"C-{plain.key[:8]}.h5"
    said = (
        f"multiply {made} {made} 4 -o {plain.output} --ranks 2 --verify off --hint a=1 --hint b=2 "
        "--tolerance 0.5 --launcher"
    )
    assert plain.words == [*said.split(), "srun --mpi=pmix"]
    assert "--sync" in synced.words and "--sync" not in plain.words
    assert plain.line().endswith("--launcher 'srun --mpi=pmix'")
    assert plain.inputs[0].generate == (
        f"generate -o {made} --shape 2x3 --dtype float32 --kind random --seed 3".split()
    )


def test_keys_are_stable_and_tell_points_apart() -> None:
    text = (
        MULTIPLY
        + "output = 'C.npy'\naxes.ranks = [1, 2]\naxes.io = ['root', 'sieve']\ninputs.A = {shape = '4x4'}"
    )
    one, two = points(text), points(text)
    assert [p.key for p in one] == [p.key for p in two]
    assert len({p.key for p in one}) == 4
    assert points(text.replace("4x4", "4x5"))[0].key != one[0].key
    # The same in another process and another year: it names points in results that lie on disk.
    assert one[0].key == "10de571255ca4d584e4f08ba9a8aa70a"


def test_a_file_is_what_it_holds(tmp_path, monkeypatch) -> None:
    def key(folder: str, content: bytes) -> str:
        from tilewise.lab.study.points import expand

        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "A.npy").write_bytes(content)
        made = study(MULTIPLY + "inputs.A.path = 'A.npy'", path=str(tmp_path / folder / "s.toml"))
        return expand(made, {"cores": 1, "cpus": 1, "memory": 1, "disk": 1}, lambda c: FLAGS)[0].key

    assert key("a", b"one") == key("b", b"one")
    assert key("a", b"two") != key("b", b"one")


def test_scales_and_runs_are_joined() -> None:
    made = study(
        MULTIPLY
        + "launches = 4\naxes.ranks = [1, 2]\nconstraints = ['ranks > 0']\nflags = {verify = 'off'}\n"
        "[scales.tiny]\naxes.ranks = [1]\nlaunches = 2\n"
        "[[runs]]\nname = 'a'\naxes.io = ['root']\nconstraints = ['ranks < 9']\n"
        "[[runs]]\nname = 'b'\ncommand = 'transpose'\nflags = {sync = true}\nstop = {}\n"
        "scales.tiny = {axes = {ranks = [2]}, skip = 'too slow', flags = {verify = 'fast'}}",
        "tiny",
    )
    a, b = made.runs
    assert a.command == "multiply" and b.command == "transpose"
    assert a.axes == {"ranks": [1], "io": ["root"]} and b.axes == {"ranks": [2]}
    assert a.constraints == ["ranks > 0", "ranks < 9"]
    assert b.flags == {"verify": "fast", "sync": True}
    assert launches_of(a)[:2] == (2, 2) and launches_of(b)[:2] == (2, 2)
    assert made.skipped == {"b": "too slow"}
    plain = study(made.text.removeprefix('title = "T"\n'))
    assert launches_of(plain.runs[0])[:2] == (4, 4) and launches_of(plain.runs[1])[:2] == (3, 10)


def test_a_study_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="no study 'quik'; choose from .*quick"):
        shipped.path_of("quik")
    with pytest.raises(UsageError, match="No such file"):
        read("nope.toml")


def test_the_reference_names_every_key() -> None:
    from tilewise.lab.study import schema
    from tilewise.lab.study.checks import CLAIM_FUNCTIONS
    from tilewise.lab.study.expression import FUNCTIONS

    page = (Path(__file__).parents[3] / "docs/reference/study.md").read_text(encoding="utf-8")
    structs = [
        getattr(schema, name) for name in ("File", "Input", "StopRule", "Slurm", "Launcher", "Run", "Scale")
    ]
    structs += [
        schema.TableWanted,
        schema.PlotWanted,
        schema.StudyClaim,
        schema.Reference,
        schema.SourceCurve,
        schema.FigureColumn,
        schema.Further,
    ]
    for struct in structs:
        for key in struct.__struct_fields__:
            assert f"`{key}`" in page or f" {key}," in page or f"{key} }}" in page, f"{struct.__name__}.{key}"
    for name in FUNCTIONS:
        assert re.search(rf"[` ]{name}[` ]", page), name
    for name in CLAIM_FUNCTIONS:
        assert f"`{name}(" in page, name


def test_the_example_of_the_reference_is_one() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/study.md").read_text(encoding="utf-8")
    text = page.split("```toml\n")[1].split("```")[0].removeprefix('title = "How reading scales"\n')
    made = study(text)
    planned = points(text)
    check(made, planned)
    assert len(planned) == 12 and not any(point.reason for point in planned)
