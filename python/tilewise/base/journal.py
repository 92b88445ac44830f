"""The journal of a job: which job it belongs to, and what another start of it can go on from.

    .C.npy.….part      the numbers
    .C.npy.….journal/  job.json           which job this is
                       0-0.log …          pieces of the result that are in the part file: each rank's, of
                                          the first start
                       0.state 1.state    or states in the midst of the job, in turn
                       0-0.state.log …    and what of them is there
                       stop               asks the ranks to end

A line of a log names a rectangle as its file stores it, with two checksums: of its numbers, and of the line
itself. The worker writes them (`io/pieces.hpp`), and compares the numbers before it trusts them. A part file
stays with pieces; states need none.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterable, Iterator

import msgspec

from tilewise.base.owner import hidden, part_path

HEADER, STOP, ENDING = "job.json", "stop", "journal"
_LOG = re.compile(r"(\d+)-(\d+)\.log")
_STATE_LOG = re.compile(r"(\d+)-(\d+)\.state\.log")
_WHOLE = b"whole"
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


class Saved(msgspec.Struct, frozen=True):
    """A state that the start with that number left whole in the file `slot`.

    `version` grows as the job goes on. `facts` are the bits of what else is to be known, in hexadecimal.
    """

    start: int
    slot: int
    version: int
    facts: list[str]
    pieces: list[Piece]


def slot_of(folder: str, slot: int) -> str:
    """The file that states of this number are kept in."""
    return os.path.join(folder, f"{slot}.state")


def folder_of(part: str) -> str:
    """The journal that belongs to the part file `part`."""
    return f"{part.removesuffix('.part')}.{ENDING}"


def part_of(folder: str) -> str:
    """The part file that the journal in `folder` belongs to."""
    return f"{folder.removesuffix(f'.{ENDING}')}.part"


def beside(path: str) -> list[str]:
    """The journals of parts that were to become `path`, the newest last.

    Of a name too long for a hidden one they may be those of another that begins alike.
    """
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    found = []
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            each, name = os.path.join(folder, entry), hidden(entry)
            if name is not None and each == folder_of(part_path(path, name.owner.identity)) and is_kept(each):
                found.append((os.stat(os.path.join(each, HEADER)).st_mtime_ns, each))
    return [each for _, each in sorted(found)]


def has_pieces(folder: str) -> bool:
    """Whether a rank has written anything down, so that the part is worth keeping. Raises nothing."""
    with contextlib.suppress(OSError):
        names = os.listdir(folder)
        if HEADER in names and os.path.exists(part_of(folder)):
            return any(
                os.path.getsize(os.path.join(folder, name)) > 0 for name in names if _LOG.fullmatch(name)
            )
    return False


def is_kept(folder: str) -> bool:
    """Whether there is anything that another start can go on from. Raises nothing."""
    if has_pieces(folder):
        return True
    with contextlib.suppress(OSError):
        return os.path.exists(os.path.join(folder, HEADER)) and bool(saved(folder))
    return False


def starts(folder: str) -> int:
    """How often the job has begun."""
    names = os.listdir(folder)
    found = [
        int(match[1]) for each in (_LOG, _STATE_LOG) for name in names if (match := each.fullmatch(name))
    ]
    return max(found, default=-1) + 1


def pieces(folder: str) -> list[Piece]:
    """All that the logs name, first start first, without lines that are torn or spoilt. Raises OSError."""
    found = [_piece(start, words) for start, words in _lines(folder, _LOG) if len(words) == 5]
    return _apart({(piece.start, piece.block): piece for piece in found}.values())


def _apart(found: Iterable[Piece]) -> list[Piece]:
    """Those that do not overlap others of their start, as none do in logs that bear their own names."""
    kept: list[Piece] = []
    active: list[Piece] = []
    for piece in sorted(found, key=lambda each: (each.start, each.block)):
        active = [each for each in active if each.start == piece.start and each.block[1] > piece.block[0]]
        if all(each.block[3] <= piece.block[2] or piece.block[3] <= each.block[2] for each in active):
            kept.append(piece)
            active.append(piece)
    return kept


def saved(folder: str) -> list[Saved]:
    """The last whole state of each file, the newest first. Raises OSError."""
    whole: dict[int, Saved] = {}
    pieces: dict[tuple[int, int, int], list[Piece]] = {}
    for start, words in _lines(folder, _STATE_LOG):
        slot, version = int(words[0]), int(words[1])
        at = pieces.setdefault((start, slot, version), [])
        if words[2] != _WHOLE:
            at.append(_piece(start, words[2:]))
        elif slot not in whole or (whole[slot].start, whole[slot].version) < (start, version):
            whole[slot] = Saved(start, slot, version, [word.decode() for word in words[3:]], at)
    newest = sorted(whole.values(), key=lambda each: (each.start, each.version), reverse=True)
    return [msgspec.structs.replace(each, pieces=_apart(each.pieces)) for each in newest]


def _lines(folder: str, kind: re.Pattern[str]) -> Iterator[tuple[int, list[bytes]]]:
    """The words of each whole line, with the number of the start, first start first."""
    logs = (match for name in os.listdir(folder) if (match := kind.fullmatch(name)))
    for match in sorted(logs, key=lambda each: (int(each[1]), int(each[2]))):
        with open(os.path.join(folder, match[0]), "rb") as file:
            for line in file:
                body, _, told = line.rstrip(b"\n").rpartition(b" ")
                if line.endswith(b"\n") and told == b"%016x" % _check(body + b" "):
                    yield int(match[1]), body.split()


def _piece(start: int, words: list[bytes]) -> Piece:
    top, bottom, left, right = map(int, words[:4])
    return Piece(start, (top, bottom, left, right), words[4].decode())


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
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:  # a file system without locks
        pass
    return descriptor


def _check(line: bytes) -> int:
    value = _SEED
    for letter in line:
        value = ((value ^ letter) * _PRIME) & _MASK
    return value
