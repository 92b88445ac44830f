"""House style of all figures: colours the colour-blind tell apart, type, sizes, and how a figure is kept.

Every colour has a twin for dark pages: a figure is drawn in the light ones, and a page puts a CSS variable in
the place of each (`themed`), so that one drawing serves both.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import warnings
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from tilewise.base.errors import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe and Ito's colours, darkened where they are too pale on white; light and dark theme.
SERIES = (
    ("#0067a5", "#5ab4f0"),
    ("#c9510c", "#ff9455"),
    ("#00805e", "#35c99e"),
    ("#a6478d", "#e897d2"),
    ("#8a6d00", "#f0c330"),
    ("#3f4a5a", "#c3cbd6"),
    ("#7a3b2e", "#d9a08f"),
    ("#4b5fc4", "#a3b1ff"),
)
# Sizes have an order: from pale to deep (dark theme: from deep to pale).
ORDERED = (
    ("#b9a51b", "#4a5fb8"),
    ("#7fae2e", "#3f7cc0"),
    ("#3fa864", "#2f9bb8"),
    ("#1d968b", "#31b39b"),
    ("#287c8e", "#57c785"),
    ("#33638d", "#8ed468"),
    ("#404788", "#c4da4c"),
    ("#481567", "#f4e04d"),
)
PHASES = {  # of a job, the same in every figure
    "input": SERIES[0],
    "compute": SERIES[2],
    "exchange": SERIES[1],
    "output": SERIES[3],
    "verify": SERIES[5],
}
RANKS = (SERIES[4], SERIES[7], SERIES[6], ("#147a80", "#6fd0dc"))  # which no phase has
INK = ("#1c2430", "#e6e9ee")
MUTED = ("#5d6775", "#a3acb9")
GRID = ("#e1e5ea", "#343c48")
PAPER = ("#fefefe", "#171b21")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.5, 1.5)))
WIDTH, HEIGHT = 5.4, 3.7  # inches; 72 points each, so that text is as large as the page's on a phone

_FACTS: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "text.color": INK[0],
    "text.parse_math": False,
    "axes.edgecolor": MUTED[0],
    "axes.labelcolor": INK[0],
    "axes.facecolor": "none",
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlepad": 9,
    "axes.labelsize": 9,
    "axes.formatter.useoffset": False,
    "grid.color": GRID[0],
    "grid.linewidth": 0.7,
    "xtick.color": MUTED[0],
    "ytick.color": MUTED[0],
    "xtick.labelcolor": INK[0],
    "ytick.labelcolor": INK[0],
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.minor.visible": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 3.6,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "figure.dpi": 72,
    "svg.fonttype": "none",
    "svg.hashsalt": "tilewise",
}
WIDEST = 34  # characters of a name in a figure
_PNG_DOTS = 200  # per inch
_NOTEBOOK_DOTS = 100


@dataclasses.dataclass(frozen=True)
class Spot:
    """A place that says what it shows: a point or, where it has a size, a rectangle; in data units."""

    axes: Axes
    x: float
    y: float
    text: str
    width: float = 0.0
    height: float = 0.0


@dataclasses.dataclass(repr=False)
class Plot:
    """A figure with its name, what it shows in words, and its spots."""

    key: str
    title: str
    caption: str
    figure: Figure
    spots: list[Spot] = dataclasses.field(default_factory=list)

    def __repr__(self) -> str:
        return f"Plot({self.title!r})"

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture for a notebook, and its size there in pixels, half of what the picture has."""
        width, height = self.figure.get_size_inches() * _NOTEBOOK_DOTS
        return png(self), {"width": round(width), "height": round(height)}


@contextlib.contextmanager
def house() -> Iterator[None]:
    """Draws in the house style; whoever uses matplotlib besides keeps theirs."""
    import matplotlib

    with matplotlib.rc_context(_FACTS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def sheet(title: str, width: float = WIDTH, height: float = HEIGHT) -> tuple[Figure, Axes]:
    """An empty figure of one diagram."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(wrapped(title, width))
    return figure, axes


def wrapped(title: str, width: float = WIDTH) -> str:
    """`title` in lines that fit `width` inches."""
    import textwrap

    return "\n".join(textwrap.wrap(clean(title), int(width * 10)))


def short(name: str, widest: int = WIDEST) -> str:
    """`name` in one line that has room in a figure, without its middle; pointing at marks tells all of it.

    What tells names apart may be at either end: `random, ranks 2, …bi, components 40`.
    """
    name = " ".join(clean(name).split())
    half = widest // 2
    return name if len(name) <= widest else f"{name[: widest - half - 1]}…{name[-half:]}"


def wrapped_name(name: str) -> str:
    """`name` on at most two lines, whole wherever it fits: what tells rows apart may be anywhere in it."""
    import textwrap

    first, *rest = textwrap.wrap(" ".join(clean(name).split()), WIDEST) or [""]
    return f"{first}\n{short(' '.join(rest))}" if rest else first


def ordered(count: int) -> list[str]:
    """A colour for each of so many sizes, from the smallest to the largest."""
    return [ORDERED[round(place * (len(ORDERED) - 1) / max(count - 1, 1))][0] for place in range(count)]


def svg(plot: Plot) -> str:
    """A stand-alone SVG file: the same bytes each time, text as text, white paper."""
    with house():
        file = io.StringIO()
        plot.figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, facecolor=PAPER[0])
    return re.sub(r"\s*<metadata>.*?</metadata>", "", file.getvalue(), flags=re.DOTALL)


def png(plot: Plot) -> bytes:
    """A picture for slides."""
    with house():
        file = io.BytesIO()
        plot.figure.savefig(
            file, format="png", dpi=_PNG_DOTS, metadata={"Software": None}, facecolor=PAPER[0]
        )
    return file.getvalue()


def variables(side: int) -> str:
    """CSS declarations of all colours: `side` 0 for light pages, 1 for dark ones."""
    return "".join(f"--{name}:{pair[side]};" for name, pair in _named().items())


def themed(text: str) -> str:
    """`text` with each colour of the light theme replaced by its CSS variable."""
    names = {pair[0]: name for name, pair in _named().items()}

    def variable(match: re.Match[str]) -> str:
        name = names.get(match.group().lower())
        return f"var(--{name})" if name else match.group()

    return re.sub(r"#[0-9a-fA-F]{6}\b", variable, text)


def themed_names(text: str) -> str:
    """`text` with each CSS variable replaced by its colour of the light theme: what `themed` undoes."""
    named = _named()
    return re.sub(r"var\(--([\w-]+)\)", lambda match: named[match.group(1)][0], text)


def _named() -> dict[str, tuple[str, str]]:
    lists = {"series": SERIES, "order": ORDERED, "rank": RANKS}
    colours = {f"{name}-{place}": pair for name, pairs in lists.items() for place, pair in enumerate(pairs)}
    return {**colours, "ink": INK, "muted": MUTED, "grid": GRID, "paper": PAPER}


_REACH = 6.0  # points around a data point that answer the pointer
_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def inline(plot: Plot) -> str:
    """`plot` as an <svg> element for a page."""
    text = svg(plot)
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    head, _, body = text.partition(">")
    box = re.search(r'viewBox="([^"]*)"', head)
    shape = box.group(1) if box else "0 0 390 266"
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)  # it would hold for the whole page
    body = re.sub(r"font-family: [^;\"]*; ?| ?transform=\"rotate\(-0 [^\"]*\"", "", body)
    body = _own_names(body, plot.key)
    body = body.replace("xlink:href", "href")
    body = re.sub(r'<g id="[^"]*patch_1">.*?</g>', "", body, count=1, flags=re.DOTALL)  # the white paper
    body = re.sub(r"<[^>]*>", lambda tag: _NUMBER.sub(_short, tag.group()), body)
    body = re.sub(r">\s+<", ">\n<", body)
    end = body.rindex("</svg>")
    label = escape(clean(plot.title), quote=True)
    opening = f'<svg class="plot" viewBox="{shape}" role="img" aria-label="{label}">'
    return opening + themed(body[:end]) + _spots(plot) + "</svg>"


def _short(number: re.Match[str]) -> str:
    return f"{float(number.group()):.2f}".rstrip("0").rstrip(".")


def _own_names(body: str, key: str) -> str:
    """Names are unique in a page; matplotlib's are only in a figure. Those that nothing refers to go."""
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', body))

    def name(match: re.Match[str]) -> str:
        return (
            f' id="{key}-{match.group(1)}"' if match.group(1) in used or "patch_1" in match.group(1) else ""
        )

    body = re.sub(r' id="([^"]*)"', name, body)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{key}-", body)


def _spots(plot: Plot) -> str:
    # The figure has just been drawn: its layout stands.
    if not plot.spots:
        return ""
    top = plot.figure.bbox.height
    scale = 72 / plot.figure.dpi
    parts = ['<g class="spots">']
    for spot in plot.spots:
        x, y = spot.axes.transData.transform((spot.x, spot.y))
        words = escape(clean(spot.text), quote=True)
        title = f"<title>{words}</title>"
        if spot.width or spot.height:
            far = spot.axes.transData.transform((spot.x + spot.width, spot.y + spot.height))
            left, wide = min(x, far[0]) * scale, abs(far[0] - x) * scale
            upper, high = (top - max(y, far[1])) * scale, abs(far[1] - y) * scale
            parts.append(
                f'<rect x="{left:.1f}" y="{upper:.1f}" width="{wide:.1f}" height="{high:.1f}">{title}</rect>'
            )
        else:
            parts.append(
                f'<circle cx="{x * scale:.1f}" cy="{(top - y) * scale:.1f}" r="{_REACH:g}">{title}</circle>'
            )
    return "".join([*parts, "</g>"])
