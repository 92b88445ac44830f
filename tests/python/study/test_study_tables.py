"""Tables, plots and claims against figures worked out by hand; comparison against simulated launches."""

from __future__ import annotations

import json
import math
import random
import statistics
from pathlib import Path

import msgspec
import pytest
import scipy.stats
from studies import HERE, MACHINE, Runner, checked, points, run, study
from tilewise.base.errors import UsageError
from tilewise.lab.study import results
from tilewise.lab.study.cells import FigureCell
from tilewise.lab.study.claims import judge
from tilewise.lab.study.compare import compare
from tilewise.lab.study.plots import draw
from tilewise.lab.study.results import MeasuredPoint, Results
from tilewise.lab.study.store import Entry, Store, hash_of
from tilewise.lab.study.tables import FigureTable, check, evaluate

# A pretended job takes 12 s / ranks, and through the root 1 s more; `input` is a quarter of it.
AXES = 'command = "multiply"\naxes.ranks = [1, 2, 4]\naxes.io = ["sieve", "root"]\n'


def tables(tmp_path: Path, text: str, runner: Runner | None = None, **machine: int) -> list[FigureTable]:
    loaded = measured(tmp_path, text, runner, **machine)
    return [evaluate(loaded, wanted) for wanted in loaded.study.file.tables]


def measured(tmp_path: Path, text: str, runner: Runner | None = None, **machine: int) -> Results:
    made = study(text)
    for wanted in made.file.tables:
        check(made, points(text, **machine), wanted)
    run(tmp_path, text, runner or Runner(), **machine)
    return results.load(str(tmp_path))


def values(table: FigureTable) -> list[list[float | None]]:
    return [[None if c.value is None else round(c.value, 9) for c in row] for row in table.cells]


def test_rows_and_columns(tmp_path: Path) -> None:
    (table,) = tables(tmp_path, AXES + "[[tables]]\nname = 't'\nrows = 'ranks'\ncolumns = 'io'\nunit = 's'")
    assert (table.row_names, table.column_names) == (["ranks"], ["io"])
    assert (table.rows, table.columns) == ([[1], [2], [4]], [["sieve"], ["root"]])
    assert values(table) == [[12.0, 13.0], [6.0, 7.0], [3.0, 4.0]]
    assert table.look(2, "root").value == 7.0 and table.look([2], ["root"]).n == 1
    assert table.units == ["s", "s"]


def test_values_stand_as_in_the_runs_of_the_table(tmp_path: Path) -> None:
    (table,) = tables(
        tmp_path,
        "command = 'multiply'\n[[runs]]\nname = 'one'\naxes.ranks = [4]\n"
        "[[runs]]\nname = 'all'\naxes.ranks = [1, 2, 4]\n"
        "[[tables]]\nname = 't'\nrows = 'ranks'\nruns = ['all']\n",
    )
    assert table.rows == [[1], [2], [4]]


def test_ratio_to_a_base(tmp_path: Path) -> None:
    speedup, share, efficiency = tables(
        tmp_path,
        AXES + "[[tables]]\nname = 'speedup'\nrows = 'io'\ncolumns = 'ranks'\nbase = {ranks = 1}\n"
        "[[tables]]\nname = 'share'\nrows = 'ranks'\nwhere = \"io == 'root'\"\nbase = {io = 'sieve'}\n"
        "cell = '(value - base) / value * 100'\n"
        "[[tables]]\nname = 'e'\nrows = 'ranks'\ncolumns='io'\nbase = {ranks = 1}\n"
        "cell = 'base / value / ranks'",
    )
    assert values(speedup) == [[1, 2, 4], [1, round(13 / 7, 9), 3.25]]
    assert [c.base for c in speedup.cells[1]] == [13.0, 13.0, 13.0]
    assert values(share) == [[round(100 / 13, 9)], [round(100 / 7, 9)], [25.0]]
    assert values(efficiency) == [[1, 1], [1, round(13 / 14, 9)], [1, 0.8125]]


def test_base_in_another_run(tmp_path: Path) -> None:
    text = (
        "[[runs]]\nname = 'text'\ncommand = 'multiply'\naxes.ranks = [1, 2]\nflags.io = 'root'\n"
        "[[runs]]\nname = 'binary'\ncommand = 'multiply'\naxes.ranks = [1, 2]\naxes.io = ['sieve', 'root']\n"
        "[[tables]]\nname = 't'\nruns = ['binary']\nrows = 'ranks'\ncolumns = 'io'\nbase = {run = 'text'}\n"
        "[[tables]]\nname = 'both'\nrows = 'ranks'\ncolumns = 'run'\nbest = 'min'"
    )
    ratio, both = tables(tmp_path, text)
    assert values(ratio) == [[round(13 / 12, 9), 1], [round(7 / 6, 9), 1]]
    assert values(both) == [[13, 12], [7, 6]]
    assert [c.chosen for c in both.cells[0]] == ["", "io = sieve"]


def test_columns_that_are_figures_and_expressions(tmp_path: Path) -> None:
    (table,) = tables(
        tmp_path,
        AXES + "[[tables]]\nname = 't'\nrows = ['io', 'ranks']\nunit = 's'\nnotes = ['a note']\n"
        "columns = [{title = 'input', value = 'seconds.input.max'}, "
        "{title = 'share', value = 'seconds.input.max / seconds.total.max * 100', unit = '%'}, "
        "{title = 'compute', value = 'samples.compute'}, "
        "{title = 'rank seconds', value = 'seconds.wall * ranks'}]\n"
        "reference = {source = 'report 0', rows = [1], columns = ['a'], values = [[0.5]]}",
    )
    assert table.rows == [["sieve", 1], ["sieve", 2], ["sieve", 4], ["root", 1], ["root", 2], ["root", 4]]
    assert values(table)[1] == [1.5, 25.0, 12.0, 14.0]  # compute: the median of 6 and 18
    assert (table.columns[1], table.units) == (["share"], ["s", "%", "s", "s"])
    assert table.cells[0][2].n == 2
    assert table.reference is not None and table.reference.values == [[0.5]] and table.notes == ["a note"]


@pytest.mark.parametrize(
    ("how", "found"), [("median", 12.0), ("mean", 20.0), ("min", 6.0), ("max", 42.0), ("sum", 60.0)]
)
def test_launches_are_aggregated(tmp_path: Path, how: str, found: float) -> None:
    text = "command = 'multiply'\nlaunches = 3\naxes.ranks = [1]\n[[tables]]\nname='t'\nrows='ranks'\n"
    text += f"aggregate='{how}'"
    (table,) = tables(tmp_path, text, Runner(factors=[0.5, 3.5, 1.0]))
    cell = table.cells[0][0]
    assert (cell.value, cell.n) == (found, 3)
    logs = [math.log(each * (3 if how == "sum" else 1)) for each in (6, 42, 12)]
    known = scipy.stats.t.interval(0.95, 2, statistics.fmean(logs), scipy.stats.sem(logs))
    assert (cell.low, cell.high) == pytest.approx([math.exp(end) for end in known])


def test_the_interval_of_a_ratio_holds_what_both_sides_differ_by(tmp_path: Path) -> None:
    text = (
        "command = 'multiply'\nlaunches = 3\naxes.ranks = [1, 2]\n"
        "[[tables]]\nname='s'\nrows='ranks'\nbase={ranks=1}\n"
        "[[tables]]\nname='e'\nrows='ranks'\nbase={ranks=1}\ncell='base / value / ranks'\n"
        "[[tables]]\nname='t'\nrows='ranks'\ncell='value * ranks'"
    )
    speedup, efficiency, work = tables(tmp_path, text, Runner(factors=[1.0, 1.2, 0.9, 1.1, 1.0, 1.3]))
    loaded = results.load(str(tmp_path))
    base, value = (
        [math.log(entry.record["seconds"]["total"]["max"]) for entry in point.entries]
        for point in loaded.points
    )
    known = scipy.stats.ttest_ind(base, value, equal_var=False).confidence_interval()
    cell = speedup.cells[1][0]
    assert (cell.low, cell.high) == pytest.approx((math.exp(known.low), math.exp(known.high)))
    part = efficiency.cells[1][0]
    assert (part.low, part.high) == pytest.approx((math.exp(known.low) / 2, math.exp(known.high) / 2))
    alone = scipy.stats.t.interval(0.95, 2, statistics.fmean(value), scipy.stats.sem(value))
    assert work.cells[1][0].high == pytest.approx(2 * math.exp(alone[1]))
    itself = speedup.cells[0][0]
    assert (itself.value, itself.low, itself.high) == (1.0, 1.0, 1.0)


def test_a_ratio_to_a_base_of_one_launch_has_no_interval(tmp_path: Path) -> None:
    text = (
        "command = 'multiply'\n[[runs]]\nname='one'\naxes.ranks=[1]\nlaunches=1\n"
        "[[runs]]\nname='many'\naxes.ranks=[2]\nlaunches=3\n"
        "[[tables]]\nname='s'\nrows='ranks'\nruns=['many']\nbase={run='one', ranks=1}"
    )
    ((cell,),) = tables(tmp_path, text, Runner(factors=[1.0, 1.2, 0.9, 1.1]))[0].cells
    assert cell.value is not None and (cell.low, cell.high) == (None, None)


def test_what_is_missing_says_why(tmp_path: Path) -> None:
    text = (
        AXES + "limits = ['ranks <= cores']\n[[tables]]\nname='t'\nrows='ranks'\ncolumns='io'\n"
        "[[tables]]\nname='s'\nrows='io'\ncolumns='ranks'\nbase={ranks=4}\n"
        "[[tables]]\nname='u'\nrows='io'\ncolumns='ranks'\nvalue='result.nothing'"
    )
    plain, ratio, unknown = tables(tmp_path, text, Runner(lambda words: "2" in words and "root" in words))
    assert plain.look(4, "root") == FigureCell(reason="not run: needs 4 cores; this machine has 2")
    assert plain.look(2, "root").reason == "failed: the disk is full; try: another disk"
    assert ratio.look("sieve", 1).reason.startswith("no base: not run: needs 4 cores")
    assert unknown.look("sieve", 1).reason == "the record has no result"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rows = 'ranks'", "tables t: a cell holds 2 figures, which differ in io"),
        ("rows = 'rank'", "no run has an axis 'rank', line .*expected one of io, ranks, run"),
        (
            "rows = 'ranks'\ncolumns = 'io'\nvalue = 'seconds.'",
            "line .*tables t: 'seconds.' is not an expression",
        ),
        ("rows = 'ranks'\ncolumns = 'io'\ncell = 'f(x)'", "no function 'f'"),
    ],
)
def test_tables_are_checked_before_anything_runs(text: str, said: str) -> None:
    made = study(f"{AXES}[[tables]]\nname = 't'\n{text}")
    with pytest.raises(UsageError, match=said):
        check(made, points(AXES), made.file.tables[0])


def test_plots_are_tables_with_curves(tmp_path: Path) -> None:
    loaded = measured(
        tmp_path,
        AXES
        + "limits = ['ranks <= cores or io == \"sieve\"']\n[[plots]]\nname = 'p'\ntitle = 'P'\nx = 'ranks'\n"
        "series = 'io'\nbase = {ranks = 1}\nideal = 'x'\nlog = 'xy'\nx_title = 'number of ranks'",
    )
    plot = draw(loaded, loaded.study.file.plots[0])
    sieve, root = plot.series
    assert (sieve.label, sieve.x, sieve.y) == ("sieve", [1, 2, 4], [1.0, 2.0, 4.0])
    assert (root.x, root.values) == ([1, 2], {"io": "root"})
    assert plot.ideal is not None and plot.ideal.y == [1.0, 2.0, 4.0]
    assert (plot.x_title, plot.y_title, plot.log, plot.kind) == ("number of ranks", "P", "xy", "line")
    assert plot.table.look(4, "root").reason.startswith("not run")
    assert json.loads(msgspec.json.encode(plot))["series"][0]["y"] == [1.0, 2.0, 4.0]


def test_a_bound_is_made_of_axes_that_have_one_value(tmp_path: Path) -> None:
    plot = "[[plots]]\nname = 'p'\nx = 'ranks'\nseries = 'io'\nideal_label = 'bound'\nideal = 'size / x'"
    loaded = measured(tmp_path, f"{AXES}words = ['a{{size}}', 'b']\naxes.size = [6]\n{plot}")
    wanted = loaded.study.file.plots[0]
    bound = draw(loaded, wanted).ideal
    assert bound is not None and (bound.label, bound.x, bound.y) == ("bound", [1, 2, 4], [6.0, 3.0, 1.5])
    several = draw(loaded, msgspec.structs.replace(wanted, ideal="ranks * x"))
    assert several.ideal is None and several.notes == ["no ideal line: ranks has 3 values here, and not one"]


def test_another_figure_of_the_same_points_stands_beside(tmp_path: Path) -> None:
    text = (
        "[[plots]]\nname = 'p'\nx = 'ranks'\nseries = 'io'\nbeside = 'ranks / 2'\nbeside_label = 'guessed'\n"
    )
    loaded = measured(tmp_path, AXES + text)
    plot = draw(loaded, loaded.study.file.plots[0])
    assert [(one.label, one.source) for one in plot.references] == [("sieve", "guessed"), ("root", "guessed")]
    assert [one.y for one in plot.references] == [[0.5, 1.0, 2.0]] * 2
    nowhere = msgspec.structs.replace(loaded.study.file.plots[0], beside="predicted_seconds.total")
    assert draw(loaded, nowhere).references == []
    with pytest.raises(UsageError, match="beside is for plots of kind 'line', with a beside_label"):
        checked(AXES + text.replace("x =", "kind = 'bar'\nx ="))


LINES = [
    {
        "key": f"ping/{n}/{p}",
        "series": s,
        "kind": "ping",
        "bytes": n,
        "pairs": p,
        "amount": n,
        "skipped": skip,
    }
    | ({} if skip else {"summary": {"median": n * p * (1e-6 if s == "roundtrip" else 1e-7)}})
    for n in (1, 1024)
    for p in (1, 3)
    for s in ("roundtrip", "stream")
    for skip in ["no more cores" if p == 3 and n == 1024 else ""]
]


def test_lines_of_measurements(tmp_path: Path) -> None:
    text = (
        "command = 'measure ping'\nlaunches = 2\n[[tables]]\nname = 't'\nrows = 'bytes'\ncolumns = 'pairs'\n"
        "lines = {kind = 'ping', series = 'roundtrip'}\nvalue = 'summary.median'\n"
        "[[tables]]\nname = 'rate'\nrows = 'bytes'\ncolumns = 'series'\nlines = {pairs = [1]}\n"
        "value = 'rate / 1e6'"
    )
    made = study(text)
    store = Store(str(tmp_path))
    store.keep(made.text, "default", HERE)
    for launch in range(2):
        factor = 1 + launch
        lines = [
            line if line["skipped"] else {**line, "summary": {"median": line["summary"]["median"] * factor}}
            for line in LINES
        ]
        entry = Entry(
            hash=hash_of("k", launch, HERE), point="k", run="main", axes={}, status="done", launch=launch,
            environment=HERE.id(), record={"lines": lines},
        )  # fmt: skip
        store.append(entry)
    store.close()
    loaded = results.load(str(tmp_path))
    time, rate = (evaluate(loaded, wanted) for wanted in loaded.study.file.tables)
    assert (time.rows, time.columns) == ([[1], [1024]], [[1], [3]])
    assert time.cells[0][1].value == pytest.approx(3e-6 * 1.5) and time.cells[0][1].n == 2
    assert time.cells[1][1].reason == "not run: no more cores"
    assert rate.look(1024, "stream").value == pytest.approx((10 + 5) / 2)
    both = evaluate(loaded, msgspec.structs.replace(loaded.study.file.tables[0], lines={"kind": "ping"}))
    assert "differ in series" in both.cells[0][0].reason


@pytest.mark.parametrize(
    ("claim", "verdict", "figure"),
    [
        ("figure = \"at('t', ranks=4, io='root')\"\nholds = 'figure < 3'", "fails", 4.0),
        ("figure = \"max(column('t', 'root'))\"\nholds = 'abs(figure - 13) < 2'", "holds", 13.0),
        ("figure = \"mean(row('t', 2))\"\nholds = 'figure > 5 and figure < 8'", "holds", 6.5),
        ("figure = \"at('f', ranks=2, io='root', column='total')\"\nholds = 'figure > 6'", "holds", 7.0),
        ("figure = \"min(cells('t'))\"\nholds = 'figure > 2'", "holds", 3.0),
        ("figure = \"value('seconds.input.max', io='sieve', ranks=max(axis('ranks')))\"\n"
         "holds = 'figure < 1'",
         "holds", 0.75),
        ("figure = \"cell('t', 8, 'sieve')\"\nholds = 'figure < 4'", "untestable", None),
        ("figure = \"cell('t', 64, 'sieve')\"\nholds = 'figure < 4'", "untestable", None),
        ("figure = '1'\nholds = 'figure < 2'\nneeds = 'cores >= 64'", "untestable", None),
        ("untestable = 'needs a GPU'", "untestable", None),
    ],
)  # fmt: skip
def test_claims(tmp_path: Path, claim: str, verdict: str, figure: float | None) -> None:
    text = (
        AXES.replace("4]", "4, 8]")
        + "launches = 6\nlimits = ['ranks < 8']\n[[tables]]\nname = 't'\nrows = 'ranks'\ncolumns = 'io'\n"
        "[[tables]]\nname = 'f'\nrows = ['ranks', 'io']\n"
        "columns = [{title = 'total', value = 'seconds.total.max'}]\n"
        f"[[claims]]\ntext = 'c'\nsource = 'report 0, 4.1'\n{claim}\n"
    )
    loaded = measured(tmp_path, text)
    made = [evaluate(loaded, wanted) for wanted in loaded.study.file.tables]
    said = judge(loaded, made, loaded.study.file.claims[0])
    assert (said.verdict, said.figure, said.claim.source) == (verdict, figure, "report 0, 4.1")
    assert bool(said.reason) == (verdict == "untestable")
    if "8, 'sieve'" in claim:
        assert said.reason == "table t: not run: needs ranks < 8; here ranks is 8"


def pretend(count: int, seed: int, slower: dict[int, float]) -> Results:
    """`count` points of three launches each: spread 3 to 8 %, those in `slower` by a factor more."""
    luck, spread = random.Random(seed), random.Random(0)
    spreads = [spread.uniform(0.03, 0.08) for _ in range(count)]
    points = []
    for number in range(count):
        entries = []
        for launch in range(3):
            total = slower.get(number, 1.0) * math.exp(luck.gauss(0, spreads[number]))
            record = {"seconds": {"total": {"max": total}}}
            entries.append(
                Entry(
                    hash="",
                    point=str(number),
                    run="main",
                    axes={},
                    status="done",
                    launch=launch,
                    record=record,
                )
            )
        points.append(MeasuredPoint(key=str(number), run="main", axes={"number": number}, entries=entries))
    return Results(folder="", study=study("command = 'multiply'"), sessions=[], points=points, notes=[])


def test_compare_finds_changes_and_only_those() -> None:
    """Simulated: 30 % is found in 80 % of cases, and of all named changes about 5 % are none."""
    slower = {3: 1.3, 7: 1 / 1.3, 11: 1.3}
    found = missed = false = 0
    for seed in range(200):
        for each in compare(pretend(30, 2 * seed, {}), pretend(30, 2 * seed + 1, slower)).changes:
            factor = slower.get(each.axes["number"], 1.0)
            real = "not distinguishable" if factor == 1 else "slower" if factor > 1 else "faster"
            if factor == 1:
                false += each.verdict != real
            else:
                found, missed = found + (each.verdict == real), missed + (each.verdict != real)
    print(found, missed, false)
    assert found / (found + missed) >= 0.8
    assert false / (found + false) <= 0.07


def test_compare_of_the_same_says_so() -> None:
    """Of two hundred comparisons of the same with itself, at most 7 % name anything at all."""
    named = 0
    for seed in range(200):
        made = compare(pretend(20, 1000 + 2 * seed, {}), pretend(20, 1001 + 2 * seed, {}))
        named += any(each.verdict != "not distinguishable" for each in made.changes)
    print(named)
    assert named <= 0.07 * 200


def test_compare_one_launch_and_other_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "command = 'multiply'\naxes.ranks = [1, 2]\nlimits = ['ranks <= cores']\n"
    run(tmp_path / "a", text, Runner(), cores=1)
    monkeypatch.setattr("studies.HERE", msgspec.structs.replace(HERE, cpu="another"))
    run(tmp_path / "b", text.replace("[1, 2]", "[1, 2, 3]"), Runner(factors=[2.0]), cores=MACHINE["cores"])
    made = compare(results.load(str(tmp_path / "a")), results.load(str(tmp_path / "b")))
    one, two = made.changes
    assert (one.ratio, one.verdict, one.reason) == (
        2.0,
        "not compared",
        "one launch does not show how launches differ",
    )
    assert two.verdict == "not compared"
    assert two.reason == "not run: needs 2 cores; this machine has 1"
    assert made.differences == ["cpu: a cpu → another"] and (made.only_old, made.only_new) == (0, 1)


def test_a_base_follows_zipped_axes_and_the_best_of_it(tmp_path: Path) -> None:
    text = (
        "command = 'multiply'\naxes.ranks = [1, 2, 4]\naxes.threads = [4, 2, 1]\n"
        "zip = [['ranks', 'threads']]\n"
        "axes.io = ['root', 'sieve']\n"
        "[[tables]]\nname = 'zipped'\nrows = 'io'\ncolumns = 'ranks'\nbase = {ranks = 1}\n"
        "[[tables]]\nname = 'best'\nrows = 'ranks'\nbest = 'min'\nbase = {ranks = 1}\n"
        "[[tables]]\nname = 'where'\nrows = 'ranks'\nbase = {ranks = 1}\n"
        "where = \"io == 'root' and ranks > 1\""
    )
    zipped, best, where = tables(tmp_path, text)
    assert values(zipped) == [[1, round(13 / 7, 9), 3.25], [1, 2, 4]]
    assert values(best) == [[1], [2], [4]] and best.cells[2][0].chosen == "io = sieve"
    assert values(where) == [[round(13 / 7, 9)], [3.25]]
