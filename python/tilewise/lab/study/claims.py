"""What a source claims, one by one: whether it holds here, fails, is undecided or cannot be tested, and why.

holds = "at('speedup', size=2048, ranks=4) > 2"      a cell of a table
        "all(column('share', 'collective') < 0.5)"   a column of it
        "value('seconds.input.max', run='text', size=largest) > 1"      a figure of points

Names such as `largest` stand for expressions, which the study has under `names`. A figure has an interval,
of all launches of all points that it is made of (`tilewise.lab.statistics.decisions`); a claim that is true
of a part of it is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import plural
from tilewise.lab.measurement.points import SIMULATED
from tilewise.lab.statistics.decisions import decided, drift_of, drifted, moved_interval
from tilewise.lab.study import claims_check
from tilewise.lab.study.claim_figures import Looked
from tilewise.lab.study.expression import Expression, Missing, Scope, short
from tilewise.lab.study.labels import labels_of
from tilewise.lab.study.moves import moves_of
from tilewise.lab.study.paths import reason_of
from tilewise.lab.study.points import unmet
from tilewise.lab.study.results import Measured, Results
from tilewise.lab.study.schema import Claim, File, condition_of
from tilewise.lab.study.tables import Table

HOLDS, FAILS, UNDECIDED, UNTESTABLE = "holds", "fails", "undecided", "untestable"
VERDICTS = {
    HOLDS: "holds here",
    FAILS: "does not hold here",
    UNDECIDED: "undecided here",
    UNTESTABLE: "not testable here",
}
"""Every verdict, with the words that people read."""

_AGREEING = 6  # launches that all agree have less than 5 % to do so by chance: 2 · 2⁻⁶


class Verdict(msgspec.Struct, kw_only=True):
    """`verdict` is one of `VERDICTS`; `figure` is what decided, in `unit`; `reason` why nothing is decided.

    `low` and `high` bound the figure with 95 % confidence. `n` are the launches of the point with fewest, of
    those that move the figure; None where it is made of none. `threshold` is the nearest number that the
    figure is compared with; `condition` says `holds` in words. `own`: all is computed from the source's own
    numbers. `points` are those whose launches move the figure. `settled`: it stays undecided however often
    these are launched.
    """

    text: str
    verdict: str
    source: str = ""
    figure: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    threshold: float | None = None
    unit: str = ""
    holds: str = ""
    condition: str = ""
    reason: str = ""
    note: str = ""
    own: bool = False
    points: list[str] = []
    settled: bool = False


def judge(results: Results, tables: list[Table], claim: Claim) -> Verdict:
    """What can be said of `claim` here; untestable, with the reason, where it cannot be computed."""
    made = Verdict(
        text=claim.text,
        verdict=UNTESTABLE,
        source=claim.source,
        unit=claim.unit,
        holds=claim.holds,
        note=claim.note,
        condition=claims_check.words_of(claim) or "as computed",
    )
    if claim.untestable:
        made.reason = claim.untestable
        return made
    made.own = _own(results.study.file, claim)
    try:
        _Judgement(results, tables, claim, made).judge()
        if any(point.key in made.points and SIMULATED in labels_of(point) for point in results.points):
            made.verdict, made.reason = UNTESTABLE, "its figures come from simulated devices"
    except (Missing, UsageError) as error:
        made.verdict, made.reason = UNTESTABLE, reason_of(error, _where(results, claim))
    return made


def _where(results: Results, claim: Claim) -> str:
    return f"{results.study.path}: claim {claim.text[:40]!r}"


class _Judgement:
    """One claim's figure and condition, with all launches or with one of a point alone."""

    def __init__(self, results: Results, tables: list[Table], claim: Claim, made: Verdict) -> None:
        self._made = made
        self._looked = Looked(results, tables)
        self._functions = self._looked.functions()
        self._drifts = {point.key: _drift(point) for point in results.points}
        self._cores = results.sessions[-1].environment.cores if results.sessions else 1
        self._where = _where(results, claim)
        self._shared = results.study.file.names
        self._parsed: dict[str, Expression] = {}
        needs = condition_of(claim.needs)
        self._needs, self._needed = self._read(needs.holds) if needs.holds else None, needs.words
        self._figure = self._read(claim.figure) if claim.figure else None
        self._holds = self._read(claim.holds)

    def _read(self, text: str) -> Expression:
        if text not in self._parsed:
            self._parsed[text] = Expression(text, self._where, self._functions)
        return self._parsed[text]

    def judge(self) -> None:
        """Fills in the verdict; Missing or UsageError where it cannot be computed."""
        made = self._made
        scope = self._scope()
        if self._needs is not None and not self._needs.holds(scope):
            made.reason = unmet(self._needs, self._needed, scope)
            return
        self._looked.forget()
        if self._figure is not None:
            made.figure = self._figure.number(scope)
        scope = self._scope(made.figure)
        holds = self._holds.holds(scope)
        made.verdict = HOLDS if holds else FAILS
        if made.figure is not None:
            figure, thresholds = made.figure, self._holds.thresholds("figure", scope)
            made.threshold = min(thresholds, key=lambda each: abs(each - figure), default=None)
            self._decide(figure, thresholds)
        elif (ratio := self._holds.ratio(scope)) is not None:
            self._decide(ratio, [1.0])
        else:
            self._agree(holds)

    def _scope(self, figure: float | None = None) -> Scope:
        """Names of expressions as they are now; one may use those above it, so that none goes round."""
        names: dict[str, Any] = {"cores": self._cores, **({} if figure is None else {"figure": figure})}
        order = list(self._shared)

        def look(name: str) -> Any:
            if name not in names and name in self._shared:
                names[name] = self._read(self._shared[name]).value(above(name))
            if name not in names:
                known = ", ".join((*names, *order))
                raise UsageError(
                    f"{self._where}: there is no name {name!r}; expected one of {known}, functions"
                )
            return names[name]

        def above(name: str) -> Scope:
            earlier = ["cores", *order[: order.index(name)]]

            def look_above(other: str) -> Any:
                if other not in earlier:
                    raise UsageError(
                        f"{self._where}: {name} asks for {other!r}; expected one of {', '.join(earlier)}"
                    )
                return look(other)

            return look_above

        return look

    def _decide(self, figure: float, thresholds: list[float]) -> None:
        """By the interval of the figure, or of the ratio of both sides where a condition has no figure."""
        made = self._made
        sides = self._sides(figure, self._number)
        drift = max((self._drifts[key] for key in made.points), default=0.0)
        interval = moved_interval(figure, list(sides.values()), drift)
        if interval is None:
            single = sum(len(side) < 2 for side in sides.values())
            said = f"a single launch of {plural(single, 'point')} does not show how launches differ"
            self._undecided(said if single else "its launches give no finite interval")
            return
        if self._figure is not None:
            made.low, made.high = interval
        if decided(self._true_of, figure, interval, thresholds) is None:
            low, high = (short(float(f"{end:.3g}")) for end in interval)
            what = "the figure" if self._figure is not None else "left over right"
            said = f"it is true of a part only of the 95 % interval of {what}, {low} to {high}"
            alone = drifted(figure, (figure, figure), drift)
            bare = moved_interval(figure, list(sides.values())) or interval
            known = alone[0] <= bare[0] and bare[1] <= alone[1]
            made.settled = known and decided(self._true_of, figure, alone, thresholds) is None
            if made.settled:
                said += (
                    f"; more launches do not help, as sessions here differ by {100 * drift:.0f} % (deviation)"
                )
            self._undecided(said)

    def _agree(self, holds: bool) -> None:
        """Where there is no number to bound: by whether every launch alone says the same, of enough."""
        sides = self._sides(float(holds), lambda: float(self._holds.holds(self._scope())))
        if any(value != float(holds) for side in sides.values() for value in side):
            self._undecided("single launches do not agree")
        elif self._made.n is not None and self._made.n < _AGREEING:
            self._undecided(
                f"fewer than {_AGREEING} launches may agree by chance, and the claim has no figure to bound"
            )

    def _sides(self, figure: float, again: Callable[[], float]) -> dict[str, list[float]]:
        """What the figure is with each launch of each point alone, for points that move it."""

        def moved(point: str, launch: int) -> float:
            self._looked.launch = (point, launch)
            try:
                return float(again())
            finally:
                self._looked.launch = None

        every = moves_of(moved, self._looked.cells)
        if self._figure is None and self._holds.ratio(self._scope()) is None:
            sides = every  # a condition that no launch turns is none that no launch moves
        else:
            sides = {point: side for point, side in every.items() if len(side) < 2 or set(side) != {figure}}
        self._made.points = sorted({point.partition(" ")[0] for point in sides})
        self._made.n = min(map(len, (sides or every).values()), default=None)
        return sides

    def _number(self) -> float:
        if self._figure is not None:
            return self._figure.number(self._scope())
        ratio = self._holds.ratio(self._scope())
        if ratio is None:
            raise Missing("one side of it is not positive in each launch")
        return ratio

    def _true_of(self, figure: float) -> bool:
        if self._figure is None:
            return self._holds.compares(figure)
        return self._holds.holds(self._scope(figure))

    def _undecided(self, reason: str) -> None:
        self._made.verdict, self._made.reason = UNDECIDED, reason


def _drift(point: Measured) -> float:
    """What a figure of `point` may differ by in another session; an unknown machine may be virtual."""
    record = point.entries[-1].record or {} if point.entries else {}
    around, kinds = record.get("environment"), record.get("kinds")
    virtual = not isinstance(around, Mapping) or around.get("virtual") is not False
    listed = [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else []
    return max(drift_of(kind, virtual) for kind in (*listed, ""))


def _own(file: File, claim: Claim) -> bool:
    """Whether nothing that was measured here is asked for."""
    texts = [claim.figure, claim.holds, condition_of(claim.needs).holds]
    asked = set(_called(texts))
    for name, text in reversed(file.names.items()):  # each may use those above it
        if name in {each for given in texts for each in _names(given)}:
            texts.append(text)
            asked |= set(_called([text]))
    return not asked & set(claims_check.NAMES)


def _called(texts: Iterable[str]) -> Iterable[str]:
    for text in filter(None, texts):
        try:
            yield from (call.function for call in claims_check.read(text, "claims").calls)
        except UsageError:  # which the verdict tells
            continue


def spelled(file: File, figure: str) -> list[str]:
    """A claim's figure, and what each name in it stands for: `["figure = …", "largest = …"]`."""
    said = [f"figure = {figure}"] if figure else []
    wanted = set(_names(figure))
    for name, text in reversed(file.names.items()):  # each may use those above it
        if name in wanted:
            wanted |= _names(text)
            said.append(f"{name} = {text}")
    return said


def _names(text: str) -> set[str]:
    try:
        return claims_check.read(text, "claims").names
    except UsageError:  # which the verdict tells
        return set()
