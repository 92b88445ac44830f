"""Help promises nothing else than what is accepted: each choice, each example, a name for each value."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
from conftest import InProcess
from tilewise.cli import JOBS, Page, names, page_of, parse, subcommands


def test_each_value_that_is_no_choice_has_a_name_that_says_what_it_is() -> None:
    for name in names():
        for each in page_of(name).arguments.shown():
            if each.kind is str and not each.choices and each not in page_of(name).arguments.positions:
                named = each.flag.value is not None
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
            assert set(value.split(each.flag.joined or None)) <= set(each.choices)


@pytest.mark.parametrize("name", JOBS)
def test_the_short_page_is_one_screen(name: str, here: InProcess) -> None:
    """What must be given, what most people use, three examples, and how many flags there are besides."""
    short, full = (here(name, flag).stdout.splitlines() for flag in ("-h", "--help"))
    assert len(short) <= 42
    assert len(full) > 60
    every = page_of(name).arguments.shown()
    assert sum(each.flag.common for each in every) <= 8
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
