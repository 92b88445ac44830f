"""Chooses the columns of a text: by the names above them, by their places in a line, or all but an index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tilewise.base.errors import UsageError
from tilewise.files.checks import missing, printable
from tilewise.files.formats.text_lines import TextLine
from tilewise.files.formats.text_style import (
    USUAL_WORDS,
    FieldMarks,
    advice_on,
    bare,
    dtype_of,
    fields_of,
    fits,
    is_held,
    may_be_numbers,
    number_type,
    readings,
    tokens,
)
from tilewise.files.slices import Wanted, range_of, taken
from tilewise.files.style import Style

_TRIED = 1000  # fields of a line that are looked at for what is wrong
_LISTED = 8  # names in a message
_SHOWN_WORDS = 3  # of a column that is described


class TextColumns(NamedTuple):
    """The columns of a text, and how its lines are read.

    `taken` are their fields in a line, none for all; `names` those of all fields, empty without a line of
    names. `unnamed`: so many columns at the left, which have no name, are left out. There are `total`
    columns, or fields, before some are taken.
    """

    reading: FieldMarks
    taken: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    unnamed: int = 0
    total: int = 0

    @property
    def warning(self) -> str:
        """A sentence on the columns that are left out; empty where there are none."""
        if self.unnamed > 1:
            what = f"its first {self.unnamed} columns, which have no names, are"
            return f"{what} taken for an index and left out; --index keep reads them"
        what = "its first column, which has no name, is"
        return f"{what} taken for an index and left out; --index keep reads it" if self.unnamed else ""

    @property
    def taken_names(self) -> tuple[str, ...]:
        """Names of the columns that are taken."""
        return tuple(self.names[each] for each in self.taken if self.names) if self.taken else self.names


def columns_of(
    head: bytes | None,
    body: Sequence[TextLine],
    usual: str,
    style: Style,
    path: str,
    member: str,
    wanted: Wanted | None = None,
) -> TextColumns | None:
    """The columns of the lines in `body`, below a line of names, `head`, if there is one.

    `member` is a list of names or places, from 0; of all these only a range may be `wanted`. None where
    `head` is no line of names. Raises UsageError for columns that are not there, or hold words where numbers
    are wanted.
    """
    tables = _tables(head, body, usual, style, member)
    chosen = [found for table in tables if (found := _chosen(table, style, member, wanted))]
    for looked_at in (body, body[:1]):
        for table in chosen:
            if fits(looked_at, table.reading, style, table.taken):
                return table
    if not tables:
        return None
    named = [found for table in tables if (found := _chosen(table, style, member, None))]
    if not chosen and named and wanted is not None:
        width = max(len(each.taken) or each.total for each in named)
        taken(wanted.text, width, "column", wanted.said, path)
    raise _refused(chosen, tables, body, style, path, member)


def _tables(
    head: bytes | None, body: Sequence[TextLine], usual: str, style: Style, member: str = ""
) -> list[TextColumns]:
    """All ways to read the lines in `body` in which `head` is a line of names, if there is one.

    A separator that parts names is preferred to one that does not: in `day;x` above `1;2,5` it is no comma.
    """
    tables = []
    for reading in readings(body, usual, style):
        names = _names(head, body[0], reading, style, member) if head is not None else []
        if names is not None:
            tables.append(TextColumns(reading, names=tuple(names), total=body[0].fields(reading.separator)))
    parted = [table for table in tables if len([name for name in table.names if name]) > 1]
    parted = parted or [table for table in tables if _part(head, table)]
    return parted or tables


def _part(head: bytes | None, table: TextColumns) -> bool:
    """True where the separator stands in the line of names."""
    return head is not None and len(fields_of(head, table.reading.separator)) > 1


def _relaxed(lines: Sequence[TextLine], table: TextColumns, style: Style) -> Style:
    """A style in which words that usually stand for missing numbers do, if wanted columns have some."""
    fields = {field for line in lines for field in tokens(line, table.reading, _TRIED, table.taken)}
    words = filter(USUAL_WORDS.fullmatch, (field.decode("utf-8", "replace") for field in fields))
    return replace(style, missing=(*style.missing, *sorted(words)) or ("",))


def _names(head: bytes, below: TextLine, reading: FieldMarks, style: Style, member: str) -> list[str] | None:
    """The names in the line above `below`, an empty one for an index without; None for no line of names.

    Numbers are names where `member` has them, and behind an empty name: of a column of labels, or where they
    are whole and ascend, as years do.
    """
    fields = [bare(field) for field in fields_of(head, reading.separator)]
    names = [field.decode("utf-8", "replace").replace('""', '"') for field in fields]
    count = below.fields(reading.separator)
    numbers = may_be_numbers(names)
    if len(names) == count - 1 and not numbers and _labelled(names, below, reading):  # as R writes them
        names = ["", *names]
    if len(names) != count or not any(names):
        return None
    labels = not names[0] and not number_type(bare(fields_of(below.sample, reading.separator)[0]), ".")
    counted = names == ["", *map(str, range(count - 1))]  # as pandas numbers them
    years = not names[0] and _ascend(names[1:])
    asked = bool(member) and not numbers and {*_words_of(member, names)} <= {*names}
    some = any(number_type(name, mark) for name in fields for mark in ".,")
    certain = style.header_rows is not None or labels or counted or years or asked
    return names if certain or not (numbers or some) else None


def may_be_names(lines: Sequence[TextLine], reading: FieldMarks) -> bool:
    """True for a first line of numbers that count, as 0, 1, 2 or years do, above others that do not."""
    first, *others = [[field.decode("latin1") for field in tokens(line, reading, _TRIED)] for line in lines]
    return len(first) > 2 and _count(first) and bool(others) and not any(map(_count, others))


def _count(words: Sequence[str]) -> bool:
    """True for whole numbers, each by one larger than the one before."""
    return _ascend(words) and int(words[-1]) - int(words[0]) == len(words) - 1


def _ascend(words: Sequence[str]) -> bool:
    """True for several whole numbers, each larger than the one before."""
    values = [int(word) for word in words if word.isdecimal()]
    return len(values) == len(words) > 1 and values == sorted({*values})


def _words_of(member: str, names: Sequence[str]) -> list[str]:
    """The names of columns, or their places, in what stands behind a file's name."""
    return [member] if member in names else member.split(",")


def _labelled(names: Sequence[str], below: TextLine, reading: FieldMarks) -> bool:
    """True where `names` are certain to be those of all fields `below` but the first, which is a label."""
    first, last = [fields_of(below.sample, reading.separator)[at] for at in (0, -1)]
    label = bare(first) != first or (len(names) > 1 and not number_type(first, reading.decimal))
    return bool(last) and label


def _chosen(table: TextColumns, style: Style, member: str, wanted: Wanted | None) -> TextColumns | None:
    """The table with the columns that are wanted of it; None where it lacks one of them."""
    table = _without_index(table, style) if not member else _named(table, member)
    places = table.taken or tuple(range(table.total))
    if places[-1] >= table.total:
        return None
    if wanted is None:
        return table
    some = places[range_of(wanted.text, len(places), "column")]
    return table._replace(taken=some, total=len(places)) if some else None


def _named(table: TextColumns, member: str) -> TextColumns:
    """The table with the columns that `member` names; with one beyond its end alone where it lacks any."""
    places = {name: place for place, name in enumerate(table.names)}
    wanted = _words_of(member, table.names)
    found = [places.get(each, int(each) if each.isdecimal() else table.total) for each in wanted]
    lacks = max(found) >= table.total
    return table._replace(taken=(table.total,) if lacks else tuple(found))


def _without_index(table: TextColumns, style: Style) -> TextColumns:
    unnamed = next((place for place, name in enumerate(table.names) if name), 0)
    left_out = {None: unnamed, "drop": max(1, unnamed), "keep": 0}[style.index]
    if not 0 < left_out < table.total:
        return table
    kept = tuple(range(left_out, table.total))
    return table._replace(taken=kept, unnamed=unnamed * (style.index is None))


def described(
    head: bytes | None, lines: Sequence[TextLine], usual: str, style: Style
) -> Iterator[tuple[str, str, list[str]]]:
    """Name, type and first words of each column of a table: of the lines below `head`, or of all.

    The type is that of numbers, or text.
    """
    below = lines[1:] if style.header_rows is None else lines
    tables = _tables(head, below, usual, style) if below else []
    table = next((each for each in tables if below[0].fields(each.reading.separator) > 1), None)
    if table is None:
        below, table = lines, _unnamed(lines, usual, style)
    if table is None:
        return
    relaxed = _relaxed(below, table, style)
    for place in range(min(below[0].fields(table.reading.separator), _TRIED)):
        words = [
            printable(word.decode("utf-8", "replace"))
            for line in below[:_SHOWN_WORDS]
            for word in tokens(line, table.reading, 1, [place])
        ]
        words += ["…"] * (len(below) > _SHOWN_WORDS)
        numbers = fits(below, table.reading, relaxed, [place])
        dtype = dtype_of(below[0], table.reading, [place]) if numbers else "text"
        yield table.names[place] if table.names else str(place), dtype, words


def line_of_names(names: Sequence[str], separator: str) -> bytes:
    """A line of names, those in quotes that a reader would cut or take for a comment."""
    bare_name = re.compile(rf"[^\s\"{re.escape(separator)}#%]+")
    fields = (name if bare_name.fullmatch(name) else '"{}"'.format(name.replace('"', '""')) for name in names)
    return f"{separator.join(fields)}\n".encode()


def check_wanted(columns: TextColumns, name: str, path: str, member: str) -> None:
    """Raises UsageError for columns wanted twice, or in another sequence, or by a name that several have."""
    for word in _words_of(member, columns.names) if member else ():
        if columns.names.count(word) > 1:
            places = [place for place, each in enumerate(columns.names) if each == word]
            said = f"{path} has several columns called {printable(word)}"
            raise UsageError(said, f"their places: {path}:{','.join(map(str, places))}")
    ascending = sorted(set(columns.taken))
    if list(columns.taken) != ascending:
        said = ",".join(columns.names[each] if columns.names else str(each) for each in ascending)
        raise UsageError(f"{name} wants columns twice, or not in the sequence of the file", f"{path}:{said}")


def _refused(
    chosen: list[TextColumns],
    tables: list[TextColumns],
    body: Sequence[TextLine],
    style: Style,
    path: str,
    member: str,
) -> UsageError:
    """The error for a table whose wanted columns do not hold numbers, with what helps."""
    name = f"{path}:{member}" if member else path
    if not chosen:
        names = max(tables, key=lambda table: len(table.names)).names
        wanted = _words_of(member, names)
        width = body[0].fields(tables[0].reading.separator)
        known = {*names, *map(str, range(width))}
        lacks = next((each for each in wanted if each not in known), member)
        return missing(name, "column", lacks, [each for each in names if each])
    table = max(chosen, key=lambda each: len(_columns_of_numbers(each, body, _relaxed(body, each, style))))
    reading, count = table.reading, body[0].fields(table.reading.separator)
    relaxed = _relaxed(body, table, style)
    places = table.taken or range(count)
    only_missing = fits(body, reading, relaxed, table.taken)
    lenient = style if only_missing else relaxed  # a column of words is worse than a missing number
    for line in body:
        for place, field in zip(places, tokens(line, reading, _TRIED, places), strict=False):
            if not is_held(field, reading, lenient):
                word = field.decode("utf-8", "replace")
                what = repr(printable(word)) if word else "an empty field"
                where = f"line {line.number}, column {place + 1}"
                where += f" ({printable(table.names[place])})" if table.names and table.names[place] else ""
                said = f"{name} has {what} in {where}, but a number was expected"
                if only_missing:
                    return UsageError(said, advice_on(field))
                return UsageError(said, _choice(table, body, relaxed, path))
    return UsageError(f"{name} has lines of different lengths")


def choice_of(lines: Sequence[TextLine], usual: str, style: Style, path: str) -> str:
    """Advice for lines without names, some of whose columns hold words; nothing where that is not so."""
    table = _unnamed(lines, usual, style)
    if table is None:
        return ""
    advice = _choice(table, lines, style, path)
    first = [word.decode("latin1") for word in tokens(lines[0], table.reading, _TRIED)]
    names = "; --header-rows 1 does so with the first line, if it has names"
    return advice + names * (advice.endswith("column") and _ascend(first[1:]))


def _unnamed(lines: Sequence[TextLine], usual: str, style: Style) -> TextColumns | None:
    """The table of lines without names: some columns hold numbers, the others none. None where it is none."""
    for table in _tables(None, lines, usual, style) if len(lines) > 1 else []:
        widths, relaxed = (
            {line.fields(table.reading.separator) for line in lines},
            _relaxed(lines, table, style),
        )
        kinds = [
            {
                is_held(word, table.reading, relaxed)
                for line in lines
                for word in tokens(line, table.reading, 1, [at])
            }
            for at in range(min(_TRIED, *widths))
        ]
        if len(widths) == 1 and all(len(each) == 1 for each in kinds) and {True} in kinds:
            return table
    return None


def _columns_of_numbers(table: TextColumns, body: Sequence[TextLine], style: Style) -> list[int]:
    places = table.taken or range(min(table.total, _TRIED))
    return [each for each in places if fits(body, table.reading, style, [each])]


def _choice(table: TextColumns, body: Sequence[TextLine], style: Style, path: str) -> str:
    """Advice for a table with words in some columns or in its first lines."""
    for at in range(1, len(body)):
        if fits(body[at:], table.reading, style, table.taken):
            return f"--header-rows {body[at].number - 1} skips all above the numbers"
    count = body[0].fields(table.reading.separator)
    numbers = _columns_of_numbers(table, body, style)
    if numbers == [*range(1, count)]:
        return "--index drop leaves out the first column"
    if not numbers:
        return ""
    said = [table.names[each] if table.names else str(each) for each in numbers]
    more = ",…" if len(said) > _LISTED else ""
    return f"name the columns to take: {path}:{','.join(said[:_LISTED])}{more}"
