"""Costs, predictions, learning and weighing, on machines whose answers are known by hand."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
from conftest import InProcess, one_message
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import GIB, facts
from tilewise.base.errors import UsageError
from tilewise.files.region import Region
from tilewise.files.target import find_target
from tilewise.machine import profile, storage
from tilewise.machine.facts import facts_of
from tilewise.machine.machines import local_machine, read_machine
from tilewise.machine.terms import KINDS, Machine, Term, what_of, wrong_term
from tilewise.operations.candidates import weighed
from tilewise.operations.convert import Convert
from tilewise.operations.convert import cost_of as convert_cost
from tilewise.operations.multiply.cost import Rings, cost_of
from tilewise.operations.multiply.options import ALGORITHMS, Multiply
from tilewise.operations.prediction import accustomed, learned
from tilewise.planning.cost import PHASES, TOTAL, Cost, Longest, Take, heaviest, of_phase, predict
from tilewise.planning.plan import Plan

NOTHING = {name: Term() for name in KINDS}
GF, GB = 1e9, 1e9


def machine(cores: int = 1, nodes: int = 16, **terms: Term) -> Machine:
    """One where only `terms` take time; `__` in a name stands for a slash."""
    said = {name.replace("__", "/"): term for name, term in terms.items()}
    return Machine(name="known", nodes=nodes, cores=cores, memory=64 * GIB, terms=NOTHING | said)


def product(n: int, on: Machine, **choices: Any) -> Plan:
    region = Region(path="", name="random", rows=n, columns=n, dtype="float64", generator="random")
    options = Multiply(a="A", b="B", output="C", verify="off", **choices)
    return options.plan([region, region], None, facts_of(on, facts()), None)


def test_one_of_a_node_or_all() -> None:
    on = machine(cores=4, copy=Term(rate=10.0, node=20.0), lapack=Term(rate=5.0), call=Term(seconds=2.0))
    assert (
        on.seconds("copy", 100) == 10
        and on.seconds("copy", 100, 2) == 10
        and on.seconds("copy", 100, 4) == 20
    )
    assert on.seconds("lapack", 100, 4) == 20 and on.seconds("lapack", 100, 8) == 40  # ranks take turns
    assert on.seconds("call", 3) == 6 and on.seconds("read", 1e12) == 0


def test_parts_add_up_and_the_longest_counts() -> None:
    on = machine(copy=Term(rate=10.0, error=0.1), lapack=Term(rate=5.0, error=0.2))
    together = Longest((Take("copy", 100), Take("lapack", 100)))
    assert together.span(on).seconds == 20 and together.takes(on) == [Take("lapack", 100)]
    both = of_phase([together, Take("copy", 50)], on)
    assert both.seconds == 25 and both.error == pytest.approx((4.0**2 + 0.5**2) ** 0.5)


def test_what_goes_on_behind_the_computing() -> None:
    on = machine(copy=Term(rate=1.0), link__core=Term(rate=1.0))
    hidden = Cost(phases={"compute": [Take("copy", 10)]}, behind={"exchange": [Take("link/core", 8)]})
    assert predict(hidden, on).total == 10
    longer = msgspec.structs.replace(hidden, behind={"exchange": [Take("link/core", 12)]})
    assert predict(longer, on).phases["exchange"] == 2 and predict(longer, on).total == 12


def test_cannon_by_hand() -> None:
    """4 ranks on 4 nodes: 2·1000³/4 operations each; one shift of A and of B, 500² numbers each."""
    on = machine(
        gemm__float64=Term(rate=10 * GF),
        link__node=Term(rate=1 * GB, node=1 * GB),
        message__node=Term(seconds=1e-3),
    )
    plan = product(1000, on, ranks=4, algorithm="cannon", exchange="nonblocking")
    found = predict(cost_of(plan, None), on)
    assert found.phases["compute"] == pytest.approx(0.05)
    assert found.phases["exchange"] == pytest.approx(2 * 500 * 500 * 8 / GB + 2e-3)
    overlapping = product(1000, on, ranks=4, algorithm="cannon", exchange="overlap")
    assert predict(cost_of(overlapping, None), on).phases["exchange"] == 0


def test_a_ring_by_hand() -> None:
    """3 ranks, one owner, two panels of a second each; a hop takes two seconds."""
    on = machine(lapack=Term(rate=1.0), link__node=Term(rate=1.0))
    ring = Rings(3, (1, 1), (0, 0), (Take("lapack", 1),), (Take("link/node", 2),), (), overlap=False)
    # The second rank has its panels at 2 and 5, as it asks for one when it is done with the other, and the
    # last at 4 and 7: it is done at 8, of which it has computed for 2.
    assert ring.span(on).seconds == 6
    assert ring._replace(hop=(Take("link/node", 0),)).span(on).seconds == 0


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(50, 3000),
    ranks=st.sampled_from([1, 4, 9, 16]),
    algorithm=st.sampled_from([name for name in ALGORITHMS if name != "local"]),
    term=st.sampled_from(["link/node", "gemm/float64", "copy", "fault"]),
    faster=st.floats(1.0, 100.0),
)
def test_a_faster_machine_is_never_slower(
    n: int, ranks: int, algorithm: str, term: str, faster: float
) -> None:
    if not ALGORITHMS[algorithm].takes(ranks):
        return
    slow = Machine(name="slow", nodes=16, cores=2, memory=64 * GIB)
    fast = msgspec.structs.replace(slow, terms={term: slow.term(term).times(1 / faster, "faster", 0.1)})
    plan = product(n, slow, ranks=ranks, threads=1, algorithm=algorithm)
    cost = cost_of(plan, None)
    assert predict(cost, fast).total <= predict(cost, slow).total * (1 + 1e-9)


@given(
    n=st.integers(64, 20_000), few=st.sampled_from([1, 4, 16]), algorithm=st.sampled_from(["summa", "cannon"])
)
def test_more_ranks_have_smaller_blocks(n: int, few: int, algorithm: str) -> None:
    on = Machine(name="m", nodes=1024, cores=1, memory=1 << 44)
    one, other = (product(n, on, ranks=ranks, algorithm=algorithm) for ranks in (few, 4 * few))
    assert other.need.blocks <= one.need.blocks


def _true(random_: random.Random) -> Machine:
    """A machine whose terms are not those that are assumed."""
    terms = {name: kind.assumed.times(random_.uniform(0.4, 2.5), "true", 0.0) for name, kind in KINDS.items()}
    return Machine(name="true", nodes=1, cores=2, memory=64 * GIB, terms=terms)


@pytest.mark.parametrize("seed", range(5))
def test_the_tenth_run_is_predicted_better_than_the_first(seed: int) -> None:
    random_ = random.Random(seed)
    true = _true(random_)
    known = Machine(name="true", nodes=1, cores=2, memory=64 * GIB)
    missed = []
    for _ in range(10):
        plan = product(random_.choice([4000, 6000, 8000]), true, algorithm="local")
        cost = cost_of(plan, None)
        took, foreseen = predict(cost, true), predict(cost, known)
        missed.append(abs(foreseen.total / took.total - 1))
        noisy = {phase: took.phases[phase] * random_.uniform(0.95, 1.05) for phase in PHASES}
        known = msgspec.structs.replace(known, terms=known.terms | learned(cost, known, noisy))
    assert missed[-1] < 0.15 and missed[-1] <= missed[0]


def test_learning_is_bounded() -> None:
    known = Machine(name="m", cores=1)
    cost = Cost(phases={"compute": [Take("lapack", 15e9)], "input": [Take("call", 1)]})
    slow = learned(cost, known, {"compute": 1000.0, "input": 0.001})
    assert set(slow) == {"lapack"}  # a phase of no length tells nothing
    assert slow["lapack"].rate == pytest.approx(known.term("lapack").rate / 2)
    assert slow["lapack"].runs == 1 and slow["lapack"].source == "learned from 1 run"
    old = known.term("lapack")
    often = msgspec.structs.replace(known, terms={"lapack": msgspec.structs.replace(old, runs=1000)})
    assert learned(cost, often, {"compute": 1.2})["lapack"].rate == pytest.approx(old.rate / 1.2**0.1)
    one_slow_run = learned(cost, often, {"compute": 1000.0})["lapack"]
    assert one_slow_run.rate == pytest.approx(old.rate / math.exp(0.1 * 0.3))


def test_a_phase_of_several_terms_is_corrected_as_far_as_one_of_a_single_term() -> None:
    known = Machine(name="m", cores=1)
    one = Cost(phases={"compute": [Take("lapack", 15e9)]})
    two = Cost(phases={"compute": [Take("lapack", 7.5e9), Take("copy", 5e9)]})
    after = [
        predict(cost, msgspec.structs.replace(known, terms=learned(cost, known, {"compute": 2.0}))).total
        for cost in (one, two)
    ]
    assert after == pytest.approx([math.sqrt(2.0)] * 2)


def test_what_is_slow_once_in_a_while_does_not_count_as_usual() -> None:
    """Every fifth run is eight times slower; terms stay near what the others show."""
    known = Machine(name="m", cores=1)
    cost = Cost(phases={"compute": [Take("lapack", 15e9)]})
    for run in range(50):
        took = {"compute": 8.0 if run % 5 == 4 else 1.0}
        known = msgspec.structs.replace(known, terms=known.terms | learned(cost, known, took))
    assert predict(cost, known).total < 1.15


HABITS = {"compute": "svd/compute", TOTAL: "svd"}


def _run(cost: Cost, known: Machine, seconds: float) -> Machine:
    took = {"compute": seconds, TOTAL: seconds}
    taught = msgspec.structs.replace(known, terms=known.terms | learned(cost, known, took))
    return msgspec.structs.replace(taught, habits=known.habits | accustomed(cost, known, taught, took))


def test_what_a_kind_of_job_takes_beyond_its_terms_is_its_habit() -> None:
    """Three times as long as by the terms, again and again; other jobs with the same term hardly see it."""
    known = Machine(name="m", cores=1)
    cost = Cost(phases={"compute": [Take("lapack", 15e9)]}, habits=HABITS)
    for _ in range(3):
        known = _run(cost, known, 3.0)
        assert predict(cost, known).total == pytest.approx(3.0)
    assert predict(Cost(phases=cost.phases), known).total <= 2.0
    foreseen = predict(cost, known)
    assert foreseen.low > 2.4 and foreseen.high < 3.6


def test_how_far_runs_were_off_is_how_wide_the_next_band_is() -> None:
    cost = Cost(phases={"compute": [Take("lapack", 15e9)]}, habits=HABITS)
    widths = []
    for spread in (1.02, 1.4):
        known = Machine(name="m", cores=1)
        for run in range(20):
            known = _run(cost, known, spread if run % 2 else 1 / spread)
        foreseen = predict(cost, known)
        assert foreseen.low < 1 / spread and foreseen.high > spread
        widths.append(foreseen.high - foreseen.low)
    assert widths[0] < 0.3 and widths[1] > 1.0


def test_a_peculiar_phase_teaches_of_its_kind_alone() -> None:
    known = Machine(name="m", cores=1)
    cost = Cost(phases={"compute": [Take("lapack", 15e9)]}, habits=HABITS, peculiar=("compute",))
    taught = _run(cost, known, 3.0)
    assert not taught.terms and taught.habits["svd/compute"].factor == pytest.approx(3.0)


def test_pages_that_the_host_took_cost_a_machine_that_has_rested() -> None:
    cost = Cost(phases={"output": [Take("recall", 100)]})
    busy = machine(recall=Term(rate=10.0))
    assert predict(cost, busy).total == 0 and not learned(cost, busy, {"output": 9.0})
    assert predict(cost, msgspec.structs.replace(busy, rested=True)).total == 10


def test_file_systems_are_told_apart() -> None:
    on = machine(**{"write": Term(rate=10.0), "write@/scratch": Term(rate=100.0)})
    assert on.seconds("write@/scratch", 100) == 1 and on.seconds("write@/home", 100) == 10
    cost = Cost(phases={"output": [Take("write@/home", 100)]})
    assert set(learned(cost, on, {"output": 20.0})) == {"write@/home"}
    assert what_of("write@/home") == "bytes written into the page cache on /home"
    assert not wrong_term("write@/scratch", Term(rate=1e9))
    wrong = "write@scratch", "gemm/float64@/scratch", "written@/scratch", "call@proof", "lapack@"
    assert all(wrong_term(name, Term(rate=1e9)) for name in wrong)


def test_a_file_costs_what_its_file_system_does(tmp_path: Path) -> None:
    path = tmp_path / "A.npy"
    numpy.save(path, numpy.ones((64, 64)))
    options = Convert(a=str(path), output=str(tmp_path / "B.npy"))
    target = find_target(str(tmp_path / "B.npy"))
    cost = convert_cost(options.plan(options.inspect(), target, facts(), None), target)
    mount = storage.mount_point(str(path))
    assert mount.startswith("/") and {f"read@{mount}", f"write@{mount}"} <= set(cost.terms())


def test_what_is_outside_of_all_phases_counts_beside_starting() -> None:
    on = machine(copy=Term(rate=10.0), start=Term(seconds=1.0))
    cost = Cost(phases={"compute": [Take("copy", 20)]}, apart=[Take("copy", 30)])
    assert predict(cost, on).total == 2 and predict(cost, on).wall == 6
    taught = learned(cost, on, {"compute": 2.0, "start": 8.0})
    assert taught["copy"].rate == 10.0 and taught["start"].seconds > 1.0


def _weigh(n: int, on: Machine, **choices: Any) -> Plan:
    options = Multiply(a="A", b="B", output="C", verify="off", **choices)
    there = facts_of(on, facts())
    return weighed(product(n, on, **choices), options, find_target("C.npy"), there, None, on)


SLOW_NETWORK = {
    "gemm__float64": Term(rate=30 * GF, error=0.1),
    "link__node": Term(rate=0.1 * GB, node=0.1 * GB, source="given"),
}


def test_a_way_that_is_clearly_faster_is_taken() -> None:
    on = machine(**SLOW_NETWORK)
    plan = _weigh(8192, on, ranks=16)
    assert plan.job.variant.algorithm == "cannon" and plan.fixed == ["ranks"] and plan.chosen_by == "plan"
    assert any("less than for summa: exchange takes" in reason for reason in plan.reasons)


def test_a_short_job_starts_on_one_host() -> None:
    """Of 16 hosts: starting on all of them takes longer than the job on one."""
    on = machine(start__nodes=Term(seconds=0.1), copy=Term(rate=10 * GB, source="measured"))
    options = Convert(a="A", output="B.npy", dtype="float32")
    region = Region(path="", name="random", rows=9000, columns=9000, dtype="float64", generator="random")
    there, target = facts_of(on, facts()), find_target("B.npy")
    usual = options.plan([region], target, there, None)
    assert usual.job.variant.ranks == 16
    plan = weighed(usual, options, target, there, None, on)
    assert plan.job.variant.ranks == 1
    assert re.search(
        r"local on 1 rank: .* less than for local on 16: starting takes 0.* s, not 0.4", plan.reasons[-1]
    )


def test_the_rule_stays_where_ways_are_about_the_same() -> None:
    fast = machine(gemm__float64=Term(rate=30 * GF), link__node=Term(rate=100 * GB, node=100 * GB))
    assert _weigh(8192, fast, ranks=16).job.variant.algorithm == "summa"


def test_the_rule_stays_where_nothing_is_known_or_little_is_to_be_done() -> None:
    unknown = Machine(name="m", nodes=16, cores=1, memory=64 * GIB)
    assert _weigh(8192, unknown, ranks=16).job.variant.algorithm == "summa"
    assert _weigh(512, machine(**SLOW_NETWORK), ranks=16).job.variant.algorithm == "summa"
    assert _weigh(8192, machine(**SLOW_NETWORK), ranks=16, algorithm="summa").job.variant.algorithm == "summa"


CLUSTER = {
    "name": "typed",
    "nodes": 2048,
    "cores": 8,
    "memory": 64 * GIB,
    "terms": {
        "gemm/float64": {"rate": 35e9, "error": 0.1, "source": "its makers"},
        "link/node": {"rate": 25e9, "node": 25e9},
        "message/node": {"seconds": 2e-6},
    },
}


def test_plans_for_a_machine_that_is_not_here(here: InProcess) -> None:
    Path("typed.json").write_text(json.dumps(CLUSTER))
    words = ("random:100000x100000", "random:100000x100000", "-o", "C.npy", "-n", 16384, "-t", 1)
    said = here("plan", "multiply", *words, "--machine", "typed.json", "--json", "-")
    assert said.returncode == 0, said.stderr
    variants = json.loads(said.stdout)["variants"]
    chosen = variants[0]
    assert chosen["chosen"] and chosen["variant"]["ranks"] == 16384
    least = 2 * 100000**3 / 16384 / 35e9
    assert least <= chosen["predicted_seconds"]["compute"] <= 1.01 * least
    words = here("plan", "multiply", *words, "--machine=typed.json").stdout
    assert "typed has 8 processors on each of 2048 nodes" in words and "predicted" in words


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "does not describe a machine"),
        ('{"nodes": 2, "kores": 3}', "kores"),
        ('{"nodes": 0}', "nodes must be 1 to"),
        ('{"nodes": 100000000}', "nodes must be 1 to"),
        ('{"terms": {"copy": {"rate": 1e-300}}}', "copy must have a rate above 0"),
        ('{"terms": {"start": {"rate": 1}}}', "start must have seconds, and no rate"),
        ('{"terms": {"copy": {"rate": 1e9, "runs": -1}}}', "copy has a number that is negative"),
        ('{"terms": {"gemm": {"rate": 1}}}', "terms has 'gemm'"),
        ('{"terms": {"copy": {"rate": -1}}}', "copy has a number that is negative"),
        ('{"terms": {"copy": {}}}', "copy must have a rate above 0, and no seconds"),
    ],
)
def test_machines_that_make_no_sense(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(UsageError, match=complaint):
        read_machine(str(tmp_path / "m.json"))
    with pytest.raises(UsageError, match="cannot be read"):
        read_machine(str(tmp_path / "none.json"))


def test_a_damaged_profile_fails_no_job(here: InProcess) -> None:
    bad = {"copy": Term(rate=1e-300), "read": Term(rate=1.0, runs=-4), "call": Term(seconds=-1.0)}
    profile.store_terms("some|cpu|build", lambda old: bad | {"write": Term(rate=2.0)})
    assert set(profile.load().terms["some|cpu|build"]) == {"write"}


def test_what_is_supposed_of_products_follows_the_processor(here: InProcess) -> None:
    def rate(*flags: str) -> float:
        there = msgspec.structs.replace(facts(), flags=frozenset(flags))
        return local_machine(there, "some|cpu|build").term("gemm/float64").rate

    assert rate("avx512f", "avx2") == 2 * rate("avx2") == 4 * rate("asimd") == 8 * rate("sse2")
    assert rate() == rate("avx2") == KINDS["gemm/float64"].assumed.rate
    profile.store_terms("some|cpu|build", lambda old: {"gemm/float64": Term(rate=1e9, runs=1)})
    assert rate("avx512f") == 1e9  # what runs have taught is nearer


def test_one_short_run_does_not_make_a_machine_known() -> None:
    started = Machine(name="m", terms={"start": Term(seconds=0.1, source="learned from 1 run", runs=1)})
    assert not started.known and Machine(name="m", terms={"copy": Term(rate=1.0, source="measured")}).known


def test_a_plan_names_what_would_come_next(here: InProcess) -> None:
    slow = {"gemm/float64": {"rate": 30e9, "error": 0.1}, "link/node": {"rate": 0.1e9, "node": 0.1e9}}
    Path("slow.json").write_text(json.dumps(CLUSTER | {"cores": 1, "terms": slow}))
    words = ("multiply", "random:8192x8192", "random:8192x8192", "-o", "C.npy", "--machine", "slow.json")
    said = " ".join(here("plan", *words, "-n", 16).stdout.split())
    assert "algorithm cannon" in said
    assert re.search(
        r"next best summa on 16 ranks: [\d.]+ s, not [\d.]+ \(with the start\), \d+% more: exchange takes",
        said,
    )
    alone = here("plan", *words, "-n", 1, "--algorithm", "local", "--io", "positioned")
    assert "next best" not in alone.stdout  # nothing else is left open
    alone = here("plan", *words, "-n", 1, "--io", "positioned")
    assert "algorithm local" in " ".join(alone.stdout.split())
    assert "next best" not in alone.stdout  # on one rank the others are the same product


def test_a_plan_is_for_one_machine(here: InProcess) -> None:
    Path("typed.json").write_text(json.dumps(CLUSTER))
    words = ("multiply", "random:9x9", "random:9x9", "-o", "C.npy", "--simulate", "2x1:1GB/s:1us")
    assert "name two machines" in one_message(here("plan", "--machine", "typed.json", *words), 2)


def test_what_would_save_most() -> None:
    on = machine(lapack=Term(rate=1.0), link__node=Term(rate=1.0))
    ring = Rings(3, (1, 1), (0, 0), (Take("lapack", 1),), (Take("link/node", 2),), (), overlap=False)
    most = heaviest(Cost(phases={"compute": [Take("lapack", 2)], "exchange": [ring]}), on)
    assert most is not None and most.term == "link/node" and most.total == 8
    even = {name: [Take(name, 1)] for name in KINDS}
    flat = Machine(name="m", terms={name: Term(seconds=1.0) for name in KINDS})
    assert (
        heaviest(Cost(phases={"compute": [part for parts in even.values() for part in parts]}), flat) is None
    )


def test_what_was_learned_can_be_forgotten(here: InProcess) -> None:
    taught, measured = Term(rate=1.0, runs=1), Term(rate=1.0, source="measured")
    profile.store_terms("some|cpu|build", lambda old: old | {"copy": taught, "read": measured})
    assert here("plan", "--forget").stdout == "forgot what runs taught of 1 figure\n"
    kept = profile.load().terms["some|cpu|build"]
    assert set(kept) == {"read"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", kept["read"].date)
    assert here("plan", "--forget").stdout == "there was nothing to forget\n"
    assert "--machine needs a value" in one_message(here("plan", "multiply", "A.npy", "--machine"), 2)
