"""What runs beside what, with pytest-xdist, and that a test run under nohup finds what any other does.

tests/cluster        one after the other; they mostly wait, so that others can run beside them
tests/python/slow    one after the other: they fill disks, take memory and kill at given moments
all others           file by file, on whatever is free; what a job left is looked for in its own folder

`make test` runs a part, `--part sample`: files that no folder above and no line of tests/check_only.toml has,
and of a test with more than SAMPLE cases as many, spread evenly, unless its module says EVERY_CASE. `make
check` runs that and the rest, `--part rest`.
"""

from __future__ import annotations

import signal
import tomllib
from pathlib import Path
from typing import Any

import pytest

SAMPLE = 1
_HERE = Path(__file__).parent
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


def sampled(items: list[pytest.Item], check_only: dict[str, str]) -> set[str]:
    """The names of the tests that `make test` runs."""
    cases: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        name = str(getattr(item, "originalname", item.name))
        file = item.path.relative_to(_HERE.parent).as_posix()
        if not any(each in check_only for each in (file, f"{file}::{name}")) and not file.startswith(
            _ONE_BY_ONE
        ):
            cases.setdefault((item.path, name), []).append(item)
    chosen = set()
    for every in cases.values():
        most = len(every) if getattr(getattr(every[0], "module", None), "EVERY_CASE", False) else SAMPLE
        few = min(most, len(every))
        chosen |= {every[i * len(every) // few].nodeid for i in range(few)}
    return chosen


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part = config.getoption("--part")
    if part:
        check_only = tomllib.loads((_HERE / "check_only.toml").read_text(encoding="utf-8"))
        chosen = sampled(items, check_only)
        kept = [item for item in items if (item.nodeid in chosen) == (part == "sample")]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept
