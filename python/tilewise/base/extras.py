"""Packages that are not installed with tilewise: whoever lacks one is told how to get it."""

from __future__ import annotations

import importlib
from typing import Any

from tilewise.base.errors import UsageError


def optional(module: str, extra: str, what: str) -> Any:
    """The module called `module`, which installing `extra` brings; UsageError where it is missing.

    `what` needs it, and begins the sentence.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise UsageError(
            f"{what} needs the package {package}, which is not installed", f"pip install 'tilewise[{extra}]'"
        ) from None
