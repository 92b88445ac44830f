"""What runs beside what, with pytest-xdist, and that a test run under nohup finds what any other does.

tests/cluster        one after the other; they mostly wait, so that others can run beside them
tests/python/slow    one after the other: they fill disks, take memory and kill at given moments
all others           file by file, on whatever is free; what a job left is looked for in its own folder

`make test` runs a part, `--part sample`: the first case of each test, or all cases where the module says
EVERY_CASE; nothing from the folders above, and nothing that tests/check_only.toml lists. `make check` also
runs the others, `--part rest`.
"""

from __future__ import annotations

import signal
import tomllib
from collections.abc import Container
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[1]
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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", choices=("sample", "rest"), help="what make test runs, or what it leaves out")


def name_of(item: pytest.Item) -> str:
    """The test's name without its case: `tests/python/job/test_svd.py::test_bits`."""
    name = getattr(item, "originalname", item.name)
    return f"{item.path.relative_to(_ROOT).as_posix()}::{name}"


def sampled(items: list[pytest.Item], check_only: Container[str]) -> set[pytest.Item]:
    """The tests that `make test` runs."""
    chosen, seen = set(), set()
    for item in items:
        name = name_of(item)
        file = name.partition("::")[0]
        if file.startswith(_ONE_BY_ONE) or file in check_only or name in check_only:
            continue
        every = getattr(getattr(item, "module", None), "EVERY_CASE", False)
        if every or name not in seen:
            chosen.add(item)
        seen.add(name)
    return chosen


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part = config.getoption("--part")
    if part:
        listed = tomllib.loads((_ROOT / "tests/check_only.toml").read_text(encoding="utf-8"))
        chosen = sampled(items, listed)
        left = [item for item in items if (item in chosen) != (part == "sample")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]
