"""Reads back what was shown: tables printed as text, and pages as trees."""

from __future__ import annotations

import io
from html.parser import HTMLParser

from rich.console import Console, RenderableType

VOID = {"meta", "br", "hr", "img", "input", "link"}


def printed(content: RenderableType, width: int = 80) -> str:
    """What a terminal of `width` columns without colours shows."""
    file = io.StringIO()
    Console(file=file, width=width, highlight=False, emoji=False, color_system=None).print(content)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


class Tree(HTMLParser):
    """The tags of a page, in order, with their attributes and words; raises where one is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.style: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        (self.style if self._open and self._open[-1] in ("style", "script") else self.words).append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every `tag`."""
        return [attributes for name, attributes in self.tags if name == tag]

    def text(self) -> str:
        """All words outside scripts and styles."""
        return " ".join(self.words)
