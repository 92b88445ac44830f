"""Slices with gaps in the array that they belong to: written one behind the other, and moved there last."""

from __future__ import annotations

import os
from typing import Any, Literal

from tilewise.base.claim import Claim
from tilewise.base.errors import disk_failure
from tilewise.base.owner import part_path
from tilewise.base.staging import Staged, sync_path
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.files.slices import Part
from tilewise.files.stacks import Slices, dense_steps


class Gaps:
    """A raw file beside the output called `name`, at `path`, for slices that lie in it as `part` says."""

    def __init__(self, path: str, name: str, identity: str, part: Part, dtype: str) -> None:
        assert part.slices is not None
        self._name, self._part, self._dtype = name, part, dtype
        self._slices: Slices = part.slices
        self.path = part_path(path, identity, "slices")
        self.bytes = self._slices.count * part.rows * part.columns * ITEMSIZE[dtype]
        self._staged = Staged(part=self.path, claim=Claim("", "", undo=[self.path]))

    @property
    def claim(self) -> Claim:
        """The file, for whoever clears up when we are killed."""
        return self._staged.claim

    def make(self) -> None:
        """Makes the file, of full size. Raises RunError."""
        try:
            with os.fdopen(self._staged.make(), "r+b") as file:
                file.truncate(self.bytes)
        except OSError as error:
            self.discard()
            raise disk_failure(f"no file can be created for the slices of {self._name}", error) from None

    def region(self) -> Region:
        """Where the first slice goes."""
        part, item = self._part, ITEMSIZE[self._dtype]
        return Region(
            path=self.path,
            name=self._name,
            rows=part.rows,
            columns=part.columns,
            dtype=self._dtype,
            file_bytes=self.bytes,
            steps=[step * item for step in dense_steps(self._slices.extents, part.rows * part.columns)],
        )

    def fill(self, whole: Region, sync: bool) -> None:
        """Moves all slices to their places in the array of `whole`. Raises RunError."""
        import numpy

        part, slices = self._part, self._slices
        order: Literal["C", "F"] = "F" if part.fortran else "C"
        shape = (*slices.extents, part.rows, part.columns)
        try:
            written: Any = numpy.memmap(self.path, self._dtype, "r", 0, shape)
            array: Any = numpy.memmap(whole.path, self._dtype, "r+", whole.offset, part.shape, order)
            numpy.moveaxis(array, slices.axes, range(len(slices.axes)))[...] = written
            if sync:
                array.flush()
                sync_path(whole.path)
        except OSError as error:
            raise disk_failure(f"the slices of {self._name} cannot be put in their places", error) from None

    def discard(self) -> list[str]:
        """Removes the file; its path where that fails."""
        return self._staged.discard()
