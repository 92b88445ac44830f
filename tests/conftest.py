"""What runs beside what, with pytest-xdist, and that a test run under nohup finds what any other does.

tests/cluster        one after the other; they mostly wait, so that others can run beside them
tests/python/slow    one after the other: they fill disks, take memory and kill at given moments
all others           file by file, on whatever is free; what a job left is looked for in its own folder
"""

from __future__ import annotations

import signal
from typing import Any

import pytest

_ONE_BY_ONE = ("tests/cluster/", "tests/python/slow/")
# What is ignored stays so in children, whose tests want it to end them; a function of ours does not.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a scope run one after the other, in one process."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFolder(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = str(nodeid.split("::", maxsplit=1)[0])
            return next((folder for folder in _ONE_BY_ONE if file.startswith(folder)), file)

    return ByFolder(config, log)
