"""Studies from Python: run one, load its results as a data frame, draw its plots.

results = tilewise.run_study("quick", scale="tiny")
frame = tilewise.load_study(results)
tilewise.plots(results)["speedup"]
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tilewise.api.run import run_shown, warn
from tilewise.lab.study.export import rows

if TYPE_CHECKING:
    from tilewise.lab.report.style import Plot

    Path = str | os.PathLike[str]


class StudyPlots(dict[str, "Plot"]):
    """The plots of a study by name, each with `title`, `caption` and a matplotlib `figure`.

    A notebook shows all of them, with their captions.
    """

    def _ipython_display_(self) -> None:
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        for plot in self.values():
            display(plot)  # type: ignore[no-untyped-call, unused-ignore]
            words = {"text/markdown": plot.caption, "text/plain": plot.caption}
            display(words, raw=True)  # type: ignore[no-untyped-call, unused-ignore]


def run_study(
    name: Path,
    *,
    scale: Literal["tiny", "default", "report"] = "default",
    results: Path = "results",
    only: Mapping[str, Sequence[Any] | str | float] | None = None,
    resume: bool = False,
) -> str:
    """Runs a study, a shipped one by its name or a TOML file, and returns the folder of its results.

    The folder lies in `results`. `only` restricts axes to some of their values: `{"ranks": [1, 2]}`. With
    `resume` the newest results of this study are completed. Raises UsageError, or RunError where points have
    failed; the others are kept.
    """
    from tilewise.lab.study import shipped, store
    from tilewise.lab.study.study import read

    study = read(shipped.path_of(os.fspath(name)), scale)
    folder = store.folder_for(os.fspath(results), study.name, resume)
    words = ["study", "run", os.fspath(name), f"--scale={scale}", f"--into={folder}"]
    for axis, values in (only or {}).items():
        listed = [values] if isinstance(values, (str, int, float)) else values
        words.append(f"--only={axis}={','.join(map(str, listed))}")
    ended = run_shown(words, whole=True)
    if ended.exit_code:
        ended.fail()
    return folder


def load_study(folder: Path) -> Any:
    """All launches of a study's results: a pandas DataFrame where pandas is installed, else a list of dicts.

    `folder` is the results folder, or the one above it, of which the newest results are taken. A row is a
    launch, or a line of a measurement; the reference names the columns. UsageError where there are none; a
    warning for what was left out.
    """
    notes: list[str] = []
    made = rows(os.fspath(folder), notes)
    warn(notes)
    try:
        import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return made
    return pandas.DataFrame(made)


def plots(folder: Path) -> StudyPlots:
    """The plots that a study declares, drawn from its results; `folder` as in `load_study`.

    UsageError where there are no results.
    """
    from tilewise.lab.report.study_plots import declared
    from tilewise.lab.study import evaluation

    study = evaluation.load(os.fspath(folder))
    drawn = StudyPlots()
    for place, plot in enumerate(study.plots):
        for figure in declared([study], place):
            drawn[plot.name] = figure
    return drawn
