"""Numbers of a text that no float64 holds as they are written: found in blocks that were parsed in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy

from tilewise.files.formats.text_lines import without_comment
from tilewise.files.formats.text_style import fields_of
from tilewise.files.losses import loss_text
from tilewise.files.region import Region

_GAP = 2.0**53  # from which on whole numbers lie further apart than 1
_PART = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eEdD][+-]?[0-9]+)?")
_CANDIDATE = re.compile(rb"[0-9]{16}|[eEdD]\+?[0-9]{2}")


class Losses:
    """What was lost of the numbers of a text so far, as the worker counts it."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._found: dict[str, list[int]] = {}  # of each kind: count, line and column of the first

    def look(self, text: bytes, line: int, numbers: numpy.ndarray[Any, numpy.dtype[Any]]) -> None:
        """Looks at the lines of a block, from `line` on, and the numbers that they hold."""
        if numbers.dtype.kind not in "fc":
            return
        flat = numbers.view(numpy.float64) if numbers.dtype.kind == "c" else numbers
        with numpy.errstate(invalid="ignore"):
            if not numpy.any(numpy.abs(flat) >= _GAP):
                return
        for number, each in enumerate(text.split(b"\n"), line):
            if _CANDIDATE.search(each) and not each.lstrip().startswith((b"%", b"#")):
                data = without_comment(each).strip(b" \r")
                for column, field in enumerate(fields_of(data, self._region.separator), 1):
                    if kind := self._kind(field):
                        self._found.setdefault(kind, [0, number, column])[0] += 1

    def said(self) -> Iterator[str]:
        """A sentence for each kind of loss that there is."""
        for kind in ("rounded", "overflow"):
            if kind in self._found:
                count, line, column = self._found[kind]
                yield loss_text(kind, count, line, column, self._region.dtype)

    def _kind(self, field: bytes) -> str:
        if self._region.decimal == ",":
            field = field.replace(b",", b".")
        field = re.sub(rb"[dD]", b"e", field.strip(b'"'))
        found = ""
        for part in _PART.findall(field):
            if float(part) in (float("inf"), float("-inf")):
                return "overflow"
            if part.lstrip(b"+-").isdigit() and int(float(part)) != int(part):
                found = "rounded"
        return found
