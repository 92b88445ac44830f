"""What is launched for a request, what its lines are called, and what becomes of what the worker says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from machines import FACTS
from tilewise.base.errors import RunError, UsageError
from tilewise.lab.measurement import lines, messages, plans, result, run, stored
from tilewise.lab.measurement.fit import terms_of
from tilewise.lab.measurement.request import MeasureRequest
from tilewise.lab.measurement.result import Disturbance, Level, Line, Measurement, Model, PairMatrix
from tilewise.lab.statistics.summary import Summary
from tilewise.launch.events import Done, RankDone
from tilewise.launch.job import Point, Stop
from tilewise.machine import host, profile
from tilewise.machine.topology import Core, Topology

GIB = 1 << 30
FLAT = Topology(cores=[Core(cpus=(number,), cache=0, socket=0) for number in (0, 1)])
NO_MODEL = Model()


def planned(request: MeasureRequest, tmp_path: Path) -> list[result.Launch]:
    others = messages.Hosts(request)
    return messages.launches(request, FACTS, FLAT, others, messages.levels(request, FLAT, others))


def every(request: MeasureRequest, tmp_path: Path) -> list[result.Launch]:
    return [
        *planned(request, tmp_path),
        *plans.file_launches(request, FACTS, "/x/sample"),
        *plans.memory_launches(request, FACTS),
        *plans.product_launches(request, FACTS),
    ]


def test_one_file_is_written_after_a_pause_where_free_pages_are_the_hosts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def paused(request: MeasureRequest) -> list[tuple[str, int, int]]:
        launches = plans.file_launches(request, FACTS, "/x/sample")
        asks = [ask for launch in launches for ask in launch.asks if ask.point.pause]
        return [(ask.point.name, ask.ranks, ask.point.pause) for ask in asks]

    monkeypatch.setattr(plans, "free_page_reporting", lambda: True)
    assert paused(MeasureRequest()) == [("positioned", 1, 3), ("positioned", FACTS.cores, 3)]
    assert not paused(MeasureRequest(io=["positioned"])) and not paused(MeasureRequest(blocks=[4096]))
    monkeypatch.setattr(plans, "free_page_reporting", lambda: False)
    assert not paused(MeasureRequest())


def test_what_a_write_after_a_pause_takes_longer_is_a_term() -> None:
    def written(series: str, rate: float, ranks: int) -> Line:
        return line("file", "positioned", rate, series=series, ranks=ranks, bytes=1 << 20, blocks=64)

    found = [written("write_new", 4e9, 1), written("write_new", 6e9, 2)]
    rested = [written("write_rested", 1e9, 1), written("write_rested", 2e9, 2)]
    recall = terms_of([*found, *rested], 2)["recall"]
    assert (recall.rate, recall.node) == pytest.approx((4e9 / 3, 3e9))
    faster = [written("write_rested", 5e9, 1), written("write_rested", 7e9, 2)]
    assert "recall" not in terms_of([*found, *faster], 2) and "recall" not in terms_of(found, 2)


def test_keys_are_told_apart_and_do_not_depend_on_how_often(tmp_path: Path) -> None:
    def keys(request: MeasureRequest) -> list[str]:
        return [
            result.line_of(ask, series, launch.stop).key
            for launch in every(request, tmp_path)
            for ask in launch.asks
            if ask.role == "line"
            for series in ("write_new", "write", "read")[: 3 if launch.kind == "file" else 1]
        ]

    usual = keys(MeasureRequest())
    assert len(set(usual)) == len(usual) > 200
    assert keys(MeasureRequest(launches=7, runs=9, seed=5, interval=0.5)) == usual
    varied = MeasureRequest(
        caches=["warm", "direct"],
        layouts=["interleaved", "per_rank"],
        buffers=["malloc", "pinned"],
        pairs=[1, 3],
    )
    assert len(set(keys(varied))) == len(keys(varied))


def test_several_pairs_that_share_cores_are_oversubscribed(tmp_path: Path) -> None:
    launches = planned(MeasureRequest(kind="ping", pairs=[1, 3], bytes=[8]), tmp_path)
    pairs = {launch.ranks: launch for launch in launches if launch.kind == "ping"}
    assert set(pairs) == {2, 6}
    assert pairs[6].oversubscribed and not pairs[2].oversubscribed
    assert pairs[6].asks[0].point.pairs == [(0, 1), (2, 3), (4, 5)]


def test_levels_that_are_missing(tmp_path: Path) -> None:
    request = MeasureRequest(kind="ping", levels=["core", "socket"])
    others = messages.Hosts(request)
    levels = {level.name: level for level in messages.levels(request, FLAT, others)}
    assert levels["core"].cpus == [0, 1] and levels["socket"].missing == "this machine has one socket"
    assert "--hosts" in levels["node"].missing
    with pytest.raises(UsageError, match="this machine has one socket"):
        messages.levels(MeasureRequest(kind="ping", levels=["socket"]), FLAT, others)


def test_pairs_between_two_hosts(tmp_path: Path) -> None:
    (tmp_path / "h").write_text("a:4\nb:4\nc:4\n")
    request = MeasureRequest(
        kind="ping", levels=["node"], pairs=[3], hosts=str(tmp_path / "h"), collectives=[]
    )
    launch = planned(request, tmp_path)[0]
    assert (launch.place, launch.ranks, launch.cpus) == ("node", 6, [])
    assert launch.hosts == {"a": 0, "b": 0}


def test_ranks_that_were_to_be_on_two_hosts(tmp_path: Path) -> None:
    launch = result.Launch(what="m", kind="ping", ranks=2, level="node", stop=Stop(), asks=[])

    def done(*hosts: str) -> Done:
        ranks = [RankDone(rank=rank, host=host, pid=1) for rank, host in enumerate(hosts)]
        return Done(ranks=ranks, seconds={})

    run.check_hosts(launch, done("a", "b"))
    with pytest.raises(RunError, match="both on a"):
        run.check_hosts(launch, done("a", "a"))
    with pytest.raises(RunError, match="different hosts"):
        run.check_hosts(msgspec.structs.replace(launch, level="core"), done("a", "b"))


def test_what_does_not_fit_in_memory_is_not_run() -> None:
    asks = plans.memory_launches(MeasureRequest(kind="memory", bytes=[4096, 3 * GIB]), FACTS)[0].asks
    assert {ask.point.bytes for ask in asks if ask.skipped} == {3 * GIB}
    asks = plans.product_launches(MeasureRequest(kind="compute", sizes=[64, 100_000]), FACTS)[0].asks
    assert {ask.point.size for ask in asks if ask.skipped} == {100_000}


def test_runs_make_exactly_so_many_samples() -> None:
    stop = plans.stop_of(MeasureRequest(runs=17), 0.1)
    assert (stop.least, stop.most) == (17, 17) and stop.seconds > 1e6
    assert plans.stop_of(MeasureRequest(seconds=2.0), 0.1).seconds == 2.0


@pytest.mark.parametrize(("brief", "blocks"), [(True, 2), (False, 8)])
def test_large_blocks_are_fewer_unless_asked(brief: bool, blocks: int) -> None:
    request = MeasureRequest() if brief else MeasureRequest(kind="file")
    asks = plans.file_launches(request, FACTS, "/x/s")[0].asks
    blocks_of = {ask.point.bytes: ask.point.blocks for ask in asks}
    assert (blocks_of[128_000], blocks_of[16_000_000]) == (64, blocks)
    asked = MeasureRequest(blocks_per_rank=64, blocks=[16_000_000])
    assert {ask.point.blocks for ask in plans.file_launches(asked, FACTS, "/x/s")[0].asks} == {64}


def test_kinds_take_turns() -> None:
    def launch(kind: str) -> result.Launch:
        return result.Launch(what=kind, kind=kind, ranks=1, stop=Stop(), asks=[])

    order = run.in_turn([launch("ping"), launch("ping"), launch("ping"), launch("file"), launch("memory")])
    assert order == [0, 3, 4, 1, 2]


@pytest.mark.parametrize(
    ("point", "ranks", "series", "amount"),
    [
        (Point(kind="ping", name="blocking", bytes=10, pairs=[(0, 1), (2, 3)]), 4, "roundtrip", 40),
        (Point(kind="ping", name="put", bytes=10, pairs=[(0, 1)]), 2, "roundtrip", 10),
        (Point(kind="ping", name="nonblocking", bytes=10, pairs=[(0, 1)]), 2, "stream", 10),
        (Point(kind="collective", name="bcast", bytes=10), 4, "seconds", 30),
        (Point(kind="collective", name="alltoallv", bytes=10), 4, "seconds", 120),
        (Point(kind="file", name="positioned", bytes=10, blocks=3), 4, "read", 120),
        (Point(kind="memory", name="triad", bytes=10), 1, "seconds", 30),
        (Point(kind="compute", name="gemm", size=10, dtype="float64"), 1, "seconds", 2000),
        (Point(kind="compute", name="gemm", size=10, dtype="complex64"), 1, "seconds", 8000),
    ],
)
def test_amounts(point: Point, ranks: int, series: str, amount: float) -> None:
    assert result.amount(result.PlannedPoint(point=point, ranks=ranks), series) == amount


def ran(found: dict[tuple[int, int], list[run.FoundPoint]], labels: list[str]) -> run.RunResult:
    return run.RunResult(
        found=found,
        labels={0: labels},
        disturbances=[],
        clock={},
        last=None,
        chatter=[],  # type: ignore[arg-type]
    )


def test_lines_keep_every_sample_and_say_what_was_not_run() -> None:
    asks = [
        result.PlannedPoint(point=Point(kind="memory", name="copy", bytes=size, threads=1))
        for size in (1000, 2000)
    ]
    launch = result.Launch(what="memory", kind="memory", ranks=1, stop=Stop(warmup=2), asks=asks)
    there = [
        run.FoundPoint(
            series=[run.PointSeries("seconds", [1.0, 2.0, 3.0], [2.0])], inner=7, notes=["streamed"]
        ),
        run.FoundPoint(
            series=[run.PointSeries("seconds", [3.0, 4.0, 5.0], [4.0])], inner=7, notes=["streamed"]
        ),
    ]
    gone = [run.FoundPoint(skipped="needs 9 GiB of disk")] * 2
    labels = ["other programs busy (0.9 cores)", "oversubscribed", "other programs busy (0.2 cores)"]
    good, bad = lines.lines_of([launch], ran({(0, 0): there, (0, 1): gone}, labels))
    assert good.launches == [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]] and good.by_rank == [3.0]
    assert good.summary is not None and (good.summary.n, good.summary.median) == (6, 3.0)
    assert (good.inner, good.warmup, good.notes) == (7, 2, ["streamed"])
    assert good.labels == ["other programs busy (0.9 cores)", "oversubscribed"]
    assert good.rate() == 2000 / 3
    assert (bad.skipped, bad.summary, bad.launches, bad.rate()) == ("needs 9 GiB of disk", None, [], None)


def test_the_table_of_pairs_is_one_way_and_symmetric() -> None:
    asks = [
        result.PlannedPoint(
            point=Point(kind="ping", name="blocking", pattern="roundtrip", bytes=8, pairs=[pair]),
            role="matrix",
        )
        for pair in [(0, 1), (0, 2), (1, 2)]
    ]
    launch = result.Launch(what="m", kind="matrix", ranks=3, cpus=[0, 1, 2], stop=Stop(), asks=asks)
    found = {
        (0, place): [run.FoundPoint(series=[run.PointSeries("roundtrip", [2.0 * place + 2])])] * 2
        for place in range(3)
    }
    (matrix,) = lines.matrices_of([launch], ran(found, []))
    assert matrix.seconds == [[0, 1, 2], [1, 0, 3], [2, 3, 0]] and matrix.ranks[2] == "core 2"


def line(kind: str, name: str, rate: float, **more: Any) -> Line:
    summary = Summary(
        n=1, median=1.0, low=1.0, high=1.0, mean=1.0, minimum=1.0, maximum=1.0, outliers=0, spread=0.0
    )
    return Line(key=f"{kind}/{name}/{more}", kind=kind, name=name, amount=rate, summary=summary, **more)


def test_shares_refer_to_what_carries() -> None:
    copy = line("memory", "copy", 20e9, bytes=1 << 26, threads=1)
    small = line("memory", "copy", 200e9, bytes=1 << 12, threads=1)
    near = line("ping", "blocking", 5e9, level="core", pairs=1, bytes=1 << 22)
    far = line("ping", "blocking", 0.1e9, level="node", pairs=1, bytes=1 << 22)
    warm = line("file", "positioned", 1e9, ranks=1, bytes=1 << 20, blocks=64, cache="warm")
    cold = line("file", "positioned", 1e9, ranks=1, bytes=1 << 20, blocks=64, cache="cold")
    elsewhere = [
        line("file", name, 1e9, ranks=1, bytes=1 << 20, blocks=64, cache="warm", **more)
        for name, more in (
            ("uncached", {}),
            ("positioned", {"sync": True, "series": "write_new"}),
            ("positioned", {"buffer": "device"}),
            ("positioned", {"buffer": "managed"}),
        )
    ]
    single = line("compute", "gemm", 2e9, dtype="float64", size=64, threads=1)
    slow, fast = (line("compute", "gemm", rate, dtype="float64", size=64) for rate in (5e9, 10e9))
    slow.threads = fast.threads = 2
    lines.add_shares([copy, small, near, far, warm, cold, *elsewhere, slow, fast, single], {"eth0": 0.125e9})
    assert all(one.share is None and not one.carrier for one in elsewhere)
    assert single.share == 1.0
    assert near.share == 0.5 and "memory copy by 1 thread" in near.carrier
    assert far.share == 0.8 and "eth0" in far.carrier
    assert warm.share == 0.1 and cold.share is None and copy.share is None
    assert (slow.share, fast.share) == (0.5, 1.0)
    unknown = line("ping", "blocking", 0.1e9, level="node", pairs=1)
    lines.add_shares([unknown], {})
    assert unknown.share is None and not unknown.carrier


def test_links_that_are_real_state_their_speed(tmp_path: Path) -> None:
    for name, state, speed, real in (
        ("eth0", "up", "1000\n", True),
        ("eth1", "down", "1000\n", True),
        ("eth2", "up", "-1\n", True),
        ("veth", "up", "10000\n", False),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "operstate").write_text(state)
        (tmp_path / name / "speed").write_text(speed)
        if real:
            (tmp_path / name / "device").mkdir()
    assert host.links(str(tmp_path)) == {"eth0": 125e6}
    assert host.links(str(tmp_path / "none")) == {}


def measurement(kinds: list[str], found: list[Line], model: Model = NO_MODEL, **told: Any) -> Measurement:
    environment = {"host": "h", "cpu": "c", "mpi_library": "m", "blas_kernel": "K", **told}
    return Measurement(
        tilewise="0",
        command=[],
        time="now",
        seconds=1,
        environment=environment,
        kinds=kinds,
        lines=found,
        model=model,
    )


def test_what_is_kept_is_replaced_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = measurement(
        ["ping", "compute"],
        [
            line("ping", "blocking", 1, level="core"),
            line("compute", "gemm", 7e9, dtype="float64", threads=2, size=64),
            line("compute", "gemm", 9e9, dtype="float64", threads=2, size=512),
        ],
    )
    assert [os.path.basename(path) for path in stored.keep(first, FACTS)] == [
        "profile.json",
        "measured-h-ping-compute.json",
    ]
    second = measurement(
        ["file"],
        [line("file", "positioned", 2), line("memory", "copy", 3)],
    )
    stored.keep(second, FACTS)
    assert set(profile.load().measured["h|c"].times) == {"ping", "compute", "file"}
    assert stored.read(profile.measurement_path("h", "ping-compute")) == first
    assert stored.read(profile.measurement_path("h", "file")) == second
    assert profile.measurement_path("h/../x", "file").endswith("tilewise/measured-h-..-x-file.json")


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert stored.keep(measurement(["memory"], []), FACTS) == []


def test_a_measurement_comes_back_as_it_was(tmp_path: Path) -> None:
    whole = measurement(["ping"], [line("ping", "blocking", 1, level="core")])
    whole.levels = [Level(name="core", cpus=[0, 1])]
    whole.matrices = [PairMatrix(bytes=8, ranks=["a"], seconds=[[0.0]])]
    whole.disturbances = [Disturbance(launch=0, what="x", seconds=1.0, megahertz=(1.0, 2.0))]
    stored.write(whole, str(tmp_path / "m.json"))
    assert stored.read(str(tmp_path / "m.json")) == whole
    whole.version = 99
    stored.write(whole, str(tmp_path / "m.json"))
    with pytest.raises(UsageError, match="version 99"):
        stored.read(str(tmp_path / "m.json"))
