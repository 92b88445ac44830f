"""The stored profile: what was measured on this machine once, kept in the user's cache folder."""

from __future__ import annotations

import contextlib
import os

import msgspec


class Peak(msgspec.Struct, frozen=True):
    """Gemm's measured rate in floating-point operations a second, and the BLAS kernel that reached it."""

    flops_per_second: float
    kernel: str


class Tile(msgspec.Struct, frozen=True):
    """The best tile of a transposition, and the bytes that were read and written with it in a second."""

    rows: int
    columns: int
    streaming: bool
    bytes_per_second: float


class Profile(msgspec.Struct):
    """Everything that is kept; `peaks` has keys of `peak_key`, `tiles` of `tile_key`."""

    version: int = 1
    peaks: dict[str, Peak] = {}
    tiles: dict[str, Tile] = {}


def peak_key(host: str, cpu: str, dtype: str, cores: int, forced: str) -> str:
    """Names a measurement: `forced` is the BLAS core type that the environment asks for, or empty."""
    return "|".join((host, cpu, dtype, str(cores), forced))


def tile_key(host: str, cpu: str, item_bytes: int, threads: int) -> str:
    """Names a measurement of transposition."""
    return "|".join((host, cpu, str(item_bytes), str(threads)))


def folder() -> str:
    """Where the profile lies: `$XDG_CACHE_HOME/tilewise` or `~/.cache/tilewise`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "tilewise")


def load() -> Profile:
    """The stored profile; an empty one where there is none, or none that can be read."""
    try:
        with open(os.path.join(folder(), "profile.json"), "rb") as file:
            found = msgspec.json.decode(file.read(), type=Profile)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return Profile()
    return found if found.version == 1 else Profile()


def store_peak(key: str, peak: Peak) -> None:
    """Adds one measurement, replacing the file at once; does nothing where the cache cannot be written."""
    profile = load()
    profile.peaks[key] = peak
    _store(profile)


def store_tile(key: str, tile: Tile) -> None:
    """The same for a tile."""
    profile = load()
    profile.tiles[key] = tile
    _store(profile)


def _store(profile: Profile) -> None:
    import tempfile

    with contextlib.suppress(OSError):
        os.makedirs(folder(), exist_ok=True)
        descriptor, path = tempfile.mkstemp(dir=folder(), prefix=".profile-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(profile), indent=1))
            os.replace(path, os.path.join(folder(), "profile.json"))
        except OSError:
            os.unlink(path)
