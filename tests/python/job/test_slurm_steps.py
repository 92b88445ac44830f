"""What children of a Slurm job hear: nothing of the step that we are in, and the MPI type that fits."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import Tilewise, one_message
from launchers import VARIANT, program
from tilewise.launch import environment, launcher, slurm
from tilewise.launch.join import Join, detect, foreign
from tilewise.launch.launcher import HYDRA, OPEN_MPI, SRUN, LauncherKind

ALLOCATION = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NUM_NODES": "3",
    "SLURM_JOB_NODELIST": "n[1-3]",
    "SLURM_JOB_CPUS_PER_NODE": "2(x3)",
    "SLURM_CONF": "/etc/slurm.conf",
}
# Of `srun --mpi=pmix -n 1` within it, as Slurm 22.05 sets them.
STEP = {
    **ALLOCATION,
    **dict.fromkeys(("SLURM_NNODES", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_TASKS_PER_NODE"), "1"),
    **dict.fromkeys(("SLURM_STEP_ID", "SLURM_STEPID", "SLURM_PROCID", "SLURM_LOCALID", "PMIX_RANK"), "0"),
    **dict.fromkeys(("SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", "SLURM_STEP_TASKS_PER_NODE"), "1"),
    "SLURM_NODELIST": "n[1-3]",
    "SLURM_MPI_TYPE": "pmix",
    "SLURM_PMIX_MAPPING_SERV": "(vector,(0,1,1))",
    "SLURM_SRUN_COMM_PORT": "40915",
    "SLURM_DISTRIBUTION": "cyclic",
    "SLURM_PTY_PORT": "1",
    "PMIX_NAMESPACE": "slurm.pmix.6.0",
    "PMIX_SERVER_URI41": "pmix-server.1;tcp4://127.0.0.1:3",
    "PMIX_DSTORE_21_BASE_PATH": "/x",
    "PMIX_HOSTNAME": "n1",
}


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """In a step of that allocation."""
    for key in os.environ:
        if key.startswith(("SLURM", "PMI", "OMPI_", "HYDRA")):
            monkeypatch.delenv(key)
    for key, value in STEP.items():
        monkeypatch.setenv(key, value)
    slurm._answer.cache_clear()
    return monkeypatch


def test_a_child_of_a_step_is_of_its_job() -> None:
    mine = {"PMIX_MCA_psec": "native", "SLURM_PMIX_FENCE": "ring"}
    left = environment.alone({**STEP, **mine, "HOME": "/h"})
    assert left == {
        **ALLOCATION,
        "SLURM_NNODES": "3",
        "SLURM_NODELIST": "n[1-3]",
        "SLURM_TASKS_PER_NODE": "2(x3)",
        "SLURM_OVERLAP": "1",
        **mine,
        "HOME": "/h",
    }


def test_an_allocation_stays_as_it_is() -> None:
    """Of `salloc`, of a batch script, and of the shell of an interactive step."""
    told = {**ALLOCATION, "SLURM_NTASKS": "6", "SLURM_MPI_TYPE": "pmi2"}
    for shell in ({}, {"SLURM_STEP_ID": "4294967290"}):
        assert environment.alone({**told, **shell}) == told


OPTIONS = {
    "SLURM_CPUS_PER_TASK": "2",
    "SLURM_NTASKS_PER_NODE": "2",
    "SLURM_MEM_PER_CPU": "100",
    "SLURM_EXPORT_ENV": "NONE",
    "SLURM_LABELIO": "1",
    "SLURM_EXACT": "1",
}


@pytest.mark.parametrize(
    ("kind", "family", "type_"),
    [
        (HYDRA, "mpich", "none"),
        (OPEN_MPI, "openmpi", "none"),
        (SRUN, "mpich", "pmi2"),
        (SRUN, "openmpi", "pmix"),
        (SRUN, "unknown", None),
    ],
)
def test_what_an_srun_hears(
    kind: LauncherKind, family: str, type_: str | None, inside: pytest.MonkeyPatch
) -> None:
    told = {**ALLOCATION, **OPTIONS}
    kind.prepare(told, family)
    assert {key: told[key] for key in OPTIONS if key in told} == {"SLURM_EXPORT_ENV": "ALL"}
    assert told.get("SLURM_MPI_TYPE") == type_
    assert told.get("SLURM_OVERLAP") == (None if kind is SRUN else "1")


def test_a_users_mpi_type_is_for_ranks(inside: pytest.MonkeyPatch) -> None:
    """Not for the proxies of MPICH's launcher, which are none."""
    for kind, family, expected in ((SRUN, "openmpi", "pmix_v4"), (HYDRA, "mpich", "none")):
        variables = {**ALLOCATION, "SLURM_MPI_TYPE": "pmix_v4"}
        kind.prepare(variables, family)
        assert variables["SLURM_MPI_TYPE"] == expected


def test_without_slurm_nothing_is_told(inside: pytest.MonkeyPatch) -> None:
    inside.delenv("SLURM_JOB_ID")
    variables: dict[str, str] = {}
    HYDRA.prepare(variables, "mpich")
    assert variables == {}


LIST = """echo 'MPI plugin types are...
	none
	{0}
	pmi2
specific pmix plugin versions available: pmix_v4,pmix_v5'"""


def test_a_site_build_asks_slurm(inside: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It starts by srun with a type that its MPI understands, else by the launcher of that MPI."""
    program(tmp_path, "srun", LIST.format("pmix"))
    own = program(tmp_path, "orterun", "")
    inside.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = launcher.Worker("/w", {"mpi": "site", "mpiexec": str(own)})
    assert slurm.mpi_types("srun") == ["none", "pmix", "pmi2", "pmix_v4", "pmix_v5"]
    start = launcher.own_start(found, VARIANT, ["n1", "n2"], "", False)
    assert start.command[1] == "--mpi=pmix" and start.environment["SLURM_OVERLAP"] == "1"
    assert start.patience == pytest.approx(25.2)
    slurm._answer.cache_clear()
    program(tmp_path, "srun", "echo 'MPI plugin types are...'; echo none")
    start = launcher.own_start(found, VARIANT, ["n1", "n2"], "", False)
    assert start.command[0] == str(own) and start.environment["SLURM_MPI_TYPE"] == "none"
    slurm._answer.cache_clear()


def test_the_wheel_in_a_step(inside: pytest.MonkeyPatch) -> None:
    found = launcher.Worker("/w", {"mpi": "wheel"})
    if launcher.mpiexec_path(found.build) is None:
        pytest.skip("the mpich package is not installed beside this Python")
    start = launcher.own_start(found, VARIANT, ["n1", "n2"], "", False)
    assert start.environment["SLURM_MPI_TYPE"] == "none" and start.environment["SLURM_OVERLAP"] == "1"
    assert not [key for key in start.environment if key.startswith(("PMIX_", "SLURM_STEP"))]
    inside.setenv("SLURMD_NODENAME", "n1")
    start = launcher.own_start(found, VARIANT, ["n1", "n1"], "", False)
    assert start.command[1:3] == ["-launcher", "fork"]


def test_a_launcher_that_may_queue_has_all_the_time(inside: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = launcher.Worker("/w", {"mpi": "wheel"})
    srun = str(program(tmp_path, "srun", ""))
    assert launcher.own_start(found, VARIANT, (), srun, False).patience == pytest.approx(25.2)
    inside.delenv("SLURM_JOB_ID")
    assert launcher.own_start(found, VARIANT, (), srun, False).patience is None
    assert launcher.own_start(found, VARIANT, (), "env", False).patience is None


@pytest.mark.parametrize(
    ("joined", "said"), [("pmix", "with MPI type pmix"), ("none", "with no MPI type (none)")]
)
def test_ranks_that_the_wheel_does_not_understand(fake: Tilewise, joined: str, said: str) -> None:
    for rank in "01":
        fake.environment.update(SLURM_STEP_ID="0", SLURM_STEP_NUM_TASKS="2", SLURM_PROCID=rank)
        if joined == "pmix":
            fake.environment["PMIX_RANK"] = rank
        result = fake("multiply", "A.npy", "B.npy", "-o", "C.npy")
        if rank == "0":
            told = one_message(result, 2)
            assert f"srun started these 2 ranks {said}" in told and "try: srun --mpi=pmi2 -n 2" in told
        else:
            assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_which_types_fit() -> None:
    for kind, fits in (("pmi", True), ("pmix", False), ("slurm", False), ("openmpi", False)):
        assert foreign(Join(0, 2, kind), "wheel") != fits
        assert not foreign(Join(0, 2, kind), "site")


def test_the_shell_of_a_step_is_no_rank() -> None:
    """`srun --pty -n 6 bash`: what is typed there has a process group of its own."""
    told = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "6", "SLURM_PROCID": "0", "SLURM_PTY_PORT": "9"}
    shell = subprocess.Popen(["sleep", "99"], start_new_session=True)
    try:
        assert detect({**told, "SLURM_TASK_PID": str(shell.pid)}) is None
    finally:
        shell.kill()
        shell.wait()
    assert detect({**told, "SLURM_TASK_PID": str(os.getpid())}) == Join(0, 6, "slurm", 0)
    assert detect(told) == Join(0, 6, "slurm", 0)
