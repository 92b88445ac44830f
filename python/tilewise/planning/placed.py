"""Holds where ranks turned out to be against where the plan wanted them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tilewise.base.units import listing, plural
from tilewise.launch.events import RankFacts, RankPlace
from tilewise.planning.where import Spread

_SHOWN = 4  # hosts that are named


def misplaced(spread: Spread, ranks: Sequence[RankPlace] | Sequence[RankFacts]) -> str:
    """What is wrong with where ranks are, or an empty string.

    Who shares a host with whom is what counts: a host may have other names than the plan knows.
    """
    if not spread.sure or not ranks:
        return ""
    used = Counter(rank.host for rank in ranks)
    if not spread.hosts:
        host, most = used.most_common(1)[0]
        few = most <= spread.on_node
        return (
            "" if few else f"{plural(most, 'rank')} are on {host}, but at most {spread.on_node} were planned"
        )
    pairs = {(spread.hosts[rank.rank], rank.host) for rank in ranks if rank.rank < len(spread.hosts)}
    meant = Counter(spread.hosts)
    if len(pairs) == len(meant) == len(used):
        return ""
    seen = counted([rank.host for rank in ranks])
    return f"ranks are not where they were planned: {seen}, instead of {counted(spread.hosts)}"


def counted(hosts: Sequence[str]) -> str:
    """How many ranks each host has: `2 on n1, 1 on n2 and 1 on n3`; of many hosts the first."""
    words = [f"{count} on {host}" for host, count in Counter(hosts).items()]
    return listing(words) if len(words) <= _SHOWN else ", ".join([*words[:_SHOWN], "…"])
