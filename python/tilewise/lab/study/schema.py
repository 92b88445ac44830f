"""The study file as structs: every key of the TOML file is a field here, and no other is known."""

from __future__ import annotations

from typing import Any

import msgspec


class _Table(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A table of the file; unknown keys are mistakes."""


class Input(_Table, kw_only=True):
    """A matrix that the points need: made by `tilewise generate` in the work folder, or a file (`path`).

    Texts may hold {expressions} over the axes. `format` is the ending of the made file.
    """

    shape: str = ""
    kind: str = "random"
    dtype: str = "float64"
    seed: int | str = 0
    format: str = "npy"
    path: str = ""


class Condition(_Table, kw_only=True):
    """A condition and, in `words` that follow "needs", what must be there; {names} stand for their values."""

    holds: str
    words: str = ""


class StopRule(_Table, kw_only=True):
    """Launches go on until the 95 % interval of `metric` over launches is within `relative` of their median.

    A launch counts as one figure; the interval is Student's t over the logarithms of these.
    """

    metric: str = "seconds.total.max"
    relative: float = 0.05
    least: int = 3
    most: int = 10


class Launcher(_Table, kw_only=True):
    """How ranks are started: `--launcher` and `--hosts`, a file beside the study."""

    launcher: str = ""
    hosts: str = ""


class Slurm(_Table, kw_only=True):
    """Settings of batch scripts; the flags of `study run` of the same names come first."""

    account: str = ""
    partition: str = ""
    time: str = ""
    modules: list[str] = []
    options: list[str] = []
    setup: list[str] = []


class Settings(_Table, kw_only=True):
    """Keys of a run; on top of a file, those that all runs have if they do not say them themselves.

    `None` is not said. `flags`, `axes` and `inputs` are joined key by key, `constraints` and `limits` one
    behind the other; all else is replaced. `trace` adds a launch that keeps its timeline and is not counted.
    """

    command: str | None = None
    words: list[str] | None = None
    output: str | None = None
    flags: dict[str, Any] = {}
    axes: dict[str, list[Any]] = {}
    zip: list[list[str]] | None = None
    constraints: list[str] = []
    limits: list[str | Condition] = []
    inputs: dict[str, Input] = {}
    launches: int | None = None
    warmup_launches: int | None = None
    stop: StopRule | None = None
    timeout: float | None = None
    trace: bool | None = None
    launcher: Launcher | None = None


class Scale(_Table, kw_only=True):
    """Changes at one scale; `axes` only of runs that have them. `skip` is why a run is left out there.

    `minutes` are what all runs together take at the scale, on two quiet cores; only the file says them.
    """

    axes: dict[str, list[Any]] = {}
    flags: dict[str, Any] = {}
    limits: list[str | Condition] | None = None
    inputs: dict[str, Input] = {}
    launches: int | None = None
    warmup_launches: int | None = None
    stop: StopRule | None = None
    timeout: float | None = None
    trace: bool | None = None
    skip: str = ""
    minutes: float | None = None


class Run(Settings, kw_only=True):
    """One block of points of one command, which has what it does not say from the run that it is `like`."""

    name: str
    like: str = ""
    scales: dict[str, Scale] = {}


class FigureColumn(_Table, kw_only=True):
    """A column of a table that has a figure of its own; `lines` is joined with that of the table."""

    title: str
    value: str
    unit: str = ""
    lines: dict[str, Any] = {}


class Further(_Table, kw_only=True):
    """A column that is made out of the other columns of its row, by their names."""

    title: str
    value: str
    unit: str = ""


class Reference(_Table, kw_only=True):
    """The source's own figures, in the shape of the table they stand beside; numbers or texts.

    `heads` are names of its rows' labels, where these are not values of our axes.
    """

    source: str
    rows: list[Any]
    columns: list[Any]
    values: list[list[Any]]
    note: str = ""
    heads: list[str] = []


class Figures(_Table, kw_only=True):
    """Keys that tables and plots share: which points, which figure of them, against what base.

    All keys that it does not say itself are those of the one above that it is `like`. `aggregate` makes one
    figure of all samples of all launches; its 95 % interval is made of the same of each launch, and where
    there is a `base`, of what the launches of both differ by.
    """

    name: str
    like: str = ""
    title: str = ""
    value: str = "seconds.total.max"
    unit: str = ""
    runs: list[str] | None = None
    where: str = ""
    lines: dict[str, Any] = {}
    aggregate: str = "median"
    best: str = ""
    base: dict[str, Any] = {}
    cell: str = ""
    notes: list[str] = []


class TableWanted(Figures, kw_only=True):
    """`rows` and `columns` name axes (or `run`, or fields of lines); or `columns` are figures.

    `also` are columns behind them, made out of those before.
    """

    rows: str | list[str]
    columns: str | list[str | FigureColumn] = []
    also: list[Further] = []
    reference: Reference | None = None


class SourceCurve(_Table, kw_only=True):
    """A curve of figures of the source, drawn beside ours."""

    label: str
    source: str
    x: list[Any]
    y: list[float]


class Roof(_Table, kw_only=True):
    """A bound of the points of a figure: `height`, or `slope` times their x; expressions as in claims."""

    label: str
    slope: str = ""
    height: str = ""


class PlotWanted(Figures, kw_only=True):
    """`value` over `x`, a curve for each combination of `series`; `ideal` is an expression of `x`.

    With `across`, an expression as `value` is, points stand there, and `x` is what they are called.
    `beside` is another figure of the same points: a dashed curve beside each, called `beside_label`.
    """

    x: str
    series: str | list[str] = []
    kind: str = "line"
    log: str = ""
    ideal: str = ""
    ideal_label: str = "ideal"
    x_title: str = ""
    y_title: str = ""
    across: str = ""
    beside: str = ""
    beside_label: str = ""
    roofs: list[Roof] = []
    references: list[SourceCurve] = []


class StudyClaim(_Table, kw_only=True):
    """A sentence of the source and what decides whether it holds; `words` say `holds` to readers."""

    text: str
    holds: str = ""
    words: str = ""
    figure: str = ""
    unit: str = ""
    source: str = ""
    needs: str | Condition = ""
    note: str = ""
    untestable: str = ""


class File(Settings, kw_only=True):
    """A whole study file; `names` are of expressions that claims share."""

    title: str
    description: str = ""
    source: str = ""
    seed: int = 0
    runs: list[Run] = []
    scales: dict[str, Scale] = {}
    slurm: Slurm = msgspec.field(default_factory=Slurm)
    tables: list[TableWanted] = []
    plots: list[PlotWanted] = []
    names: dict[str, str] = {}
    claims: list[StudyClaim] = []


def condition_of(given: str | Condition) -> Condition:
    """Return a condition, also of one that is given as its expression alone."""
    return Condition(holds=given) if isinstance(given, str) else given


SCALES = ("tiny", "default", "report")
AGGREGATES = ("median", "mean", "min", "max", "sum")
KINDS = ("line", "bar", "heat", "scatter")
LOGS = ("", "x", "y", "xy")
