"""All files that one job writes: its output and, of a stencil, snapshots; they get their names together."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from tilewise.errors import RunError
from tilewise.files import split_name
from tilewise.files.output import Output, Target, create, needed_bytes
from tilewise.files.region import Region
from tilewise.files.room import require_free
from tilewise.files.tiles import Rectangle
from tilewise.units import plural

DIGITS = 6


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """What all of the files hold; see `create`."""

    shape: tuple[int, int]
    dtype: str
    order: str
    header: bool = False
    rectangles: list[Rectangle] | None = None
    planes: int = 1


class Outputs(msgspec.Struct):
    """Part files: one for the output, and one for each snapshot, which may be left without a state."""

    output: Output
    snapshots: list[Output]

    @property
    def paths(self) -> list[str]:
        """Every file that must go when the job fails."""
        return [path for each in self._all() for path in each.paths]

    @property
    def snapshot_regions(self) -> list[Region]:
        """Where the states in between go."""
        return [each.region for each in self.snapshots]

    def keep(self, count: int) -> list[str]:
        """Throws away all snapshots but the first `count`; warnings, where a file cannot be removed."""
        left = [each.discard() for each in self.snapshots[count:]]
        del self.snapshots[count:]
        return [f"{path}, which no state was written to, could not be removed" for path in left if path]

    def pack(self, sync: bool = False) -> bool:
        """Packs whatever format asks for that; whether there was anything to do."""
        packed = [each.pack(sync) for each in self._all()]
        return any(packed)

    def commit(self, sync: bool = False, force: bool = False) -> None:
        """Gives all files their names, the output last; nothing gets one before everything is packed."""
        self.pack(sync)
        named = 0
        try:
            for each in self._all():
                each.commit(sync, force)
                named += 1
        except RunError as error:
            if named:
                error.message += f"; {plural(named, 'snapshot')} got their names"
            raise

    def discard(self) -> str:
        """Removes all part files; returns the path of one that could not be, else an empty string."""
        return next(filter(None, [each.discard() for each in self._all()]), "")

    def _all(self) -> list[Output]:
        return [*self.snapshots, self.output]


def snapshot_name(name: str, sweep: int, last: int) -> str:
    """`out-000100.npy` for `out.npy`; the member stays. As many digits as `last` has, six at least."""
    base, member = split_name(name)
    stem, ending = os.path.splitext(base.rstrip("/"))
    numbered = f"{stem}-{sweep:0{max(DIGITS, len(str(last)))}d}{ending}"
    return f"{numbered}:{member}" if member else numbered


def create_all(target: Target, snapshots: Sequence[Target], form: Form, identity: str) -> Outputs:
    """Makes the part files; raises what `create` does, and leaves nothing behind then.

    The disk must have room for all of them.
    """
    size = needed_bytes(target, form.shape, form.dtype)
    if snapshots:
        what = f"{target.name} and {plural(len(snapshots), 'snapshot')}"
        require_free(os.path.dirname(target.path), size * (1 + len(snapshots)), what)
    made: list[Output] = []
    try:
        for each in (*snapshots, target):
            made.append(
                create(
                    each,
                    form.shape,
                    form.dtype,
                    form.order,
                    identity,
                    header=form.header,
                    rectangles=form.rectangles,
                    planes=form.planes,
                )
            )
    except BaseException:
        for part in made:
            part.discard()
        raise
    return Outputs(made[-1], made[:-1])
