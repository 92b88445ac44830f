"""Programs that are built with the package, and packages that are not installed with it."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from tilewise.base.errors import UsageError


def command(words: Sequence[str]) -> list[str]:
    """Return `tilewise words…` by this Python, with no modules from the folder that it is started in."""
    return [sys.executable, "-P", "-m", "tilewise", *words]


def places(name: str) -> list[str]:
    """Return every place where the installed package's program `name` may lie, best first."""
    import tilewise

    # An editable install keeps the sources and the built files in two folders.
    folders = [*tilewise.__path__, os.path.join(sysconfig.get_paths()["platlib"], "tilewise")]
    places = [os.path.join(folder, inner, name) for folder in folders for inner in ("bin", "", "libexec")]
    return [*places, os.path.join(sys.prefix, "bin", name)]


def first(paths: list[str]) -> str | None:
    """Return the first of `paths` that can be executed, or None."""
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def installing(package: str, extra: str = "") -> str:
    """Return the command that installs `package`, which `extra` names where there is one, for this Python."""
    import shlex
    import shutil

    if os.path.exists(os.path.join(sys.prefix, "pipx_metadata.json")):
        return f"pipx inject tilewise {package}"
    wanted = shlex.quote(f"tilewise[{extra}]" if extra else package)
    name = os.path.basename(sys.executable)
    python = name if shutil.which(name) == sys.executable else shlex.quote(sys.executable)
    if find_spec("pip") is None:  # as in environments and tools that uv has made
        return f"uv pip install --python {python} {wanted}"
    marked = os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
    site = " --user --break-system-packages" if sys.prefix == sys.base_prefix and marked else ""
    return f"{python} -m pip install{site} {wanted}"


def lacking(package: str, extra: str = "") -> list[str]:
    """Warn that the numbers of a file cannot be read without `package`; no warnings where it is there."""
    said = f"reading its numbers needs the package {package}: {installing(package, extra)}"
    return [] if find_spec(package) else [said]


def optional(module: str, extra: str, what: str) -> Any:
    """Return the module called `module`, which installing `extra` brings.

    Where it is missing, raises UsageError that tells how to get it; `what` needs it, and begins the sentence.
    """
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise UsageError(
            f"{what} needs the package {package}, which is not installed", installing(package, extra)
        ) from None
