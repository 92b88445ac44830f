"""The .txt, .csv and .tsv formats: a line is a row, numbers stand between commas, tabs or blanks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from tilewise.base.errors import UsageError
from tilewise.base.units import shape_text
from tilewise.files.checks import numbers_bytes, printable
from tilewise.files.dtypes import ALL
from tilewise.files.formats import Format, ending_of, split_input
from tilewise.files.formats.table import names_of_new
from tilewise.files.formats.text_columns import (
    TextColumns,
    check_wanted,
    choice_of,
    columns_of,
    described,
    line_of_names,
    may_be_names,
)
from tilewise.files.formats.text_lines import (
    TextLine,
    check_encoding,
    count_data_lines,
    data_lines,
    skip_lines,
    whole_line,
    without_comment,
)
from tilewise.files.formats.text_style import FieldMarks, dtype_of, reading_of, refused, tokens
from tilewise.files.headed import put_head
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular
from tilewise.files.slices import Wanted, taken
from tilewise.files.style import PLAIN, LineRule, Style

if TYPE_CHECKING:
    from tilewise.files import Content

FORMAT = Format(numbers=ALL, lines="row", member="column", table=True)
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": " "}
_WHOLE_PAIR = re.compile(rb"\s*([0-9]{1,18})(?:\s*[,;]\s*|\s+)([0-9]{1,18})\s*")
_LOOKED_AT = 12  # lines, where they are short
_SHOWN_NAMES = 5


class _Begun(NamedTuple):
    """The first lines of numbers of a text, its columns, and what the user should know of them."""

    lines: list[TextLine]
    columns: TextColumns
    warnings: tuple[str, ...] = ()


class _Try(NamedTuple):
    """A line that may have names, and where the lines behind it begin, which so many are `skipped` before."""

    head: bytes | None
    begin: int
    skipped: int


def inspect(
    path: str,
    name: str,
    member: str,
    most: int | None = None,
    style: Style = PLAIN,
    columns: Wanted | None = None,
) -> Source:
    """The matrix at `path`: columns from its first line, rows by counting lines, numbers not yet checked.

    `member` names columns, `x,y`, or says their places; of these only a range is wanted with `columns`.
    Unless `style` counts the header rows, a first line of names above numbers is left out with a warning, and
    refused where the names may be numbers; so is a first column whose name is empty. A first line with two
    whole numbers that fit the rest exactly is a header of rows and columns. Where both readings are possible
    (two columns) it is taken as numbers, as numpy.loadtxt does, and a warning says so.
    With `most` lines are counted only so far, unless the first one may be a header: the matrix then is the
    top of the whole one, of `most` rows where there are that many.
    """
    file, size = open_regular(path, name)
    notes: list[str] = []
    with file:
        lines, found, warnings = _begun(file, name, member, size, style, columns)
        table = bool(found.names or found.taken)  # then no line has the shape
        reading, begin, second = found.reading, lines[0], lines[1] if len(lines) > 1 else None
        pair = _shape_in(begin, style) if second and style.header_rows is None and not table else None
        rule = LineRule(reading.separator == "\t" and bool(style.missing), not found.taken)
        count, end = count_data_lines(file, begin.begin, name, None if pair else most, rule)
    rows = count
    if pair is not None and second is not None:
        behind = reading_of(lines[1:], _usual(path, second), style) or (
            reading if reading.separator != " " else FieldMarks(_usual(path, second), ".")
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
    if reading.separator != _SEPARATORS[_kind(path)] and _kind(path) != ".txt" and not style.separator:
        notes.append(f"its numbers are separated by {_words(reading.separator)}")
    if reading.decimal != "." and not style.decimal:
        notes.append("its decimal mark is a comma")
    rows = rows if most is None else min(rows, most)
    fields = begin.fields(reading.separator)
    width = len(found.taken) or fields
    dtype = dtype_of(begin, reading, found.taken)
    numbers_bytes(rows, width, dtype, name)
    _check_words(style, reading, name)
    if columns is not None and table:
        span, narrower = taken(columns.text, found.total, "column", columns.said, name)
        notes.append(f"takes columns {span.start}:{span.stop}")
        warnings = (*warnings, *filter(None, [narrower]))
    source = Source(
        path=path,
        name=name,
        offset=begin.begin,
        rows=rows,
        columns=width,
        dtype=dtype,
        encoding="text",
        separator=reading.separator,
        line_numbers=fields,
        taken=list(found.taken),
        names=found.taken_names,
        decimal=reading.decimal,
        missing=list(style.missing),
        text_end=-1 if end is None else end,
        file_bytes=size,
        format=ending_of(path)[1:],
        member=member,
        notes=tuple(notes),
        warnings=warnings,
    )
    if columns is None or table:
        return source
    from tilewise.files import cut

    return cut(source, ":", columns.text, [columns.said], name.removesuffix(columns.said))


def _begun(file: BinaryIO, name: str, member: str, size: int, style: Style, columns: Wanted | None) -> _Begun:
    """Looks at the first lines: how they are read, and which of their fields are columns; UsageError."""
    base = split_input(name)[0]
    tabs = "\t" in (style.separator or _SEPARATORS[_kind(base)]) and bool(style.missing)
    check_encoding(file.read(64), name)
    file.seek(0)
    above = skip_lines(file, style.header_rows or 0, name)
    start = file.tell()
    lines = _looked_at(file, LineRule(tabs), style, style.header_rows or 0)
    if not lines and above is not None:  # labels may look like comments
        file.seek(start)
        lines = _looked_at(file, LineRule(tabs, comments=False), style, style.header_rows or 0)
    if not lines:
        raise UsageError(
            f"{name} {'is empty' if size == 0 else 'has no numbers'}, but lines of numbers were expected"
        )
    usual = _usual(base, lines[0])
    reading = reading_of(lines, usual, style)
    first = next(tokens(lines[0], reading or FieldMarks(usual, "."), 1), b"")
    tries = [_Try(above, start, style.header_rows or 0)] if above is not None else []
    if style.header_rows is None and (reading is None or member or style.index or not first):
        file.seek(lines[0].begin)
        head = without_comment(whole_line(file)[0])
        tries.append(_Try(head, file.tell(), lines[0].number))
    if member or style.index == "drop" or (reading is None and columns is not None):
        tries.append(_Try(None, lines[0].begin, lines[0].number - 1))
    try:
        found = _table(file, name, member, tries, LineRule(tabs), style, columns)
    except UsageError:
        if reading is None or member or style.index:
            raise
        found = None
    if found is None:
        if reading is None:
            error = refused(name, lines, usual, style)
            if error.advice.startswith("--missing ''") and not first:
                error.advice = f"--header-rows 1 skips a line of names; {error.advice}"
            error.advice = error.advice or choice_of(lines, usual, style, base)
            raise error
        found = _Begun(lines, TextColumns(reading))
    if style.header_rows is not None:
        return found._replace(warnings=tuple(filter(None, [found.columns.warning])))
    doubt = reading is not None and (not first or may_be_names(lines, reading))
    return found._replace(warnings=tuple(_doubts(found.columns, reading is None, doubt, member)))


def _doubts(table: TextColumns, words: bool, may_have_names: bool, member: str) -> Iterator[str]:
    """Warn of a first line that may be meant otherwise, and of columns that are left out.

    `words`: some fields of the first lines are no numbers. `may_have_names`: its numbers count up.
    """
    if table.names and not member:
        names = [each for each in table.names if each]
        more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
        said = f"{printable(', '.join(names[:_SHOWN_NAMES]))}{more}"
        yield f"its first line is read as column names: {said}; --header-rows 1 confirms that"
    if table.warning:
        yield table.warning
    if not table.names and words:
        said = "its first line is read as numbers; --header-rows 1 skips names"
        yield f"{said}, --header-rows 0 says it has none"
    elif not table.names and not table.taken and may_have_names:
        said = "its first line could also have names of columns; it is read as numbers"
        yield f"{said}; --header-rows 1 skips it, --header-rows 0 says it is numbers"


def _table(
    file: BinaryIO,
    name: str,
    member: str,
    tries: list[_Try],
    rule: LineRule,
    style: Style,
    columns: Wanted | None,
) -> _Begun | None:
    """The first of `tries` that makes a table; where only some fields are taken, no line is a comment.

    Raises UsageError where one has names, but not numbers in all columns that are wanted.
    """
    refusal, base = None, split_input(name)[0]
    for each in tries:
        for comments in (True, False):
            file.seek(each.begin)
            body = _looked_at(file, rule._replace(comments=comments), style, each.skipped)
            try:
                table = (
                    columns_of(each.head, body, _usual(base, body[0]), style, base, member, columns)
                    if body
                    else None
                )
            except UsageError as error:
                refusal = refusal or error
                continue
            if table is not None and comments != bool(table.taken):
                check_wanted(table, name, base, member)
                return _Begun(body, table)
    if refusal is not None:
        raise refusal
    return None


def _looked_at(file: BinaryIO, rule: LineRule, style: Style, skipped: int) -> list[TextLine]:
    """The first data lines behind so many `skipped` ones, where the file is; more where they are short."""
    start = file.tell()
    lines = data_lines(file, 2, style.separator or "", rule, skipped)
    if all(line.whole for line in lines):
        file.seek(start)
        lines = data_lines(file, _LOOKED_AT, style.separator or "", rule, skipped)
    return lines


def contents(path: str, name: str, style: Style = PLAIN) -> list[Content]:
    """List the columns of a table with the words that they begin with; none of a text of numbers alone."""
    from tilewise.files import Content

    with open_regular(path, name)[0] as file:
        skipped = style.header_rows or 0
        head = skip_lines(file, skipped, name)
        lines = _looked_at(file, LineRule(), style, skipped)
        if not lines or (not skipped and reading_of(lines, _usual(name, lines[0]), style) is not None):
            return []
        if style.header_rows is None:
            file.seek(lines[0].begin)
            head = whole_line(file)[0]
    return [
        Content(column, (), dtype, f"as {', '.join(words)}", matrix=False)
        for column, dtype, words in described(head, lines, _usual(name, lines[0]), style)
    ]


def create(new: New) -> Region:
    """Writes the line `rows columns` where `new.header` asks for it; the file grows with its numbers.

    Names of columns become the first line where they stand behind the colon, or `--header-rows` asks for it.
    """
    if 0 in new.shape:
        raise UsageError(
            f"{new.name} cannot hold a {shape_text(*new.shape)} matrix: a text without numbers has no shape"
        )
    decimal = new.style.decimal or "."
    usual = _SEPARATORS[_kind(new.name.removesuffix(f":{new.member}"))]
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
    if new.member or (new.style.header_rows and new.names):
        head += line_of_names(names_of_new(new.name, new.shape[1], new.names), separator)
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
    return ending_of(split_input(name)[0])


def _usual(path: str, line: TextLine) -> str:
    """The separator that the extension means, or the line itself in a .txt."""
    known = _SEPARATORS[_kind(path)]
    if known == " ":
        return ";" if b";" in line.sample else "," if b"," in line.sample else " "
    return known


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
