"""Claims: a name that a job means to give, and what must go if it does not, to clear up after its death.

A name is given at one moment, when the part takes it. Whether that moment has come, the file system says:
the inode that has the name is the part's. So the job, and whoever clears up after it, tell the same.

Design: docs/design/publication.md.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

import msgspec

from tilewise.base import journal
from tilewise.base.units import listing


class Claim(msgspec.Struct):
    """One name to be given: `path`, which the user called `name`.

    `inode` is that of the part, 0 before it is made. `undo` goes where the name was not given, `beside` where
    it was; folders stand behind what lies in them. `empty` is a folder that goes with them where nothing else
    lies in it. While a folder changes names in steps, the old one is called `aside`.

    A `journal` that another start of the same job can go on from stays, and the part with it, unless the job
    goes on from `states`: `goes_on` is the command. Nothing `spoilt` is worth that.
    """

    path: str
    name: str
    inode: int = 0
    undo: list[str] = []
    beside: list[str] = []
    empty: str = ""
    aside: str = ""
    journal: str = ""
    goes_on: str = ""
    states: bool = False
    spoilt: bool = False

    def stands(self) -> bool:
        """True where the part has got its name."""
        try:
            return self.inode > 0 and os.lstat(self.path).st_ino == self.inode
        except OSError:
            return False

    def kept(self) -> bool:
        """True where what there is stays for another start."""
        return bool(self.journal) and not self.spoilt and not self.stands() and journal.is_kept(self.journal)

    def settle(self) -> list[str]:
        """Remove what must go; returns the paths of what could not be removed."""
        kept = self.kept()
        if kept and not self.states:
            return []
        stands = self.stands()
        if self.aside and not stands and not os.path.lexists(self.path) and os.path.isdir(self.aside):
            with contextlib.suppress(OSError):
                os.rename(self.aside, self.path)
        left = [path for path in (self.beside if stands else self.undo) if not _removed(path)]
        if self.journal and not kept and not journal.remove(self.journal):
            left.append(self.journal)
        if self.empty and not stands:
            with contextlib.suppress(OSError):
                os.rmdir(self.empty)
        return left


def settle(claims: Sequence[Claim]) -> list[str]:
    """Remove what must go; returns the paths of what could not be removed."""
    return [path for claim in claims for path in claim.settle()]


def named(claims: Sequence[Claim]) -> list[str]:
    """List the names that were given; what the user gave none goes unsaid."""
    return [claim.name for claim in claims if claim.name and claim.stands()]


def kept(claims: Sequence[Claim]) -> list[Claim]:
    """List the claims of which something stays for another start."""
    return [claim for claim in claims if claim.kept()]


def written(names: Sequence[str]) -> str:
    """Say `a.npy was written` or `this was written: a.npy and b.npy`, for the middle of a sentence."""
    if not names:
        return "nothing was written"
    return f"{names[0]} was written" if len(names) == 1 else f"this was written: {listing(list(names))}"


def verdict(claims: Sequence[Claim]) -> str:
    """Say what was written and what was not: `a.npy was written; b.npy was not`; of no names, nothing."""
    given = named(claims)
    missing = [claim.name for claim in claims if claim.name and claim.name not in given]
    if given and missing:
        return f"{written(given)}; {listing(missing)} {_was(missing)} not"
    if given:
        return written(given)
    return f"{listing(missing)} {_was(missing)} not written" if missing else ""


def last_word(claims: Sequence[Claim]) -> str:
    """Say what was written and what was not, and what another start can go on with; of neither, nothing."""
    stays = (f"what was done is kept: {each.goes_on}" for each in kept(claims))
    return "; ".join(filter(None, [verdict(claims), *stays]))


def _was(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 else "were"


def _removed(path: str) -> bool:
    try:
        os.unlink(path)
    except IsADirectoryError:
        with contextlib.suppress(OSError):
            os.rmdir(path)
        return not os.path.lexists(path)
    except OSError:
        return not os.path.lexists(path)
    return True
