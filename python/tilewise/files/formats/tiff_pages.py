"""Pages of a .tif file by their numbers: entries of the file, or the pictures that its only entry describes.

a usual stack    entry 0 → picture    entry 1 → picture    entry 2 → picture
one in a page    entry 0 → picture, and by its description two more behind it
"""

from __future__ import annotations

import copy
import json
import logging
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tilewise.base.errors import UsageError
from tilewise.files.checks import printable

if TYPE_CHECKING:
    import tifffile

NODATA = 42113  # the tag of GDAL for the nodata value, a text
_METADATA = 42112  # the tag of GDAL for a text of XML
_MOST = 1 << 20  # pictures of one page that are counted


def opened(path: str) -> tifffile.TiffFile:
    """The file for the library, which keeps quiet."""
    import tifffile

    # The library tells the terminal what it thinks of odd files; we refuse what matters in one line.
    log = logging.getLogger("tifffile")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
        log.propagate = False
    return tifffile.TiffFile(path)


def page_count(book: tifffile.TiffFile) -> int:
    """Count the pages that can be taken by number."""
    entries = len(book.pages)
    if entries != 1:
        return entries
    page = book.pages[0].aspage()
    pictures = 1 if page.is_ome else _described(book, page)
    return pictures if 1 < pictures <= min(_MOST, _room(book, page)) else 1


def page_at(book: tifffile.TiffFile, number: int) -> tifffile.TiffPage:
    """The page with that number, one of `page_count`; what it does not store has its nodata value."""
    alone = len(book.pages) == 1
    page = copy.copy(book.pages[0 if alone else number].aspage())
    shift = number * page.nbytes if alone else 0
    page.dataoffsets = tuple(int(offset) + shift for offset in page.dataoffsets)  # a file may say 8.0
    page.databytecounts = tuple(map(int, page.databytecounts))
    page.nodata = missing_number(page) or 0
    return page


def page_named(book: tifffile.TiffFile, path: str, name: str, member: str) -> tifffile.TiffPage:
    """The page that `member` says, or the only one; UsageError where there is no such page."""
    pages = page_count(book)
    if pages == 0:
        raise UsageError(f"{name} has no page that can be read")
    if not member and pages > 1:
        raise UsageError(f"{name} has {pages} pages, but one was expected", f"{path}:0 for the first page")
    if member and not (member.isascii() and member.isdigit() and len(member) < 10 and int(member) < pages):
        raise UsageError(f"{name} has no such page; it has {pages}, counted from 0")
    return page_at(book, int(member or 0))


def missing_number(page: tifffile.TiffPage) -> Any:
    """The file's nodata value in the page's type; None without one that fits.

    Versions of the library disagree on the least number of float32, which is the most usual one.
    """
    import numpy

    text = page.tags.valueof(NODATA)
    if text is None or page.dtype is None:
        return None
    text, dtype = str(text).strip(" \0").replace(",", "."), page.dtype
    try:
        if dtype.kind in "fc":
            with numpy.errstate(over="ignore"):
                number = dtype.type(complex(text) if dtype.kind == "c" else float(text))
            too_large = not numpy.isfinite(number) and "n" not in text.lower()  # neither inf nor nan
            return None if too_large else number
        whole, bit = Decimal(text), dtype.kind == "b"
        least, most = (0, 1) if bit else (numpy.iinfo(dtype).min, numpy.iinfo(dtype).max)
        fits = least <= whole <= most and whole == whole.to_integral_value()
        return (numpy.uint8 if bit else dtype.type)(int(whole)) if fits else None
    except (ValueError, ArithmeticError):
        return None


def warnings_of(book: tifffile.TiffFile, page: tifffile.TiffPage) -> tuple[str, ...]:
    """Warn of what the file says of this page, or of further ones, and the numbers do not show."""
    said = []
    further = _described(book, page)
    if further > 1 and page_count(book) != further:
        said.append(f"its description speaks of {further} pictures, of which only this one is read")
    text = page.tags.valueof(NODATA)
    number = missing_number(page)
    if text is not None and number is None:
        said.append(f"its GDAL_NODATA, {printable(str(text))!r}, is no {page.dtype} and is not applied")
    elif number is not None and number - number == 0:  # nan says none by itself, as inf does
        said.append(f"its GDAL_NODATA, {number}, is not applied")
    found = sorted(set(re.findall(r'role="(scale|offset)"', str(page.tags.valueof(_METADATA, "")))))
    if found:
        said.append(f"its GDAL_METADATA, {' and '.join(found)}, is not applied")
    return tuple(said)


def _described(book: tifffile.TiffFile, page: tifffile.TiffPage) -> int:
    """Count the pictures that the description of a page speaks of, all in one piece of the file."""
    if page.is_ome:
        first = page.description.partition("</Pixels>")[0]
        extents = dict(re.findall(r'\bSize([ZCT])="([0-9]{1,9})"', first))
        planes = math.prod(map(int, extents.values())) // max(1, page.samplesperpixel)
        return planes if len(book.pages) == 1 else 1
    if not page.is_final or page.dataoffsets[0] == 0 or not (page.is_shaped or page.is_imagej or page.is_stk):
        return 1
    points = max(1, math.prod(page.shape))
    if len(book.pages) == 1:
        try:
            return max(1, math.prod(book.series[0].shape) // points)
        except Exception:  # of a library that cannot make sense of the description; the page can be read
            return 1
    try:
        facts = json.loads(page.shaped_description or "{}")
        return max(1, math.prod(facts["shape"]) // points) if facts.get("truncated") else 1
    except (ValueError, KeyError, TypeError, AttributeError):
        return 1


def _room(book: tifffile.TiffFile, page: tifffile.TiffPage) -> int:
    """Count the pictures that the file has room for, from the first one on."""
    return int((book.filehandle.size - page.dataoffsets[0]) // max(1, page.nbytes))
