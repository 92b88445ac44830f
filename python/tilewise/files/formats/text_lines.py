"""Finds and counts the lines of a text file that hold numbers, at the speed of memory where it is plain."""

from __future__ import annotations

import codecs
import functools
import itertools
import os
import re
import subprocess
from typing import BinaryIO

from tilewise.base import programs
from tilewise.base.errors import UsageError
from tilewise.files.style import LineRule

CHUNK = 4 << 20  # bytes
SAMPLE = 64 << 10  # bytes of a line that are kept
_PIECE = 256 << 10
_LONGEST = 16 << 20
_MARKS = b"#%"  # a line that begins with one is a comment
_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\v\f"
SEPARATORS = ";,\t|"  # that are looked for, beside blanks
_USUAL = LineRule()
_WORTH_A_PROCESS = 1 << 20  # bytes
_LONE_RETURN = re.compile(rb"\r[^\n]")
_HASH = re.compile(rb"[ \t\v\f]#")  # behind a number; a `#` inside a word, as in 1.#INF, begins no comment
ERROR_WORD = re.compile(  # of Excel; at the beginning of a line it is no comment
    rb"^[ \t\v\f]*(#(?:N/A|NULL!|DIV/0!|VALUE!|REF!|NAME\?|NUM!))", re.MULTILINE
)
_FORTRAN_EXPONENT = re.compile(rb"(?<=[0-9.])[dD](?=[+-]?[0-9])")


class TextLine:
    """A line of numbers: where it begins (bytes), its first 64 KiB, and how many fields it has in all."""

    def __init__(self, begin: int, number: int, separators: str = "") -> None:
        self.begin = begin
        self.number = number  # of all lines of the file, from 1
        self.sample = b""
        self.whole = True
        self._fields = {**dict.fromkeys(SEPARATORS + separators, 1), " ": 0}
        self._in_field = self._quoted = False

    def fields(self, separator: str) -> int:
        """Count the numbers of the line where they stand between `separator`s."""
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


def check_encoding(start: bytes, name: str) -> None:
    """Raises UsageError where the first bytes of a text are those of UTF-16 or UTF-32."""
    marks = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32"}  # the first begins like UTF-16's
    marks |= {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
    found = next((encoding for mark, encoding in marks.items() if start.startswith(mark)), "")
    for width, at, encoding in (
        (4, 0, "UTF-32LE"),
        (4, 3, "UTF-32BE"),
        (2, 0, "UTF-16LE"),
        (2, 1, "UTF-16BE"),
    ):
        letters = start[at::width]
        if not found and len(start) % width == 0 and start and b"\0" not in letters:
            found = encoding if start.count(b"\0") == len(start) - len(letters) else ""
    if found:
        raise UsageError(
            f"{name} is a text in {found}, but ASCII or UTF-8 was expected",
            f"iconv -f {found} -t UTF-8 converts it",
        )


def without_comment(line: bytes) -> bytes:
    """A line of numbers without the comment behind these."""
    comment = _HASH.search(line) if b"#" in line else None
    return line[: comment.end() - 1] if comment else line


def plain_exponents(text: bytes) -> bytes:
    """`text` with the exponents of Fortran, `1d3` and `1D3`, written as Python reads them: `1e3`."""
    return _FORTRAN_EXPONENT.sub(b"e", text) if b"d" in text or b"D" in text else text


def top(text: bytes, count: int, rule: LineRule = _USUAL) -> tuple[bytes, int]:
    """The first `count` data lines of `text`, which begins and ends with a line, or all; and how many."""
    if count == 0:
        return b"", 0
    begins = _begins(rule).finditer(b"\n" + text)
    last = next(itertools.islice(begins, count - 1, None), None)
    if last is None:
        return text, _count(text, rule)
    return text[: text.find(b"\n", last.end() - 1) + 1 or len(text)], count


def skip_lines(file: BinaryIO, count: int, name: str) -> bytes | None:
    """Move `file` from its beginning behind `count` lines; the last of these. UsageError for no more."""
    line = None
    for _ in range(count):
        line, ends = whole_line(file)
        if not ends:
            raise UsageError(f"{name} has no numbers behind the lines that --header-rows {count} skips")
    return line


def whole_line(file: BinaryIO) -> tuple[bytes, bool]:
    """The line at which `file` stands, cut after 16 MiB, without its end; and whether it has one."""
    line = b""
    while (piece := file.readline(_PIECE)) and not piece.endswith(b"\n"):
        line += piece if len(line) < _LONGEST else b""
    return (line + piece).rstrip(b"\r\n").removeprefix(_BOM), bool(piece)


def data_lines(
    file: BinaryIO, count: int, separators: str = "", rule: LineRule = _USUAL, skipped: int = 0
) -> list[TextLine]:
    """The first `count` lines of `file` that hold data, or all.

    It begins behind so many `skipped` lines. `separators` may stand between fields beside the usual ones.
    """
    if not skipped:
        file.seek(0)
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
    lines: list[TextLine] = []
    line: TextLine | None = None
    skipping = False
    last = b""  # byte of the line so far
    number = skipped + 1
    begin = file.tell()  # of the current line
    while len(lines) < count:
        at = file.tell()
        piece = file.readline(_PIECE)
        if not skipping and line is None:
            bare = piece.lstrip(_blanks(rule) + b"\n")
            if rule.comments and bare[:1] and bare[:1] in _MARKS and not ERROR_WORD.match(bare):
                skipping = True
            elif bare:
                line = TextLine(begin, number, separators)
        if line is not None and not skipping:
            data = without_comment(last + piece)[len(last) :] if rule.comments else piece
            line.add(data.rstrip(b"\r\n"))
            skipping = len(data) < len(piece)
        last = piece[-1:]
        if piece.endswith(b"\n") or not piece:
            if line is not None:
                lines.append(line)
            line, skipping, last, begin = None, False, b"", at + len(piece)
            number += 1
        if not piece:
            break
    return lines


def count_data_lines(
    file: BinaryIO, begin: int, name: str, most: int | None = None, rule: LineRule = _USUAL
) -> tuple[int, int | None]:
    """Lines that hold data from byte `begin` on, at most `most`; and where the last of so many ends.

    None stands for the end of the file. With `most` it reads no further than to a chunk in which there are so
    many. Raises UsageError for files with the line ends of old Macs.
    """
    if most is None and (counted := _counted_by_program(file, begin, name, rule)) is not None:
        return counted, None
    file.seek(begin)
    count = 0
    kind = ""  # of the line that has not ended yet: "data", "comment", or nothing but blanks so far
    returned = False  # the chunk before ended between \r and \n
    while chunk := file.read(CHUNK):
        if (returned and chunk[:1] != b"\n") or _LONE_RETURN.search(chunk):
            raise _old_line_ends(name)
        returned = chunk.endswith(b"\r")
        if kind:
            end = chunk.find(b"\n")
            if end < 0:
                continue
            count += kind == "data"
            chunk = chunk[end + 1 :]
        last = chunk.rfind(b"\n") + 1
        found = _count(chunk[:last], rule)
        if most is not None and count + found >= most:
            lines, _ = top(chunk[:last], most - count, rule)
            return most, file.tell() - len(chunk) + len(lines)
        count += found
        rest = chunk[last:].lstrip(_blanks(rule))
        kind = "" if not rest else "comment" if rule.comments and rest[0] in _MARKS else "data"
    if returned:
        raise _old_line_ends(name)
    return count + (kind == "data"), None


def _counted_by_program(file: BinaryIO, begin: int, name: str, rule: LineRule) -> int | None:
    """Count the lines of a large file on all cores; None where that takes longer, or fails."""
    try:
        if os.fstat(file.fileno()).st_size - begin < _WORTH_A_PROCESS:
            return None
        program = programs.first(programs.places("tilewise-lines"))
        if program is None:
            return None
        words = [program, str(begin), str(int(rule.tabs)), str(int(rule.comments))]
        done = subprocess.run(
            words, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None  # what is wrong with the file is said when it is read here
    count, lone_return = map(int, done.stdout.split())
    if lone_return:
        raise _old_line_ends(name)
    return count


def _blanks(rule: LineRule) -> bytes:
    return _BLANKS.replace(b"\t", b"") if rule.tabs else _BLANKS


@functools.cache
def _begins(rule: LineRule) -> re.Pattern[bytes]:
    """Match how a line with data begins, behind the end of another."""
    marks = _MARKS if rule.comments else b""
    return re.compile(rb"\n[%b]*[^\n%b%b]" % (_blanks(rule), _blanks(rule), marks))


def _count(body: bytes, rule: LineRule = _USUAL) -> int:
    """Data lines of `body`, which begins and ends with a line."""
    return len(_begins(rule).findall(b"\n" + body))


def _old_line_ends(name: str) -> UsageError:
    return UsageError(
        f"{name} has carriage returns without line feeds, as line ends of old Macs",
        r"tr '\r' '\n' converts them",
    )
