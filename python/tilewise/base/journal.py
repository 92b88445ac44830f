"""The journal beside a part file: which job it belongs to, and what of the result stands there by now.

    .C.npy.….part      the numbers
    .C.npy.….journal/  job.json      which job this is
                       0-0.log …     each rank's, of the first start
                       stop          asks the ranks to end

A line of a log names a rectangle of the result as its file stores it, with two checksums: of its numbers, and
of the line itself. The worker writes them (`io/journal.hpp`), and compares the numbers before it trusts them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator

import msgspec

from tilewise.base.owner import IDENTITY

HEADER, STOP, ENDING = "job.json", "stop", "journal"
_LOG = re.compile(r"(\d+)-(\d+)\.log")
_SEED, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1  # FNV-1a


class Piece(msgspec.Struct, frozen=True):
    """A rectangle that a rank wrote in the start with that number: rows and columns [begin, end) as stored.

    `sum` is the checksum of its numbers, in hexadecimal digits.
    """

    start: int
    block: tuple[int, int, int, int]
    sum: str

    @property
    def numbers(self) -> int:
        """How many lie in it."""
        top, bottom, left, right = self.block
        return (bottom - top) * (right - left)


def folder_of(part: str) -> str:
    """The journal that belongs to the part file `part`."""
    return f"{part.removesuffix('.part')}.{ENDING}"


def part_of(folder: str) -> str:
    """The part file that the journal in `folder` belongs to."""
    return f"{folder.removesuffix(f'.{ENDING}')}.part"


def beside(path: str) -> list[str]:
    """The journals of parts that were to become `path`, the newest last."""
    folder, base = os.path.split(os.path.abspath(path))
    found = []
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            match = IDENTITY.search(entry)
            if match is None or entry[match.end() :] != f".{ENDING}":
                continue
            if base.startswith(entry[1 : match.start() - 1]) and has_pieces(os.path.join(folder, entry)):
                found.append(os.path.join(folder, entry))
    return sorted(found, key=lambda each: os.stat(os.path.join(each, HEADER)).st_mtime_ns)


def has_pieces(folder: str) -> bool:
    """Whether a rank has written anything down, so that the part is worth keeping. Raises nothing."""
    with contextlib.suppress(OSError):
        names = os.listdir(folder)
        if HEADER in names and os.path.exists(part_of(folder)):
            return any(
                os.path.getsize(os.path.join(folder, name)) > 0 for name in names if _LOG.fullmatch(name)
            )
    return False


def starts(folder: str) -> int:
    """How often the job has begun."""
    found = [int(match[1]) for name in os.listdir(folder) if (match := _LOG.fullmatch(name))]
    return max(found, default=-1) + 1


def pieces(folder: str) -> list[Piece]:
    """All that the logs name, first start first, without lines that are torn or spoilt. Raises OSError."""
    found: list[Piece] = []
    logs = (match for name in os.listdir(folder) if (match := _LOG.fullmatch(name)))
    for match in sorted(logs, key=lambda each: (int(each[1]), int(each[2]))):
        with open(os.path.join(folder, match[0]), "rb") as file:
            found.extend(_pieces(file, int(match[1])))
    return list({(piece.start, piece.block): piece for piece in found}.values())


def _pieces(lines: Iterator[bytes], start: int) -> Iterator[Piece]:
    for line in lines:
        body, _, told = line.rstrip(b"\n").rpartition(b" ")
        words = body.split()
        if line.endswith(b"\n") and len(words) == 5 and told == b"%016x" % _check(body + b" "):
            top, bottom, left, right = map(int, words[:4])
            yield Piece(start, (top, bottom, left, right), words[4].decode())


def covered(found: list[Piece]) -> int:
    """Numbers that the pieces name, as far as no later start has named them again in another cut."""
    return sum(each.numbers for each in {piece.block: piece for piece in found}.values())


def remove(folder: str) -> bool:
    """Removes a journal, and whether it is gone. Raises nothing."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    return not os.path.lexists(folder)


def ask_to_stop(folder: str) -> None:
    """Asks the ranks of the job to end with what they have. Raises OSError."""
    with open(os.path.join(folder, STOP), "wb"):
        pass


def hold(folder: str) -> int | None:
    """A descriptor that keeps others from going on with this job; None where somebody does already."""
    descriptor = os.open(os.path.join(folder, HEADER), os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _check(line: bytes) -> int:
    value = _SEED
    for letter in line:
        value = ((value ^ letter) * _PRIME) & _MASK
    return value
