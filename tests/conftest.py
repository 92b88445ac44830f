"""What runs beside what, with pytest-xdist.

tests/cluster        one after the other; they mostly wait, so that others can run beside them
tests/python/slow    one after the other: they fill disks, take memory and kill at given moments
all others           file by file, on whatever is free; what a job left is looked for in its own folder
"""

from __future__ import annotations

from typing import Any

import pytest

_ONE_BY_ONE = ("tests/cluster/", "tests/python/slow/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a scope run one after the other, in one process."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFolder(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = str(nodeid.split("::", maxsplit=1)[0])
            return next((folder for folder in _ONE_BY_ONE if file.startswith(folder)), file)

    return ByFolder(config, log)
