"""Looks at a page as a browser does: no element, attribute or address in it may be somebody else's."""

from __future__ import annotations

from html.parser import HTMLParser

from watch import BrokenPromise

# Our pages have these elements and no others: what loads, embeds or sends anything is not among them.
ELEMENTS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "h1",
        "h2",
        "h3",
        "p",
        "code",
        "ul",
        "li",
        "dl",
        "div",
        "dt",
        "dd",
        "nav",
        "main",
        "section",
        "figure",
        "figcaption",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "small",
        "sup",
        "details",
        "summary",
        "footer",
        "script",
        "svg",
        "g",
        "path",
        "rect",
        "line",
        "polyline",
        "polygon",
        "circle",
        "ellipse",
        "text",
        "tspan",
        "title",
        "defs",
        "use",
        "clippath",
        "marker",
        "pattern",
        "lineargradient",
        "stop",
        "a",
        "span",
        "br",
        "button",
        "label",
        "input",
        "select",
        "option",
        "strong",
        "em",
        "desc",
        "image",
        "symbol",
    ]
)
HOSTILE = "alert"  # stands in each hostile word; alive, it would be code or an attribute


class _Look(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ELEMENTS:
            raise BrokenPromise(f"a page with an element <{tag}>")
        for name, value in attrs:
            if name.startswith("on"):
                raise BrokenPromise(f"a page with an attribute {name}={value}")
            if name in ("href", "src", "xlink:href", "action", "srcset") and not (value or "").startswith(
                ("#", "data:image/png;base64,")
            ):
                raise BrokenPromise(f"a page that leads to {value}")
            if name == "style" and "url(" in (value or "").replace("url(#", ""):
                raise BrokenPromise(f"a page that loads by its style: {value}")
        self._inside = tag
        if dict(attrs).get("type") == "application/json":
            self._inside = ""  # data, which nobody runs
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._inside = ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        if self._inside in ("script", "style") and HOSTILE in data:
            raise BrokenPromise(f"somebody's words in <{self._inside}>")

    def handle_comment(self, data: str) -> None:
        raise BrokenPromise(f"a page with a comment: {data[:80]}")


def check_page(text: str) -> None:
    """Raises BrokenPromise where a page of ours has an element, attribute or address that is not ours."""
    look = _Look()
    look.feed(text)
    look.close()


def check_terminal(text: str) -> None:
    """Raises BrokenPromise where `text` would make a terminal do anything but show letters."""
    for letter in text:
        if letter not in "\n\t" and not letter.isprintable() and letter not in "\u200c\u200d":
            raise BrokenPromise(f"U+{ord(letter):04X} goes to the terminal: {text[:200]!r}")
