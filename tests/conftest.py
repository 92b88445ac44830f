"""What runs beside what, with pytest-xdist.

tests/cluster              one after the other; they mostly wait, so that others can run beside them
tests/python/{job,slow}    one after the other: many look at what is left on the machine
all others                 file by file, on whatever is free
"""

from __future__ import annotations

from typing import Any

import pytest

_ONE_BY_ONE = ("tests/cluster/", "tests/python/job/", "tests/python/slow/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a scope run one after the other, in one process."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFolder(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = str(nodeid.split("::", maxsplit=1)[0])
            return "cluster" if "cluster/" in file else "job" if file.startswith(_ONE_BY_ONE) else file

    return ByFolder(config, log)
