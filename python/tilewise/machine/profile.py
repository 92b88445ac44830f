"""The stored profile: what was measured on this machine once, kept in the user's cache folder."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import re
import time
from collections.abc import Callable, Iterator

import msgspec

from tilewise.base.errors import RunError
from tilewise.base.staging import replace
from tilewise.base.undecodable import UNDECODABLE
from tilewise.machine.terms import Habit, Term, wrong_term

VERSION = 2
_LAST_JOB = "last-job"  # a file whose time says when that was


class MeasuredTile(msgspec.Struct, frozen=True):
    """The best tile of a transposition, and the bytes that were read and written with it in a second."""

    rows: int
    columns: int
    streaming: bool
    bytes_per_second: float


class MeasuredTimes(msgspec.Struct, frozen=True):
    """The time at which each kind of `tilewise measure` was measured last."""

    times: dict[str, str] = {}


class Device(msgspec.Struct, frozen=True):
    """Bytes that the device of a file system took past the page cache in a second, and `when`: since 1970."""

    bytes_per_second: float
    when: float


class Profile(msgspec.Struct):
    """Everything that is kept; `tiles` has keys of `tile_key`, `measured` of `host_key`, `devices` of
    `device_key`, `terms` and `habits` of `machine_key`.

    Version 1 had rates of memory that were wrong where registers are narrower than 64 bytes, and rates of
    products from busy runs: all of it is measured anew.
    """

    version: int = VERSION
    tiles: dict[str, MeasuredTile] = {}
    measured: dict[str, MeasuredTimes] = {}
    devices: dict[str, Device] = {}
    terms: dict[str, dict[str, Term]] = {}
    habits: dict[str, dict[str, Habit]] = {}


def tile_key(host: str, cpu: str, item_bytes: int, threads: int) -> str:
    """Names a measurement of transposition."""
    return "|".join((host, cpu, str(item_bytes), str(threads)))


def host_key(host: str, cpu: str) -> str:
    """Names a machine."""
    return "|".join((host, cpu))


def device_key(host: str, mount: str) -> str:
    """Names a file system as a host sees it."""
    return "|".join((host, mount))


def machine_key(host: str, cpu: str, build: str) -> str:
    """Names a machine as one build of the worker, with its MPI, sees it."""
    return "|".join((host, cpu, build))


def folder() -> str:
    """Where the profile lies: `$XDG_CACHE_HOME/tilewise` or `~/.cache/tilewise`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "tilewise")


def _private() -> bool:
    """Makes our folder, if need be, for us alone; False where it cannot be made, or is somebody else's.

    What others can write into, they can make say anything, and lead our files elsewhere by links.
    """
    try:
        os.makedirs(folder(), mode=0o700, exist_ok=True)
        status = os.stat(folder())
        if status.st_uid == os.geteuid() and status.st_mode & 0o022:
            os.chmod(folder(), 0o700)
    except OSError:
        return False
    return status.st_uid == os.geteuid()


def load() -> Profile:
    """The stored profile; an empty one where there is none, or none of ours that can be read."""
    try:
        if os.stat(folder()).st_uid != os.geteuid():
            return Profile()
        with open(os.path.join(folder(), "profile.json"), "rb") as file:
            profile = msgspec.json.decode(file.read(), type=Profile)
    except (OSError, *UNDECODABLE):
        return Profile()
    if profile.version != VERSION:
        return Profile()
    for terms in profile.terms.values():  # a damaged one must not fail a job
        for name in [name for name, term in terms.items() if wrong_term(name, term)]:
            del terms[name]
    for habits in profile.habits.values():
        for name in [name for name, habit in habits.items() if not 0 < habit.factor < math.inf]:
            del habits[name]
    return profile


def store_tile(key: str, tile: MeasuredTile) -> None:
    """Keeps a tile, replacing the file at once, where the cache can be written."""
    with _locked():
        profile = load()
        profile.tiles[key] = tile
        _store(profile)


def store_device(key: str, device: Device) -> None:
    """Keep a device, likewise."""
    with _locked():
        profile = load()
        profile.devices[key] = device
        _store(profile)


def store_measured(key: str, times: dict[str, str]) -> str:
    """Keep when kinds were measured on a machine; return the file, empty where that failed."""
    with _locked():
        profile = load()
        known = profile.measured.get(key, MeasuredTimes())
        profile.measured[key] = MeasuredTimes({**known.times, **times})
        return _store(profile)


Taught = tuple[dict[str, Term], dict[str, Habit]]


def store_terms(key: str, changed: Callable[[dict[str, Term]], dict[str, Term]]) -> None:
    """Keeps the terms of a machine; `changed` makes them of those there are. Habits go: they were over the
    old ones."""
    store_taught(key, lambda old, _: (changed(old), {}))


def store_taught(key: str, changed: Callable[[dict[str, Term], dict[str, Habit]], Taught]) -> None:
    """Keep terms and habits, which `changed` makes of those there are. Changed terms get a date."""
    with _locked():
        profile = load()
        old, today = profile.terms.get(key, {}), time.strftime("%Y-%m-%d")
        terms, profile.habits[key] = changed(old, profile.habits.get(key, {}))
        profile.terms[key] = {
            name: term if term == old.get(name) else msgspec.structs.replace(term, date=today)
            for name, term in terms.items()
        }
        _store(profile)


def forget_terms() -> int:
    """Drops what runs have taught about all machines, and keeps what was measured before; returns of how many
    terms and habits. RunError where it cannot."""
    with _locked():
        profile = load()
        taught = {
            key: [name for name, term in terms.items() if term.runs] for key, terms in profile.terms.items()
        }
        count = sum(map(len, (*taught.values(), *profile.habits.values())))
        profile.habits = {}
        for key in taught:
            untaught = (
                (name, term.before if term.runs else term) for name, term in profile.terms[key].items()
            )
            profile.terms[key] = {name: term for name, term in untaught if term is not None}
        if count and not _store(profile):
            raise RunError(f"the profile in {folder()} cannot be written")
    return count


def job_ended() -> None:
    """Notes that a job ended just now; nothing where that cannot be kept."""
    with contextlib.suppress(OSError):
        if _private():
            with open(os.path.join(folder(), _LAST_JOB), "wb"):
                pass


def idle_seconds() -> float:
    """Seconds since the last job ended; infinite where nobody knows."""
    try:
        return max(0.0, time.time() - os.stat(os.path.join(folder(), _LAST_JOB)).st_mtime)
    except OSError:
        return math.inf


def measurement_path(host: str, what: str) -> str:
    """Where the last measurement of `what` on `host` lies, whole and with its samples."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{host}-{what}").strip("-.")
    return os.path.join(folder(), f"measured-{name}.json")


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """One of all programs at a time reads and writes the profile; without a lock where none can be had."""
    try:
        if not _private():
            raise PermissionError
        descriptor = os.open(folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _store(profile: Profile) -> str:
    path = os.path.join(folder(), "profile.json")
    return path if write(path, msgspec.json.format(msgspec.json.encode(profile), indent=1)) else ""


def write(path: str, data: bytes) -> bool:
    """Replaces the file at `path`, in our folder, at once; False where that cannot be written."""
    if not _private():
        return False
    try:
        replace(path, data)
    except OSError:
        return False
    return True
