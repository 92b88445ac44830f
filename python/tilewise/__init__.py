"""tilewise: dense matrices that live in files, worked on in parallel over MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewise.api.calls import (
        convert,
        generate,
        info,
        load_study,
        measure,
        multiply,
        norm,
        plan,
        plots,
        records,
        run_study,
        stencil,
        svd,
        transpose,
    )
    from tilewise.api.run import run
    from tilewise.base.errors import (
        RunError,
        Stopped,
        TilewiseError,
        TilewiseWarning,
        UsageError,
        VerificationError,
    )

__version__ = "0.1.0"
__all__ = [
    "RunError",
    "Stopped",
    "TilewiseError",
    "TilewiseWarning",
    "UsageError",
    "VerificationError",
    "__version__",
    "convert",
    "generate",
    "info",
    "load_study",
    "measure",
    "multiply",
    "norm",
    "plan",
    "plots",
    "records",
    "run",
    "run_study",
    "stencil",
    "svd",
    "transpose",
]
_MODULES = {
    "tilewise.api.run": ("run",),
    "tilewise.base.errors": (
        "RunError",
        "Stopped",
        "TilewiseError",
        "TilewiseWarning",
        "UsageError",
        "VerificationError",
    ),
}


def __getattr__(name: str) -> Any:
    """Import a public name when somebody asks for it: the command starts without it."""
    if name in __all__:
        import importlib

        module = next((each for each, names in _MODULES.items() if name in names), "tilewise.api.calls")
        found = getattr(importlib.import_module(module), name)
        if module == "tilewise.api.calls":
            from tilewise.api.signature import document

            document(found)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'tilewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, as TAB completes them, and those that every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
