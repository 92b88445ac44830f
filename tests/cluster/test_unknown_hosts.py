"""A launcher that spreads ranks over hosts that nobody named: what tilewise chooses by itself holds there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
from test_jobs import STENCIL, Done, Site, site  # noqa: F401 - a fixture

OUT = {"multiply": "C.npy", "transpose": "T.npy", "stencil": "S.npy", "svd": "F"}
WORDS = {
    "multiply": ("multiply", "A.npy", "B.npy"),
    "transpose": ("transpose", "A.npy"),
    "stencil": STENCIL,
    "svd": ("svd", "A.npy"),
}


def spread(site: Site, command: str, *words: object, ranks: int = 4) -> Done:  # noqa: F811
    """`tilewise command words…`, half of whose ranks are on another host by the launcher's own doing."""
    mpiexec = Path(sys.executable).parent / "mpiexec"
    half = ranks // 2
    named = f"-hosts node1:{half},node2:{ranks - half}"
    launcher = f"{mpiexec} -launcher ssh -launcher-exec {site.made.launcher} {named}"
    more = ("-o", OUT[command], "--force", "-n", ranks, "--launcher", launcher, "--json", "R.json", "-q")
    line = [sys.executable, "-m", "tilewise", *map(str, (*WORDS[command], *words, *more))]
    return site.made.run(line, site.folder, site.environment, timeout=100)


def right(site: Site, command: str) -> bool:  # noqa: F811
    """Whether the result is what NumPy makes of the input."""
    a = numpy.load(site.folder / "A.npy")
    if command == "svd":
        values = numpy.load(site.folder / "F" / "s.npy").reshape(-1)
        return bool(numpy.allclose(values, numpy.linalg.svd(a, compute_uv=False)[: len(values)]))
    if command == "stencil":
        wanted = numpy.load(site.folder / "alone.npy")
    else:
        wanted = a.T if command == "transpose" else a @ numpy.load(site.folder / "B.npy")
    return bool(numpy.allclose(numpy.load(site.folder / OUT[command]), wanted))


@pytest.mark.parametrize(
    ("command", "words", "taken"),
    [
        ("multiply", "", "overlap"),
        ("multiply", "--algorithm cannon", "overlap"),
        ("multiply", "--algorithm replicated", "overlap"),
        ("transpose", "", "none"),
        ("transpose", "--algorithm swap", "overlap"),
        ("transpose", "--algorithm gather", "overlap"),
        ("stencil", "", "overlap"),
        ("svd", "", None),  # by the cores that are here
        ("svd", "--algorithm jacobi", "nonblocking"),
        ("svd", "--algorithm randomized --components 5", "none"),
    ],
)
def test_an_automatic_choice_is_never_refused(
    site: Site,  # noqa: F811
    command: str,
    words: str,
    taken: str | None,
) -> None:
    done = spread(site, command, *words.split())
    assert done.returncode == 0, done.stderr
    assert right(site, command)
    record: dict[str, Any] = json.loads((site.folder / "R.json").read_text())
    assert {place["host"] for place in record["placement"]} == {"node1", "node2"}
    assert taken in (None, record["variant"]["exchange"])
    on_one_host = command in ("multiply", "transpose") and taken == "overlap"
    assert ("overlap: the ranks are on node1 and node2" in record["reasons"]) is on_one_host
    assert not any(reason.startswith("shared:") for reason in record["reasons"])


@pytest.mark.parametrize("command", ["multiply", "transpose", "stencil"])
def test_a_wish_that_holds_on_one_host_is_refused_on_two(site: Site, command: str) -> None:  # noqa: F811
    done = spread(site, command, "--exchange", "shared", ranks=2)
    assert done.returncode == 2 and "'shared' needs all ranks on one node" in done.stderr


def test_more_ranks_than_this_host_has_processors_are_no_reason_to_warn(site: Site) -> None:  # noqa: F811
    """The worker sees whether they are too many where they are."""
    assert spread(site, "transpose", "--algorithm", "swap", "-t", 1, ranks=2).returncode == 0
    record = json.loads((site.folder / "R.json").read_text())
    assert record["warnings"] == [] and not record["environment"]["oversubscribed"]
    assert spread(site, "transpose", "--algorithm", "swap", "-t", 64, ranks=2).returncode == 0
    record = json.loads((site.folder / "R.json").read_text())
    assert any(warning.startswith("oversubscribed") for warning in record["warnings"])
