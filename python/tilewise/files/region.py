"""Region: where a matrix's numbers lie in a file, or how they are made without one."""

from __future__ import annotations

import msgspec


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """One matrix in one file, as the worker is told about it (`docs/reference/seam.md`).

    `rows` and `columns` are the file's own; `transposed` says that the operation wants the transpose.
    `file_bytes` is the size the file must have (-1: do not check). With a `generator` there is no file and
    `path` is empty.
    """

    path: str
    name: str
    offset: int = 0
    rows: int
    columns: int
    dtype: str
    byte_order: str = "little"
    order: str = "C"
    file_bytes: int = -1
    transposed: bool = False
    generator: str = ""
    seed: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns as the operation sees them: swapped when `transposed`."""
        return (self.columns, self.rows) if self.transposed else (self.rows, self.columns)

    @property
    def bytes(self) -> int:
        """Bytes of the numbers alone, without any header."""
        from tilewise.files.dtypes import ITEMSIZE

        return self.rows * self.columns * ITEMSIZE[self.dtype]
