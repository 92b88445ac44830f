"""Outputs: checked before anything runs, written into a part file, given their name only at the very end."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from types import ModuleType

import msgspec

from tilewise.errors import Interrupted, RunError, TilewiseError, UsageError
from tilewise.files import extension, format_module, require_member, split_name, tiles
from tilewise.files.guard import DISK_ERRORS, one_line
from tilewise.files.region import Region
from tilewise.files.regular import require_utf8
from tilewise.files.room import require_free, written_bytes
from tilewise.files.unpacked import ENDING
from tilewise.units import bytes_text, listing

_NAME_MAX = 255  # bytes of one name on every common file system


class Target(msgspec.Struct, frozen=True):
    """A place that was found fit to be written: `path` with links followed, `name` as the user wrote it.

    `mode` is the permission of the file that will be replaced, or None for a new one. `member` is the dataset
    that is asked for; with `keep` the other ones of the old file stay.
    """

    path: str
    name: str
    mode: int | None
    member: str = ""
    keep: bool = False


class Output(msgspec.Struct):
    """A part file beside its future name: header written, full size, waiting for its numbers.

    `region` is where the numbers go: the part file, the raw file beside it of a format that packs them, or
    tiles in their folder (then `part` is empty).
    """

    target: Target
    region: Region
    part: str
    identity: str
    planes: int = 1

    @property
    def paths(self) -> list[str]:
        """Every file that must go when the job fails."""
        if not self.part:
            return [tile.path for tile in self.region.tiles]
        return list(dict.fromkeys((self.part, self.region.path)))

    def commit(self, sync: bool = False, force: bool = False) -> None:
        """Gives the part file its name, at once and completely; `sync` also makes the name durable.

        Raises RunError when that fails; the old file, if there was one, is still there then. So is one that
        somebody made in the meantime, unless `force`.
        """
        try:
            if not self.part:
                tiles.commit_tiles(self.region, self.identity, sync)
                folder = self.target.path
            else:
                self.pack(sync)
                if self.target.mode is None and not force:
                    _name_new(self.part, self.target.path)
                else:
                    os.replace(self.part, self.target.path)
                folder = os.path.dirname(self.target.path)
            if sync:
                sync_path(folder)
                sync_path(os.path.dirname(self.target.path))
        except FileExistsError:
            raise RunError(
                f"{self.target.name} was made by somebody else while this ran, and was left as it is",
                "another name, or --force to replace it",
            ) from None
        except OSError as error:
            raise RunError(
                f"the finished part file {self.part or self.region.path} cannot get the name "
                f"{self.target.name}: {one_line(error)}"
            ) from None

    def pack(self, sync: bool = False) -> bool:
        """Packs the raw file where the format asks for that; whether there was anything to do.

        Raises RunError; `commit` does it too where nobody has.
        """
        if self.region.path == self.part or not os.path.exists(self.region.path) or not self.part:
            return False
        target = self.target
        try:
            more = {"planes": self.planes} if self.planes > 1 else {}
            _module(target).encode(self.region, self.part, target.name, target.member, **more)
            os.unlink(self.region.path)
            if sync:
                sync_path(self.part)
        except TilewiseError:
            raise
        except Exception as error:  # whatever the library says about these numbers
            raise RunError(f"{target.name} cannot be packed: {one_line(error)}") from None
        return True

    def discard(self) -> str:
        """Removes the part file; returns its path when that is not possible, else an empty string."""
        if not self.part:
            return tiles.discard_tiles(self.region)
        left = ""
        for path in self.paths:
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass
            except OSError:
                left = path
        return left


def check_target(name: str, force: bool) -> Target:
    """The place called `name`, if an output may be written there, else UsageError; changes nothing."""
    target = find_target(name)
    require_replaceable(target, force)
    return target


def _name_new(part: str, path: str) -> None:
    """Renames `part` to `path`, but never over what somebody made there in the meantime: FileExistsError."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: look, then rename
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.replace(part, path)
    else:
        os.unlink(part)


def find_target(name: str, colours: bool = False) -> Target:
    """The same, but nobody asks yet whether what exists there may be replaced.

    With `colours` it may be a file that cannot hold anything else.
    """
    if not name:
        raise UsageError("the output has an empty name, but a path was expected")
    require_utf8(name)
    base, member = split_name(name)
    module = format_module(base)
    if not module.NUMBERS or not (colours or 1 in getattr(module, "PLANES", (1,))):
        raise UsageError(
            f"the output {name} cannot be written: {extension(base)} is only read", "write a .npy file"
        )
    if member:
        require_member(module, name, base, member)
    path = os.path.realpath(base)
    folder = os.path.dirname(path)
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    except OSError as error:
        raise UsageError(f"the output {name} cannot be looked at: {error.strerror}") from None
    check_folder(folder, f"the output {name}")
    if old is None:
        return Target(path, name, None, member)
    if module is tiles:
        return Target(path, name, None)
    if stat.S_ISDIR(old.st_mode):
        raise UsageError(f"the output {name} is a folder, but a file name was expected")
    if not stat.S_ISREG(old.st_mode):
        raise UsageError(f"the output {name} exists and is no regular file")
    keep = bool(member) and hasattr(module, "check_member")
    return Target(path, name, stat.S_IMODE(old.st_mode), member, keep)


def require_replaceable(target: Target, force: bool) -> None:
    """Raises UsageError where something exists at `target` that may not be replaced; `force` allows more."""
    module, name = _module(target), target.name
    if module is tiles:
        if os.path.exists(target.path):
            tiles.check_folder_target(target.path, name, force)
            check_folder(target.path, f"the output {name}")
    elif target.keep:
        module.check_member(target.path, name, target.member, force)
    elif target.mode is not None and not force:
        raise UsageError(f"the output {name} exists already", "--force replaces it")


def written_warnings(target: Target, shape: tuple[int, int], dtype: str, order: str) -> tuple[str, ...]:
    """What the user should know of a file that is written so, in sentences."""
    say = getattr(_module(target), "written_warnings", None)
    return tuple(say(target.name, shape, dtype, order)) if say is not None else ()


def check_holds(target: Target, dtype: str) -> None:
    """Raises UsageError unless a file of the target's format can hold numbers of `dtype`."""
    known: tuple[str, ...] = _module(target).NUMBERS
    if dtype not in known:
        raise UsageError(
            f"the output {target.name} cannot hold {dtype}: a {extension(_base(target))} file holds "
            f"{listing(known, 'or')}",
            f"--dtype {known[0]} with convert, or a .npy file",
        )


def check_planes(target: Target, planes: int) -> None:
    """Raises UsageError unless a file of the target's format can hold a picture of so many planes."""
    known: tuple[int, ...] = getattr(_module(target), "PLANES", (1,))
    if planes not in known:
        kind = extension(_base(target))
        what = "colours only" if planes == 1 else "no colours"
        raise UsageError(
            f"the output {target.name} cannot be written: a {kind} file holds {what}", "a .png file"
        )


def check_folder(folder: str, what: str) -> None:
    """Raises UsageError unless new files can be made in `folder`; `what` begins the sentence."""
    if not os.path.isdir(folder):
        kind = "is no folder" if os.path.lexists(folder) else "does not exist"
        raise UsageError(f"{what} cannot be written: {folder} {kind}")
    if not os.access(folder, os.W_OK | os.X_OK):
        read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
        why = (
            f"{folder} is on a read-only file system"
            if read_only
            else f"no permission to make files in {folder}"
        )
        raise UsageError(f"{what} cannot be written: {why}")


def create(
    target: Target,
    shape: tuple[int, int],
    dtype: str,
    order: str,
    identity: str,
    header: bool = False,
    rectangles: list[tiles.Rectangle] | None = None,
    planes: int = 1,
) -> Output:
    """Makes the part file for a `shape` matrix of `dtype` beside `target`, named with the job's `identity`.

    `header` asks a text for a first line with its shape. `rectangles` says how a folder of tiles is cut; one
    tile without it. A picture has `planes`, one above the other in the rows of `shape`. Raises RunError when
    the disk has too little room, with both numbers, or when the file cannot be made, UsageError for what the
    format cannot hold; nothing is left behind then.
    """
    check_holds(target, dtype)
    folder = os.path.dirname(target.path)
    size = needed_bytes(target, shape, dtype)
    require_free(folder, size, target.name)
    module = _module(target)
    if module is tiles:
        return _create_tiles(target, shape, dtype, identity, rectangles, size)
    part = part_path(target.path, identity)
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise cannot_make(error, target, folder) from None
    try:
        with os.fdopen(descriptor, "r+b") as file:
            if target.mode is not None:
                os.fchmod(descriptor, target.mode)
            if target.keep:
                import shutil

                with open(target.path, "rb") as old:
                    shutil.copyfileobj(old, file, 8 << 20)
        more = {"planes": planes} if planes > 1 else {}
        region = module.create(part, target.name, target.member, shape, dtype, order, header, **more)
    except BaseException as error:
        for path in (part, part + ENDING):
            with contextlib.suppress(OSError):
                os.unlink(path)
        if isinstance(error, (TilewiseError, AssertionError)) or not isinstance(error, Exception):
            raise
        raise no_size(error, target, size) from None
    return Output(target, region, part, identity, planes)


def needed_bytes(target: Target, shape: tuple[int, int], dtype: str) -> int:
    """What a `shape` matrix of `dtype` takes at least at `target`, with a copy of what stays there."""
    kept = os.path.getsize(target.path) if target.keep else 0
    return written_bytes(_module(target), shape, dtype) + kept


def grows(target: Target) -> bool:
    """Whether it may take more than that: how much is known when its numbers are written."""
    return hasattr(_module(target), "LEAST_BYTES")


def part_path(path: str, identity: str, ending: str = "part") -> str:
    """The hidden name beside `path` for what is not finished, cut to what file systems take."""
    folder, base = os.path.split(path)
    tail = f".{identity}.{ending}"
    room = _NAME_MAX - len(tail.encode()) - 1 - len(ENDING)
    short = base.encode()[:room].decode(errors="ignore")
    return os.path.join(folder, f".{short}{tail}")


def _base(target: Target) -> str:
    """The path as the user wrote it: its extension counts, not that of what a link leads to."""
    return target.name[: -len(target.member) - 1] if target.member else target.name


def _module(target: Target) -> ModuleType:
    return format_module(_base(target))


def _create_tiles(
    target: Target,
    shape: tuple[int, int],
    dtype: str,
    identity: str,
    rectangles: list[tiles.Rectangle] | None,
    size: int,
) -> Output:
    cut = rectangles if rectangles is not None else [((0, shape[0]), (0, shape[1]))]
    try:
        region = tiles.create_tiles(target.path, target.name, shape, dtype, cut, identity)
    except OSError as error:
        # Tiles are made and given their size in one go; what is no matter of size is about the folder.
        if error.errno in DISK_ERRORS:
            raise no_size(error, target, size) from None
        raise cannot_make(error, target, os.path.dirname(target.path)) from None
    return Output(target, region, "", identity)


def no_size(error: Exception, target: Target, size: int) -> TilewiseError:
    """What to raise where `target` was not given its `size`; an interruption stays one."""
    interruption: BaseException | None = error
    while interruption is not None and not isinstance(interruption, Interrupted):
        interruption = interruption.__cause__ or interruption.__context__
    if interruption is not None:
        return interruption
    return RunError(f"{target.name} cannot be given its size of {bytes_text(size)}: {one_line(error)}")


def sync_path(path: str) -> None:
    """Makes what a file or a folder holds durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_make(error: OSError, target: Target, folder: str) -> UsageError | RunError:
    """What to raise where nothing can be made in `folder`."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT):
        return UsageError(
            f"the output {target.name} cannot be written: no file can be made in {folder}: {error.strerror}"
        )
    return RunError(f"no file can be made in {folder} for {target.name}: {error.strerror}")
