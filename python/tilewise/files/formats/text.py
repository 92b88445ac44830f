"""The .txt, .csv and .tsv formats: a line is a row, numbers stand between commas, tabs or blanks."""

from __future__ import annotations

import os
import re

from tilewise.base.errors import UsageError
from tilewise.base.units import shape_text
from tilewise.files.checks import numbers_bytes, printable
from tilewise.files.dtypes import ALL
from tilewise.files.formats import Format
from tilewise.files.formats.text_lines import (
    TextLine,
    check_encoding,
    count_data_lines,
    data_lines,
    skip_lines,
)
from tilewise.files.formats.text_style import (
    FieldMarks,
    dtype_of,
    may_be_numbers,
    names_in,
    reading_of,
    refused,
)
from tilewise.files.headed import put_head
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular
from tilewise.files.style import PLAIN, Style

FORMAT = Format(numbers=ALL, lines="row")
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": " "}
_WHOLE_PAIR = re.compile(rb"\s*([0-9]{1,18})(?:\s*[,;]\s*|\s+)([0-9]{1,18})\s*")
_LOOKED_AT = 12  # lines, where they are short
_SHOWN_NAMES = 5


def inspect(path: str, name: str, member: str, most: int | None = None, style: Style = PLAIN) -> Source:
    """The matrix at `path`: columns from its first line, rows by counting lines, numbers not yet checked.

    Unless `style` counts the header rows, a first line of names above numbers is left out with a warning, and
    refused where the names may be numbers; one with two whole numbers that fit the rest exactly is a header
    of rows and columns. Where both readings are possible
    (two columns) it is taken as numbers, as numpy.loadtxt does, and a warning says so.
    With `most` lines are counted only so far, unless the first one may be a header: the matrix then is the
    top of the whole one, of `most` rows where there are that many.
    """
    file, size = open_regular(path, name)
    tabs = "\t" in (style.separator or _SEPARATORS[_kind(name)]) and bool(style.missing)
    skipped = style.header_rows or 0
    notes: list[str] = []
    warnings: tuple[str, ...] = ()
    with file:
        check_encoding(file.read(64), name)
        file.seek(0)
        skip_lines(file, skipped, name)
        start = file.tell()
        lines = [line for line in data_lines(file, 2, style.separator or "", tabs, skipped) if line]
        if all(line.whole for line in lines):
            file.seek(start)
            found = data_lines(file, _LOOKED_AT, style.separator or "", tabs, skipped)
            lines = [line for line in found if line]
        if not lines:
            raise UsageError(
                f"{name} {'is empty' if size == 0 else 'has no numbers'}, but lines of numbers were expected"
            )
        reading = reading_of(lines, _usual(name, lines[0]), style)
        if reading is None:
            below, names = _below_names(lines, name, style)
            warnings = (f"its first line is read as column names: {names}; --header-rows 1 confirms that",)
            lines, reading = lines[1:], below
        begin, second = lines[0], lines[1] if len(lines) > 1 else None
        pair = (
            _shape_in(begin, style)
            if second is not None and style.header_rows is None and not warnings
            else None
        )
        tabs = reading.separator == "\t" and bool(style.missing)
        count, end = count_data_lines(file, begin.begin, name, None if pair else most, tabs)
    rows = count
    if pair is not None and second is not None:
        behind = reading_of(lines[1:], _usual(name, second), style) or (
            reading if reading.separator != " " else FieldMarks(_usual(name, second), ".")
        )
        # The header's own separator is a blank, or the one of the numbers.
        alike = reading.separator == behind.separator or begin.fields(" ") == 2
        fits = alike and pair == (count - 1, second.fields(behind.separator))
        if fits and begin.fields(behind.separator) == second.fields(behind.separator):
            warnings = (
                f"its first line could also declare the shape {shape_text(*pair)}; "
                "it is read as numbers; --header-rows 1 skips it, --header-rows 0 says it is numbers",
            )
        elif fits:
            rows, begin, reading = count - 1, second, behind
            notes.append(f"its first line is read as the shape, {shape_text(*pair)}")
        elif begin.fields(reading.separator) != second.fields(behind.separator):
            raise UsageError(
                f"{name} declares {shape_text(*pair)} in its first line, but has "
                f"{count - 1} more lines, the next with {second.fields(behind.separator)} numbers",
                "--header-rows 1 skips that line",
            )
    elif second is not None and begin.fields(reading.separator) != second.fields(reading.separator):
        raise UsageError(
            f"{name} has {begin.fields(reading.separator)} numbers in "
            f"{_first(begin)}, but {second.fields(reading.separator)} in the next"
        )
    if reading.separator != _SEPARATORS[_kind(name)] and _kind(name) != ".txt" and not style.separator:
        notes.append(f"its numbers are separated by {_words(reading.separator)}")
    if reading.decimal != "." and not style.decimal:
        notes.append("its decimal mark is a comma")
    rows = rows if most is None else min(rows, most)
    columns = begin.fields(reading.separator)
    dtype = dtype_of(begin, reading)
    numbers_bytes(rows, columns, dtype, name)
    _check_words(style, reading, name)
    return Source(
        path=path,
        name=name,
        offset=begin.begin,
        rows=rows,
        columns=columns,
        dtype=dtype,
        encoding="text",
        separator=reading.separator,
        line_numbers=columns,
        decimal=reading.decimal,
        missing=list(style.missing),
        text_end=-1 if end is None else end,
        file_bytes=size,
        format=os.path.splitext(path)[1].lower()[1:],
        notes=tuple(notes),
        warnings=warnings,
    )


def create(new: New) -> Region:
    """Writes the line `rows columns` where `new.header` asks for it; the file grows with its numbers."""
    if 0 in new.shape:
        raise UsageError(
            f"{new.name} cannot hold a {shape_text(*new.shape)} matrix: a text without numbers has no shape"
        )
    decimal = new.style.decimal or "."
    usual = _SEPARATORS[_kind(new.name)]
    separator = new.style.separator or (";" if usual == decimal else usual)
    if separator == decimal:
        raise UsageError(
            f"the output {new.name} cannot be written: {decimal!r} is both separator and decimal mark",
            "--separator ';'",
        )
    _check_words(new.style, FieldMarks(separator, decimal), new.name)
    missing = list(new.style.missing[:1])
    if missing == [""]:
        if separator == " ":
            raise UsageError(
                f"the output {new.name} cannot be written: an empty field cannot be told from blanks",
                "--missing nan, or --separator ,",
            )
        if new.shape[1] == 1:
            missing = ['""']  # a blank line would be no row
    head = b"%d %d\n" % new.shape if new.header else b""
    put_head(new.path, head)
    return new.region(
        offset=len(head),
        encoding="text",
        separator=separator,
        line_numbers=new.shape[1],
        decimal=decimal,
        missing=missing,
    )


def _kind(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _usual(path: str, line: TextLine) -> str:
    """The separator that the extension means, or the line itself in a .txt."""
    known = _SEPARATORS[_kind(path)]
    if known == " ":
        return ";" if b";" in line.sample else "," if b"," in line.sample else " "
    return known


def _below_names(lines: list[TextLine], name: str, style: Style) -> tuple[FieldMarks, str]:
    """Read the lines below a first one of column names, and list these; UsageError where it is none."""
    usual = _usual(name, lines[0])
    if style.header_rows is None and len(lines) > 1:
        below = reading_of(lines[1:], _usual(name, lines[1]), style)
        names = names_in(lines[0], lines[1], below) if below is not None else None
        if below is not None and names is not None and not may_be_numbers(names):
            more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
            return below, printable(", ".join(names[:_SHOWN_NAMES])) + more
    raise refused(name, lines, usual, style)


def _shape_in(line: TextLine, style: Style) -> tuple[int, int] | None:
    """The two whole numbers that are all of a line, and might be a shape."""
    pair = _WHOLE_PAIR.fullmatch(line.sample) if line.whole else None
    if pair is None or (style.decimal == "," and b"," in line.sample):
        return None
    return int(pair[1]), int(pair[2])


def _check_words(style: Style, reading: FieldMarks, name: str) -> None:
    """Raises UsageError for a word for missing numbers that its separator would cut."""
    for word in style.missing:
        if reading.separator in word:
            raise UsageError(f"--missing {word!r} cannot be in {name}: it has the separator in it")


def _first(line: TextLine) -> str:
    return f"line {line.number}" if line.number > 1 else "its first line"


def _words(separator: str) -> str:
    return {" ": "blanks", "\t": "tabs"}.get(separator, repr(separator))
