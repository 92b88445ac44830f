"""Outputs: written into a part file beside their future name, which the part takes at one moment.

    create                      ready                  name                   tidy
    .C.npy.….part with header   packed, still ours,    the part is C.npy      old tiles go, the folder
    and full size               of the right size      from here on           is flushed

What fails before `name` leaves what was there as it was. Nothing that comes after it takes the name back.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator

import msgspec

from tilewise.errors import Interrupted, RunError, TilewiseError, UsageError
from tilewise.files import container, tiles
from tilewise.files.claim import Claim
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.guard import DISK_ERRORS, disk_failure, one_line
from tilewise.files.owner import part_path
from tilewise.files.region import Region, Tile
from tilewise.files.room import require_free, written_bytes
from tilewise.files.seal import Seal
from tilewise.files.target import Target, check_holds, module_of
from tilewise.files.unpacked import ENDING
from tilewise.units import bytes_text, listing

_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT)

Run = Callable[[Callable[[], None]], None]  # does the work that it is handed, here or elsewhere


def directly(work: Callable[[], None]) -> None:
    """Does it here and now."""
    work()


class Output(msgspec.Struct):
    """A part file beside its future name: header written, full size, waiting for its numbers.

    `region` is where the numbers go: the part file, the raw file beside it of a format that packs them, or
    tiles in their folder; then `part` is their future manifest. `seals` hold on to what was made. A dataset
    goes into a copy of the file it is added to, which had the `version` then; `None` where there was none.
    """

    target: Target
    region: Region
    part: str
    claim: Claim
    seals: list[Seal]
    planes: int = 1
    version: tuple[int, int, int] | None = None
    tidied: bool = False

    @property
    def packed(self) -> bool:
        """Whether the numbers are packed at the end."""
        return not self.region.tiles and self.region.path != self.part

    def pack(self, sync: bool = False, run: Run = directly) -> bool:
        """Packs the raw file where the format asks for that; whether there was anything to do.

        `run` is handed the work, and may have it done by a child. Raises RunError; `ready` packs too where
        nobody has.
        """
        if not self.packed or len(self.seals) < 2:
            return False
        self._require_ours()
        run(lambda: self._encode(sync))
        self.release()
        self.seals = [Seal(self.part, self.target.name)]
        self.claim.inode = self.seals[0].inode
        return True

    def ready(self, sync: bool = False) -> None:
        """Does all that may fail before the name is given.

        Raises RunError, or VerificationError for a header that is no longer what was written.
        """
        try:
            if not self.pack(sync):
                self._require_ours()
            if self.target.container:
                self._require_version()
            if self.region.tiles:
                self.claim.beside = [*tiles.replaced(self.region), self.part]
                if sync:
                    sync_path(self.part)
        except OSError as error:
            raise disk_failure(f"{self.target.name} cannot be completed, and is removed", error) from None

    def name(self, force: bool = False) -> None:
        """Gives the part file its name, at once and completely.

        Raises RunError when that fails; the old file, if there was one, is still there then. So is one that
        somebody made in the meantime, unless `force`.
        """
        with naming(self.target.name, force):
            if (self.target.mode is None and not force) or self._first_of_container():
                name_new(self.part, self.claim.path)
            else:
                os.replace(self.part, self.claim.path)

    def tidy(self, sync: bool = False) -> list[str]:
        """What is left to do under the new name, once; warnings where it fails."""
        self.release()
        if self.tidied:
            return []
        self.tidied = True
        warnings = []
        if left := self.claim.settle():
            warnings.append(f"{self.target.name} was written, but {listing(left)} could not be removed")
        if sync:
            warnings += synced(os.path.dirname(self.claim.path), self.target.name)
            if self.region.tiles:
                warnings += synced(os.path.dirname(self.target.path), self.target.name)
        return warnings

    def commit(self, sync: bool = False, force: bool = False) -> list[str]:
        """All three; warnings."""
        self.ready(sync)
        self.name(force)
        return self.tidy(sync)

    def discard(self) -> list[str]:
        """Removes what has no name and needs none; returns the paths of what could not be removed."""
        self.release()
        return self.claim.settle()

    def release(self) -> None:
        """Lets go of the files that were held; safe to call twice."""
        for seal in self.seals:
            seal.close()

    def _encode(self, sync: bool) -> None:
        target = self.target
        try:
            more = {"planes": self.planes} if self.planes > 1 else {}
            module_of(target).encode(self.region, self.part, target.name, target.member, **more)
            if sync:
                sync_path(self.part)
            os.unlink(self.region.path)
        except TilewiseError:
            raise
        except OSError as error:
            raise disk_failure(f"{target.name} cannot be packed", error) from None
        except Exception as error:  # whatever the library says about these numbers
            raise RunError(f"{target.name} cannot be packed: {one_line(error)}", "a .npy file") from None

    def _require_ours(self) -> None:
        region = self.region
        sizes: list[int | None]
        if region.tiles:
            sizes = [None, *(tile.offset + _tile_bytes(tile, region.dtype) for tile in region.tiles)]
        elif self.packed:
            sizes = [None, region.bytes][: len(self.seals)]
        elif region.encoding == "text":
            sizes = [None]
        else:
            sizes = [region.file_bytes if region.file_bytes >= 0 else region.offset + region.bytes]
        for seal, size in zip(self.seals, sizes, strict=True):
            if trouble := seal.trouble(size, region.offset if region.encoding == "text" else 0):
                raise trouble

    def _first_of_container(self) -> bool:
        """Whether this file is new, and what somebody else made meanwhile would be lost with --force too."""
        return self.target.container and self.version is None

    def _require_version(self) -> None:
        """Raises RunError where the file that a dataset is added to is no longer the one that was copied."""
        path, name = self.target.path, self.target.name
        with contextlib.suppress(FileNotFoundError):
            try:
                with container.shared(path, name):
                    pass
            except UsageError as error:
                raise RunError(error.message, error.advice) from None
        if container.version_of(path) == self.version:
            return
        raise RunError(
            f"{path} was changed by another program while this ran; it was left so, without {name}",
            "run again when nobody else writes to that file",
        )


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
    format cannot hold, and for a container that another job writes to; nothing is left behind then.
    """
    check_holds(target, dtype)
    folder = os.path.dirname(target.path)
    size = needed_bytes(target, shape, dtype)
    require_free(folder, size, target.name)
    module = module_of(target)
    cut = rectangles if rectangles is not None else [((0, shape[0]), (0, shape[1]))]
    claim = claim_of(target, identity, cut)
    if module is tiles:
        return _create_tiles(target, shape, dtype, identity, cut, size, claim)
    part = claim.undo[0]
    seals: list[Seal] = []
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise cannot_make(error, target, folder) from None
    try:
        version = None
        with os.fdopen(descriptor, "r+b") as file:
            if target.mode is not None:
                os.fchmod(descriptor, target.mode)
            if target.container:
                container.require_alone(target)
            if target.keep:
                import shutil

                version = container.version_of(target.path)
                with container.shared(target.path, target.name) as old:
                    shutil.copyfileobj(old, file, 8 << 20)
        more = {"planes": planes} if planes > 1 else {}
        region = module.create(part, target.name, target.member, shape, dtype, order, header, **more)
        seals.append(Seal(part, target.name, region.offset if region.path == part else 0))
        if region.path != part:
            seals.append(Seal(region.path, target.name))
    except BaseException as error:
        for seal in seals:
            seal.close()
        claim.settle()
        if isinstance(error, (TilewiseError, AssertionError)) or not isinstance(error, Exception):
            raise
        raise no_size(error, target, size) from None
    claim.inode = seals[0].inode
    return Output(target, region, part, claim, seals, planes, version)


def claim_of(target: Target, identity: str, rectangles: list[tiles.Rectangle]) -> Claim:
    """What `create` will make, for whoever clears up after a death in the midst of it."""
    if module_of(target) is tiles:
        return tiles.claim_of(target.path, target.name, len(rectangles), identity)
    part = part_path(target.path, identity)
    return Claim(target.path, target.name, undo=[part, part + ENDING], beside=[part, part + ENDING])


@contextlib.contextmanager
def naming(name: str, force: bool = False) -> Iterator[None]:
    """Around the step that gives `name`: its failures in words."""
    try:
        yield
    except FileExistsError:
        raise RunError(
            f"{name} was made by somebody else while this ran, and was left as it is",
            "run again" if force else "another name, or --force to replace it",
        ) from None
    except OSError as error:
        raise disk_failure(
            f"{name} cannot get its name, and what was made for it is removed", error
        ) from None


def name_new(part: str, path: str) -> None:
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
        with contextlib.suppress(OSError):  # it has its name; who tidies up tries again, and says so
            os.unlink(part)


def needed_bytes(target: Target, shape: tuple[int, int], dtype: str) -> int:
    """What a `shape` matrix of `dtype` takes at least at `target`, with a copy of what stays there."""
    kept = os.path.getsize(target.path) if target.keep else 0
    return written_bytes(module_of(target), shape, dtype) + kept


def grows(target: Target) -> bool:
    """Whether it may take more than that: how much is known when its numbers are written."""
    return hasattr(module_of(target), "LEAST_BYTES")


def _tile_bytes(tile: Tile, dtype: str) -> int:
    rows, columns = tile.rows, tile.columns
    return (rows[1] - rows[0]) * (columns[1] - columns[0]) * ITEMSIZE[dtype]


def _create_tiles(
    target: Target,
    shape: tuple[int, int],
    dtype: str,
    identity: str,
    rectangles: list[tiles.Rectangle],
    size: int,
    claim: Claim,
) -> Output:
    seals: list[Seal] = []
    try:
        region = tiles.create_tiles(target.path, target.name, shape, dtype, rectangles, identity)
        part = claim.beside[0]
        seals.append(Seal(part, target.name))
        seals += [Seal(tile.path, target.name, tile.offset) for tile in region.tiles]
    except BaseException as error:
        for seal in seals:
            seal.close()
        claim.settle()
        # Tiles are made and given their size in one go; what is no matter of size is about the folder.
        if isinstance(error, OSError) and error.errno not in DISK_ERRORS:
            raise cannot_make(error, target, os.path.dirname(target.path)) from None
        if isinstance(error, OSError):
            raise no_size(error, target, size) from None
        raise
    claim.inode = seals[0].inode
    return Output(target, region, part, claim, seals)


def no_size(error: Exception, target: Target, size: int) -> TilewiseError:
    """What to raise where `target` was not given its `size`; an interruption stays one."""
    interruption: BaseException | None = error
    while interruption is not None and not isinstance(interruption, Interrupted):
        interruption = interruption.__cause__ or interruption.__context__
    if interruption is not None:
        return interruption
    what = f"{target.name} cannot be given its size of {bytes_text(size)}"
    return disk_failure(what, error) if isinstance(error, OSError) else RunError(f"{what}: {one_line(error)}")


def sync_path(path: str) -> None:
    """Makes what a file or a folder holds durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def synced(folder: str, name: str) -> list[str]:
    """Makes the names in `folder` durable; a warning where that fails."""
    try:
        sync_path(folder)
    except OSError as error:
        return [f"{name} is complete, but its name may be lost in a crash: {one_line(error)}"]
    return []


def cannot_make(error: OSError, target: Target, folder: str) -> UsageError | RunError:
    """What to raise where nothing can be made in `folder`."""
    if error.errno in _NOT_OURS:
        return UsageError(
            f"the output {target.name} cannot be written: no file can be made in {folder}: {error.strerror}",
            "another folder",
        )
    return disk_failure(f"no file can be made in {folder} for {target.name}", error)
