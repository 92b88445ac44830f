"""The timeline of a job over two hosts: their clocks are brought together, and every message has its line."""

from __future__ import annotations

import collections
import json
from typing import Any

import pytest
from test_jobs import STENCIL, Site, site  # noqa: F401 (a fixture)


@pytest.mark.parametrize("exchange", ["nonblocking", "one_sided_fence"])
def test_messages_between_hosts_take_time(site: Site, exchange: str) -> None:  # noqa: F811
    how = ("--decomposition", "rows", "--depth", 1, "--exchange", exchange, "--verify", "off")
    record = site.record(*STENCIL, "-o", "B.npy", *how, "--trace", "t.json")
    found: dict[str, Any] = json.loads((site.folder / "t.json").read_text())
    left = {event["id"]: event for event in found["traceEvents"] if event["ph"] == "s"}
    there = {event["id"]: event for event in found["traceEvents"] if event["ph"] == "f"}
    assert len({place["host"] for place in record["placement"]}) == 2
    assert len(left) == record["messages"] and left.keys() == there.keys()
    assert all(there[one]["ts"] >= left[one]["ts"] for one in left)
    between = collections.Counter((left[one]["pid"], there[one]["pid"]) for one in left)
    assert set(between.values()) == {5}  # a step each, with either neighbour
    about = found["otherData"]
    assert about["unmatched"] == about["dropped"] == 0 and about["hasty"] <= about["messages"] // 10
