"""A figure as part of a page: no prolog, names of its own, colours of the page, and spots that answer."""

from __future__ import annotations

import re
from html import escape

from tilewise.base.errors import clean
from tilewise.lab.report.figures.style import Plot, svg, themed

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
