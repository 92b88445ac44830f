"""The .txt, .csv and .tsv formats: a line is a row, numbers stand between commas, tabs or blanks."""

from __future__ import annotations

import os
import re

from tilewise.base.errors import UsageError
from tilewise.base.units import shape_text
from tilewise.files.checks import numbers_bytes, printable
from tilewise.files.dtypes import ALL
from tilewise.files.formats import Format
from tilewise.files.formats.text_lines import Line, count_data_lines, data_lines, plain_exponents
from tilewise.files.headed import put_head
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular

FORMAT = Format(numbers=ALL, lines="row")
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": " "}
_WHOLE_PAIR = re.compile(rb"\s*([0-9]{1,18})(?:\s*[,;]\s*|\s+)([0-9]{1,18})\s*")
_TRIED = 1000  # numbers of a line that are looked at


def inspect(path: str, name: str, member: str, most: int | None = None) -> Source:
    """The matrix at `path`: columns from its first line, rows by counting lines, numbers not yet checked.

    A first line with two whole numbers that fit the rest exactly is a header of rows and columns. Where both
    readings are possible (two columns) it is taken as numbers, as numpy.loadtxt does, and a warning says so.
    With `most` lines are counted only so far, unless the first one may be a header: the matrix then is the
    top of the whole one, of `most` rows where there are that many.
    """
    file, size = open_regular(path, name)
    with file:
        first, second = data_lines(file, 2)
        if first is None:
            raise UsageError(
                f"{name} {'is empty' if size == 0 else 'has no numbers'}, but lines of numbers were expected"
            )
        pair = _WHOLE_PAIR.fullmatch(first.sample) if first.whole and second is not None else None
        count = count_data_lines(file, first.begin, name, None if pair else most)
    rows, begin = count, first
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    separator = _separator(path, first)
    if pair is not None and second is not None:
        behind = _separator(path, second)
        promised = (int(pair[1]), int(pair[2]))
        # The header's own separator is a blank, or the one of the numbers.
        alike = separator == behind or first.fields(" ") == 2
        fits = alike and promised == (count - 1, second.fields(behind))
        if fits and first.fields(behind) == second.fields(behind):
            warnings = (
                f"its first line could also declare the shape {shape_text(*promised)}; "
                "it is read as numbers, put # before it if it is the shape",
            )
        elif fits:
            rows, begin, separator = count - 1, second, behind
            notes = (f"its first line is read as the shape, {shape_text(*promised)}",)
        elif first.fields(separator) != second.fields(behind):
            raise UsageError(
                f"{name} declares {shape_text(*promised)} in its first line, but has "
                f"{count - 1} more lines, the next with {second.fields(behind)} numbers"
            )
    elif second is not None and first.fields(separator) != second.fields(separator):
        raise UsageError(
            f"{name} has {first.fields(separator)} numbers in its first line, "
            f"but {second.fields(separator)} in the next"
        )
    rows = rows if most is None else min(rows, most)
    columns = begin.fields(separator)
    dtype = _number_type(begin, separator, name)
    numbers_bytes(rows, columns, dtype, name)
    return Source(
        path=path,
        name=name,
        offset=begin.begin,
        rows=rows,
        columns=columns,
        dtype=dtype,
        encoding="text",
        separator=separator,
        line_numbers=columns,
        file_bytes=size,
        format=os.path.splitext(path)[1].lower()[1:],
        notes=notes,
        warnings=warnings,
    )


def create(new: New) -> Region:
    """Writes the line `rows columns` where `new.header` asks for it; the file grows with its numbers."""
    if 0 in new.shape:
        raise UsageError(
            f"{new.name} cannot hold a {shape_text(*new.shape)} matrix: a text without numbers has no shape"
        )
    head = b"%d %d\n" % new.shape if new.header else b""
    put_head(new.path, head)
    return new.region(
        offset=len(head),
        encoding="text",
        separator=_SEPARATORS[_kind(new.name)],
        line_numbers=new.shape[1],
    )


def _kind(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _separator(path: str, line: Line) -> str:
    """What stands between numbers: set by the extension, or by the line itself in a .txt."""
    known = _SEPARATORS[_kind(path)]
    if known == " ":
        return ";" if b";" in line.sample else "," if b"," in line.sample else " "
    return known


def _is_words(sample: bytes) -> bool:
    """Whether a first line looks like column names: it has words and no number."""
    begins = [field[:1] for field in re.split(rb"[\s,;]+", sample) if field]
    return any(mark.isalpha() or mark in b"\"'_" for mark in begins) and not any(map(bytes.isdigit, begins))


def _number_type(line: Line, separator: str, name: str) -> str:
    """float64 or complex128, judged by the first line; UsageError where that has no numbers."""
    tokens = line.sample.split(None if separator == " " else separator.encode())
    if not line.whole:
        tokens = tokens[:-1]
    dtype = "float64"
    for token in tokens[:_TRIED]:
        text = plain_exponents(token.strip()).decode("latin1")
        try:
            if "_" in text:
                raise ValueError
            if text.startswith("(") or text.endswith(("j", "J")):
                complex(text)
                dtype = "complex128"
            else:
                float(text)
        except ValueError:
            what = (
                f"{printable(token.strip().decode('latin1'))!r}" if text else "nothing between two separators"
            )
            raise UsageError(
                f"{name} has {what} in its first line, but a number was expected",
                "put # before a line of column names" if _is_words(line.sample) else "",
            ) from None
    return dtype
