"""Files between the passes of a field that does not fit in memory: whole states, as they are computed."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from tilewise.base.claim import Claim
from tilewise.base.errors import disk_failure
from tilewise.base.owner import part_path
from tilewise.base.staging import Staged
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region


def state_region(plane: tuple[int, int], dtype: str, order: str) -> Region:
    """A state of a plane of that shape, without a file yet."""
    rows, columns = plane
    size = rows * columns * ITEMSIZE[dtype]
    return Region(path="", name="", rows=rows, columns=columns, dtype=dtype, order=order, file_bytes=size)


class States:
    """Files beside the output called `name`, at `path`: one for each of the regions, which have none yet."""

    def __init__(self, path: str, name: str, identity: str, regions: Sequence[Region]) -> None:
        self._name = name
        self.regions = [
            msgspec.structs.replace(
                region,
                path=part_path(path, identity, f"{number}.state"),
                name=f"the state between passes of {name}",
            )
            for number, region in enumerate(regions)
        ]
        self._staged = [
            Staged(part=region.path, claim=Claim("", "", undo=[region.path])) for region in self.regions
        ]

    @property
    def bytes(self) -> int:
        """What all of them take."""
        return sum(region.bytes for region in self.regions)

    @property
    def claims(self) -> list[Claim]:
        """The files, for whoever clears up when we are killed."""
        return [staged.claim for staged in self._staged]

    def make(self) -> None:
        """Makes the files, of full size. Raises RunError."""
        try:
            for staged, region in zip(self._staged, self.regions, strict=True):
                with os.fdopen(staged.make(), "r+b") as file:
                    file.truncate(region.bytes)
        except OSError as error:
            self.discard()
            raise disk_failure(
                f"no file can be created for the states between passes of {self._name}", error
            ) from None

    def discard(self) -> list[str]:
        """Removes the files; the paths of those that stay."""
        return [path for staged in self._staged for path in staged.discard()]
