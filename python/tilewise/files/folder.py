"""Output folders: several .npy files and a manifest, made beside the future name and swapped in last."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Sequence

import msgspec

from tilewise.base.claim import Claim
from tilewise.base.errors import UsageError, disk_failure
from tilewise.base.owner import part_path
from tilewise.base.staging import ASIDE, Seal, sync_path, within
from tilewise.base.undecodable import UNDECODABLE
from tilewise.files.checks import MANIFEST, is_plain, printable
from tilewise.files.disk import require_free
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import FORMATS, npy
from tilewise.files.generated import parse_name
from tilewise.files.headed import put_head
from tilewise.files.output import Output, cannot_make, sized
from tilewise.files.region import Region
from tilewise.files.regular import open_regular, require_utf8
from tilewise.files.target import Target, check_folder, look_at

VERSION = 1
_BYTES_MAX = 1 << 20


class FolderFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the folder; `shape` has one extent where the file holds a list of numbers."""

    file: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def rows_columns(self) -> tuple[int, int]:
        """Its shape as a matrix: a list is one row, and slices lie one above the other."""
        return math.prod(self.shape[:-1]), self.shape[-1]

    @property
    def bytes(self) -> int:
        """Bytes of its numbers."""
        rows, columns = self.rows_columns
        return rows * columns * ITEMSIZE[self.dtype]


class Listing(msgspec.Struct, forbid_unknown_fields=True):
    """The content of `manifest.json`: its version, the command that made the folder, and its files."""

    tilewise: int
    command: str
    files: list[FolderFile]


class Folder(Output, kw_only=True):
    """A hidden folder beside the future one, with every file in it at its full size.

    `regions` are where the numbers go, in the sequence of `listing.files`; `seals` hold on to the folder and
    to its files.
    """

    listing: Listing
    whole: bool = True

    def cut(self, pieces: list[FolderFile]) -> None:
        """Give the files the shapes of `pieces`, which are no larger than what there was room for.

        Raises RunError when it cannot.
        """
        try:
            for index, piece in enumerate(pieces):
                self.regions[index] = npy.cut_array(self.regions[index], piece.shape)
            self.hold()
        except OSError as error:
            raise disk_failure(
                f"the files of {self.target.name} cannot be cut to what was found", error
            ) from None
        self.listing.files = pieces

    def hold(self) -> None:
        """Seal the folder and its files as they are now; OSError."""
        files = (Seal(each.path, each.name, each.offset, each.file_bytes) for each in self.regions)
        self.seal(Seal(self.part, self.target.name), *files)

    def _old_entries(self) -> list[str]:
        return sorted(_replaceable(self.target))

    def _complete(self, sync: bool) -> None:
        path = os.path.join(self.part, MANIFEST)
        with open(path, "xb"):
            pass
        put_head(path, msgspec.json.format(msgspec.json.encode(self.listing), indent=1) + b"\n")
        if sync:
            # The ranks have flushed their numbers, but a header may have changed since.
            for each in (MANIFEST, *(each.file for each in self.listing.files)):
                sync_path(os.path.join(self.part, each))
            sync_path(self.part)


def find_folder(name: str) -> Target:
    """The place called `name`, with or without a slash behind it, if a folder can be made there.

    Changes nothing, and asks nobody yet whether a folder that is there may be replaced. Raises UsageError.
    """
    if not name:
        raise UsageError("the output has an empty name, but the name of a folder was expected")
    if parse_name(name) is not None:
        raise UsageError(f"the output {name} is the name of generated numbers, but a folder was expected")
    require_utf8(name)
    bare = name.rstrip("/") or "/"
    ending = os.path.splitext(bare)[1].lower()
    if bare == name and ending in FORMATS:
        raise UsageError(
            f"the output {name} is named like a file, but a folder for several files is made",
            f"-o {os.path.splitext(bare)[0]}/",
        )
    path = os.path.realpath(bare)
    old = look_at(path, name)
    if old is not None and not stat.S_ISDIR(old.st_mode):
        raise UsageError(f"the output {name} exists and is not a folder, but a folder was expected")
    check_folder(os.path.dirname(path), f"the output {name}")
    return Target(path, bare, None if old is None else stat.S_IMODE(old.st_mode))


def require_replaceable(target: Target, force: bool, inputs: Sequence[Region] = ()) -> None:
    """Raises UsageError where a folder at `target` may not be replaced.

    With `force` one may that carries our manifest and holds nothing else than that names, so that no mistake
    in a name can cost a file that is not ours; nor one of `inputs`, which would be gone afterwards.
    """
    if target.mode is None:
        return
    if not force:
        raise UsageError(f"the output {target.name} exists already", "--force replaces it")
    _replaceable(target)
    for region in inputs:
        paths = [region.path, *(tile.path for tile in region.tiles)]
        if any(path and os.path.realpath(path).startswith(f"{target.path}/") for path in paths):
            raise UsageError(
                f"the input {region.name} lies in the output {target.name}, which would be replaced",
                "another name after -o",
            )
    check_folder(target.path, f"the output {target.name}")


def create(
    target: Target, pieces: list[FolderFile], command: str, identity: str, cut: bool = False
) -> Folder:
    """Makes the hidden folder beside `target`, with a file with header and full size for each of `pieces`.

    With `cut` the files are as large as can be, and will be cut: they may be larger than the disk.
    Raises RunError when the disk has too little space, with both numbers, or when a file cannot be made;
    nothing is left behind then.
    """
    parent = os.path.dirname(target.path)
    size = sum(piece.bytes for piece in pieces)
    if not cut:
        require_free(parent, size, target.name)
    claim = claim_of(target, pieces, identity)
    listing = Listing(VERSION, command, pieces)
    made = Folder(part=claim.undo[-1], claim=claim, target=target, listing=listing, regions=[])
    try:
        os.mkdir(made.part)
    except OSError as error:
        raise cannot_make(error, target, parent) from None
    with sized(made, target, size):
        for piece in pieces:
            path = os.path.join(made.part, piece.file)
            with open(path, "xb"):
                pass
            made.regions.append(
                npy.create_array(path, f"{target.name}/{piece.file}", piece.shape, piece.dtype)
            )
        made.hold()
    return made


def claim_of(target: Target, pieces: list[FolderFile], identity: str) -> Claim:
    """Claim what `create` will make, for whoever clears up after a death in the midst of it."""
    part = part_path(target.path, identity)
    undo = within(part, [*(piece.file for piece in pieces), MANIFEST])
    return Claim(target.path, target.name, undo=undo, aside=part + ASIDE)


def read_listing(path: str, name: str) -> Listing:
    """The manifest of the folder at `path`; UsageError unless it is one of ours."""
    manifest = os.path.join(path, MANIFEST)
    if not os.path.lexists(manifest):
        raise UsageError(f"{name} is a folder without a {MANIFEST} by tilewise, so it is not replaced")
    file, size = open_regular(manifest, f"{name}/{MANIFEST}")
    with file:
        text = file.read(_BYTES_MAX + 1)
    try:
        if size > _BYTES_MAX:
            raise msgspec.ValidationError(f"it has {size} bytes")
        listing = msgspec.json.decode(text, type=Listing)
        if listing.tilewise != VERSION:
            raise msgspec.ValidationError(f"it is of version {listing.tilewise}, but {VERSION} was expected")
        if strange := [piece.file for piece in listing.files if not is_plain(piece.file)]:
            raise msgspec.ValidationError(f"it names {strange[0]!r}, which is not a file of its folder")
    except UNDECODABLE as error:
        raise UsageError(
            f"{name}/{MANIFEST} is not a manifest by tilewise, so nothing is replaced: "
            f"{printable(str(error))}"
        ) from None
    return listing


def _replaceable(target: Target) -> set[str]:
    """Names of the files in the folder at `target`, all of them ours; UsageError where one is not."""
    name = f"the output {target.name}"
    known = {MANIFEST, *(piece.file for piece in read_listing(target.path, name).files)}
    foreign = sorted(set(os.listdir(target.path)) - known)
    if foreign:
        raise UsageError(
            f"{name} holds {printable(foreign[0])}, which is not part of it; it is not replaced",
            "another name, or move that file away",
        )
    return known
