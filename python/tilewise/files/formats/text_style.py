"""Finds the style of a text in its first lines: separator, decimal mark, and whether names come first.

What can be read in the way that the extension means, is. Else another way is taken where all fields of the
first lines are numbers in it, and with notes that say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import NamedTuple

from msgspec.structs import replace

from tilewise.base.errors import UsageError
from tilewise.files.checks import printable
from tilewise.files.formats.text_lines import SEPARATORS, TextLine, plain_exponents
from tilewise.files.style import LONGEST_WORD, Style

_TRIED = 1000  # numbers of the first line that are looked at
_TRIED_BELOW = 300  # and of those below it
_QUOTED_OR_BARE = re.compile(rb"\"[^\"]*\"|[^\s\"]+")
_THOUSANDS = re.compile(rb"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_EMPTY = "--missing '' reads empty fields as nan"
_WORDS = re.compile(rb"[^\s,;|\"]+")
USUAL_WORDS = re.compile(  # and those of Excel
    r"(?i)n/?a|null|none|missing|nil|void|undefined|[-.?*#\u2010-\u2015\u2212]+|[-+]?nan ?\(.*\)|[-+]?\u221e"
    r"|#(?:n/a|null!|div/0!|value!|ref!|name\?|num!)"
)
_LETTERS = re.compile(  # that a number may have: 0x1F, 1e5, 1.5f, 2j, 1.#INF
    r"(?i)0x[0-9a-f]+|(?<=[0-9.])[edq](?=[-+\u2212]?[0-9])|(?<=\.)#[a-z]+|(?<=[0-9.])[ij]$|(?<=[.][0-9])[fl]$|(?<=[.])[fl]$"
)
NO_COMPLEX = re.compile(rb"_|(?<![0-9.a-zA-Z])[jJ]|\([^()jJ]*\)")  # that Python takes for a number
_GROUPED = re.compile(
    r"[^\w.,]*[0-9]{1,3}(?:([.,'\u2019_\xa0\u202f])[0-9]{3})(?:\1[0-9]{3})*([.,][0-9]+)?\W*"
)
_NO_LETTER = re.compile(r"[-+]?[0-9]*\.[0-9]*[-+][0-9]{3}")  # as Fortran writes 1.0E-300
_IMAGINARY = re.compile(r"[-+0-9.eE]*[0-9.]i")
_WINDOWS = r"sed 's/1\.#INF0*/inf/g; s/1\.#[A-Z]*0*/nan/g' writes such numbers as inf and nan"


class FieldMarks(NamedTuple):
    """A way to read lines."""

    separator: str
    decimal: str


def reading_of(lines: Sequence[TextLine], usual: str, style: Style) -> FieldMarks | None:
    """Find how `lines` are to be read; None where not even the first one holds numbers in any certain way.

    `usual` is the separator where the lines do not contradict, or `style`.
    """
    ways = list(readings(lines, usual, style))
    for looked_at in (
        lines,
        lines[:1],
    ):  # where a later line is wrong, the place will be said when it is parsed
        for reading in ways:
            if fits(looked_at, reading, style):
                return reading
    return None


def readings(lines: Sequence[TextLine], usual: str, style: Style) -> Iterator[FieldMarks]:
    """Ways to read `lines` that are worth a try, the usual one first."""
    if style.decimal == usual and b'"' not in lines[0].sample:
        usual = ";"  # the comma is taken
    separators = [style.separator] if style.separator else [usual, *(SEPARATORS + " ").replace(usual, "")]
    if any(b"\t" in line.sample for line in lines):
        separators = [
            each for each in separators if each != " " or each == separators[0]
        ]  # it hides empty fields
    for separator in separators:
        # What separates nothing would be a guess.
        if separator == separators[0] or lines[0].fields(separator) > 1:
            for decimal in [style.decimal] if style.decimal else ".,":
                yield FieldMarks(separator, decimal)


def looks_like_number(word: str) -> bool:
    """True for a word with digits, and no letters but those of numbers, as 1.0-300, 0x10 and $5 have."""
    return any("0" <= letter <= "9" for letter in word) and not any(map(str.isalpha, _LETTERS.sub("", word)))


def may_be_numbers(names: Sequence[str]) -> bool:
    """True where all words of a line look like numbers, or usually stand for missing ones."""
    return all(not name or USUAL_WORDS.fullmatch(name) or looks_like_number(name) for name in names)


def refused(name: str, lines: Sequence[TextLine], usual: str, style: Style) -> UsageError:
    """The error to raise for a first line that cannot be read, with what helps."""
    reading = FieldMarks(style.separator or _separator_of_words(lines[0], usual), style.decimal or ".")
    first = lines[0]
    where = "its first line" if style.header_rows is None else f"line {first.number}"
    token = next(field for field in tokens(first, reading, _TRIED) if not is_held(field, reading, style))
    word = token.decode("utf-8", "replace")
    what = repr(printable(word)) if word else "nothing between two separators"
    advice = _advice(word, lines, usual, style)
    words = [field.decode("utf-8", "replace") for field in tokens(first, reading, _TRIED)]
    if style.header_rows is None and advice != _EMPTY and may_be_numbers(words):
        advice = f"{advice}; " * bool(advice) + "--header-rows 1 skips a line of names"
    return UsageError(f"{name} has {what} in {where}, but a number was expected", advice)


def _separator_of_words(line: TextLine, usual: str) -> str:
    """The separator between words that all look like numbers, though they are none; else the usual one."""
    separators: list[str] = [usual, *(SEPARATORS + " ").replace(usual, "")]
    for separator in separators:
        words = [
            field.decode("utf-8", "replace") for field in tokens(line, FieldMarks(separator, "."), _TRIED)
        ]
        if line.fields(separator) > 1 and may_be_numbers(words) and not re.search("[;|\\s]", "".join(words)):
            return separator
    return usual


def _advice(word: str, lines: Sequence[TextLine], usual: str, style: Style) -> str:
    if word.endswith("\u221e"):
        return "write inf in its place"
    if advice := advice_on(word.encode()):
        return advice
    if _THOUSANDS.fullmatch(word.encode()) and style.decimal is None:
        return "--decimal , if the comma is a decimal mark"
    if grouped := _GROUPED.fullmatch(word):
        mark, rest = grouped[1], grouped[2] or ""
        comma = "; --decimal , reads the comma" * (rest[:1] == "," and style.decimal is None)
        return f'sed "s/[{mark}]//g" removes the marks of thousands{comma}'
    if "\u2212" in word:
        return "sed 's/\u2212/-/g' writes the minus as -"
    found = {each.decode("utf-8", "replace") for line in lines for each in _WORDS.findall(line.sample)}
    words = sorted(filter(USUAL_WORDS.fullmatch, found))
    missing = (*style.missing, *words) or ("",)
    relaxed = replace(style, missing=missing)
    for below in filter(None, (lines, lines[1:])):  # perhaps of column names
        if reading_of(below, usual, style) is None and reading_of(below, usual, relaxed) is not None:
            return f"--missing={quote(missing[-1])} reads such fields as nan" if words else _EMPTY
    if style.header_rows is None and not looks_like_number(word):
        for at in range(1, len(lines)):
            if reading_of(lines[at:], usual, style) is not None:
                return f"--header-rows {lines[at].number - 1} skips all above the numbers"
    return ""


def advice_on(field: bytes) -> str:
    """Advice for a field that stands for a missing number, or is written in another way.

    The worker gives the same.
    """
    word = field.decode("utf-8", "replace")
    if not bare(field):
        return _EMPTY
    if USUAL_WORDS.fullmatch(word):
        held = len(field) <= LONGEST_WORD and not word.startswith("#")
        return f"--missing={quote(word)} reads such fields as nan" if held else "write nan in its place"
    if _NO_LETTER.fullmatch(word):
        return r"sed -E 's/([0-9.])([-+][0-9]{3})/\1E\2/g' writes exponents with their letter"
    if _IMAGINARY.fullmatch(word):
        return "sed 's/i/j/g' writes the imaginary unit as j"
    if b".#" in field:
        return _WINDOWS
    return "a comment begins a line, or behind a blank" if b"#" in field and field[:1] != b"#" else ""


def number_type(field: bytes, decimal: str) -> str:
    """float64 or complex128, as which `field` is read; empty where it is no number."""
    if decimal == ",":
        if b"." in field:
            return ""
        field = field.replace(b",", b".")
    text = plain_exponents(field).decode("latin1")
    if "_" in text or NO_COMPLEX.search(field):
        return ""
    try:
        if text.endswith(("j", "J", "j)", "J)")):  # (5) may be -5
            complex(text)
            return "complex128"
        float(text)
    except ValueError:
        return ""
    return "float64"


def dtype_of(line: TextLine, reading: FieldMarks, taken: Sequence[int] = ()) -> str:
    """complex128 where the first numbers of `line` have a complex one, else float64."""
    found = (number_type(field, reading.decimal) for field in tokens(line, reading, _TRIED, taken))
    return "complex128" if "complex128" in found else "float64"


def fields_of(line: bytes, separator: str) -> list[bytes]:
    """The fields of a line without a comment, which keep their quotes; without blanks around."""
    if b'"' not in line:
        return [field.strip() for field in line.split(None if separator == " " else separator.encode())]
    if separator == " ":
        return _QUOTED_OR_BARE.findall(line)
    mark = re.escape(separator.encode())
    blanks = rb"[ ]*" if separator == "\t" else rb"[ \t]*"
    pattern = blanks + rb"(\"(?:[^\"]|\"\")*\"[^" + mark + rb"]*|[^" + mark + rb"]*)(" + mark + rb"|$)"
    fields, at = [], 0
    while (match := re.compile(pattern).match(line, at)) is not None:
        fields.append(match[1].strip())
        at = match.end()
        if not match[2]:
            break
    return fields


def bare(field: bytes) -> bytes:
    """A field without its quotes."""
    quoted = len(field) > 1 and field.startswith(b'"') and field.endswith(b'"')
    return field[1:-1].strip() if quoted else field


def tokens(line: TextLine, reading: FieldMarks, most: int, taken: Sequence[int] = ()) -> Iterator[bytes]:
    """The first fields of a line without their quotes, or those that are `taken`, at most so many."""
    fields = fields_of(line.sample, reading.separator)
    fields = fields if line.whole else fields[:-1]
    return map(bare, ([fields[each] for each in taken if each < len(fields)] if taken else fields)[:most])


def is_missing(field: bytes, style: Style) -> bool:
    """True for a field without its quotes that stands for a number that is missing."""
    return bool(style.missing) and (not field or field.decode("utf-8", "replace") in style.missing)


def is_held(field: bytes, reading: FieldMarks, style: Style) -> bool:
    """True for a field without its quotes that is a number, or stands for a missing one."""
    return is_missing(field, style) or bool(number_type(field, reading.decimal))


def fits(lines: Sequence[TextLine], reading: FieldMarks, style: Style, taken: Sequence[int] = ()) -> bool:
    """True where all that is looked at of `lines` is numbers, or missing, and the lines are equally long.

    With some fields `taken` others are not looked at.
    """
    if len({line.fields(reading.separator) for line in lines}) > 1:
        return False
    if not style.decimal and _may_be_thousands(lines, reading, taken):
        return False
    left = _TRIED
    for line in lines:
        for field in tokens(line, reading, left, taken):
            if not is_held(field, reading, style):
                return False
        left = _TRIED_BELOW
    return True


def _may_be_thousands(lines: Sequence[TextLine], reading: FieldMarks, taken: Sequence[int]) -> bool:
    """True where commas may part thousands, as in 1,234, since none of them shows that it does not."""
    if reading.decimal != ",":
        return False
    fields = (field for line in lines for field in tokens(line, reading, _TRIED_BELOW, taken))
    marked = [field for field in fields if b"," in field]
    return bool(marked) and all(map(_THOUSANDS.fullmatch, marked))
