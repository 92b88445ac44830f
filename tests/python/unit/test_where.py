"""Where ranks go: plans under a Slurm allocation, with hosts, with a launcher, and what came of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import GIB, facts
from tilewise.base.errors import UsageError
from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.launch.events import RankPlace
from tilewise.launch.join import Join
from tilewise.machine.allocation import granted
from tilewise.machine.facts import Facts, within
from tilewise.operations.multiply.options import Multiply
from tilewise.operations.stencil.options import Stencil
from tilewise.operations.svd.options import Svd
from tilewise.operations.transpose.options import Transpose
from tilewise.planning.plan import Plan
from tilewise.planning.where import Spread, misplaced


def grants(
    nodes: str = "n[1-3]", cpus: str = "2(x3)", tasks: str = "", here: str = "login", **more: str
) -> Facts:
    """Of ranks, in an allocation; with `tasks`, that many were asked for."""
    told = {"SLURM_JOB_NODELIST": nodes, "SLURM_JOB_CPUS_PER_NODE": cpus, **more}
    if tasks:
        told |= {"SLURM_NTASKS": "1", "SLURM_TASKS_PER_NODE": tasks}
    return within(facts(), granted(told, here))


def planned(machine: Facts, size: int = 2000, joined: Join | None = None, **choices: Any) -> Plan:
    one = Region(path="/x.npy", name="x.npy", rows=size, columns=size, dtype="float64")
    return Multiply(a="A", b="B", output="C", **choices).plan([one, one], None, machine, joined).required()


def shape(plan: Plan) -> tuple[int, int, str]:
    return plan.spread.ranks, plan.spread.threads, " ".join(plan.spread.hosts)


def test_a_rank_on_each_node_with_its_processors() -> None:
    plan = planned(grants())
    assert shape(plan) == (3, 2, "n1 n2 n3") and not plan.warnings
    assert "Slurm grants 2 processors on each of 3 nodes" in plan.reasons


def test_tasks_that_slurm_was_asked_for_are_ranks() -> None:
    assert shape(planned(grants(tasks="2(x3)"))) == (6, 1, "n1 n1 n2 n2 n3 n3")
    assert shape(planned(grants(tasks="2,1(x2)"))) == (4, 1, "n1 n1 n2 n3")
    assert shape(planned(grants(tasks="2(x3)"), ranks=3)) == (3, 2, "n1 n2 n3")
    assert shape(planned(grants(tasks="2(x3)"), ranks=4)) == (4, 1, "n1 n1 n2 n3")
    assert shape(planned(grants(tasks="2(x3)"), ranks=4, place="node")) == (4, 1, "n1 n2 n3 n1")


def test_few_ranks_take_few_nodes_and_their_whole_memory() -> None:
    small = planned(grants(), size=50)
    assert (small.spread.ranks, small.spread.nodes, small.spread.hosts) == (1, 1, ("n1",))
    alone, two = (planned(grants(), ranks=ranks, algorithm="summa") for ranks in (1, 2))
    assert alone.spread.nodes == 1 and alone.need.node >= alone.need.rank
    assert two.spread.on_node == 1 and two.need.node < alone.need.node
    uneven = planned(grants(), ranks=4)
    even = planned(grants(), ranks=6)
    assert uneven.spread.on_node == even.spread.on_node == 2
    assert uneven.need.node > even.need.node  # half of the matrix, not a third


def test_unlike_nodes_get_what_they_have_processors_for() -> None:
    unlike = grants(cpus="4,2,1")
    assert shape(planned(unlike, ranks=7)) == (7, 1, "n1 n1 n1 n1 n2 n2 n3")
    assert shape(planned(unlike, ranks=3, threads=2)) == (3, 2, "n1 n2 n3")
    assert planned(unlike, ranks=3, threads=2).oversubscribed
    assert shape(planned(unlike, algorithm="summa"))[0] == 7


@pytest.mark.parametrize("tasks", ["", "2(x3)"])
def test_cpus_per_task_are_the_threads(tasks: str) -> None:
    machine = grants(cpus="8(x3)", tasks=tasks, SLURM_CPUS_PER_TASK="4")
    plan = planned(machine)
    assert (plan.spread.ranks, plan.spread.threads) == ((6 if tasks else 3), 4)
    assert "4 threads per rank: --cpus-per-task" in plan.reasons
    assert planned(machine, threads=2).spread.threads == 2
    assert planned(machine, ranks=12).spread.threads == 2  # never more than there are cores for


def test_one_node_with_tasks_of_several_processors() -> None:
    machine = grants("n1", "8", "4", here="n1", SLURM_CPUS_PER_TASK="2")
    assert shape(planned(machine)) == (4, 2, "n1 n1 n1 n1")
    assert shape(planned(grants("n1", "4", "4", here="n1")))[:2] == (1, 4)


def test_ranks_that_exist_take_the_threads_of_their_task() -> None:
    machine = grants(cpus="8(x3)", here="n1", SLURM_CPUS_PER_TASK="4")
    found = planned(machine, joined=Join(0, 6, "slurm", 2)).spread
    assert (found.threads, found.nodes, found.on_node, found.hosts) == (4, 3, 2, ())


def test_more_ranks_than_processors_are_told() -> None:
    for plan, where in (
        (planned(grants(), ranks=9), "3 ranks × 1 thread on 2 processors of n1"),
        (planned(facts(), ranks=9), "9 ranks × 1 thread on 8 processors:"),
        (planned(grants(cpus="2(x2),1"), ranks=6, threads=1), "2 ranks × 1 thread on 1 processor of n3"),
    ):
        (warning,) = plan.warnings
        assert plan.oversubscribed and f"oversubscribed: {where}" in warning


def test_more_ranks_than_slots_are_told(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("a:1\nb:2\n")
    plan = planned(facts(), hosts=str(tmp_path / "hosts"), ranks=4)
    assert plan.warnings == ["more ranks than slots: 2 ranks on a, which has 1 slot in --hosts"]
    assert not planned(facts(), hosts=str(tmp_path / "hosts"), ranks=3).warnings


def test_hosts_within_an_allocation(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("n3:1\nn1.here:2\n")
    assert shape(planned(grants(), hosts=str(path), ranks=3)) == (3, 1, "n1 n1 n3")  # in Slurm's order
    path.write_text("n1\nn7\n")
    with pytest.raises(UsageError, match="Slurm has not granted n7, only n1, n2, n3"):
        planned(grants(), hosts=str(path))


def test_memory_is_what_slurm_grants() -> None:
    little = grants(SLURM_MEM_PER_NODE="32")
    with pytest.raises(UsageError, match="80 % of what is available is 25.6 MiB"):
        planned(little)
    with pytest.raises(UsageError, match="--memory allows 24.0 MiB"):
        planned(grants(), memory=24 << 20)
    unknown = planned(grants(), size=20_000)  # more than is counted on, and nobody has looked
    assert unknown.need.node > 0.8 * unknown.facts.memory_available
    assert "4.00 GiB of memory per node are assumed" in unknown.reasons


def test_a_launcher_puts_ranks_where_it_likes() -> None:
    """So that what would not do on one host, such as ours, is no reason to refuse or to warn."""
    for launcher, machine in (("mpiexec -f hosts", facts()), ("srun -N3", grants())):
        plan = planned(machine, ranks=64, launcher=launcher)
        assert not plan.spread.sure and not plan.warnings and plan.spread.hosts == ()
    small = facts(memory_available=GIB // 2, shared_memory=GIB // 8)
    assert planned(small, ranks=16, launcher="mpiexec -f hosts").need.node > GIB // 2
    with pytest.raises(UsageError, match="of memory on a node"):
        planned(small, ranks=16)
    assert planned(grants(), launcher="srun --mpi=pmi2").spread.hosts == ("n1", "n2", "n3")


def test_what_holds_on_one_host_only_has_a_second_choice() -> None:
    for choices in ({}, {"launcher": "mpiexec -f hosts"}):
        variant = planned(facts(), ranks=4, **choices).job.variant
        assert (variant.exchange, variant.between_nodes) == ("shared", "overlap")
    asked = planned(facts(), ranks=4, exchange="shared").job.variant
    assert (asked.exchange, asked.between_nodes) == ("shared", "")
    assert planned(grants(), ranks=3).job.variant.exchange == "overlap"
    with pytest.raises(UsageError, match="within one node"):
        planned(grants(), ranks=3, exchange="shared")


@pytest.mark.parametrize("ranks", [1, 2, 4, 6])
def test_every_operation_knows_its_nodes(tmp_path: Path, ranks: int) -> None:
    source = Region(path="/x.npy", name="x.npy", rows=3000, columns=3000, dtype="float64")
    target, machine = Target(str(tmp_path / "y.npy"), "y.npy", None), grants()
    files: dict[str, Any] = {"a": "x.npy", "output": "y.npy", "ranks": ranks}
    plans = [
        operation.plan([source], target, machine, None)
        for operation in (Transpose(**files), Stencil(**files, steps=3), Svd(**files))
    ]
    for plan in plans:
        assert plan.spread.nodes == min(ranks, 3) and plan.spread.on_node == -(-ranks // 3)
        assert plan.need.rank <= plan.need.node <= plan.spread.on_node * plan.need.rank + (1 << 20)


def places(*hosts: str) -> list[RankPlace]:
    return [RankPlace(rank=rank, host=host, pid=1) for rank, host in enumerate(hosts)]


@pytest.mark.parametrize(
    ("meant", "used", "said"),
    [
        ("n1 n2 n3", "n1 n2 n3", ""),
        ("n1 n1 n2", "10.0.0.1 10.0.0.1 other", ""),  # a host has many names
        ("n1 n2 n3", "n1 n1 n2", "2 on n1 and 1 on n2, instead of 1 on n1, 1 on n2 and 1 on n3"),
        ("n1 n2 n1 n2", "n1 n1 n2 n2", "2 on n1 and 2 on n2, instead of 2 on n1 and 2 on n2"),
        ("a a b b", "a b a b", "instead of 2 on a and 2 on b"),
    ],
)
def test_ranks_that_are_elsewhere_are_told(meant: str, used: str, said: str) -> None:
    spread = Spread(ranks=1, threads=1, nodes=1, on_node=1, hosts=tuple(meant.split()))
    found = misplaced(spread, places(*used.split()))
    assert said in found and bool(said) == bool(found)


def test_where_no_host_has_a_name_their_number_counts() -> None:
    spread = Spread(ranks=4, threads=1, nodes=2, on_node=2)
    assert misplaced(spread, places("a", "a", "b", "b")) == ""
    assert misplaced(spread, places("a", "a", "a", "b")) == "3 ranks are on a, but at most 2 were planned"
    unsure = Spread(ranks=4, threads=1, nodes=1, on_node=4, sure=False)
    assert misplaced(unsure, places("a", "b", "c", "d")) == ""
