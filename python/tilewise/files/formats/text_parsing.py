"""The numbers of a text, parsed in bounded blocks of lines, for looking at them without a worker."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from tilewise.base.errors import UsageError
from tilewise.base.units import plural
from tilewise.files.checks import printable
from tilewise.files.dtypes import is_integer
from tilewise.files.formats.text_lines import ERROR_WORD, plain_exponents, top, without_comment
from tilewise.files.formats.text_style import (
    NO_COMPLEX,
    advice_on,
    bare,
    fields_of,
    is_missing,
    number_type,
)
from tilewise.files.region import Region
from tilewise.files.style import Style, loss_text

if TYPE_CHECKING:
    from decimal import Decimal

_BLOCK = 4 << 20  # bytes
_COMMENT = re.compile(rb"(?:(?<=[ \t\v\f])|^)#[^\n]*|^[ \t\v\f]*%[^\n]*", re.MULTILINE)
_PERCENT_COMMENT = re.compile(rb"^[ \t\v\f]*%[^\n]*", re.MULTILINE)

Numbers = numpy.ndarray[Any, numpy.dtype[Any]]
Warn = Callable[[str], None]
_GAP = 2.0**53  # from which on whole numbers lie further apart than 1
_PART = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eEdD][+-]?[0-9]+)?")
_CANDIDATE = re.compile(rb"[0-9]{16}|[eEdD]\+?[0-9]{2}")


class Block(NamedTuple):
    """Whole lines of a text; `line` is the number of the first, from 1."""

    text: bytes
    line: int


def numbers_of_text(region: Region, only_top: bool = False, warn: Warn | None = None) -> Iterator[Numbers]:
    """Flat arrays of numbers, line by line; UsageError where one is none, or for too many or too few.

    With `only_top` there may be more lines behind those of the region, where a line is a row; they are not
    looked at. `warn` hears in the end what the numbers lost.
    """
    left = region.rows * region.columns
    losses = Losses(region)
    for block in _top(region) if only_top else _blocks(region):
        numbers = _numbers(block, region)
        losses.look(block.text, block.line, numbers)
        left -= numbers.size
        if left < 0:
            break
        if numbers.size:
            yield numbers
    if left:
        if not only_top:
            _refuse_lines(region)
        what = "fewer" if left > 0 else "more"
        raise UsageError(f"{region.name} has {what} than {region.rows}×{region.columns} numbers")
    if warn is not None:
        for said in losses.said():
            warn(said)


def _numbers(block: Block, region: Region) -> Numbers:
    """Parse a block: as a whole where it is plain, else field by field, with the place of a mistake."""
    text, mark = block.text, region.separator.encode()
    comment = _COMMENT if region.hash_comments else _PERCENT_COMMENT
    comments = region.line_rule.comments and (b"#" in text or b"%" in text)
    plain = comment.sub(b"", text) if comments else _taken(text, region) if region.taken else text
    # Of names in brackets, as in nan(ind), numpy takes any.
    styled = region.decimal != "." or bool(region.missing) or b'"' in plain
    styled = styled or (b"(" in plain and _is_real(region))
    styled = styled or (comments and region.hash_comments and ERROR_WORD.search(text) is not None)
    if not styled and (region.separator == " " or not _has_empty(plain, mark)):
        if region.separator != " ":
            plain = plain.replace(mark, b" ")
        try:
            _require_lines(plain, region.line_taken)
            return _parse(plain_exponents(plain), region)
        except (ValueError, DeprecationWarning):
            pass  # which field by field has its place
    rows = [_line(line, number, region) for number, line in enumerate(text.split(b"\n"), block.line)]
    kept = [row for row in rows if row is not None]
    parts = numpy.array([number for row in kept for number in row], _part_type(region))
    return parts.view(region.dtype) if _is_pairs(region) else parts


def _taken(text: bytes, region: Region) -> bytes:
    """The fields that are taken of each line; all of `text` where it has quotes or other lines."""
    mark = None if region.separator == " " else region.separator.encode()
    lines = [line.split(mark) for line in text.split(b"\n") if line.strip()]
    if b'"' in text or any(len(fields) != region.line_numbers for fields in lines):
        return text
    return b"\n".join((mark or b" ").join([fields[each] for each in region.taken]) for fields in lines)


def _refuse_lines(region: Region) -> None:
    """Raises UsageError for the first line that is not as long as it should be."""
    for block in _blocks(region):
        for number, line in enumerate(block.text.split(b"\n"), block.line):
            _line(line, number, region)


def _require_lines(text: bytes, count: int) -> None:
    """Raises ValueError unless each line that is not blank has `count` fields between blanks."""
    letters = numpy.frombuffer(b"\n" + text + b"\n", numpy.uint8)
    begins = (letters[1:] > ord(" ")) & (letters[:-1] <= ord(" "))
    fields = numpy.diff(numpy.cumsum(begins)[letters[1:] == ord("\n")], prepend=0)
    if not numpy.isin(fields, (0, count)).all():
        raise ValueError


def _has_empty(text: bytes, mark: bytes) -> bool:
    mark = re.escape(mark)
    blanks = rb" *" if mark == rb"\t" else rb"[ \t]*"
    empty = mark + blanks + rb"(?:" + mark + rb"|\r*$)|^" + blanks + mark
    return re.search(empty, text, re.MULTILINE) is not None


def _is_real(region: Region) -> bool:
    return region.pairs or not region.dtype.startswith("complex")


def _is_pairs(region: Region) -> bool:
    return region.pairs and region.dtype.startswith("complex")


def _part_type(region: Region) -> str:
    return "float64" if _is_pairs(region) else region.dtype


def _line(line: bytes, number: int, region: Region) -> list[Any] | None:
    """The numbers of one line; None where it has none."""
    rule = region.line_rule
    hashes = region.hash_comments and rule.comments
    if hashes and (word := ERROR_WORD.match(line)):
        raise UsageError(
            f'{region.name}: line {number}, column 1: "{word[1].decode()}" is not a number',
            "write nan in its place; it begins no comment",
        )
    data = (without_comment(line) if hashes else line).rstrip(b"\r")
    bare_line = data.strip(b" \v\f" if rule.tabs else b" \t\v\f")
    if not bare_line or (rule.comments and bare_line.startswith((b"%", b"#") if hashes else b"%")):
        return None
    fields = fields_of(data if region.separator == "\t" else bare_line, region.separator)
    style = Style(missing=tuple(region.missing))
    row = []
    for column, field in enumerate(fields):
        if region.taken and column not in region.taken:
            continue
        token = bare(field)
        if is_missing(token, style) or is_missing(field, style):
            row.append(float("nan"))
            continue
        value = _value(token, region)
        if value is None:
            what = f'"{printable(field.decode("latin1"))}" is {_lack(token, region)}'
            if not field:
                what = "an empty field where a number was expected"
            raise UsageError(
                f"{region.name}: line {number}, column {column + 1}: {what}",
                advice_on(field),
            )
        row.append(value)
    if len(fields) != region.line_numbers:
        found = plural(len(fields), "number")
        raise UsageError(f"{region.name}: line {number}: found {found}, expected {region.line_numbers}")
    return row


def _lack(token: bytes, region: Region) -> str:
    """The words for a field that has no number of the region's type, as the worker has them."""
    dtype = _part_type(region)
    if not is_integer(dtype) or number_type(token, region.decimal) != "float64":
        return "not a number"
    exact = _exact(token, region)
    if not exact.is_finite() or exact != exact.to_integral_value():
        return f"not a whole number, as {dtype} needs"
    limits = numpy.iinfo(dtype)
    return f"beyond {dtype}, which holds {limits.min} to {limits.max}"


def _value(token: bytes, region: Region) -> Any:
    """The number in a field without its quotes, None where it is none."""
    dtype = _part_type(region)
    found = number_type(token, region.decimal)
    if not found or (found == "complex128" and not dtype.startswith("complex")):
        return None
    if is_integer(dtype):
        exact = _exact(token, region)
        limits = numpy.iinfo(dtype)
        whole = exact.is_finite() and limits.min <= exact <= limits.max and exact == int(exact)
        return int(exact) if whole else None
    text = _plain(token, region)
    return complex(text) if found == "complex128" else float(text)


def _exact(token: bytes, region: Region) -> Decimal:
    """Parse all digits of a number; nan where its exponent is beyond all that any type holds."""
    import decimal

    try:
        return decimal.Decimal(_plain(token, region))
    except decimal.InvalidOperation:
        return decimal.Decimal("nan")


def _plain(token: bytes, region: Region) -> str:
    return plain_exponents(token).decode("latin1").replace(region.decimal, ".")


def _parse(text: bytes, region: Region) -> Numbers:
    if region.dtype.startswith("complex"):
        if region.pairs:
            parts = _real(text, numpy.dtype("float64"))
            return parts.view(numpy.complex128).astype(region.dtype, copy=False)
        if NO_COMPLEX.search(text):
            raise ValueError
        return numpy.array([complex(token.decode("latin1")) for token in text.split()], region.dtype)
    return _real(text, numpy.dtype(region.dtype))


def _real(text: bytes, dtype: numpy.dtype[Any]) -> Numbers:
    if not text.strip():
        return numpy.empty(0, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # how numpy reports what is not a number
        numbers = numpy.fromstring(text, dtype, sep=" ")
    if dtype.kind in "iu":  # numpy takes the nearest number for one beyond the type, and counts on below 0
        limits = numpy.iinfo(dtype)
        doubtful = b"-" in text if dtype.kind == "u" else numpy.any(numbers == limits.min)
        if dtype.itemsize < 8 or doubtful or numpy.any(numbers == limits.max):
            raise ValueError
    return numbers


def _top(region: Region) -> Iterator[Block]:
    """The lines of the region's rows, in the same blocks."""
    left = region.rows
    for block in _blocks(region) if left else ():
        text, lines = top(block.text, left, region.line_rule)
        left -= lines
        yield Block(text, block.line)
        if left <= 0:
            break


def _blocks(region: Region) -> Iterator[Block]:
    """The text from the first number on, in blocks that end with a line."""
    with open(region.path, "rb") as file:
        line = 1
        while at := min(_BLOCK, region.offset - file.tell()):
            line += file.read(at).count(b"\n")
        while text := file.read(_BLOCK):
            text += file.readline()
            yield Block(text, line)
            line += text.count(b"\n")


class Losses:
    """Numbers of a text that were rounded or became infinite so far, as the worker counts them."""

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
            comments = self._region.line_rule.comments
            if _CANDIDATE.search(each) and not (comments and each.lstrip().startswith((b"%", b"#"))):
                data = (without_comment(each) if comments else each).strip(b" \r")
                fields = fields_of(data, self._region.separator)
                for column in self._region.taken or range(len(fields)):
                    if kind := self._kind(fields[column]):
                        self._found.setdefault(kind, [0, number, column + 1])[0] += 1

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
