"""Outputs: written into part files beside their future names, which these take at one moment.

    create                      ready                  name                   tidy
    .C.npy.….part with header   packed, still ours,    the part is C.npy      old tiles go, the folder
    and full size               of the right size      from here on           is flushed

What fails before `name` leaves what was there as it was. Nothing that comes after it takes the name back.

Design: docs/design/publication.md.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

import msgspec

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
from tilewise.base.owner import hidden, part_path
from tilewise.base.staging import Seal, Staged, expect_old, name_folder, naming, sync_path, synced
from tilewise.base.units import bytes_text, listing
from tilewise.files.disk import require_free
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.headed import ENDING
from tilewise.files.region import New, Rectangle, Region
from tilewise.files.style import PLAIN, Style
from tilewise.files.target import Target, check_holds, check_order, module_of

_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT)

Run = Callable[[Callable[[], None]], None]  # does the work that it is handed, here or elsewhere


def directly(work: Callable[[], None]) -> None:
    """Do it here and now."""
    work()


class Output(Staged, kw_only=True):
    """A future `target`, under a hidden name until `name`: of full size, waiting for its numbers.

    `regions` are where the numbers go: the part file, the raw file beside it of a format that packs them, or
    tiles in their folder; then `part` is their future manifest, or the `whole` folder. A dataset goes into a
    copy of the file it is added to, which had the `version` then; `None` where there was none.
    """

    target: Target
    regions: list[Region]
    planes: int = 1
    extents: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    version: tuple[int, int, int] | None = None
    whole: bool = False
    tidied: bool = False

    @property
    def region(self) -> Region:
        """Where the numbers of a single matrix go."""
        return self.regions[0]

    @property
    def packed(self) -> bool:
        """True where the numbers are packed at the end."""
        return not self.whole and not self.region.tiles and self.region.path != self.part

    def pack(self, sync: bool = False, run: Run = directly) -> bool:
        """Pack the raw file where the format asks for that; returns True if there was anything to do.

        `run` is handed the work, and may have it done by a child. Raises RunError; `ready` packs too where
        nobody has.
        """
        if not self.packed or len(self.seals) < 2:
            return False
        self._require_ours()
        run(lambda: self._encode(sync))
        self.seal(Seal(self.part, self.target.name))
        return True

    def ready(self, sync: bool = False) -> None:
        """Do all that may fail before the name is given.

        Raises RunError, or VerificationError for a header that is no longer what was written.
        """
        try:
            self.pack(sync)
            self._require_ours()
            self._complete(sync)
            if self.whole and os.path.lexists(self.target.path):
                with contextlib.suppress(UsageError):  # the naming says it
                    expect_old(self, self._old_entries())
        except OSError as error:
            raise disk_failure(f"{self.target.name} cannot be completed, and was removed", error) from None

    def name(self, force: bool = False) -> None:
        """Give the part its name, at once and completely.

        Raises RunError when that fails; what had the name is still there then, as it was. So is one that
        somebody made in the meantime, unless `force`, and always a folder with files of somebody else.
        """
        # Of a container, what somebody else made meanwhile would be lost with --force too.
        first = self.target.container and self.version is None
        new = (self.target.mode is None and not force) or first
        try:
            with naming(self.target.name, force):
                if self.whole:
                    name_folder(self, new, force, self._old_entries)
                else:
                    for tile in self.region.tiles:
                        rights.hand_on(self.claim.beside[0], tile.path)  # an old one, if there is any
                    self.take_name(new)
        except UsageError as error:  # it became foreign while the ranks worked
            raise RunError(error.message, error.advice) from None

    def tidy(self, sync: bool = False) -> list[str]:
        """Do once what is left to do under the new name; warnings where it fails."""
        self.release()
        if self.tidied:
            return []
        self.tidied = True
        warnings = []
        if left := self.claim.settle():
            warnings.append(f"{self.target.name} was written, but {listing(left)} could not be removed")
        if sync:
            warnings += synced(os.path.dirname(self.claim.path), self.target.name)
            if self.claim.path != self.target.path:  # a manifest in a folder that may be new
                warnings += synced(os.path.dirname(self.target.path), self.target.name)
        return warnings

    def commit(self, sync: bool = False, force: bool = False) -> list[str]:
        """Run `ready`, `name` and `tidy`; returns warnings."""
        self.ready(sync)
        self.name(force)
        return self.tidy(sync)

    def _require_ours(self) -> None:
        for seal in self.seals:
            if trouble := seal.trouble():
                raise trouble

    def _complete(self, sync: bool) -> None:
        """Write what stands in the part last, and claim what will go; OSError."""
        module = module_of(self.target)
        if self.target.container:
            self._require_version()
        if self.whole:
            module.complete(self.target, self.region, self.part, sync)
        elif self.region.tiles:
            self.claim.beside = [*module.replaced(self.region), self.part]
            if sync:
                sync_path(self.part)

    def _old_entries(self) -> list[str]:
        """The files in the folder that has the name, all of them ours; UsageError where one is not."""
        found: list[str] = module_of(self.target).old_entries(self.target.path, self.target.name)
        return found

    def _encode(self, sync: bool) -> None:
        target = self.target
        try:
            more = (self.names,) if target.format.table else (self.extents,) if self.extents else ()
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

    def _require_version(self) -> None:
        """Raises RunError where the file that a dataset is added to is no longer the one that was copied."""
        path, name = self.target.path, self.target.name
        with contextlib.suppress(FileNotFoundError):
            try:
                with _shared(path, name):
                    pass
            except UsageError as error:
                raise RunError(error.message, error.advice) from None
        if _version_of(path) == self.version:
            return
        raise RunError(
            f"{path} was changed by another program during the run; it was left as it is, without {name}",
            "run again when nothing else writes to that file",
        )


class Temporary(Staged, kw_only=True):
    """A raw file beside an output that gets no name of its own; `region` is where its numbers go."""

    region: Region
    what: str

    @classmethod
    def of(cls, path: str, identity: str, ending: str, region: Region, what: str) -> Temporary:
        """A file for the numbers of `region` beside the output at `path`; not made yet."""
        part = part_path(path, identity, ending)
        placed = msgspec.structs.replace(region, path=part)
        return Temporary(part=part, claim=Claim("", "", undo=[part]), region=placed, what=what)

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return self.region.file_bytes

    def make_whole(self) -> None:
        """Make the file, of full size. Raises RunError."""
        try:
            with os.fdopen(self.make(), "r+b") as file:
                file.truncate(self.bytes)
        except OSError as error:
            raise disk_failure(f"no file can be created for {self.what}", error) from None


class Outputs:
    """The files that one job writes: `named` outputs, the result last, and `temporary` files.

    `again`: an earlier start of the job may have named all but the result already, which ours replace.
    """

    def __init__(self, temporary: Sequence[Temporary] = ()) -> None:
        self.named: list[Output] = []
        self.temporary = list(temporary)
        self.again = False
        self._warnings: list[str] = []

    @property
    def result(self) -> Output:
        """The output that the user asked for."""
        return self.named[-1]

    @property
    def claims(self) -> list[Claim]:
        """The names to be given, and the files that get none."""
        return [each.claim for each in self._all()]

    def make(self, makers: Iterator[Output]) -> None:
        """Have `makers` make the named outputs, and make the other files; nothing is left where one fails."""
        with contextlib.ExitStack() as undo:
            undo.callback(self.discard)
            for each in makers:
                self.named.append(each)
            for file in self.temporary:
                file.make_whole()
            undo.pop_all()

    def keep(self, wanted: Sequence[bool]) -> list[str]:
        """Throw away the outputs before the result that are not `wanted`; warnings where a file stays."""
        *others, result = self.named
        left = [
            path for each, keep in zip(others, wanted, strict=True) if not keep for path in each.discard()
        ]
        kept = [each for each, keep in zip(others, wanted, strict=True) if keep]
        self.named = [*kept, result]
        return [f"{path}, which received no state, could not be removed" for path in left]

    def name_early(self, index: int, sync: bool, force: bool) -> None:
        """Give a complete output its name, unless it has to be packed, which is done at the end.

        Raises RunError; all that have names by then keep them.
        """
        if not self.named[index].packed:
            self._warnings += self.named[index].commit(sync, force or self.again)

    def pack(self, sync: bool = False, run: Run = directly) -> bool:
        """Pack whatever format asks for that; returns True if there was anything to do."""
        packed = [each.pack(sync, run) for each in self._waiting()]
        return any(packed)

    def ready(self, sync: bool = False) -> None:
        """Do all that may fail before the names are given; raises what an output's `ready` does."""
        for each in self._waiting():
            each.ready(sync)

    def name(self, force: bool = False) -> None:
        """Give all outputs their names, the result last; RunError where one cannot get its own."""
        for each in self._waiting():
            each.name(force or (self.again and each is not self.result))

    def tidy(self, sync: bool = False) -> list[str]:
        """Do what is left to do under the new names; warnings."""
        return [*self._warnings, *(warning for each in self.named for warning in each.tidy(sync))]

    def commit(self, sync: bool = False, force: bool = False) -> list[str]:
        """Run `ready`, `name` and `tidy`, so that nothing is named before everything is packed; warnings."""
        self.ready(sync)
        self.name(force)
        return self.tidy(sync)

    def discard(self) -> list[str]:
        """Remove all files without a name; the paths of those that could not be removed."""
        return [path for each in self._all() for path in each.discard()]

    def _all(self) -> list[Staged]:
        return [*self.named, *self.temporary]

    def _waiting(self) -> list[Output]:
        return [each for each in self.named if not each.claim.stands()]


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
    names: tuple[str, ...] = (),
) -> Output:
    """Make the part file for a `shape` matrix of `dtype` beside `target`, named with the job's `identity`.

    `header` asks a text for a first line with its shape, `style` how it is written. `rectangles` says how a
    folder of tiles is cut; one tile without it, or as its format likes. A picture has `planes`, one above the
    other in the rows of `shape`; a stack `extents`, with as many numbers as `shape`; a table may have `names`
    of columns. Raises RunError when the
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
    part = staged.part
    try:
        descriptor = staged.make(0o666 if target.mode is None else 0o600)
    except OSError as error:
        raise cannot_make(error, target, folder) from None
    new = New(
        path=part,
        name=target.name,
        member=target.member,
        shape=shape,
        dtype=dtype,
        order=order,
        header=header,
        style=style,
        names=names,
        planes=planes,
        extents=extents,
    )
    with sized(staged, target, size):
        with os.fdopen(descriptor, "r+b") as file:
            version = _copy_container(target, file)
        region: Region = module_of(target).create(new)
        if region.path != part:
            staged.seal(Seal(part, target.name), Seal(region.path, target.name, size=region.bytes))
        elif region.encoding == "text":
            staged.seal(Seal(part, target.name, region.offset, at_least=region.offset))
        else:
            staged.seal(Seal(part, target.name, region.offset, _file_bytes(region)))
    return Output(
        part=part,
        claim=staged.claim,
        seals=staged.seals,
        target=target,
        regions=[region],
        planes=planes,
        extents=extents,
        names=names,
        version=version,
    )


def reopen(target: Target, part: str, region: Region, head: bytes) -> Output:
    """Open the part file that an earlier start made for `target`; `region` is in it, behind its `head`.

    Head and size are made what they were: what of the numbers is right is for the journal to say. Raises
    RunError.
    """
    size = _file_bytes(region)
    try:
        with os.fdopen(safely.open_file(part, os.O_RDWR), "r+b") as file:
            file.write(head)
            file.truncate(size)
        seal = Seal(part, target.name, region.offset, size)
    except OSError as error:
        raise disk_failure(f"{part}, which an earlier run left, cannot be opened", error) from None
    beside = [part, part + ENDING]
    claim = Claim(target.path, target.name, inode=seal.inode, undo=beside, beside=beside)
    return Output(part=part, claim=claim, seals=[seal], target=target, regions=[region])


def claim_of(target: Target, identity: str, rectangles: list[Rectangle]) -> Claim:
    """Claim what `create` will make, for whoever clears up after a death in the midst of it."""
    if target.format.folder:
        claim: Claim = module_of(target).claim_of(target, rectangles, identity)
        return claim
    return _staged(target, identity).claim


def cut_of(target: Target, shape: tuple[int, int], dtype: str, shares: list[Rectangle]) -> list[Rectangle]:
    """Cut a folder into the ranks' `shares` of the result, unless its format has rules."""
    if not target.format.whole:
        return shares
    cut: list[Rectangle] = module_of(target).rectangles(shape, dtype)
    return cut


def needed_bytes(target: Target, shape: tuple[int, int], dtype: str) -> int:
    """Bytes that a `shape` matrix of `dtype` takes at least at `target`, with a copy of what stays there."""
    kept = os.path.getsize(target.path) if target.keep else 0
    return target.format.least_bytes(shape, dtype) + kept


@contextlib.contextmanager
def sized(staged: Staged, target: Target, size: int) -> Iterator[None]:
    """Around what gives the part its `size`: where that fails nothing is left, and `target` is named."""
    try:
        with staged.or_none():
            yield
    except (TilewiseError, AssertionError):
        raise
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, Interrupted):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            raise cause from None
        what = f"{target.name} cannot be given its size of {bytes_text(size)}"
        if isinstance(error, OSError):
            raise disk_failure(what, error) from None
        raise RunError(f"{what}: {one_line(error)}") from None


def cannot_make(error: OSError, target: Target, folder: str) -> UsageError | RunError:
    """The error to raise where nothing can be made in `folder`."""
    if error.errno in _NOT_OURS:
        return UsageError(
            f"the output {target.name} cannot be written: no file can be created in "
            f"{folder}: {error.strerror}",
            "another folder",
        )
    return disk_failure(f"no file can be created in {folder} for {target.name}", error)


def _staged(target: Target, identity: str) -> Staged:
    return Staged.beside(target.path, identity, target.name, [ENDING])


def _file_bytes(region: Region) -> int:
    return region.file_bytes if region.file_bytes >= 0 else region.offset + region.bytes


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
    with sized(staged, target, size):
        try:
            region: Region = module_of(target).create_tiles(target, shape, dtype, order, rectangles, identity)
            staged.seal(
                Seal(staged.part, target.name),
                *(
                    Seal(
                        tile.path,
                        target.name,
                        tile.offset,
                        region.file_bytes
                        if region.file_bytes >= 0
                        else tile.offset + tile.extent(order) * ITEMSIZE[dtype],
                    )
                    for tile in region.tiles
                    if tile.path
                ),
            )
        except OSError as error:
            # Tiles are made and given their size in one go; what is no matter of size is about the folder.
            if error.errno in DISK_ERRORS:
                raise
            raise cannot_make(error, target, os.path.dirname(target.path)) from None
    return Output(
        part=staged.part, claim=claim, seals=staged.seals, target=target, regions=[region], whole=whole
    )


def _copy_container(target: Target, part: BinaryIO) -> tuple[int, int, int] | None:
    """Copy the file that a dataset is added to into its `part`; the version that it had.

    A copy replaces it, so that nobody else may change it meanwhile. Raises UsageError where somebody does.
    """
    if target.container:
        _require_alone(target)
    if not target.keep:
        return None
    import shutil

    version = _version_of(target.path)
    with _shared(target.path, target.name) as old:
        shutil.copyfileobj(old, part, 8 << 20)
    return version


def _version_of(path: str) -> tuple[int, int, int] | None:
    """Inode, size and time of a file, which change when it does; None where there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


@contextlib.contextmanager
def _shared(path: str, name: str) -> Iterator[BinaryIO]:
    """Open a container that no program holds open for writing, as HDF5's lock tells; else UsageError."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"the output {name} cannot be added: another program has {path} open for writing",
                "wait until it has finished, and run again",
            ) from None
        except OSError:  # a file system without locks
            pass
        yield file


def _require_alone(target: Target) -> None:
    """Raises UsageError where another job is adding to the same container: its part lies beside ours."""
    folder, base = os.path.split(target.path)
    for entry in os.listdir(folder):
        found = hidden(entry)
        if found is None or os.path.join(folder, entry) != part_path(target.path, found.owner.identity):
            continue
        owner = found.owner
        if owner.is_dead() or owner.is_me:
            continue
        raise UsageError(
            f"the output {target.name} cannot be added: another job ({owner.text()}) is writing to {base}",
            f"wait until it has finished, or remove {os.path.join(folder, entry)} if it no longer runs",
        )
