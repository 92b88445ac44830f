"""The plan: rule, grids, memory and proof, over the whole table of names."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from conftest import InProcess
from hypothesis import given
from hypothesis import strategies as st
from machines import GIB, facts
from tilewise.base.errors import UsageError
from tilewise.files.region import Region
from tilewise.launch.join import Join
from tilewise.machine import storage
from tilewise.machine.allocation import read_hosts
from tilewise.machine.facts import Facts
from tilewise.operations.generate import Generate
from tilewise.operations.multiply.options import ALGORITHMS as MULTIPLY
from tilewise.operations.multiply.options import Multiply
from tilewise.planning import grid, proof
from tilewise.planning.choices import Strategies, parse_hints, parse_io
from tilewise.planning.names import EXCHANGES, ONE_FILE
from tilewise.planning.plan import Plan


def matrix(rows: int, columns: int, dtype: str = "float64", transposed: bool = False) -> Region:
    return Region(path="/x.npy", name="x.npy", rows=rows, columns=columns, dtype=dtype, transposed=transposed)


def product(**options: Any) -> Multiply:
    return Multiply(a="A", b="B", output="C", **options)


def planned(
    m: int = 2000,
    k: int = 2000,
    n: int = 2000,
    machine: Facts | None = None,
    joined: Join | None = None,
    **choices: Any,
) -> Plan:
    options, machine = product(**choices), machine or facts()
    return options.plan([matrix(m, k), matrix(k, n)], None, machine, joined).required()


@pytest.fixture(autouse=True)
def _quiet_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for key in (
        "OPENBLAS_CORETYPE",
        "OPENBLAS_L2_SIZE",
        "TILEWISE_FAULT",
    ):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_one_memory_domain_takes_one_rank_with_all_cores() -> None:
    plan = planned()
    variant = plan.job.variant
    assert (variant.algorithm, variant.exchange, variant.ranks, variant.threads) == ("local", "none", 1, 8)
    assert (variant.read, variant.write, variant.grid, variant.copies) == (
        "positioned",
        "positioned",
        (1, 1),
        1,
    )
    assert plan.chosen_by == "plan" and plan.fixed == [] and plan.reasons and not plan.warnings


@pytest.mark.parametrize(
    ("state", "gib", "io", "read"),
    [
        ("cold", 1, "auto", "uncached"),
        ("cold", 100, "auto", "positioned"),
        ("cached", 1, "auto", "positioned"),
        ("cold", 1, "positioned", "positioned"),
    ],
)
def test_operands_go_past_a_page_cache_that_has_no_room(
    monkeypatch: pytest.MonkeyPatch, state: str, gib: int, io: str, read: str
) -> None:
    monkeypatch.setattr(storage, "takes_direct", lambda path: True)
    monkeypatch.setattr(storage, "cache_state", lambda path: state)
    machine = facts(memory_available=gib * GIB)
    plan = planned(9000, 9000, 9000, machine, memory=GIB // 2, io=parse_io(io), ranks=2)
    assert (plan.job.variant.read, plan.job.variant.write) == (read, "positioned") and any(plan.job.stage)
    assert any("read uncached: the page cache" in reason for reason in plan.reasons) == (read == "uncached")


def test_several_memory_domains_take_a_rank_each() -> None:
    variant = planned(machine=facts(numa=4)).job.variant
    assert (variant.algorithm, variant.exchange, variant.ranks, variant.threads) == ("summa", "shared", 4, 2)
    assert variant.grid == (2, 2)


def test_small_products_take_one_thread() -> None:
    variant = planned(100, 100, 100, facts(numa=4)).job.variant
    assert (variant.ranks, variant.threads) == (1, 1)


@pytest.mark.parametrize(("ranks", "threads"), [(1, 8), (2, 4), (3, 2), (8, 1), (9, 1)])
def test_cores_are_shared_out(ranks: int, threads: int) -> None:
    plan = planned(ranks=ranks)
    assert plan.job.variant.threads == threads
    assert plan.oversubscribed == (ranks > 8) == (not plan.job.bind)
    assert any("oversubscribed" in warning for warning in plan.warnings) == (ranks > 8)


def test_more_threads_than_cores_are_the_users_wish() -> None:
    plan = planned(ranks=2, threads=16)
    assert plan.job.variant.threads == 16 and plan.oversubscribed


@pytest.mark.parametrize("name", MULTIPLY)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6, 8, 9, 12])
def test_every_algorithm_on_every_rank_count(name: str, ranks: int) -> None:
    algorithm = MULTIPLY[name]
    if not algorithm.takes(ranks):
        with pytest.raises(UsageError) as refused:
            planned(ranks=ranks, algorithm=name)
        assert algorithm.takes_text in refused.value.message
        return
    for exchange in EXCHANGES:
        if exchange not in algorithm.exchanges:
            with pytest.raises(UsageError, match=r"makes no sense with .*: it"):
                planned(ranks=ranks, algorithm=name, exchange=exchange)
            continue
        for io in ONE_FILE:
            variant = planned(
                ranks=ranks, algorithm=name, exchange=exchange, io=Strategies(io, io)
            ).job.variant
            assert variant.grid[0] * variant.grid[1] * variant.copies == ranks
            assert (variant.algorithm, variant.exchange, variant.read) == (name, exchange, io)


def test_everything_given_is_chosen_by_the_user() -> None:
    plan = planned(
        ranks=4, threads=2, algorithm="summa", exchange="blocking", io=Strategies("root", "root"), grid=(2, 2)
    )
    assert plan.chosen_by == "user"
    assert plan.fixed == ["ranks", "threads", "algorithm", "exchange", "io", "grid"]
    assert planned(ranks=1, threads=2, algorithm="local", io=Strategies("root", "root")).chosen_by == "user"


@pytest.mark.parametrize(
    ("choices", "algorithm", "ranks"),
    [
        ({"algorithm": "cannon"}, "cannon", 4),
        ({"algorithm": "summa"}, "summa", 8),
        ({"algorithm": "replicated"}, "replicated", 8),
        ({"algorithm": "local"}, "local", 1),
        ({"exchange": "persistent"}, "cannon", 4),
        ({"exchange": "blocking"}, "summa", 8),
        ({"grid": (2, 3)}, "summa", 6),
        ({"threads": 4, "algorithm": "summa"}, "summa", 2),
        ({"ranks": 1, "exchange": "blocking"}, "summa", 1),
        ({"ranks": 2, "exchange": "shared"}, "summa", 2),
    ],
)
def test_one_choice_pulls_the_others(choices: dict[str, object], algorithm: str, ranks: int) -> None:
    variant = planned(**choices).job.variant  # type: ignore[arg-type]
    assert (variant.algorithm, variant.ranks) == (algorithm, ranks)


def test_shared_needs_room() -> None:
    tight = facts(shared_memory=62 << 20)  # of which MPI takes 12
    assert planned(ranks=2, machine=tight).job.variant.exchange == "overlap"
    with pytest.raises(
        UsageError, match=r"needs 61\.0 MiB in /dev/shm, which has 50\.0 MiB left beside MPI's own"
    ):
        planned(ranks=2, exchange="shared", machine=tight)


def test_more_memory_than_there_is_names_both_numbers() -> None:
    with pytest.raises(UsageError, match=r"this needs .* MiB of memory on a node, but 80 % .* is 80\.0 MiB"):
        planned(machine=facts(memory_available=100 << 20), algorithm="cannon", ranks=4)
    with pytest.raises(UsageError, match=r"--memory allows 100 MiB"):
        planned(memory=100 << 20, algorithm="cannon", ranks=4)
    assert planned(memory=GIB).need.node < GIB


@pytest.mark.parametrize(("exchange", "spare"), [("shared", 0), ("blocking", 1), ("one_sided_lock", 2)])
def test_what_cannon_needs(exchange: str, spare: int) -> None:
    need = planned(ranks=4, algorithm="cannon", exchange=exchange).need
    assert need.blocks == 3 * 1000 * 1000 * 8
    assert need.buffers == spare * 2 * 1000 * 1000 * 8
    assert need.shared == (2 * 2000 * 2000 * 8 if exchange == "shared" else 0)


def test_what_summa_and_a_serial_proof_need() -> None:
    need = planned(ranks=4, exchange="overlap").need
    assert need.buffers == 2 * 768 * (1000 + 1000) * 8
    unverified, with_proof = (
        planned(ranks=4, exchange="overlap", verify=how).need for how in ("off", "serial")
    )
    assert with_proof.rank - unverified.rank == 4 * 2000 * 2000 * 8


@given(
    st.integers(0, 500),
    st.integers(0, 500),
    st.integers(0, 500),
    st.integers(1, 24),
    st.sampled_from(["spread", "last"]),
    st.sampled_from(["cannon", "summa", "replicated", None]),
)
def test_needs_cover_all_blocks(m: int, k: int, n: int, ranks: int, remainder: str, name: str | None) -> None:
    if name is not None and not MULTIPLY[name].takes(ranks):
        return
    plan = planned(m, k, n, ranks=ranks, remainder=remainder, algorithm=name)
    assert plan.need.node >= (m * k + k * n + m * n) * 8
    assert plan.need.rank * ranks >= plan.need.node - 1
    assert plan.shape == (m, n)


@given(st.integers(1, 10_000), st.integers(0, 100), st.integers(0, 100))
def test_grids_use_every_rank_and_are_near_square(ranks: int, rows: int, columns: int) -> None:
    p, q = grid.nearest_square(ranks, rows, columns)
    assert p * q == ranks
    assert (p >= q) if rows > columns else (p <= q)
    assert not any(ranks % d == 0 for d in range(min(p, q) + 1, math.isqrt(ranks) + 1))


@given(st.integers(0, 10_000), st.integers(1, 100))
def test_parts(extent: int, parts: int) -> None:
    spread, last = grid.part(extent, parts, "spread"), grid.part(extent, parts, "last")
    assert spread == math.ceil(extent / parts)
    assert last == extent // parts + extent % parts
    assert last >= spread - 1


@given(st.integers(2, 100_000))
def test_smallest_prime_factors(number: int) -> None:
    factor = grid.smallest_prime_factor(number)
    assert number % factor == 0 and all(number % d for d in range(2, min(factor, 400)))


@pytest.mark.parametrize(("ranks", "layers"), [(2, 2), (3, 3), (4, 2), (6, 2), (9, 3), (35, 5)])
def test_layers_of_replicated(ranks: int, layers: int) -> None:
    shape, copies = grid.choose("replicated", ranks, None, 10, 10)
    assert copies == layers and shape[0] * shape[1] * copies == ranks


def test_shapes_that_do_not_fit_name_both() -> None:
    with pytest.raises(UsageError) as refused:
        product().plan([matrix(3, 4), matrix(5, 4)], None, facts(), None)
    assert "x.npy (3×4) and x.npy (5×4)" in refused.value.message and refused.value.advice == "--transpose-b"
    plan = product().plan([matrix(3, 4), matrix(5, 4, transposed=True)], None, facts(), None)
    assert plan.shape == (3, 5)
    with pytest.raises(UsageError, match="transposed to 4×5"):
        product().plan([matrix(3, 6), matrix(5, 4, transposed=True)], None, facts(), None)


def test_types_of_a_job() -> None:
    plan = product().plan([matrix(2, 2, "int8"), matrix(2, 2, "uint8")], None, facts(), None)
    assert plan.job.dtype == plan.dtype == "int64"


def test_the_proof_is_left_away_where_it_costs_too_much() -> None:
    assert planned(4096, 4096, 4096).job.verify == "fast"
    plan = planned(20_000, 1, 20_000, facts(cores=1))
    assert plan.job.verify == "off" and any("--verify fast" in warning for warning in plan.warnings)
    assert planned(20_000, 1, 20_000, facts(cores=1), verify="fast").job.verify == "fast"
    assert proof.fast_share(0, "float64", 0, 0, 1) == 0


def test_ranks_that_exist_decide() -> None:
    three = Join(0, 3, "pmi", 3)
    assert planned(joined=three).job.variant.ranks == 3
    assert planned(joined=three, ranks=3).job.variant.ranks == 3
    with pytest.raises(UsageError, match="3 ranks exist already"):
        planned(joined=three, ranks=4)
    spread_out = planned(joined=Join(0, 4, "pmi", 2)).job.variant
    assert (spread_out.exchange, spread_out.threads) == ("overlap", 4)
    with pytest.raises(UsageError, match="within one node"):
        planned(joined=Join(0, 4, "pmi", 2), exchange="shared")


def test_hosts_files(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# ours\na:2\nb slots=3\n\nc  # no slots\n")
    assert read_hosts(str(path)) == {"a": 2, "b": 3, "c": 0}
    variant = planned(hosts=str(path)).job.variant
    assert (variant.ranks, variant.exchange) == (5, "overlap")
    path.write_text("a:x\n")
    with pytest.raises(UsageError, match="node7:4"):
        read_hosts(str(path))
    path.write_text("\n")
    with pytest.raises(UsageError, match="names no host"):
        read_hosts(str(path))


def test_generate_plans() -> None:
    def made(**options: Any) -> Generate:
        return Generate(output="A", shape=(5000, 5000), dtype="float16", **options)

    region = Region(path="", name="random", rows=5000, columns=5000, dtype="float16", generator="random")
    plan = made(ranks=2).plan([region], None, facts(), None)
    assert (plan.job.dtype, plan.dtype, plan.shape) == ("float32", "float16", (5000, 5000))
    made(verify="off", no_verify=True).check()


def test_io_and_hints() -> None:
    assert parse_io("root") == ("root", "root")
    assert parse_io("root:auto") == ("root", None)
    assert parse_io("auto") == (None, None)
    assert parse_hints(("a=1", "b=x=y")) == {"a": "1", "b": "x=y"}


def test_every_variant_is_planned(here: InProcess) -> None:
    """Each of the tables' algorithms and exchanges that go together, on one rank or more; none twice."""
    words = ("plan", "multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", 4, "--json", "-")
    plan = json.loads(here(*words).stdout)
    ways = [(each["variant"]["algorithm"], each["variant"]["exchange"]) for each in plan["variants"]]
    known = {(name, exchange) for name, each in MULTIPLY.items() for exchange in each.exchanges}
    assert known <= set(ways) and ("local", "none") not in ways
    assert [each["chosen"] for each in plan["variants"]] == [True] + [False] * (len(ways) - 1)
    whole = [json.dumps(each["variant"], sort_keys=True) for each in plan["variants"]]
    assert len(set(whole)) == len(whole)
    assert all(each["fits"] and each["memory_bytes"] > 0 for each in plan["variants"])


def test_a_variant_without_room_says_why(here: InProcess) -> None:
    words = ("plan", "multiply", "random:2000x2000", "random:2000x2000", "-o", "C.npy", "-n", 4)
    told = here(*words, "--memory", "400MiB", "--all").stdout
    assert "every variant" in told and "--memory allows 400 MiB" in told and "chosen" in told
    narrow = json.loads(here(*words, "--memory", "400MiB", "--json", "-").stdout)["variants"]
    assert {each["fits"] for each in narrow} == {True, False} and narrow[0]["fits"]
    assert all("of memory on a node" in each["reason"] for each in narrow if not each["fits"])
