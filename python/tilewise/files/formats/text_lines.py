"""Finds and counts the lines of a text file that hold numbers, at the speed of memory where it is plain."""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from tilewise.base.errors import UsageError

CHUNK = 4 << 20  # bytes; a table of line ends takes up to eight times as many
SAMPLE = 64 << 10  # bytes of a line that are kept
_PIECE = 256 << 10
_MARKS = b"#%"  # a line that begins with one is a comment
_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\v\f"
SEPARATORS = ";,\t|"  # that are looked for, beside blanks
_LINE_FEED, _RETURN = 10, 13
_INDENT = 64  # blanks before a number that are skipped for all lines together
_NUMBER = re.compile(rb"[^\S\n]*[^\s#%]")
_FIELD = re.compile(rb"[ \r\v\f]*[^ \n\r\v\f#%]")  # where a tab is no blank
_FORTRAN_EXPONENT = re.compile(rb"(?<=[0-9.])[dD](?=[+-]?[0-9])")


class Line:
    """A line of numbers: where it begins (bytes), its first 64 KiB, and how many fields it has in all."""

    def __init__(self, begin: int, number: int, separators: str = "") -> None:
        self.begin = begin
        self.number = number  # of all lines of the file, from 1
        self.sample = b""
        self.whole = True
        self._fields = {**dict.fromkeys(SEPARATORS + separators, 1), " ": 0}
        self._in_field = self._quoted = False

    def fields(self, separator: str) -> int:
        """How many numbers the line has when they stand between `separator`s."""
        return self._fields[separator]

    def add(self, piece: bytes) -> None:
        """Takes the next piece of the line, without its end and without a comment."""
        if len(self.sample) + len(piece) > SAMPLE:
            self.whole = False
        self.sample += piece[: max(0, SAMPLE - len(self.sample))]
        if self._quoted or b'"' in piece:
            parts = piece.split(b'"')
            inside = self._quoted
            self._quoted ^= len(parts) % 2 == 0
            piece = b"0".join(parts[inside::2])  # what stands in quotes is of one field
        for separator in self._fields:
            if separator != " ":
                self._fields[separator] += piece.count(separator.encode())
        self._fields[" "] += len(piece.split())
        if piece:
            if self._in_field and not piece[:1].isspace():
                self._fields[" "] -= 1  # the same field goes on
            self._in_field = not piece[-1:].isspace()


def plain_exponents(text: bytes) -> bytes:
    """`text` with the exponents of Fortran, `1d3` and `1D3`, written as Python reads them: `1e3`."""
    return _FORTRAN_EXPONENT.sub(b"e", text) if b"d" in text or b"D" in text else text


def top(text: bytes, count: int, tabs_are_fields: bool = False) -> tuple[bytes, int]:
    """The first `count` data lines of `text`, which begins and ends with a line, or all; and how many."""
    if text.count(b"\n") < count:
        return text, _count(text if text.endswith(b"\n") else text + b"\n", tabs_are_fields)
    data = _FIELD if tabs_are_fields else _NUMBER
    numbers = end = 0
    while numbers < count and end < len(text):
        begin, end = end, text.find(b"\n", end) + 1 or len(text)
        numbers += data.match(text, begin, end) is not None
    return text[:end], numbers


def skip_lines(file: BinaryIO, count: int, name: str) -> None:
    """Moves `file` from its beginning behind its first `count` lines; UsageError where that is all."""
    for _ in range(count):
        while (piece := file.readline(_PIECE)) and not piece.endswith(b"\n"):
            pass
        if not piece:
            raise UsageError(f"{name} has no numbers behind the lines that --header-rows {count} skips")


def data_lines(
    file: BinaryIO, count: int, separators: str = "", tabs_are_fields: bool = False, skipped: int = 0
) -> list[Line | None]:
    """The first `count` lines of `file` that hold data; None for each that is not there.

    It begins behind so many `skipped` lines. `separators` may stand between fields beside the usual ones.
    """
    if not skipped:
        file.seek(0)
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
    lines: list[Line | None] = []
    line: Line | None = None
    skipping = False
    number = skipped + 1
    begin = file.tell()  # of the current line
    while len(lines) < count:
        at = file.tell()
        piece = file.readline(_PIECE)
        if not skipping and line is None:
            bare = piece.lstrip(_blanks(tabs_are_fields) + b"\n")
            if bare[:1] and bare[:1] in _MARKS:
                skipping = True
            elif bare:
                line = Line(begin, number, separators)
        comment = piece.find(b"#")
        if line is not None and not skipping:
            line.add((piece[:comment] if comment >= 0 else piece).rstrip(b"\r\n"))
            skipping = comment >= 0
        if piece.endswith(b"\n") or not piece:
            if line is not None:
                lines.append(line)
            line, skipping, begin = None, False, at + len(piece)
            number += 1
        if not piece:
            break
    return lines + [None] * (count - len(lines))


def count_data_lines(
    file: BinaryIO, begin: int, name: str, most: int | None = None, tabs_are_fields: bool = False
) -> int:
    """Lines that hold data from byte `begin` on; UsageError for files with the line ends of old Macs.

    With `most` it reads no further than to a chunk in which there are so many, and returns `most` or more.
    """
    file.seek(begin)
    count = 0
    kind = ""  # of the line that has not ended yet: "data", "comment", or nothing but blanks so far
    returned = False  # the chunk before ended between \r and \n
    while chunk := file.read(CHUNK):
        returned = _check_returns(chunk, returned, name)
        if kind:
            end = chunk.find(b"\n")
            if end < 0:
                continue
            count += kind == "data"
            chunk = chunk[end + 1 :]
        last = chunk.rfind(b"\n") + 1
        count += _count(chunk[:last], tabs_are_fields)
        rest = chunk[last:].lstrip(_blanks(tabs_are_fields))
        kind = "" if not rest else "comment" if rest[0] in _MARKS else "data"
        if most is not None and count >= most:
            return count
    if returned:
        raise _old_line_ends(name)
    return count + (kind == "data")


def _blanks(tabs_are_fields: bool) -> bytes:
    return _BLANKS.replace(b"\t", b"") if tabs_are_fields else _BLANKS


def _count(body: bytes, tabs_are_fields: bool = False) -> int:
    """Data lines of `body`, which begins and ends with a line: those whose first mark is of a number."""
    import numpy

    letters = numpy.frombuffer(body, numpy.uint8)
    ends = numpy.flatnonzero(letters == _LINE_FEED)
    if not ends.size:
        return 0
    begins = numpy.empty_like(ends)
    begins[0], begins[1:] = 0, ends[:-1] + 1
    # Blanks and the two marks of comments come before all digits and signs.
    open_ = begins[letters[begins] <= max(_MARKS)]
    blanks, data = _blanks(tabs_are_fields), _FIELD if tabs_are_fields else _NUMBER
    count = int(ends.size - open_.size)
    for _ in range(_INDENT):
        if not open_.size:
            return count
        here = letters[open_]
        blank = _is_one_of(here, blanks)
        count += int(here.size - numpy.count_nonzero(blank | _is_one_of(here, b"\n" + _MARKS)))
        open_ = open_[blank] + 1
    return count + sum(data.match(body, begin) is not None for begin in open_.tolist())


def _is_one_of(letters: Any, some: bytes) -> Any:
    import numpy

    table = numpy.zeros(256, bool)
    table[list(some)] = True
    return table[letters]


def _check_returns(chunk: bytes, returned: bool, name: str) -> bool:
    """Refuses a \\r without its \\n; returns whether `chunk` ends between the two."""
    if returned and chunk[:1] != b"\n":
        raise _old_line_ends(name)
    if b"\r" not in chunk:
        return False
    import numpy

    letters = numpy.frombuffer(chunk, numpy.uint8)
    if numpy.any((letters[:-1] == _RETURN) & (letters[1:] != _LINE_FEED)):
        raise _old_line_ends(name)
    return chunk.endswith(b"\r")


def _old_line_ends(name: str) -> UsageError:
    return UsageError(
        f"{name} has carriage returns without line feeds, as line ends of old Macs",
        r"tr '\r' '\n' converts them",
    )
