"""The functions for people: TAB, help, repr, and errors that say what is wrong in Python's words."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
import traceback
from typing import Any

import numpy
import pytest
import tilewise as package
from conftest import Tilewise
from tilewise.api.signature import options
from tilewise.operations import OPERATIONS


def test_tab_finds_every_function() -> None:
    assert set(package.__all__) <= set(dir(package))
    assert not {"Any", "TYPE_CHECKING", "annotations"} & set(dir(package))


@pytest.mark.parametrize("command", [*OPERATIONS, "measure"])
def test_help_lists_every_option(command: str) -> None:
    function = getattr(package, command)

    text = pydoc.plain(pydoc.render_doc(function))

    for name, one in options(command).items():
        assert f"    {name}: " in text and name in inspect.signature(function).parameters
        assert one.help.split()[0] in text
    assert "**options" not in str(inspect.signature(function))


def test_asking_for_one_function_imports_no_other_operation() -> None:
    code = "import sys, tilewise; tilewise.norm; print([m for m in sys.modules if 'operations.svd' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_record_is_three_lines(tilewise: Tilewise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tilewise.folder)
    numpy.save("A.npy", numpy.eye(5))

    record = package.multiply("A.npy", "A.npy", out="C.npy", ranks=1)

    assert len(repr(record).splitlines()) == 3
    assert repr(record).startswith("<multiply: A.npy (5×5), A.npy (5×5) → C.npy (5×5)\n local, ")
    assert len(repr(package.plan("multiply", "A.npy", "A.npy")).splitlines()) <= 3


def test_the_advice_is_a_note(tilewise: Tilewise) -> None:
    with pytest.raises(package.UsageError) as caught:
        package.multiply(numpy.eye(3), numpy.eye(3), rank=3)

    assert "tilewise.multiply has no option 'rank'" in str(caught.value)
    assert "".join(traceback.format_exception(caught.value)).endswith("  try: ranks\n")


def test_the_note_is_the_advice_of_now() -> None:
    error = package.UsageError("a file is missing", "look at /dev/shm/a-1.npy")
    error.add_note("by somebody else")

    error.advice = "look at a"

    assert error.__notes__ == ["  try: look at a", "by somebody else"]
    error.advice = ""
    assert error.__notes__ == ["by somebody else"]


@pytest.mark.parametrize("option", [{"verbose": True}, {"quiet": True}, {"as_": "row"}, {"as": "row"}])
def test_what_a_command_takes_besides_is_known(tilewise: Tilewise, option: dict[str, Any]) -> None:
    assert package.transpose(numpy.ones((2, 3)), **option).shape == (3, 2)


def test_a_plan_takes_the_flags_of_plan(tilewise: Tilewise) -> None:
    with pytest.raises(package.UsageError, match="--machine nope.json"):
        package.plan("transpose", numpy.ones((2, 3)), machine="nope.json")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (numpy.array([[1, 2], ["x", 4]], object), r"an array of Python objects, and a\[1, 0\] is 'x'"),
        (numpy.array([[1, 2]], object), "an array of Python objects"),
        ({"a": 1}, r"neither a path nor an array of numbers, but \{'a': 1\}"),
    ],
)
def test_an_array_of_objects_is_named_for_what_it_is(tilewise: Tilewise, value: object, said: str) -> None:
    with pytest.raises(package.UsageError, match=said):
        package.transpose(value)
