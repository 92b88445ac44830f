"""Style: how the lines of a text hold its numbers, as flags say it; the rest is found in the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec

from tilewise.base.declare import HOW, Flag, Flags, Value
from tilewise.base.errors import UsageError
from tilewise.base.units import plural

_NAMED = {"tab": "\t", r"\t": "\t", "space": " ", "blank": " "}
_MARK = rf"(?:{'|'.join(map(re.escape, _NAMED))}|.)"
_BOTH = re.compile(rf"({_MARK})(?::({_MARK}))?", re.DOTALL)
_DECIMALS = (".", ",")
_OF_NUMBERS = '+-.#%"()_'  # what a number, a comment or a quoted field may begin with or hold
LONGEST_WORD = 11  # characters: no more than the shortest type of number may take in a text


class Style(msgspec.Struct, frozen=True):
    """Style of one text; None is what its first lines say, or what its extension means.

    `missing` are words in the place of a number that is missing, and an empty field is one too where there
    are any; NaN is written as the first. `index` says if the first column is one, which is left out.
    """

    header_rows: int | None = None
    separator: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()
    index: str | None = None


PLAIN = Style()


class LineRule(NamedTuple):
    """A rule for lines without numbers: `tabs`: one of tabs alone has fields; `comments`: there are some."""

    tabs: bool = False
    comments: bool = True


class MarkPair(NamedTuple):
    """A mark in texts that are read, and in those that are written; None where it is found."""

    read: str | None = None
    write: str | None = None


def parse_separator(word: str, flag: str = "--separator") -> MarkPair:
    """The separators out of `C` or `READ:WRITE`; UsageError for what cannot separate numbers."""
    marks = _marks(word, flag)
    for mark in filter(None, marks):
        if not (mark in " \t" or (mark.isascii() and mark.isprintable() and not mark.isalnum())) or (
            mark in _OF_NUMBERS
        ):
            raise UsageError(
                f"{flag} {word!r} cannot separate numbers", "--separator ';', ',', '|', tab or space"
            )
    return marks


def parse_decimal(word: str, flag: str = "--decimal") -> MarkPair:
    """The decimal marks out of `C` or `READ:WRITE`; UsageError for all but a point and a comma."""
    marks = _marks(word, flag)
    if not set(marks) <= set(_DECIMALS):
        raise UsageError(f"{flag} {word!r} is unknown; expected one of {' '.join(_DECIMALS)}")
    return marks


def parse_missing(words: Sequence[str], flag: str = "--missing") -> tuple[str, ...]:
    """Words for missing numbers; UsageError for those that no field can be."""
    for word in words:
        if re.search(r"[\"\x00-\x1f]|(^|\s)#|^%", word) or word != word.strip():
            raise UsageError(
                f"{flag} {word!r} cannot be a field: it has a comment mark, a quote or blanks around it"
            )
        if len(word.encode()) > LONGEST_WORD:
            raise UsageError(f"{flag} {word!r} is longer than {LONGEST_WORD} characters")
    return tuple(words)


def _marks(word: str, flag: str) -> MarkPair:
    match = _BOTH.fullmatch(word)
    if match is None:
        raise UsageError(f"{flag} expects one character, or READ:WRITE, not {word!r}")
    read, write = match[1], match[2] or match[1]
    return MarkPair(_NAMED.get(read, read), _NAMED.get(write, write))


HEADER_ROWS = Flag("Skip N lines at the top of a text.", HOW, least=0, default="column names are detected")
SEPARATOR = Flag(
    "Separator of the numbers in a text: ';', '|', tab, …; or READ:WRITE.",
    HOW,
    value=Value("C"),
    default="detected",
    parse=parse_separator,
)
DECIMAL = Flag(
    "Decimal mark of a text: point or comma; or READ:WRITE.",
    HOW,
    value=Value("C"),
    default="detected",
    parse=parse_decimal,
)
MISSING = Flag(
    "Read this word in a text, such as NA, and empty fields as nan.",
    HOW,
    value=Value("WORD"),
    parse=parse_missing,
    several=True,
)
INDEX = Flag(
    "First column of a text with labels of rows: drop leaves it out, keep reads it.",
    HOW,
    choices=("drop", "keep"),
    default="drop one without a name",
)


class TextFlags(Flags, frozen=True, kw_only=True):
    """The flags of a command that reads texts."""

    header_rows: Annotated[int | None, HEADER_ROWS] = None
    separator: Annotated[MarkPair, SEPARATOR] = MarkPair()
    decimal: Annotated[MarkPair, DECIMAL] = MarkPair()
    missing: Annotated[tuple[str, ...], MISSING] = ()
    index: Annotated[str | None, INDEX] = None

    @property
    def read_style(self) -> Style:
        """Style of texts that are read."""
        return Style(self.header_rows, self.separator.read, self.decimal.read, self.missing, self.index)


def loss_text(kind: str, count: int, line: int, column: int, dtype: str) -> str:
    """Say what was lost, in one sentence behind a file's name; the place is that of the first number."""
    where = f"the first is in line {line}, column {column}"
    verb = "was" if count == 1 else "were"
    if kind == "rounded":
        advice = "" if dtype.startswith("complex") else "; convert --dtype int64 keeps integers exact"
        return f"{plural(count, 'integer')} beyond 2^53 {verb} rounded to {dtype}; {where}{advice}"
    return f"{plural(count, 'number')} too large for {dtype} became infinite; {where}"
