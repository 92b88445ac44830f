"""A real browser for tests of pages: what it draws, what its scripts complain of, what does not fit.

Chromium without a window, told what to do over two pipes (its DevTools protocol: JSON that ends in a
zero byte). Everything it writes lies in a folder of its own, which goes with it. It needs no display, no
D-Bus and no network.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOUND = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(FOUND is None, reason="needs chromium, which is not installed")
SECONDS = 120  # for one answer: a loaded machine of two cores may be slow
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"),
    "--disable-dev-shm-usage",
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

# What is wrong with the page that is open, in words. A table may scroll if it says so; all else has to fit.
FAULTS = r"""(async () => {
  await document.fonts.ready;
  for (let k = 0; k < 2; ++k) await new Promise((done) => requestAnimationFrame(done));
  const faults = [], say = (words) => faults.push(words);
  const box = (one) => one.getBoundingClientRect(), shown = (one) => box(one).width > 0;
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) say(`the page is ${wide} px wider than its window`);
  const painted = (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size > 5;
  };
  const marks = (svg) => [...svg.querySelectorAll("path, rect, use, line")].filter(shown).length;
  const drawn = (one) => box(one).width >= 100 && box(one).height >= 40 &&
    (one.tagName === "CANVAS" ? painted(one) : marks(one) > 3);
  for (const figure of document.querySelectorAll("figure")) {
    const pictures = [...figure.querySelectorAll("svg, canvas")].filter(shown);
    if (!pictures.length || !pictures.every(drawn)) say(`${figure.id} is not drawn`);
  }
  for (const picture of [...document.querySelectorAll("figure svg")].filter(shown)) {
    const { left, right, top, bottom } = box(picture), name = picture.closest("figure").id;
    for (const text of picture.querySelectorAll("text")) {
      const at = box(text);
      const over = Math.max(left - at.left, at.right - right, top - at.top, at.bottom - bottom);
      if (over > 2) say(`"${text.textContent.trim()}" leaves ${name} by ${Math.round(over)} px`);
    }
  }
  const corners = (text) => {  // of the letters, turned as they are drawn, and half a space beside them
    const box = text.getBBox(), thin = box.height / 5, space = box.height / 8, matrix = text.getScreenCTM();
    const [left, right] = [box.x - space, box.x + box.width + space];
    const [top, bottom] = [box.y + thin, box.y + box.height - thin];
    return [[left, top], [right, top], [right, bottom], [left, bottom]]
      .map(([x, y]) => new DOMPoint(x, y).matrixTransform(matrix));
  };
  const apart = (one, other) => [one, other].some((box) => box.some((from, place) => {
    const to = box[(place + 1) % 4];
    const across = (point) => point.x * (to.y - from.y) - point.y * (to.x - from.x);
    const [a, b] = [one.map(across), other.map(across)];
    return Math.max(...a) <= Math.min(...b) || Math.max(...b) <= Math.min(...a);
  }));
  for (const picture of [...document.querySelectorAll("figure svg")].filter(shown)) {
    const texts = [...picture.querySelectorAll("text")].filter((text) => text.textContent.trim());
    const boxes = texts.map(corners), said = (place) => `"${texts[place].textContent.trim()}"`;
    const where = picture.closest("figure").id;
    boxes.forEach((box, place) => boxes.slice(0, place).forEach((other, before) => {
      if (!apart(box, other)) say(`${said(place)} lies on ${said(before)} in ${where}`);
    }));
  }
  for (const place of [...document.querySelectorAll(".scroll")].filter(shown)) {
    const over = place.scrollWidth - place.clientWidth, hint = getComputedStyle(place, "::before").content;
    if (over > 1 && !hint.includes("scroll")) say(`${place.parentNode.id} is cut by ${over} px`);
  }
  for (const one of document.querySelectorAll("h1, h2, h3, p, li, dt, dd, figcaption, summary")) {
    const over = one.clientWidth ? one.scrollWidth - one.clientWidth : 0;
    if (over > 1) say(`"${one.textContent.slice(0, 60)}" is ${over} px too long`);
  }
  return faults;
})()"""


class Browser:
    """One browser with one page open.

    `errors` are what scripts and the page's policy complained of, `requests` the addresses that it asked for.
    """

    def __init__(self, process: subprocess.Popen[bytes], told: int, heard: int, log: Path) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._process, self._told, self._heard, self._log = process, told, heard, log
        self._rest, self._count, self._session = b"", 0, ""
        self._seen: set[str] = set()
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(self, path: Path, width: int = 1200, height: int = 1000, dark: bool = False) -> list[str]:
        """Opens the file `path` in a window of that many pixels; what is wrong with it, in words."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", **size)
        self.prefer(dark)
        self.errors.clear()
        self.requests.clear()
        self._seen.clear()
        self._ask("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + SECONDS
        while "Page.loadEventFired" not in self._seen:
            self._take(self._message(end))
        return self.errors + self.faults()

    def faults(self) -> list[str]:
        """What is wrong with the page as it stands now, in words."""
        found: list[str] = self.run(FAULTS)
        return found

    def prefer(self, dark: bool) -> None:
        """Makes dark or light the colours that its user prefers."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", media="", features=[scheme])

    def run(self, script: str) -> Any:
        """The value of an expression in the page, which has to be plain data or a promise of it."""
        told = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise AssertionError(json.dumps(told["exceptionDetails"])[:2000])
        return told["result"].get("value")

    def picture(self, path: Path) -> bytes:
        """The whole page as PNG, also written to `path`."""
        size = self._ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000), "scale": 1}
        told = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(told["data"]))
        return path.read_bytes()

    def printed(self, path: Path) -> bytes:
        """The page as it prints, PDF on A4, also written to `path`."""
        told = self._ask("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)
        path.write_bytes(base64.b64decode(told["data"]))
        return path.read_bytes()

    def paper_overflow(self) -> list[str]:
        """The tables and figures that are wider than A4 paper, by name."""
        width = {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}  # less its margins
        self._ask("Emulation.setDeviceMetricsOverride", **width)
        self._ask("Emulation.setEmulatedMedia", media="print")
        wide: list[str] = self.run(
            "[...document.querySelectorAll('table, figure')]"
            ".filter((one) => one.getBoundingClientRect().right > innerWidth + 1)"
            ".map((one) => one.id || one.parentNode.parentNode.id)"
        )
        return wide

    def close(self) -> None:
        """Asks it to end."""
        self._session = ""
        with contextlib.suppress(AssertionError, OSError):
            self._ask("Browser.close")

    def _ask(self, method: str, **words: Any) -> dict[str, Any]:
        self._count += 1
        told: dict[str, Any] = {"id": self._count, "method": method, "params": words}
        if self._session:
            told["sessionId"] = self._session
        os.write(self._told, json.dumps(told).encode() + b"\0")
        end = time.monotonic() + SECONDS
        while (heard := self._message(end)).get("id") != told["id"]:
            self._take(heard)
        assert "error" not in heard, (method, heard["error"])
        result: dict[str, Any] = heard["result"]
        return result

    def _take(self, heard: dict[str, Any]) -> None:
        name, words = heard.get("method", ""), heard.get("params", {})
        self._seen.add(name)
        if name == "Runtime.exceptionThrown":
            details = words["exceptionDetails"]
            self.errors.append(str(details.get("exception", {}).get("description") or details["text"]))
        elif name == "Network.requestWillBeSent":
            self.requests.append(str(words["request"]["url"]))
        elif name == "Log.entryAdded" and words["entry"]["level"] in ("error", "warning"):
            self.errors.append(str(words["entry"]["text"]))
        elif name == "Runtime.consoleAPICalled":
            self.errors.append(f"console.{words['type']}: {words['args']}")

    def _message(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            left = end - time.monotonic()
            ready = select.select([self._heard], [], [], max(left, 0))[0]
            more = os.read(self._heard, 1 << 20) if ready else b""
            if not more:
                why = "ended" if ready else f"said nothing for {SECONDS} s"
                raise AssertionError(f"the browser {why}:\n{self._log.read_text(errors='replace')[-2000:]}")
            self._rest += more
        one, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(one)
        return message


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A browser of its own, gone with all that it wrote when the block ends."""
    with tempfile.TemporaryDirectory(prefix="tw-browser-", ignore_cleanup_errors=True) as home:
        theirs_in, told = _pipe()
        heard, theirs_out = _pipe()
        words = [str(FOUND), *_FLAGS, f"--user-data-dir={home}/profile"]
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("XDG_", "DBUS_", "DISPLAY"))
        }
        log = Path(home, "log")
        with log.open("wb") as written:
            process = subprocess.Popen(
                ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", *words],
                env={**kept, "HOME": home, "TMPDIR": home},
                pass_fds=(theirs_in, theirs_out),
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                start_new_session=True,
            )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            made = Browser(process, told, heard, log)
            yield made
            made.close()
        finally:
            os.close(told)
            os.close(heard)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with contextlib.suppress(ProcessLookupError):  # its helpers, too
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _pipe() -> tuple[int, int]:
    """The ends of a pipe, as numbers that are in nobody's way: the browser wants 3 and 4."""
    found = []
    for end in os.pipe():
        found.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
        os.close(end)
    return found[0], found[1]
