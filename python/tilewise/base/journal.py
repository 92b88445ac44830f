"""The journal of a job: which job it belongs to, and what another start of it can go on from.

    .C.npy.….part      the numbers
    .C.npy.….journal/  job.json           which job this is
                       0-0.log …          pieces of the result that are in the part file: each rank's, of
                                          the first start
                       0.state 1.state    or states in the midst of the job, in turn
                       0-0.state.log …    and what of them is there
                       stop               asks the ranks to end

A line of a log names a rectangle as its file stores it, with two checksums: of its numbers, and of the line
itself. The worker writes them (`io/journal.hpp`), and compares the numbers before it trusts them. A part file
stays with pieces; states need none.

Others may have planted what lies there. It is opened below a descriptor of the folder, by names that are
known, and no link is followed; nobody goes on with what belongs to another user.

Design: docs/design/publication.md.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Iterable, Iterator

import msgspec

from tilewise.base import safely
from tilewise.base.owner import hidden, part_path

HEADER, STOP, ENDING = "job.json", "stop", "journal"
_LOG = re.compile(r"([0-9]{1,8})-([0-9]{1,8})\.log")
_STATE_LOG = re.compile(r"([0-9]{1,8})-([0-9]{1,8})\.state\.log")
_ENTRY = re.compile(rf"{re.escape(HEADER)}|{STOP}|[01]\.state|[0-9]+-[0-9]+(\.state)?\.log")
_PIECE = re.compile(rb"(\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,15}) ([0-9a-f]{1,16})")
_STATE = re.compile(rb"([01]) (\d{1,15}) (?:whole((?: [0-9a-f]{1,16})*)|(.*))")
_HEADER_MAX, _LINE_MAX = 64 << 20, 1 << 20  # bytes
_SEED, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1  # FNV-1a


class JournalPiece(msgspec.Struct, frozen=True):
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


class SavedState(msgspec.Struct, frozen=True):
    """A state that the start with that number left whole in the file `slot`.

    `version` grows as the job goes on. `facts` are the bits of what else is to be known, in hexadecimal.
    """

    start: int
    slot: int
    version: int
    facts: list[str]
    pieces: list[JournalPiece]


def open_file(folder: str, name: str, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a file of the journal. Raises OSError for what is none."""
    with safely.opened(folder) as at:
        return safely.open_file(name, flags, at)


def header(folder: str) -> bytes:
    """Read the header, which says whose job it is. Raises OSError."""
    with os.fdopen(open_file(folder, HEADER), "rb") as file:
        return file.read(_HEADER_MAX)


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
                found.append((os.lstat(os.path.join(each, HEADER)).st_mtime_ns, each))
    return [each for _, each in sorted(found)]


def has_pieces(folder: str) -> bool:
    """True if a rank has written anything down, so that the part is worth keeping. Raises nothing."""
    with contextlib.suppress(OSError), safely.opened(folder) as at:
        names = os.listdir(at)
        if HEADER in names and os.path.exists(part_of(folder)):
            logs = (os.stat(name, dir_fd=at, follow_symlinks=False) for name in names if _LOG.fullmatch(name))
            return any(stat.S_ISREG(log.st_mode) and log.st_size > 0 for log in logs)
    return False


def is_kept(folder: str) -> bool:
    """True if there is anything that another start can go on from. Raises nothing."""
    if has_pieces(folder):
        return True
    with contextlib.suppress(OSError):
        return os.path.exists(os.path.join(folder, HEADER)) and bool(saved(folder))
    return False


def starts(folder: str) -> int:
    """How often the job has begun."""
    with safely.opened(folder) as at:
        names = os.listdir(at)
    found = [
        int(match[1]) for each in (_LOG, _STATE_LOG) for name in names if (match := each.fullmatch(name))
    ]
    return max(found, default=-1) + 1


def pieces(folder: str) -> list[JournalPiece]:
    """All that the logs name, first start first, without lines that are torn or spoilt. Raises OSError."""
    found = [piece for start, words in _lines(folder, _LOG) if (piece := _piece(start, words))]
    return _apart({(piece.start, piece.block): piece for piece in found}.values())


def _apart(found: Iterable[JournalPiece]) -> list[JournalPiece]:
    """Pieces that do not overlap others of their start, as none do in logs that bear their own names."""
    kept: list[JournalPiece] = []
    active: list[JournalPiece] = []
    for piece in sorted(found, key=lambda each: (each.start, each.block)):
        active = [each for each in active if each.start == piece.start and each.block[1] > piece.block[0]]
        if all(each.block[3] <= piece.block[2] or piece.block[3] <= each.block[2] for each in active):
            kept.append(piece)
            active.append(piece)
    return kept


def saved(folder: str) -> list[SavedState]:
    """The last whole state of each file, the newest first. Raises OSError."""
    whole: dict[int, SavedState] = {}
    pieces: dict[tuple[int, int, int], list[JournalPiece]] = {}
    for start, line in _lines(folder, _STATE_LOG):
        if (words := _STATE.fullmatch(line)) is None:
            continue
        slot, version = int(words[1]), int(words[2])
        at = pieces.setdefault((start, slot, version), [])
        if words[3] is None:
            at += filter(None, [_piece(start, words[4])])
        elif slot not in whole or (whole[slot].start, whole[slot].version) < (start, version):
            whole[slot] = SavedState(start, slot, version, words[3].decode().split(), at)
    newest = sorted(whole.values(), key=lambda each: (each.start, each.version), reverse=True)
    return [msgspec.structs.replace(each, pieces=_apart(each.pieces)) for each in newest]


def _lines(folder: str, kind: re.Pattern[str]) -> Iterator[tuple[int, bytes]]:
    """Each whole line without its checksum, with the number of the start, first start first."""
    with safely.opened(folder) as at:
        logs = (match for name in os.listdir(at) if (match := kind.fullmatch(name)))
        for match in sorted(logs, key=lambda each: (int(each[1]), int(each[2]))):
            with os.fdopen(safely.open_file(match[0], at=at), "rb") as file:
                while line := file.readline(_LINE_MAX):
                    body, _, told = line.rstrip(b"\n").rpartition(b" ")
                    if line.endswith(b"\n") and told == b"%016x" % _check(body + b" "):
                        yield int(match[1]), body


def _piece(start: int, line: bytes) -> JournalPiece | None:
    words = _PIECE.fullmatch(line)
    if words is None:
        return None
    top, bottom, first, last = map(int, words.groups()[:4])
    return (
        JournalPiece(start, (top, bottom, first, last), words[5].decode())
        if top < bottom and first < last
        else None
    )


def covered(found: list[JournalPiece]) -> int:
    """Numbers that the pieces name, as far as no later start has named them again in another cut."""
    return sum(each.numbers for each in {piece.block: piece for piece in found}.values())


def remove(folder: str) -> bool:
    """Removes a journal, and nothing else, and whether it is gone. Raises nothing."""
    with contextlib.suppress(OSError):
        with safely.opened(folder) as at:
            for name in filter(_ENTRY.fullmatch, os.listdir(at)):
                os.unlink(name, dir_fd=at)
        os.rmdir(folder)
    return not os.path.lexists(folder)


def ask_to_stop(folder: str) -> None:
    """Asks the ranks of the job to end with what they have. Raises OSError."""
    os.close(open_file(folder, STOP, os.O_WRONLY | os.O_CREAT))


def hold(folder: str) -> int | None:
    """A descriptor that keeps others from going on with this job; None where somebody does already.

    From now on nobody else may write into the folder. Raises OSError for a journal that is not ours.
    """
    descriptor = open_file(folder, HEADER, os.O_RDWR)
    with contextlib.suppress(OSError), safely.opened(folder) as at:
        os.chmod(at, stat.S_IMODE(os.fstat(at).st_mode) & ~0o022)
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
