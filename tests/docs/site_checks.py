"""What is wrong with a page of the site: its links and structure from its text, its colours in a browser."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")

# Texts with less contrast than WCAG's AA asks for, 4.5 or 3 where they are large, as lines of words.
CONTRAST = r"""(() => {
  const rgba = (text) => {
    const parts = (text.match(/[\d.]+/g) || []).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return [parts[0] * scale, parts[1] * scale, parts[2] * scale, parts[3] ?? 1];
  };
  const over = (top, below) => [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3]));
  const behind = (one) => {
    const layers = [];
    for (; one; one = one.parentElement) {
      const layer = rgba(getComputedStyle(one).backgroundColor);
      if (layer[3] > 0) layers.push(layer);
      if (layer[3] === 1) break;
    }
    return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const linear = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const found = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const words = texts.currentNode.textContent.trim(), one = texts.currentNode.parentElement;
    if (!words || !one.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const style = getComputedStyle(one), size = parseFloat(style.fontSize);
    const below = behind(one), colour = over(rgba(style.color), below);
    const [dim, bright] = [light(colour), light(below)].sort((a, b) => a - b);
    const ratio = (bright + 0.05) / (dim + 0.05);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5))
      found.add(`"${words.slice(0, 30)}" (${one.tagName} ${one.className}): ${ratio.toFixed(2)}`);
  }
  return [...found];
})()"""


class Page(HTMLParser):
    """A page as its text has it: the names in it, where it leads, what it loads, and what is wrong."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.faults: list[str] = []
        self._headings: list[int] = []
        self._inputs: list[dict[str, str]] = []
        self._labelled: set[str] = set()
        self._language = ""
        self.feed(text)
        self._judge()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        words = {name: value or "" for name, value in attrs}
        if "id" in words:
            self.ids.append(words["id"])
        if tag == "html":
            self._language = words.get("lang", "")
        elif tag == "a" and "href" in words:
            self.links.append(words["href"])
        elif tag in _HEADINGS:
            self._headings.append(int(tag[1]))
        elif tag == "label":
            self._labelled.add(words.get("for", ""))
        elif tag == "input" and words.get("type") not in ("hidden", "submit"):
            self._inputs.append(words)
        elif tag == "img" and not words.get("alt", "").strip():
            self.faults.append(f"the picture {words.get('src')} has no alternative text")
        if _LOADS.get(tag) in words and words.get("rel") not in (
            "index",
            "search",
            "next",
            "prev",
            "canonical",
        ):
            self.loads.append(words[_LOADS[tag]])

    def _judge(self) -> None:
        say = self.faults.append
        if self._language != "en":
            say("it does not say that it is English")
        if self._headings.count(1) != 1:
            say(f"it has {self._headings.count(1)} headings of the first level")
        for above, below in zip(self._headings, self._headings[1:], strict=False):
            if below > above + 1:
                say(f"a heading of level {below} follows one of level {above}")
        for one in self._inputs:
            if not (one.get("aria-label") or one.get("aria-labelledby") or one.get("id") in self._labelled):
                say(f"the input {one.get('name') or one.get('id')} has no label")
        for name in {name for name in self.ids if self.ids.count(name) > 1}:
            say(f"two elements have the id {name}")


def dead_links(site: Path) -> list[str]:
    """Every link of a site to a file or a name that is not there, and all that it loads from elsewhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                if link in page.loads and address.scheme != "data":
                    dead.append(f"{path.relative_to(site)} loads {link}")
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            name = unquote(address.fragment)
            known = pages.get(target)
            if not target.exists() or (name and known is not None and name not in known.ids):
                dead.append(f"{path.relative_to(site)} leads to {link}")
    return sorted(dead)
