"""Results on disk: points.jsonl with an entry a line, flushed as they come, and what is beside it.

results/STUDY/DATE/points.jsonl       an entry for each launch of a point, and one for each point not run
                   study.toml         the study as it was run
                   environment.json   every machine that added to it, and the scale
                   traces/            timelines of points that keep them
                   points.lock        what several parts that run at once hold their points by

Design: docs/design/measuring.md.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tilewise.base.errors import RunError, UsageError
from tilewise.base.staging import replace_or_fail
from tilewise.base.undecodable import UNDECODABLE
from tilewise.base.units import plural
from tilewise.engine import side_files
from tilewise.lab.study.points import digest

if TYPE_CHECKING:
    from tilewise.lab.measurement.result import Measurement
    from tilewise.launch.record import Record


LOCKS = "points.lock"
# What a file system says that has no locks, as Lustre does where it is mounted without them.
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
_DIGITS = 15  # of a digest, as the place of a byte: below 2^60, which fits into what systems take


def lock(file: int) -> bool:
    """Keeps other processes from locking an open file, until it is closed; False where there are no locks.

    Raises BlockingIOError where another process has it, and OSError as the system does.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True


class Locks:
    """The locks of one results folder. The system drops them when a process dies, however it dies.

    They are POSIX record locks, which NFS has too, and which a process loses when it closes any descriptor
    of the file: nothing else may open it. Within one process they keep nothing apart.
    """

    def __init__(self, folder: str) -> None:
        """Raises OSError where the file cannot be made. It stays: who removes it may part two that wait."""
        self._path = os.path.join(folder, LOCKS)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    @contextlib.contextmanager
    def held(self, name: str) -> Iterator[bool]:
        """Holds the lock called `name`, a digest, meanwhile; False where another process has it.

        Where the file system has no locks, nobody is kept off.
        """
        place = int(name[:_DIGITS], 16)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):  # systems differ in the word for it
            yield False
            return
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise RunError(f"{self._path} cannot be locked: {error.strerror or error}") from None
            yield True
            return
        try:
            yield True
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def close(self) -> None:
        """Drops what is held."""
        os.close(self._file)


POINTS, STUDY = "points.jsonl", "study.toml"
DONE, FAILED, NOT_RUN = "done", "failed", "not run"


class Entry(msgspec.Struct, kw_only=True):
    """One launch of a point. `seconds` is the whole command's; `launch` counts from 0, warm-ups first.

    `hash` is of the point, the launch, the version and the environment; `point` names the point alone.
    `trace` is the timeline, a file below the results folder. `record` is what the command wrote, as JSON has
    it: dotted paths of expressions go through it, all else asks for `result`.
    """

    hash: str
    point: str
    run: str
    axes: dict[str, Any]
    status: str
    launch: int = 0
    warmup: bool = False
    command: list[str] = []
    environment: str = ""
    started: str = ""
    seconds: float = 0.0
    exit_code: int = 0
    message: str = ""
    trace: str = ""
    record: dict[str, Any] | None = None

    def result(self) -> Record | Measurement | None:
        """The record with its types; None where there is none, or one of foreign make or another version."""
        from tilewise.lab.measurement.result import Measurement
        from tilewise.launch.record import Record

        try:
            if "lines" in (self.record or {}):
                return msgspec.convert(self.record, Measurement)
            return msgspec.convert(self.record, Record)
        except msgspec.ValidationError:
            return None


class StudyEnvironment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Environment that numbers depend on; `machine` is the host, or the name given to many alike.

    `storage` is the file system that matrices lie on. Older results lack it, and what they are called by
    must not change: as long as it is empty, it is left out of all digests.
    """

    tilewise: str
    machine: str
    cpu: str
    cores: int
    mpi: dict[str, str]
    storage: str = ""

    def id(self) -> str:
        """Names it in entries."""
        return digest(msgspec.to_builtins(self))[:12]


class StudySession(msgspec.Struct, kw_only=True):
    """One `study run` that added to a folder; `study` is the name of the study."""

    id: str
    study: str = ""
    scale: str
    time: str
    host: str
    environment: StudyEnvironment


def hash_of(point: str, launch: int, environment: StudyEnvironment) -> str:
    """Names one launch of a point on one machine."""
    return digest([point, launch, msgspec.to_builtins(environment)])


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def folder_for(results: str, study: str, resume: bool) -> str:
    """Where a run goes: a new folder named by the time, or with `resume` the newest one there is."""
    base = os.path.join(results, study)
    if resume and (folders := dated(base)):
        return folders[-1]
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S")
    free = (f"{stamp}{more}" for more in ("", *(f"-{number}" for number in range(2, 100))))
    return next(path for name in free if not os.path.exists(path := os.path.join(base, name)))


def dated(base: str) -> list[str]:
    """Folders below `base` that hold points, oldest first."""
    try:
        names = sorted(os.listdir(base))
    except OSError:
        return []
    return [path for name in names if points_in(path := os.path.join(base, name))]


def newest(folder: str) -> str:
    """`folder` where it holds points, else the newest below it that does, else `folder` again."""
    return folder if points_in(folder) else next(reversed(dated(folder)), folder)


def points_in(folder: str) -> list[str]:
    """Names of the files of points in `folder`: `points.jsonl` and those of parts; empty where is none."""
    try:
        with os.scandir(folder) as names:
            return sorted(
                each.name
                for each in names
                if each.name.startswith("points.") and each.name.endswith(".jsonl") and each.is_file()
            )
    except OSError:
        return []


class Store:
    """One results folder, open for appending; a second process that opens the same `part` is refused."""

    def __init__(self, folder: str, part: str = "") -> None:
        self.folder = folder
        self._part = f".{part}" if part else ""
        self.notes: list[str] = []
        self.path = os.path.join(folder, f"points{self._part}.jsonl")
        try:
            os.makedirs(folder, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                if not lock(self._file):
                    self.notes.append(
                        f"the file system of {folder} has no locks: runs at the same time may repeat points"
                    )
            except BlockingIOError:
                os.close(self._file)
                raise UsageError(
                    f"another study is writing to {folder}", "wait for it, or use --results DIR"
                ) from None
            self._mend()
            self._locks = Locks(folder)
        except OSError as error:
            raise UsageError(f"results cannot be written to {folder}: {error.strerror or error}") from None
        self._read: dict[str, int] = {}
        self.entries, more = _once(_new_in(folder, self._read))
        self._read[os.path.basename(self.path)] = -1  # from now on we know what stands there
        self.notes += more

    def _mend(self) -> None:
        """Cuts off a last line that a crash has left torn."""
        size = os.fstat(self._file).st_size
        if not size or os.pread(self._file, 1, size - 1) == b"\n":
            return
        with open(self.path, "rb") as file:
            last = file.read().rsplit(b"\n", 1)[-1]
        if _entry(last) is not None:
            os.write(self._file, b"\n")
            return
        os.ftruncate(self._file, size - len(last))
        self.notes.append(
            f"{self.path}: the last line was incomplete and has been dropped; its point runs again"
        )

    def append(self, entry: Entry) -> None:
        """Adds an entry; it is on disk when this returns. Raises RunError where that fails."""
        line = msgspec.json.encode(entry) + b"\n"
        try:
            done = 0
            while done < len(line):
                done += os.write(self._file, line[done:])
            os.fsync(self._file)
            there = os.path.samestat(os.fstat(self._file), os.stat(self.path))
        except FileNotFoundError:
            there = False
        except OSError as error:
            raise RunError(f"{self.path} cannot be written: {error.strerror or error}") from None
        if not there:
            raise RunError(
                f"{self.path} was moved or removed during the run",
                "run the study again; --into continues in a folder that was moved",
            )
        self.entries.append(entry)

    @contextlib.contextmanager
    def locked(self, point: str, environment: StudyEnvironment) -> Iterator[bool]:
        """Keeps other parts from launching `point` meanwhile; False where one of them is just at it.

        Only what `news` says once it is held is what all others have done.
        """
        with self._locks.held(digest([point, environment.id()])) as ours:
            yield ours

    def news(self) -> list[Entry]:
        """Entries that other parts have added since the last call; they are in `entries` from now on."""
        entries = [entry for entry in _new_in(self.folder, self._read) if isinstance(entry, Entry)]
        self.entries += entries
        return entries

    def keep(self, text: str, scale: str, environment: StudyEnvironment, study: str = "") -> None:
        """Writes the study and this session beside the points; `study` is the study's name.

        UsageError where the points that are there are another study's: its tables could never be shown again.
        Sessions that cannot be read are set aside, with a note.
        """
        self._require_same(text, study)
        replace_or_fail(os.path.join(self.folder, STUDY), text.encode())
        path = os.path.join(self.folder, f"environment{self._part}.json")
        try:
            sessions = _sessions(path)
        except ValueError as error:
            aside = f"{path}.torn"
            os.replace(path, aside)
            self.notes.append(f"{error}; it was renamed to {aside}")
            sessions = []
        session = StudySession(
            id=environment.id(),
            study=study,
            scale=scale,
            time=now(),
            host=os.uname().nodename,
            environment=environment,
        )
        encoded = msgspec.json.encode([*sessions, session])
        replace_or_fail(path, msgspec.json.format(encoded, indent=1) + b"\n")

    def _require_same(self, text: str, study: str) -> None:
        path = os.path.join(self.folder, STUDY)
        try:
            with open(path, "rb") as file:
                there = _title(file.read())
        except OSError:
            return
        if not self.entries:
            return
        told = next((each.study for each in reversed(load_sessions(self.folder)) if each.study), "")
        for what, old, new in (("name", told, study), ("title", there, _title(text.encode()))):
            if old and new and old != new:
                raise UsageError(
                    f"{self.folder} holds the results of another study: its {what} is {old!r}, not {new!r}",
                    f"another folder; or, if it is the same study with another {what}, change it in {path}"
                    if what == "title"
                    else "another folder for --into or --results",
                )

    def close(self) -> None:
        """Lets another process have it."""
        self._locks.close()
        os.close(self._file)


def load_entries(folder: str) -> tuple[list[Entry], list[str]]:
    """All entries of a folder, in the order they came, and notes on lines that are none.

    Of a launch that is there twice, as two parts could leave it where the file system has no locks that hold
    between machines, the first counts.
    """
    try:
        below = sorted(name for name in os.listdir(folder) if dated(os.path.join(folder, name)))
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror or error}") from None
    if not points_in(folder):
        raise UsageError(
            f"{folder} holds no results of a study: there is no {POINTS}",
            f"one of the studies below it, such as {os.path.join(folder, below[0])}" if below else "",
        )
    collecting = gc.isenabled()
    gc.disable()  # which would look at millions of new objects again and again: four times the work
    try:
        return _once(_new_in(folder, {}))
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: {error.strerror or error}") from None
    finally:
        if collecting:
            gc.enable()


def _new_in(folder: str, read: dict[str, int]) -> Iterator[Entry | str]:
    """Entries of all files of points from the offsets in `read` on, which are moved; a note for other lines.

    A file whose offset is -1 is left out. A last line without its end is not yet written, or torn.
    """
    for name in points_in(folder):
        begin = read.get(name, 0)
        if begin < 0:
            continue
        path = os.path.join(folder, name)
        # Opened each time: a file's new size is seen on NFS only then.
        with open(path, "rb") as file:
            file.seek(begin)
            for number, line in enumerate(file, 1):
                entry = _entry(line)
                if entry is not None or line.endswith(b"\n"):
                    read[name] = read.get(name, 0) + len(line)
                if entry is not None:
                    yield entry
                elif line.strip():
                    yield f"{path}, line {number} is not an entry and was left out"


def _once(entries_and_notes: Iterator[Entry | str]) -> tuple[list[Entry], list[str]]:
    """The entries without those that are there twice, and the notes with one on these."""
    entries: list[Entry] = []
    notes: list[str] = []
    seen: set[tuple[str, str]] = set()
    twice = 0
    for each in entries_and_notes:
        if isinstance(each, str):
            notes.append(each)
            continue
        name = (each.hash, each.message) if each.status == NOT_RUN else (each.hash, "")
        if each.status != FAILED and name in seen:
            twice += each.status == DONE
            continue
        if each.status != FAILED:
            seen.add(name)
        entries.append(each)
    if twice:
        notes.append(f"{plural(twice, 'launch')} that two parts ran: the first is used")
    return entries, notes


def load_sessions(folder: str, notes: list[str] | None = None) -> list[StudySession]:
    """Every run that added to a folder, oldest first; `notes` gets a sentence on each file that is none."""
    try:
        names = [n for n in os.listdir(folder) if n.startswith("environment.") and n.endswith(".json")]
    except OSError:
        return []
    sessions: list[StudySession] = []
    for name in sorted(names):
        try:
            sessions += _sessions(os.path.join(folder, name))
        except ValueError as error:
            if notes is not None:
                notes.append(str(error))
    return sorted(sessions, key=lambda session: session.time)


def _sessions(path: str) -> list[StudySession]:
    """The sessions in one file; none where there is no file. ValueError, in a sentence, where it is torn."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=list[StudySession])
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    except UNDECODABLE as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


class _Titled(msgspec.Struct):
    title: str = ""


def _title(text: bytes) -> str:
    """The title in the text of a study; empty where it is none."""
    try:
        return msgspec.toml.decode(text, type=_Titled).title
    except UNDECODABLE:
        return ""


def _entry(line: bytes) -> Entry | None:
    try:
        return msgspec.json.decode(line, type=Entry)
    except UNDECODABLE:
        return None


def check_outputs(folders: Iterable[str], files: Mapping[str, str | None]) -> None:
    """Raises UsageError where a file cannot be, or would replace results in `folders` or another answer.

    `files` has a path by flag; `-` is standard output, which one of them may have.
    """
    taken = [path for folder in folders for path in files_of(folder)]
    piped = [flag for flag, path in files.items() if path == "-"]
    if len(piped) > 1:
        raise UsageError(f"{' and '.join(piped)} cannot both go to standard output", "a file for one of them")
    for flag, path in files.items():
        side_files.check(flag, path, taken)
        taken += [path] if path and path != "-" else []


def files_of(folder: str) -> list[str]:
    """The files of the results in `folder`, or of the newest below it; nothing made of them replaces one."""
    folder = newest(folder)
    names = [*points_in(folder), STUDY, "environment.json"]
    return [os.path.join(folder, name) for name in names]
