"""Tables of all pairs of ranks as lines of a study: a heat map with a cell for each two."""

from typing import Any

from studies import study
from tilewise.lab.study.plots import draw
from tilewise.lab.study.results import MeasuredPoint, Results
from tilewise.lab.study.store import Entry

PLOT = (
    "command = 'measure ping'\n[[plots]]\nname = 'p'\nkind = 'heat'\nx = 'partner'\nseries = 'rank'\n"
    "lines = {kind = 'matrix', level = 'core', bytes = 8}\nvalue = 'summary.median * 1e9'"
)


def entry(launch: int, record: Any) -> Entry:
    return Entry(
        hash=str(launch), point="k", run="main", axes={}, status="done", launch=launch, record=record
    )


def test_every_two_ranks_have_a_cell_and_none_has_one_with_itself() -> None:
    def record(factor: float) -> dict[str, Any]:
        near, far = 1e-7 * factor, 4e-7 * factor
        inside = [[0.0, near, far], [near, 0.0, None], [far, None, 0.0]]
        between = [[0.0, 1e-5], [1e-5, 0.0]]
        return {
            "lines": [{"kind": "ping", "key": "a", "bytes": 8, "summary": {"median": 1.0}}],
            "matrices": [
                {"bytes": 8, "level": "", "ranks": ["core 0", "core 1", "core 2"], "seconds": inside},
                {"bytes": 8, "level": "node", "ranks": ["a", "b"], "seconds": between},
            ],
        }

    made = study(PLOT)
    entries = [entry(launch, record(1 + launch)) for launch in range(2)]
    points = [MeasuredPoint(key="k", run="main", axes={}, entries=entries)]
    found = Results(folder="f", study=made, sessions=[], points=points, notes=[])
    plot = draw(found, made.file.plots[0])
    assert [(each.label, each.x) for each in plot.series] == [
        ("rank 0", [1, 2]),
        ("rank 1", [0]),
        ("rank 2", [0]),
    ]
    assert [round(y) for y in plot.series[0].y] == [150, 600]  # the median of two launches
    assert plot.table.look(0, 0).reason == "no such point" == plot.table.look(2, 1).reason


def test_a_measurement_without_pairs_says_so() -> None:
    made = study(PLOT)
    points = [MeasuredPoint(key="k", run="main", axes={}, entries=[entry(0, {"lines": []})])]
    found = Results(folder="f", study=made, sessions=[], points=points, notes=[])
    assert not draw(found, made.file.plots[0]).series


def test_each_element_of_a_list_is_a_line_with_its_number() -> None:
    made = study(
        "command = 'svd'\n[[plots]]\nname = 'p'\nx = 'number'\nseries = []\n"
        "lines = {each = 'result.off_squares'}\nvalue = 'item * 2'"
    )
    launches = [(0, [8.0, 2.0, None]), (2, [10.0, 2.0, None])]
    entries = [entry(number, {"result": {"off_squares": off}, "lines": []}) for number, off in launches]
    points = [MeasuredPoint(key="k", run="main", axes={}, entries=entries)]
    found = Results(folder="f", study=made, sessions=[], points=points, notes=[])
    plot = draw(found, made.file.plots[0])
    assert [(each.x, each.y) for each in plot.series] == [([1, 2], [18.0, 4.0])]
    assert plot.table.look(3, []).value is None
    entries[0].record.clear()  # a failed launch has no such list
    assert draw(found, made.file.plots[0]).series[0].y == [20.0, 4.0]
