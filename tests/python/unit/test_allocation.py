"""What Slurm grants, out of its variables, and what of a login host counts then."""

from __future__ import annotations

import pytest
from machines import GIB, facts
from tilewise.machine.allocation import Allocation, Node, expand, granted, same_host
from tilewise.machine.facts import within

THREE = {
    "SLURM_JOB_NODELIST": "n[1-3]",
    "SLURM_JOB_CPUS_PER_NODE": "2(x2),4",
    "SLURM_TASKS_PER_NODE": "2(x2),1",
}


def three(host: str = "login", **more: str) -> Allocation:
    allocation = granted({**THREE, **more}, host)
    assert allocation is not None
    return allocation


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", "n1"),
        ("n1,n2", "n1 n2"),
        ("n[1-3,7]", "n1 n2 n3 n7"),
        ("n[08-10,007],login", "n08 n09 n10 n007 login"),
        ("r[1-2]c[1,3]", "r1c1 r1c3 r2c1 r2c3"),
        ("a[1-2]-ib,b", "a1-ib a2-ib b"),
        ("", ""),
        ("n[1-x]", ""),
        ("n[1-99999999]", ""),
        ("n[3-1]", ""),
    ],
)
def test_lists_of_nodes(text: str, names: str) -> None:
    assert expand(text) == names.split()


def test_nodes_processors_and_tasks() -> None:
    assert three().nodes == (Node("n1", 2), Node("n2", 2), Node("n3", 4))
    assert [node.slots for node in three(SLURM_NTASKS="5").nodes] == [2, 2, 1]
    assert (three().cpus_per_task, three().memory, three().here, three().cpus) == (None, None, "", 2)
    assert three(SLURM_CPUS_PER_TASK="2").cpus_per_task == 2
    assert three("n2.cluster").here == "n2" and three("other", SLURMD_NODENAME="n3").here == "n3"
    assert granted({}, "n1") is None and granted({"SLURM_JOB_ID": "7"}, "n1") is None


def test_the_tasks_of_a_step_are_not_the_jobs() -> None:
    step = three(SLURM_NTASKS="5", SLURM_STEP_TASKS_PER_NODE="2(x2),1")
    assert not any(node.slots for node in step.nodes)


@pytest.mark.parametrize(
    "counts", ["", "2", "2(x4)", "2(x2)", "x(x3)", "2(x3", "2(x999999999)", "-1(x3)", "2(x3),"]
)
def test_counts_that_do_not_fit_say_nothing(counts: str) -> None:
    assert [node.cpus for node in three(SLURM_JOB_CPUS_PER_NODE=counts).nodes] == [0, 0, 0]


def test_memory_of_a_node() -> None:
    assert three(SLURM_MEM_PER_NODE="3000").memory == 3000 << 20
    assert three(SLURM_MEM_PER_CPU="1000").memory == 2000 << 20  # of the node with fewest processors
    assert three(SLURM_MEM_PER_NODE="0").memory is None  # all there is


def test_what_is_granted_is_told() -> None:
    assert three().text() == "Slurm grants 2 to 4 processors on each of 3 nodes"
    even = {"SLURM_JOB_CPUS_PER_NODE": "2(x3)", "SLURM_MEM_PER_NODE": "1024"}
    assert three(**even).text() == (
        "Slurm grants 2 processors on each of 3 nodes; 1.00 GiB of memory on a node"
    )
    one = granted({"SLURM_JOB_NODELIST": "n1", "SLURM_JOB_CPUS_PER_NODE": "1"}, "n1")
    assert one is not None and one.text() == "Slurm grants 1 processor on n1"


def test_names_of_hosts() -> None:
    assert same_host("n1", "n1.here") and same_host("n1.here", "n1") and not same_host("n1", "n2")
    assert not same_host("n1.here", "n1.there")


def test_a_node_counts_as_far_as_slurm_grants_it() -> None:
    node = within(facts(), three("n1", SLURM_MEM_PER_NODE="2048"))
    assert (node.host, node.cores, node.cpus, node.memory_available) == ("here", 2, 2, 2 * GIB)
    assert node.memory_known and not node.remote and node.shared_memory == 32 * GIB
    bound = within(facts(cores=1, cpus=1, memory_available=GIB), three("n1", SLURM_MEM_PER_NODE="2048"))
    assert (bound.cores, bound.memory_available) == (1, GIB)
    assert within(facts(), None) == facts()


def test_a_login_host_says_nothing_of_the_nodes() -> None:
    node = within(facts(cores=64, cpus=128), three())
    assert (node.host, node.cpu, node.cores, node.cpus, node.flags) == ("n1", "", 2, 2, frozenset())
    assert node.remote and not node.memory_known and node.memory_available == 4 * GIB
    told = within(facts(), three(SLURM_MEM_PER_NODE="512"))
    assert told.memory_known and told.memory_available == 512 << 20
