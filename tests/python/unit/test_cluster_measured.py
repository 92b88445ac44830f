"""Simulated clusters whose network was measured: what counts of a result, and which say too little."""

import json
from pathlib import Path

import pytest
from tilewise.base.errors import UsageError
from tilewise.machine.cluster import Link, measured_network, parse_cluster

MIB = 1 << 20


def _line(level: str, size: int, seconds: float, **more: object) -> dict[str, object]:
    there = {"kind": "ping", "pattern": "roundtrip", "level": level, "pairs": 1, "bytes": size}
    return {**there, "summary": {"minimum": seconds, "median": 9 * seconds}, **more}


NODE = (_line("node", 1, 40e-6), _line("node", MIB + 1, 40e-6 + 2 * MIB / 100e6))
CORE = (_line("core", 1, 1e-6), _line("core", MIB + 1, 1e-6 + 2 * MIB / 8e9))
OTHERS = (
    _line("node", 4 * MIB, 1.0, pairs=2),
    _line("node", 4 * MIB, 1.0, pattern="stream"),
    _line("node", 4 * MIB, 1.0, summary=None),
    _line("", 4 * MIB, 1.0, kind="collective"),
)


def _written(folder: Path, *lines: dict[str, object]) -> str:
    path = folder / "ping.json"
    path.write_text(json.dumps({"version": 1, "lines": lines}))
    return str(path)


def test_the_way_between_hosts_and_the_way_within_one(tmp_path: Path) -> None:
    network = measured_network(_written(tmp_path, *NODE, *CORE, *OTHERS), 3)

    assert (network.between.latency, network.within.latency) == pytest.approx((20e-6, 0.5e-6))
    assert (network.between.bandwidth, network.within.bandwidth) == pytest.approx((100e6, 8e9))


def test_the_same_exchange_twice_counts_by_its_fastest(tmp_path: Path) -> None:
    slower = (_line("node", 1, 1.0), _line("node", MIB + 1, 2.0))

    assert measured_network(_written(tmp_path, *slower, *NODE, *CORE), 2).between.latency == 20e-6


def test_a_cluster_of_these(tmp_path: Path) -> None:
    file = _written(tmp_path, *NODE, *CORE)
    timed, counted = parse_cluster(f"3x2:{file}"), parse_cluster(f"3x2:{file}:40GF/s:10GB/s")

    assert len(timed.hosts) == 3 and timed.cores == 2 and not timed.counted
    assert (counted.operations, counted.bytes) == (40e9, 10e9)
    assert 'bw="100000000Bps" lat="1e-05s"' in timed.xml  # a message passes two links
    assert 'loopback_bw="8e+09Bps" loopback_lat="5e-07s"' in timed.xml


def test_one_host_needs_no_network(tmp_path: Path) -> None:
    network = measured_network(_written(tmp_path, *CORE), 1)

    assert network.between == network.within == Link(bandwidth=pytest.approx(8e9), latency=0.5e-6)


@pytest.mark.parametrize("lines", [CORE, NODE, (*NODE[:1], *CORE), ()])
def test_what_says_too_little(tmp_path: Path, lines: tuple[dict[str, object], ...]) -> None:
    with pytest.raises(UsageError, match="no messages of two sizes"):
        parse_cluster(f"3x2:{_written(tmp_path, *lines)}")


def test_what_is_no_measurement(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"lines": 3}')
    with pytest.raises(UsageError, match="not a result of tilewise measure"):
        parse_cluster(f"3x2:{tmp_path}/other.json")
    with pytest.raises(UsageError, match="cannot be read"):
        parse_cluster(f"3x2:{tmp_path}/none.json")
    (tmp_path / "ping.json").write_text(json.dumps({"lines": [*NODE, *CORE]}))
    with pytest.raises(UsageError, match="is not a number such as 40GF/s"):
        parse_cluster(f"3x2:{tmp_path}/ping.json:fast")
