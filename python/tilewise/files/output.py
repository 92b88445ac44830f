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
from collections.abc import Callable

from tilewise.base import rights, safely
from tilewise.base.claim import Claim
from tilewise.base.errors import (
    DISK_ERRORS,
    Interrupted,
    RunError,
    TilewiseError,
    UsageError,
    disk_failure,
    one_line,
)
from tilewise.base.owner import part_path
from tilewise.base.seal import Seal
from tilewise.base.staging import Staged, expect_old, name_folder, naming, sync_path, synced
from tilewise.base.units import bytes_text, listing
from tilewise.files import container
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.headed import ENDING
from tilewise.files.region import New, Rectangle, Region, Tile
from tilewise.files.room import require_free
from tilewise.files.style import PLAIN, Style
from tilewise.files.target import Target, check_holds, check_order, module_of

_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT)

Run = Callable[[Callable[[], None]], None]  # does the work that it is handed, here or elsewhere


def directly(work: Callable[[], None]) -> None:
    """Does it here and now."""
    work()


class Output(Staged, kw_only=True):
    """A part file beside its future name: header written, full size, waiting for its numbers.

    `region` is where the numbers go: the part file, the raw file beside it of a format that packs them, or
    tiles in their folder; then `part` is their future manifest, or the `whole` folder. A dataset goes into a
    copy of the file it is added to, which had the `version` then; `None` where there was none.
    """

    target: Target
    region: Region
    planes: int = 1
    extents: tuple[int, ...] = ()
    version: tuple[int, int, int] | None = None
    whole: bool = False
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
            if self.whole:
                module_of(self.target).complete(self.target, self.region, self.part, sync)
                if os.path.lexists(self.target.path):
                    with contextlib.suppress(UsageError):  # the naming says it
                        self._expect_old()
            elif self.region.tiles:
                self.claim.beside = [*module_of(self.target).replaced(self.region), self.part]
                if sync:
                    sync_path(self.part)
        except OSError as error:
            raise disk_failure(f"{self.target.name} cannot be completed, and was removed", error) from None

    def name(self, force: bool = False) -> None:
        """Gives the part file its name, at once and completely.

        Raises RunError when that fails; the old file, if there was one, is still there then. So is one that
        somebody made in the meantime, unless `force`.
        """
        new = (self.target.mode is None and not force) or self._first_of_container()
        try:
            with naming(self.target.name, force):
                if self.whole:
                    name_folder(self, new, force, self._expect_old)
                else:
                    for tile in self.region.tiles:
                        rights.hand_on(self.claim.beside[0], tile.path)  # an old one, if there is any
                    self.take_name(new)
        except UsageError as error:  # it became foreign while the ranks worked
            raise RunError(error.message, error.advice) from None

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

    def _encode(self, sync: bool) -> None:
        target = self.target
        try:
            more = (self.extents,) if self.extents else ()
            module_of(target).encode(self.region, self.part, self.planes, *more)
            if sync:
                sync_path(self.part)
            os.unlink(self.region.path)
        except TilewiseError:
            raise
        except OSError as error:
            raise disk_failure(f"{target.name} cannot be packed", error) from None
        except Exception as error:  # whatever the library says about these numbers
            raise RunError(f"{target.name} cannot be packed: {one_line(error)}", "a .npy file") from None

    def _expect_old(self) -> None:
        """Behind the exchange the old folder lies where the new one was made, or aside."""
        expect_old(self, module_of(self.target).old_entries(self.target.path, self.target.name))

    def _require_ours(self) -> None:
        region = self.region
        sizes: list[int | None]
        if region.tiles:
            sizes = [None, *(_tile_bytes(tile, region) for tile in region.tiles if tile.path)]
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
            f"{path} was changed by another program during the run; it was left as it is, without {name}",
            "run again when nothing else writes to that file",
        )


def create(
    target: Target,
    shape: tuple[int, int],
    dtype: str,
    order: str,
    identity: str,
    header: bool = False,
    style: Style = PLAIN,
    rectangles: list[Rectangle] | None = None,
    planes: int = 1,
    extents: tuple[int, ...] = (),
) -> Output:
    """Makes the part file for a `shape` matrix of `dtype` beside `target`, named with the job's `identity`.

    `header` asks a text for a first line with its shape, `style` how it is written. `rectangles` says how a
    folder of tiles is cut; one tile without it, or as its format likes. A picture has `planes`, one above the
    other in the rows of `shape`; a stack `extents`, with as many numbers as `shape`. Raises RunError when the
    disk has too little space, with both numbers, or when the file cannot be made, UsageError for what the
    format cannot hold, in type or order, and for a container that another job writes to; nothing is left
    behind then.
    """
    check_holds(target, dtype)
    check_order(target, order)
    folder = os.path.dirname(target.path)
    size = needed_bytes(target, shape, dtype)
    require_free(folder, size, target.name)
    if target.format.folder:
        uncut = [((0, shape[0]), (0, shape[1]))]
        cut = rectangles if rectangles is not None else cut_of(target, shape, dtype, uncut)
        return _create_tiles(target, shape, dtype, order, identity, cut, size)
    staged = _staged(target, identity)
    part, seals = staged.part, staged.seals
    try:
        descriptor = staged.make(0o666 if target.mode is None else 0o600)
    except OSError as error:
        raise cannot_make(error, target, folder) from None
    try:
        version = None
        with os.fdopen(descriptor, "r+b") as file:
            if target.container:
                container.require_alone(target)
            if target.keep:
                import shutil

                version = container.version_of(target.path)
                with container.shared(target.path, target.name) as old:
                    shutil.copyfileobj(old, file, 8 << 20)
        new = New(
            path=part,
            name=target.name,
            member=target.member,
            shape=shape,
            dtype=dtype,
            order=order,
            header=header,
            style=style,
            planes=planes,
            extents=extents,
        )
        region: Region = module_of(target).create(new)
        seals.append(Seal(part, target.name, region.offset if region.path == part else 0))
        if region.path != part:
            seals.append(Seal(region.path, target.name))
    except BaseException as error:
        staged.discard()
        if isinstance(error, (TilewiseError, AssertionError)) or not isinstance(error, Exception):
            raise
        raise no_size(error, target, size) from None
    staged.claim.inode = seals[0].inode
    return Output(
        part=part,
        claim=staged.claim,
        seals=seals,
        target=target,
        region=region,
        planes=planes,
        extents=extents,
        version=version,
    )


def reopen(target: Target, part: str, region: Region, head: bytes) -> Output:
    """The part file that an earlier start made for `target`; `region` is in it, behind its `head`.

    Head and size are made what they were: what of the numbers is right is for the journal to say. Raises
    RunError.
    """
    size = region.file_bytes if region.file_bytes >= 0 else region.offset + region.bytes
    try:
        with os.fdopen(safely.open_file(part, os.O_RDWR), "r+b") as file:
            file.write(head)
            file.truncate(size)
        seal = Seal(part, target.name, region.offset)
    except OSError as error:
        raise disk_failure(f"{part}, which an earlier run left, cannot be opened", error) from None
    beside = [part, part + ENDING]
    claim = Claim(target.path, target.name, inode=seal.inode, undo=beside, beside=beside)
    return Output(part=part, claim=claim, seals=[seal], target=target, region=region)


def claim_of(target: Target, identity: str, rectangles: list[Rectangle]) -> Claim:
    """What `create` will make, for whoever clears up after a death in the midst of it."""
    if target.format.folder:
        claim: Claim = module_of(target).claim_of(target, rectangles, identity)
        return claim
    return _staged(target, identity).claim


def cut_of(target: Target, shape: tuple[int, int], dtype: str, shares: list[Rectangle]) -> list[Rectangle]:
    """How a folder is cut: into the ranks' `shares` of the result, unless its format has rules."""
    if not target.format.whole:
        return shares
    cut: list[Rectangle] = module_of(target).rectangles(shape, dtype)
    return cut


def _staged(target: Target, identity: str) -> Staged:
    return Staged.beside(target.path, identity, target.name, [ENDING])


def needed_bytes(target: Target, shape: tuple[int, int], dtype: str) -> int:
    """What a `shape` matrix of `dtype` takes at least at `target`, with a copy of what stays there."""
    kept = os.path.getsize(target.path) if target.keep else 0
    return target.format.least_bytes(shape, dtype) + kept


def _tile_bytes(tile: Tile, region: Region) -> int:
    """Of its file."""
    if region.file_bytes >= 0:
        return region.file_bytes
    return tile.offset + tile.extent(region.order) * ITEMSIZE[region.dtype]


def _create_tiles(
    target: Target,
    shape: tuple[int, int],
    dtype: str,
    order: str,
    identity: str,
    rectangles: list[Rectangle],
    size: int,
) -> Output:
    claim = claim_of(target, identity, rectangles)
    whole = target.format.whole
    staged = Staged(part=part_path(target.path, identity) if whole else claim.beside[0], claim=claim)
    part, seals = staged.part, staged.seals
    try:
        region: Region = module_of(target).create_tiles(target, shape, dtype, order, rectangles, identity)
        seals.append(Seal(part, target.name))
        seals += [Seal(tile.path, target.name, tile.offset) for tile in region.tiles if tile.path]
    except BaseException as error:
        staged.discard()
        # Tiles are made and given their size in one go; what is no matter of size is about the folder.
        if isinstance(error, OSError) and error.errno not in DISK_ERRORS:
            raise cannot_make(error, target, os.path.dirname(target.path)) from None
        if isinstance(error, OSError):
            raise no_size(error, target, size) from None
        raise
    claim.inode = seals[0].inode
    return Output(part=part, claim=claim, seals=seals, target=target, region=region, whole=whole)


def no_size(error: Exception, target: Target, size: int) -> TilewiseError:
    """What to raise where `target` was not given its `size`; an interruption stays one."""
    interruption: BaseException | None = error
    while interruption is not None and not isinstance(interruption, Interrupted):
        interruption = interruption.__cause__ or interruption.__context__
    if interruption is not None:
        return interruption
    what = f"{target.name} cannot be given its size of {bytes_text(size)}"
    return disk_failure(what, error) if isinstance(error, OSError) else RunError(f"{what}: {one_line(error)}")


def cannot_make(error: OSError, target: Target, folder: str) -> UsageError | RunError:
    """What to raise where nothing can be made in `folder`."""
    if error.errno in _NOT_OURS:
        return UsageError(
            f"the output {target.name} cannot be written: no file can be created in "
            f"{folder}: {error.strerror}",
            "another folder",
        )
    return disk_failure(f"no file can be created in {folder} for {target.name}", error)
