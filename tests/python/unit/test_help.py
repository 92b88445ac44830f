"""Help promises nothing else than what is accepted: each choice, each example, a name for each value."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from conftest import InProcess
from format_files import written
from PIL import Image
from tilewise.base.declare import Argument
from tilewise.base.errors import UsageError
from tilewise.cli import parse
from tilewise.cli.commands import JOBS
from tilewise.cli.pages import Page, names, page_of, subcommands

WORDS = {  # inputs that a job can be planned for, and what it wants besides
    "multiply": ["random:64x48:int64:1", "random:48x64:int64:2", "-o", "C.npy"],
    "stencil": ["random:64x48:float64:1", "--steps", "3", "-o", "C.npy"],
    "generate": ["--shape", "64x48", "-o", "C.npy"],
    "svd": ["random:64x48:float64:1", "-o", "svd"],
    "norm": ["random:64x48:float64:1"],
}
OTHERS = ["random:64x48:float64:1", "-o", "C.npy"]
TILES = {  # the same with a matrix that is a folder of tiles, for `per_rank`
    "multiply": ["random:64x48:int64:1", "random:48x64:int64:2", "-o", "C.tiles"],
    "stencil": ["random:64x48:float64:1", "--steps", "3", "-o", "C.tiles"],
    "generate": ["--shape", "64x48", "-o", "C.tiles"],
    "svd": ["T.tiles", "-o", "svd"],
    "norm": ["T.tiles"],
}
STACKS = {  # the same with a stack of matrices, for `slices`
    "multiply": ["S.npy", "random:48x64:int64:2", "-o", "C.npy"],
    "stencil": ["S.npy", "--steps", "3", "-o", "C.npy"],
    "svd": ["S.npy", "-o", "svd"],
    "norm": ["S.npy"],
}
# A choice may want something else besides; one of these must do.
BESIDES = {
    "algorithm": [["-n", "1"], ["-n", "4"], ["--components", "3"]],
    "exchange": [["-n", "4"], *(["-n", "4", "--algorithm", name] for name in ("cannon", "summa", "swap"))],
    "io": [[]],
    "slices": [["--each", "0"]],
    "halo": [["-n", "2", "--exchange", "blocking"]],
    "root_write": [["--algorithm", "gather"]],
    "inner": [["--algorithm", "jacobi"]],
    "start": [["--algorithm", "jacobi"]],
    "remainder": [[], ["--algorithm", "jacobi"]],
    "kernel": [[], ["--algorithm", "jacobi"]],
}
KINDS = ("all", "ping", "file", "memory", "compute")


def with_choices() -> Iterator[tuple[str, Argument]]:
    for name in JOBS:
        for each in page_of(name).arguments.shown():
            if each.choices:
                yield name, each


@pytest.mark.parametrize(
    ("name", "flag"), [*with_choices()], ids=lambda each: each if isinstance(each, str) else each.field
)
def test_each_choice_of_a_job_is_taken_by_its_plan(name: str, flag: Argument, here: InProcess) -> None:
    written(Path("T.tiles").resolve(), numpy.ones((64, 48)))
    numpy.save("S.npy", numpy.ones((3, 64, 48)))
    for choice in flag.choices:
        spelt = flag.parameter.spellings[0]
        if choice == "per_rank":
            words = TILES.get(name, ["T.tiles", "-o", "C.npy"])
        elif flag.field == "slices":
            words = STACKS.get(name, ["S.npy", "-o", "C.npy"])
        else:
            words = WORDS.get(name, OTHERS)
        refusals = []
        for besides in BESIDES.get(flag.field, [[]]):
            done = here("plan", name, *words, *besides, spelt, choice)
            if done.returncode == 0:
                break
            refusals.append(done.stderr)
        else:
            raise AssertionError(f"{name} {spelt} {choice}: {refusals}")


def test_each_choice_of_measure_is_taken() -> None:
    page = page_of("measure")
    flags = [each for each in page.arguments.shown() if each.choices and each not in page.arguments.positions]
    assert len(flags) > 8
    from tilewise.cli.measure import request

    for flag in flags:
        for choice in flag.choices:
            spelt = flag.parameter.spellings[0]
            taken = [kind for kind in KINDS if _is_taken(request, [kind, spelt, choice])]
            assert taken, (spelt, choice)
    assert not _is_taken(request, ["ping", "--levels", "nowhere"])


def _is_taken(request: object, words: list[str]) -> bool:
    try:
        return parse.parse("measure", request, words) is not None  # type: ignore[arg-type]
    except UsageError:
        return False


def test_each_value_that_is_no_choice_has_a_name_that_says_what_it_is() -> None:
    for name in names():
        for each in page_of(name).arguments.shown():
            if each.kind is str and not each.choices and each not in page_of(name).arguments.positions:
                named = each.parameter.value is not None
                assert named or each.field in ("machine", "part", "account", "partition"), (name, each.field)


def examples() -> Iterator[str]:
    for name in names():
        page = page_of(name)
        assert 1 <= len(page.examples) <= 3, name
        for line, said in page.examples:
            assert line.startswith(f"tilewise {name}") and said.endswith(".")
            yield line


def page_for(words: list[str]) -> tuple[Page, list[str]]:
    """The page of a command line, and the words that are left for it."""
    name = " ".join(words[:2]) if " ".join(words[:2]) in subcommands(words[0]) else words[0]
    return page_of(name), words[len(name.split()) :]


@pytest.mark.parametrize("line", [*examples()])
def test_an_example_is_what_its_command_takes(line: str) -> None:
    words = shlex.split(line)[1:]
    page, rest = page_for(words)
    if page.name == "plan":
        page, rest = page_for([word for word in rest if word != "--all"])
        rest += [] if "-o" in rest else ["-o", "result"]  # which it does not need
    values = parse.read(page.name, page.arguments, rest)
    given = {(owner, field): value for owner, fields in values.items() for field, value in fields.items()}
    for each in page.arguments.every():
        value = given.get((each.owner, each.field))
        if each.choices and value is not None:
            assert set(value.split(each.parameter.joined or None)) <= set(each.choices)


@pytest.mark.parametrize("line", [line for line in examples() if line.split()[1] in (*JOBS, "plan")])
def test_an_example_of_a_job_can_be_planned(line: str, here: InProcess) -> None:
    numpy.save("A.npy", numpy.ones((40, 40)))
    numpy.save("B.npy", numpy.ones((40, 40)))
    numpy.savetxt("A.txt", numpy.ones((4, 3)))
    Image.new("RGB", (30, 20)).save("photo.png")
    words = shlex.split(line)[1:]
    done = here(
        *(words if words[0] == "plan" else ["plan", *words]), *([] if "norm" in words else ["--force"])
    )
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize("name", JOBS)
def test_the_short_page_is_one_screen(name: str, here: InProcess) -> None:
    """What must be given, what most people use, three examples, and how many flags there are besides."""
    short, full = (here(name, flag).stdout.splitlines() for flag in ("-h", "--help"))
    assert len(short) <= 42
    assert len(full) > 60
    every = page_of(name).arguments.shown()
    assert sum(each.parameter.common for each in every) <= 8
    listed = [line for line in short[: short.index("Examples")] if line[:2] == "  " and line[2] != " "]
    assert short[-1] == f"{len(every) - len(listed)} more flags: tilewise {name} --help"


def test_help_ends_with_examples(here: InProcess) -> None:
    for name in ("multiply", "info", "study run", "measure compare", "plan"):
        page = here(*name.split(), "--help").stdout
        shown = page.partition("\nExamples\n")[2].splitlines()
        assert [line.strip() for line in shown if line.startswith("  tilewise")] == [
            line for line, _ in page_of(name).examples
        ]
        assert all(len(line) <= 100 for line in shown)
