"""Places for outputs: looked at before anything runs, and refused where nothing may be written."""

from __future__ import annotations

import os
import stat
from types import ModuleType

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import listing
from tilewise.files import require_member
from tilewise.files.formats import Format, extension, format_module, split_input, split_name
from tilewise.files.regular import refuse_url, require_utf8

_ORDERS = {"C": "row by row", "F": "column by column"}


_STANDARD_OUTPUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


class Target(msgspec.Struct, frozen=True):
    """A place that was found fit to be written: `path` with links followed, `name` as the user wrote it.

    `mode` is the permission of the file that will be replaced, or None for a new one. `member` is the dataset
    that is asked for; with `keep` the other ones of the old file stay.
    """

    path: str
    name: str
    mode: int | None
    member: str = ""
    keep: bool = False

    @property
    def format(self) -> Format:
        """The facts of its format."""
        facts: Format = module_of(self).FORMAT
        return facts

    @property
    def natural_order(self) -> str:
        """The order of storage that it gets unless another is asked for: `C` or `F`."""
        said = getattr(module_of(self), "order_of_member", None)
        return (said and said(self.member, self.name)) or self.format.orders[0]

    @property
    def container(self) -> bool:
        """True for a dataset of a file that may hold others, which are not to be lost."""
        return bool(self.member) and hasattr(module_of(self), "check_member")


def find_target(name: str, colours: bool = False) -> Target:
    """Resolve an output path, whatever exists there; UsageError where nothing can be written.

    With `colours` it may be a file that cannot hold anything else.
    """
    if not name:
        raise UsageError("the output has an empty name, but a path was expected")
    require_utf8(name)
    refuse_url(name)
    if name in _STANDARD_OUTPUT:
        raise UsageError(f"the output {name} has no extension for its format", "-o - --to npy")
    base, member = split_name(name)
    if name.endswith("]") and split_input(name)[2] is not None:
        whole = split_input(name)[0]
        raise UsageError(f"the output {name} is a slice, but a whole file is written", whole)
    module = format_module(base)
    if not module.FORMAT.numbers or not (colours or 1 in module.FORMAT.planes):
        raise UsageError(
            f"the output {name} cannot be written: {extension(base)} is read-only", "write a .npy file"
        )
    if member:
        require_member(module, name, base, member)
    path = os.path.realpath(base)
    if module.FORMAT.whole:
        target: Target = module.place(path, name, member)
        return target
    folder = os.path.dirname(path)
    old = look_at(path, name)
    check_folder(folder, f"the output {name}")
    if old is None:
        return Target(path, name, None, member)
    if module.FORMAT.folder:
        return Target(path, name, None)
    if stat.S_ISDIR(old.st_mode):
        raise UsageError(f"the output {name} is a folder, but a file name was expected")
    if not stat.S_ISREG(old.st_mode):
        raise UsageError(f"the output {name} exists and is no regular file")
    target = Target(path, name, stat.S_IMODE(old.st_mode), member)
    return msgspec.structs.replace(target, keep=target.container)


def snapshot_name(name: str, sweep: int, last: int) -> str:
    """`out-000100.npy` for `out.npy`; the member stays. As many digits as `last` has, six at least."""
    base, member = split_name(name)
    stem, ending = os.path.splitext(base.rstrip("/"))
    numbered = f"{stem}-{sweep:0{max(6, len(str(last)))}d}{ending}"
    return f"{numbered}:{member}" if member else numbered


def look_at(path: str, name: str) -> os.stat_result | None:
    """Stat what lies at `path`, which the user called `name`; None: nothing. Raises UsageError."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"the output {name} cannot be inspected: {error.strerror}") from None


def require_replaceable(target: Target, force: bool) -> None:
    """Raises UsageError where something exists at `target` that may not be replaced; `force` allows more."""
    module, name = module_of(target), target.name
    if target.format.folder:
        if os.path.exists(target.path):
            module.check_folder(target.path, name, force)
            check_folder(target.path, f"the output {name}")
    elif target.keep:
        module.check_member(target.path, name, target.member, force)
    elif target.mode is not None and not force:
        raise UsageError(f"the output {name} exists already", "--force replaces it")


def written_warnings(target: Target, shape: tuple[int, ...], dtype: str, order: str) -> tuple[str, ...]:
    """Warn of what the user should know of a file that is written so."""
    say = getattr(module_of(target), "written_warnings", None)
    return tuple(say(target.name, shape, dtype, order)) if say is not None else ()


def check_holds(target: Target, dtype: str) -> None:
    """Raises UsageError unless a file of the target's format can hold numbers of `dtype`."""
    known = target.format.numbers
    if dtype not in known:
        raise UsageError(
            f"the output {target.name} cannot hold {dtype}: a {extension(base_of(target))} file holds "
            f"{listing(known, 'or')}",
            f"--dtype {'float64' if 'float64' in known else known[0]} with convert, or a .npy file",
        )


def check_order(target: Target, order: str) -> None:
    """Raises UsageError unless a file of the target's format can be stored in `order`."""
    known = target.format.orders
    if order not in known:
        raise UsageError(
            f"{target.name} cannot be written {_ORDERS[order]}: a {extension(base_of(target))} file is "
            f"{_ORDERS[known[0]]}",
            f"--order {known[0]}",
        )


def check_planes(target: Target, planes: int) -> None:
    """Raises UsageError unless a file of the target's format can hold a picture of so many planes."""
    if planes not in target.format.planes:
        kind = extension(base_of(target))
        what = "colours only" if planes == 1 else "no colours"
        raise UsageError(
            f"the output {target.name} cannot be written: a {kind} file holds {what}", "a .png file"
        )


def check_folder(folder: str, what: str) -> None:
    """Raises UsageError unless new files can be made in `folder`; `what` begins the sentence."""
    if not os.path.isdir(folder):
        kind = "is not a folder" if os.path.lexists(folder) else "does not exist"
        raise UsageError(f"{what} cannot be written: {folder} {kind}")
    if not os.access(folder, os.W_OK | os.X_OK):
        read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
        why = (
            f"{folder} is on a read-only file system"
            if read_only
            else f"no permission to create files in {folder}"
        )
        raise UsageError(f"{what} cannot be written: {why}")


def base_of(target: Target) -> str:
    """The path as the user wrote it: its extension counts, not that of what a link leads to."""
    return target.name[: -len(target.member) - 1] if target.member else target.name


def module_of(target: Target) -> ModuleType:
    return format_module(base_of(target))
