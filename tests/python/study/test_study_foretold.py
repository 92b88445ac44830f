"""What is told before a study begins: launches that are left, and minutes, by their part of its file's."""

from __future__ import annotations

from pathlib import Path

import pytest
import studies
from tilewise.base.errors import UsageError
from tilewise.lab.study import shipped
from tilewise.lab.study.run import foretold, left_of
from tilewise.lab.study.store import load_entries
from tilewise.lab.study.study import read

TEXT = """
command = "multiply"
words = ["A.npy", "B.npy"]
axes.ranks = [1, 2, 4]
limits = ["ranks <= cores"]
launches = 3
warmup_launches = 1
[scales.default]
minutes = 6
"""


def test_what_is_left_of_all() -> None:
    study, points = studies.study(TEXT), studies.points(TEXT)
    assert (left_of(study, points, [], studies.HERE), study.minutes) == (8, 6)
    assert left_of(study, points[:1], [], studies.HERE) == 4


def test_launches_that_are_there_are_not_foretold(tmp_path: Path) -> None:
    study, points = studies.study(TEXT), studies.points(TEXT)
    studies.run(tmp_path, TEXT, studies.Runner())
    entries, _ = load_entries(str(tmp_path))
    assert entries and left_of(study, points, entries, studies.HERE) == 0


@pytest.mark.parametrize(
    ("left", "minutes", "load", "said"),
    [
        (8, 6, 0.1, "8 launches of 2 points; about 6 minutes on two quiet cores"),
        (4, 6, 0.1, "4 launches of 2 points; about 3 minutes on two quiet cores"),
        (1, 6, 0.1, "1 launch of 2 points; about 45 seconds on two quiet cores"),
        (8, 0.01, 0.1, "8 launches of 2 points; about 5 seconds on two quiet cores"),
        (8, None, 9, "8 launches of 2 points"),
    ],
)
def test_time_is_told_by_the_part_that_is_left(
    left: int, minutes: float | None, load: float, said: str
) -> None:
    assert foretold(left, 8, 2, minutes, load) == said


def test_a_busy_machine_is_told() -> None:
    assert foretold(8, 8, 2, 6, 3.25).endswith(", and longer here: others use this machine now (load 3.2)")


def test_each_shipped_study_says_how_long_it_takes() -> None:
    """At `tiny` all together at most 4 minutes, at `default` each at most 15."""
    names = [name for name in shipped.names() if name != "quick"]
    tiny = [read(shipped.path_of(name), "tiny").minutes or 99 for name in names]
    assert sum(tiny) <= 4
    assert all((read(shipped.path_of(name)).minutes or 99) <= 15 for name in names)


@pytest.mark.parametrize(
    "text", ["[[runs]]\nname = 'a'\nscales.tiny.minutes = 1", "[scales.tiny]\nminutes = 0"]
)
def test_minutes_are_of_all_runs_and_above_none(text: str) -> None:
    with pytest.raises(UsageError, match="minutes"):
        studies.study(f"{TEXT}{text}")
