"""All files that one job writes: its output and, of a stencil, snapshots; they get their names together."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from tilewise.base.claim import Claim
from tilewise.base.units import plural
from tilewise.files.formats import split_name
from tilewise.files.output import Output, Run, create, directly, needed_bytes
from tilewise.files.region import Rectangle, Region
from tilewise.files.room import require_free
from tilewise.files.style import Style
from tilewise.files.target import Target

DIGITS = 6


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """What all of the files hold; see `create`."""

    shape: tuple[int, int]
    dtype: str
    order: str
    header: bool = False
    style: Style = Style()
    rectangles: list[Rectangle] | None = None
    planes: int = 1
    extents: tuple[int, ...] = ()


class Outputs(msgspec.Struct):
    """Part files: one for the output, and one for each snapshot, which may be left without a state.

    `again`: an earlier start of the job may have named snapshots already, which ours replace.
    """

    output: Output
    snapshots: list[Output]
    again: bool = False
    warned: list[str] = []

    @property
    def claims(self) -> list[Claim]:
        """The names to be given."""
        return [each.claim for each in self._all()]

    @property
    def snapshot_regions(self) -> list[Region]:
        """Where the states in between go."""
        return [each.region for each in self.snapshots]

    def keep(self, wanted: Sequence[bool]) -> list[str]:
        """Throws away all snapshots that are not `wanted`; warnings, where a file cannot be removed."""
        left = [
            path
            for each, keep in zip(self.snapshots, wanted, strict=True)
            if not keep
            for path in each.discard()
        ]
        self.snapshots = [each for each, keep in zip(self.snapshots, wanted, strict=True) if keep]
        return [f"{path}, which received no state, could not be removed" for path in left]

    def name_snapshot(self, index: int, sync: bool, force: bool) -> None:
        """Gives a complete snapshot its name, unless it has to be packed, which is done at the end.

        Raises RunError; all that have names by then keep them.
        """
        snapshot = self.snapshots[index]
        if not snapshot.packed:
            self.warned += snapshot.commit(sync, force or self.again)

    def pack(self, sync: bool = False, run: Run = directly) -> bool:
        """Packs whatever format asks for that; whether there was anything to do."""
        packed = [each.pack(sync, run) for each in self._waiting()]
        return any(packed)

    def ready(self, sync: bool = False) -> None:
        """Does all that may fail before the names are given; raises what an output's `ready` does."""
        for each in self._waiting():
            each.ready(sync)

    def name(self, force: bool = False) -> None:
        """Gives all files their names, the output last; RunError where one cannot get its own."""
        for each in self._waiting():
            each.name(force or (self.again and each is not self.output))

    def tidy(self, sync: bool = False) -> list[str]:
        """What is left to do under the new names; warnings."""
        return [*self.warned, *(warning for each in self._all() for warning in each.tidy(sync))]

    def commit(self, sync: bool = False, force: bool = False) -> list[str]:
        """All three, nothing is named before everything is packed; warnings."""
        self.ready(sync)
        self.name(force)
        return self.tidy(sync)

    def discard(self) -> list[str]:
        """Removes all part files without a name; returns the paths of those that could not be removed."""
        return [path for each in self._all() for path in each.discard()]

    def _all(self) -> list[Output]:
        return [*self.snapshots, self.output]

    def _waiting(self) -> list[Output]:
        return [each for each in self._all() if not each.claim.stands()]


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
                    style=form.style,
                    rectangles=form.rectangles,
                    planes=form.planes,
                    extents=form.extents,
                )
            )
    except BaseException:
        for part in made:
            part.discard()
        raise
    return Outputs(made[-1], made[:-1])
