"""Makes new files: a header and then the numbers, as most formats are, or a raw file to be packed later."""

from __future__ import annotations

import errno
import os

from tilewise.files.region import New, Region

ENDING = ".raw"  # behind the name of a part file: where the numbers go of a format that packs them at the end


def create_headed(new: New, head: bytes, byte_order: str = "little") -> Region:
    """Writes `head` into the empty file and gives that its full size; where the numbers go."""
    put_head(new.path, head)
    size = len(head) + new.bytes
    os.truncate(new.path, size)
    return new.region(offset=len(head), order=new.order, byte_order=byte_order, file_bytes=size)


def raw_beside(new: New) -> Region:
    """Makes a raw file of full size beside the part file; where the numbers go. Raises OSError."""
    path = new.path + ENDING
    with open(path, "xb") as file:
        file.truncate(new.bytes)
    return new.region(path=path, order=new.order, file_bytes=new.bytes)


def put_head(path: str, head: bytes) -> None:
    """Writes `head` over the first bytes of the file at `path`, all of it, and reads it back; OSError."""
    with open(path, "r+b", buffering=0) as file:
        rest = memoryview(head)
        while rest:
            count = file.write(rest)
            if not count:
                raise OSError(errno.EIO, "nothing was written", path)
            rest = rest[count:]
    with open(path, "rb", buffering=0) as file:
        start = b""
        while len(start) < len(head) and (more := file.read(len(head) - len(start))):
            start += more
    if start != head:
        raise OSError(errno.EIO, "its header was not kept by the file system", path)
