"""Inputs that ranks cannot read in parallel as they are: decoded into raw files for the time of the job."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

import msgspec

from tilewise.base.claim import Claim
from tilewise.base.owner import part_path
from tilewise.files.region import Region, Source, is_encoded


class Decoding:
    """Raw files in a `folder` that has room for matrices, one for each encoded input."""

    def __init__(self, inputs: list[Region], folder: str, identity: str) -> None:
        self._inputs = inputs
        self._folder = folder
        self._identity = identity
        self._made: list[str] = []
        self.seconds = 0.0

    @property
    def claim(self) -> Claim:
        """The files that may be made, for whoever clears up when we are killed."""
        endings = ["raw", *(f"{number}.raw" for number in range(1, len(self._inputs)))]
        paths = [
            part_path(os.path.join(self._folder, os.path.basename(source.path)), self._identity, ending)
            for source in self._inputs
            if is_encoded(source)
            for ending in endings
        ]
        return Claim("", "", undo=paths)

    def decode(self, memory: int | None, check: Callable[[], None]) -> list[Region]:
        """The inputs, each encoded one replaced by its raw file, as `decoded` makes and raises it."""
        begin = time.perf_counter()
        regions = []
        for source in self._inputs:
            if isinstance(source, Source) and source.encoded:
                from tilewise.files.decoded import decoded

                raw: Region = decoded(source, self._folder, self._identity, memory, check)
                self._made.append(raw.path)
                raw = msgspec.structs.replace(raw, transposed=source.transposed)
            else:
                raw = source
            regions.append(_said_of_slices(raw, source))
        self.seconds = time.perf_counter() - begin if self._made else 0.0
        return regions

    def remove(self) -> None:
        """Removes the raw files; safe at any time."""
        for path in self._made:
            with contextlib.suppress(OSError):
                os.unlink(path)
        self._made = []


def _said_of_slices(region: Region, source: Region) -> Region:
    """`region` by the name that ranks give to a slice of `source`, where that is a stack."""
    if not isinstance(source, Source) or not source.stack or source.part is None:
        return region
    return msgspec.structs.replace(region, name=source.part.slice_name(source.name))
