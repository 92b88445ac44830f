"""Every flag of every command keeps to its declaration: what is declared is accepted, all else refused.

A refusal ends with exit code 2 and one message, which names the flag and says what it takes instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import InProcess, one_message
from format_files import written
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewise.base.declare import TIME, Argument, arguments_of, declared
from tilewise.base.errors import UsageError
from tilewise.cli import JOBS, names, page_of
from tilewise.cli.jobs import asked_of, declaring
from tilewise.cli.parse import parse
from tilewise.lab.measurement.request import KINDS, MeasureRequest
from tilewise.operations import options_of

MATRIX, NUMBERS = "random:64x48:float64:1", "random:64x48:int64:1"
# Words that are enough for a command; other jobs take OTHERS.
WORDS = {
    "multiply": [NUMBERS, "random:48x64:int64:2", "-o", "C.npy"],
    "stencil": [MATRIX, "--steps", "3", "-o", "C.npy"],
    "generate": ["--shape", "64x48", "-o", "C.npy"],
    "svd": [MATRIX, "-o", "svd"],
    "norm": [MATRIX],
    "info": [MATRIX],
    "show": [MATRIX],
    "measure": ["all"],
    "measure compare": ["before.json", "after.json"],
    "study show": ["quick"],
    "study run": ["quick", "--dry-run"],
    "study compare": ["old", "new"],
    "study export": ["old", "--csv", "out.csv"],
    "report": ["A.json", "-o", "report.html"],
}
OTHERS = [MATRIX, "-o", "C.npy"]
FREE = ("plan", "study")  # what their flags mean, other commands say
FULL = sorted({*names()} - {*FREE})


def words_of(name: str) -> list[str]:
    return WORDS.get(name, OTHERS if name in JOBS else [])


def flags_of(name: str) -> list[Argument]:
    """The flags of a command that apply to it."""
    return [each for each in page_of(name).arguments.shown() if not each.flag.place]


def without(words: list[str], one: Argument) -> list[str]:
    """The words without a flag that is about to be given another value."""
    for at, word in enumerate(words):
        if word in one.spellings:
            return words[:at] + words[at + (1 if one.kind is bool else 2) :]
    return words


def enough(one: Argument, name: str) -> list[str]:
    """What else a flag wants, so that its value is all that can be wrong."""
    words = one.flag.needs.split()
    if name == "measure":
        return words
    return words + (["--algorithm", one.only[0]] if one.only else [])


def base(name: str, one: Argument) -> list[str]:
    """A command line that takes the flag, but does not have it yet."""
    words = without(words_of(name), one)
    kind = [one.only[0]] if name == "measure" and one.only else words
    return [*name.split(), *(kind if name == "measure" else words), *enough(one, name)]


def outside(one: Argument) -> Iterator[str]:
    """Numbers just outside the range that is declared."""
    flag, whole = one.flag, one.kind is int or one.flag.joined
    unit = "s" if flag.value is TIME else ""
    if flag.least is not None:
        yield f"{flag.least - 1:.15g}"
    if flag.above > -math.inf:
        yield from (f"{flag.above:g}{unit}", *([] if unit else [f"{flag.above - 1:g}", "nan"]))
    if flag.most is not None and flag.most < math.inf:
        yield f"{int(flag.most) + 1}" if whole else f"{flag.most + 1:g}"
    if flag.below < math.inf:
        yield f"{flag.below:g}"
    elif flag.above > -math.inf and flag.most is None and not unit:
        yield "inf"


def with_range() -> list[tuple[str, Argument]]:
    return [(name, each) for name in FULL for each in flags_of(name) if [*outside(each)]]


def id_of(each: Any) -> str:
    return each if isinstance(each, str) else str(each.field)


@pytest.mark.parametrize(("name", "flag"), with_range(), ids=id_of)
def test_numbers_out_of_range_are_refused(name: str, flag: Argument, here: InProcess) -> None:
    for number in outside(flag):
        message = one_message(here(*base(name, flag), f"{flag.name}={number}"), 2)
        shown = flag.spellings[-1]
        assert shown in message and ("it must be" in message or "expects" in message), message


def with_choices() -> list[tuple[str, Argument]]:
    return [(name, each) for name in names() if name not in FREE for each in flags_of(name) if each.choices]


@pytest.mark.parametrize(("name", "flag"), with_choices(), ids=id_of)
def test_words_that_are_no_choice_are_refused(name: str, flag: Argument, here: InProcess) -> None:
    message = one_message(here(*base(name, flag), flag.name, "no_such_word"), 2)
    assert flag.name in message and flag.choices[-1] in message
    for other in {*flag.flag.known} - {*flag.choices}:
        message = one_message(here(*base(name, flag), flag.name, other), 2)
        takes = ", ".join(each for each in flag.choices if each != "auto")
        assert f"{flag.name} {other} makes no sense with {name}: it takes {takes}" in message
        assert f"  try: {flag.name} {flag.choices[0]}" in message


@pytest.mark.parametrize("name", FULL)
def test_words_that_are_no_number_are_refused(name: str, here: InProcess) -> None:
    for flag in flags_of(name):
        if flag.kind in (int, float):
            wanted = "a whole number" if flag.kind is int else "a number"
            message = one_message(here(*base(name, flag), flag.name, "few"), 2)
            assert f"{flag.name} expects {wanted}, not 'few'" in message
            assert f"  try: tilewise {name} --help" in message


@pytest.mark.parametrize("name", FULL)
def test_flags_are_given_once_and_whole(name: str, here: InProcess) -> None:
    for flag in flags_of(name):
        words = base(name, flag)
        if flag.kind is bool:
            assert f"{flag.name} takes no value" in one_message(here(*words, f"{flag.name}=yes"), 2)
            assert "more than once" in one_message(here(*words, flag.name, flag.name), 2)
        else:
            assert f"{flag.name} needs a value" in one_message(here(*words, flag.name), 2)
            assert f"{flag.name} needs a value" in one_message(here(*words, flag.name, "--other"), 2)


def a_value(one: Argument) -> str:
    """A value that is declared, and not the default."""
    if one.choices:
        return next(each for each in one.choices if each not in ("auto", "all", str(one.default)))
    special = {"simulate": "fat-tree", "grid": "1x1", "hosts": "hosts", "launcher": "mpiexec"}
    if one.flag.value is TIME or one.field in special:
        return special.get(one.field, "600s")
    low = 1 if one.flag.least is None else one.flag.least
    return "0.5" if one.flag.above > -math.inf else f"{int(low) + (low == one.default):d}"


def words_with(one: Argument) -> list[str]:
    return [one.name] if one.kind is bool else [one.name, a_value(one)]


@pytest.mark.parametrize("name", FULL)
def test_what_must_be_given_is_asked_for(name: str, here: InProcess) -> None:
    words = name.split()
    for each in page_of(name).arguments.every():
        if each.needed:
            message = one_message(here(*words), 2)
            advice = "-o " if each.field == "output" else f"tilewise {name} --help"
            assert f"{name} needs {each.name}" in message and f"  try: {advice}" in message
            value = {"--shape": "4x4", "SHELL": "bash"}.get(each.name, "3")
            words += [value] if each.flag.place else [each.name, value]


def test_flags_without_what_they_need_are_refused(here: InProcess) -> None:
    needing = [(name, each) for name in FULL for each in flags_of(name) if each.flag.needs]
    assert {each.name for _, each in needing} == {"--slices", "--check-every", "--per-point", "--go"}
    for name, flag in needing:
        message = one_message(here(*name.split(), *words_of(name), *words_with(flag)), 2)
        assert f"{' '.join(words_with(flag))} makes no sense without {flag.flag.needs.split()[0]}" in message
        assert f"  try: {flag.flag.needs}" in message


def test_flags_of_another_algorithm_are_refused(here: InProcess) -> None:
    tried = 0
    for name in JOBS:
        algorithms = options_of(name).algorithms
        for flag in (each for each in flags_of(name) if each.only):
            for other in {*algorithms} - {*flag.only}:
                words = [*words_of(name), "--algorithm", other, *words_with(flag)]
                message = one_message(here("plan", name, *words), 2)
                assert f"{' '.join(words_with(flag))} makes no sense with {other}" in message
                assert f"  try: --algorithm {flag.only[0]}" in message
                tried += 1
    assert tried > 40


def test_flags_of_another_kind_of_measurement_are_refused(here: InProcess) -> None:
    for flag in (each for each in flags_of("measure") if each.only):
        for other in {*KINDS} - {*flag.only}:
            words = (
                [flag.name]
                if flag.kind is bool
                else [flag.name, {"--folder": "x"}.get(flag.name, a_value(flag))]
            )
            message = one_message(here("measure", other, *words), 2)
            assert f"{flag.name} belongs to {' and '.join(flag.only)}, not to {other}" in message
            assert f"  try: tilewise measure {flag.only[0]}" in message


def test_flags_that_exclude_each_other_are_refused(here: InProcess) -> None:
    tried = 0
    for name in FULL:
        every = {each.field: each for each in flags_of(name)}
        for flag in every.values():
            for field, reason in flag.flag.excludes.items():
                if field not in every:
                    continue
                words = [*base(name, flag), *words_with(flag), *words_with(every[field])]
                message = one_message(here(*words), 2)
                assert f"{flag.name} and {every[field].name} contradict each other" in message
                assert reason in message
                tried += 1
    assert tried >= 13


@pytest.mark.parametrize("name", [name for name in JOBS if any(e.hidden for e in declared(options_of(name)))])
def test_flags_that_do_not_apply_are_neither_shown_nor_taken(name: str, here: InProcess) -> None:
    hidden = [each for each in declared(options_of(name)) if each.hidden]
    every = {each.field: each for each in declared(options_of("svd"))}
    page = here(name, "--help").stdout
    for flag in hidden:
        assert f" {flag.name} " not in page
        if flag.field == "no_verify":  # which asks for nothing here
            continue
        value = "serial" if flag.field == "verify" else a_value(every[flag.field])
        words = [flag.name] if flag.kind is bool else [flag.name, value]
        message = one_message(here(name, *words_of(name), *words), 2)
        assert f"{' '.join(words)} makes no sense with {name}: {options_of(name).limits}" in message


# A choice may want something else besides; one of these must do.
BESIDES = {
    "algorithm": [["-n", "1"], ["-n", "4"], ["--components", "3"]],
    "exchange": [["-n", "4"], *(["-n", "4", "--algorithm", name] for name in ("cannon", "summa", "swap"))],
    "halo": [["-n", "2", "--exchange", "blocking"]],
}
PLANNED = [  # generate reads no text
    (name, each)
    for name, each in with_choices()
    if name in JOBS and (name, each.field) != ("generate", "index")
]


@pytest.mark.parametrize(("name", "flag"), PLANNED, ids=id_of)
def test_each_choice_of_a_job_is_taken_by_its_plan(name: str, flag: Argument, here: InProcess) -> None:
    written(Path("T.tiles").resolve(), numpy.ones((64, 48)))
    numpy.save("S.npy", numpy.ones((3, 64, 48)))
    for choice in flag.choices:
        numpy.savetxt("T.csv", numpy.ones((64, 49 if choice == "drop" else 48)), delimiter=",")
        words = without(words_of(name), flag)
        if flag.field == "index":
            words = ["T.csv" if word in (MATRIX, NUMBERS) else word for word in words]
        if flag.flag.needs:  # a stack
            words = ["S.npy" if word in (MATRIX, NUMBERS) else word for word in words]
        if choice == "per_rank":
            words = ["C.tiles" if word == "C.npy" else word for word in words]
            if "C.tiles" not in words:
                words = ["T.tiles" if word == MATRIX else word for word in words]
        refusals = []
        for besides in BESIDES.get(flag.field, [[]]):
            done = here("plan", name, *words, *enough(flag, name), *besides, flag.name, choice)
            if done.returncode == 0:
                break
            refusals.append(done.stderr)
        else:
            raise AssertionError(f"{name} {flag.name} {choice}: {refusals}")


def test_each_choice_of_measure_is_taken() -> None:
    for flag in (each for each in flags_of("measure") if each.choices):
        for choice in flag.choices:
            assert parse("measure", MeasureRequest, [flag.only[0], flag.name, choice]) is not None


@pytest.mark.parametrize("name", JOBS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_numbers_in_range_are_taken_together(name: str, data: st.DataObject) -> None:
    """Flags of numbers, any of them at once, with values drawn from their ranges."""
    words = words_of(name)
    excluded: set[str] = set()
    for flag in flags_of(name):
        if (
            flag.flag.least is None
            or flag.field in excluded
            or flag.flag.needs
            or not data.draw(st.booleans())
        ):
            continue
        low, high = int(flag.flag.least), int(flag.flag.most or 2**31 - 1)
        words = [*without(words, flag), f"{flag.name}={data.draw(st.integers(low, high))}"]
        excluded |= {*flag.flag.excludes}
    asked = asked_of(name, words)
    assert asked is not None
    by_field = {each.field: each for each in arguments_of(*declaring(name)).every()}
    for word in words:
        spelt, _, value = word.partition("=")
        field = next((each for each in by_field.values() if each.name == spelt and value), None)
        if field is not None:
            holder = asked.request if field.owner == "Request" else asked.request.operation
            assert str(getattr(holder, field.field)) == value


def test_a_struct_checks_what_programs_give_it() -> None:
    with pytest.raises(UsageError, match="--launches 0 makes no sense; it must be"):
        MeasureRequest(launches=0)
    with pytest.raises(UsageError, match="--pairs belongs to ping"):
        MeasureRequest(kind="file", pairs=[1])
