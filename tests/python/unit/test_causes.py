"""What launchers print when they start no ranks, and what is said of it: causes by name, else last lines."""

from __future__ import annotations

import pytest
from tilewise.base.errors import RunError, UsageError
from tilewise.launch import causes, diagnose
from tilewise.launch.launcher import ALONE, HYDRA, JOINED, OPEN_MPI, SRUN, Start
from tilewise.launch.outcome import Outcome

# As they come from Slurm 22.05, MPICH 4 and 5, Open MPI 4.1 and OpenSSH 9; the message, the advice.
KNOWN = [
    (
        "check_MPIR_CVAR_PMI_VERSION(134):  Auto-detection of PMI version failed. Found both env vars "
        "PMI_SIZE and PMIX_NAMESPACE. There is likely something wrong with the runtime environment!",
        RunError,
        "two launchers",
        "SLURM_MPI_TYPE=none",
    ),
    (
        "check_MPIR_CVAR_PMI_VERSION(167):  Runtime environment uses unsupported PMI version PMIx. Aborting.",
        UsageError,
        "(MPI type pmix), which MPICH does not support",
        "srun --mpi=pmi2 -n 6",
    ),
    (
        "but OMPI was not built with SLURM's PMI support and therefore cannot",
        UsageError,
        "MPICH does not support srun's MPI type",
        "srun --mpi=pmi2 -n 6",
    ),
    (
        "srun: error:  mpi/pmix_v4: init: (null) [0]: mpi_pmix.c:195: pmi/pmix: can not load PMIx library\n"
        "srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types",
        RunError,
        "lacks the PMIx library",
        "libpmix-dev",
    ),
    (
        "srun: error: cannot find mpi plugin for mpi/foo\nsrun: error: Invalid MPI type 'foo', --mpi=list",
        UsageError,
        "no MPI type foo",
        "--mpi=list",
    ),
    (
        "srun: error: Unable to confirm allocation for job 999: Invalid job id specified",
        UsageError,
        "does not know allocation 999, named in the environment (SLURM_JOB_ID): Invalid job id specified",
        "salloc",
    ),
    (
        "srun: error: Unable to create step for job 65: Requested node configuration is not available",
        RunError,
        "a step in allocation 65: Requested node",
        "scontrol show job 65",
    ),
    (
        "srun: Job 8 step creation temporarily disabled, retrying (Requested nodes are busy)",
        RunError,
        "delays the step: Requested nodes are busy",
        "SLURM_OVERLAP=1",
    ),
    (
        "srun: error: Unable to allocate resources: Invalid node name specified",
        UsageError,
        "no allocation: Invalid node name",
        "sinfo",
    ),
    (
        "srun: fatal: Could not establish a configuration source",
        UsageError,
        "no Slurm here",
        "no --launcher",
    ),
    (
        "srun: error: Unable to contact slurm controller (connect failure)",
        RunError,
        "controller does not answer",
        "scontrol ping",
    ),
    ("srun: error: Node failure on n2", RunError, "node n2 failed", "--exclude=n2"),
    (
        "[mpiexec@vm] HYDU_create_process (launch.c): execvp error on file ssh (No such file or directory)",
        RunError,
        "there is no ssh here",
        "HYDRA_LAUNCHER_EXEC",
    ),
    ("  plm_rsh_agent: ssh : rsh", RunError, "there is no ssh here", "OMPI_MCA_plm_rsh_agent"),
    (
        "ssh: Could not resolve hostname n7: Name or service not known",
        UsageError,
        "no host is called n7",
        "getent hosts n7",
    ),
    (
        "ssh: connect to host 192.0.2.77 port 22: No route to host",
        RunError,
        "ssh cannot reach 192.0.2.77: No route to host",
        "ssh 192.0.2.77 true",
    ),
    ("Host key verification failed.", RunError, "the key of host HOST", "ssh-keyscan"),
    (
        "root@n2: Permission denied (publickey,password).",
        RunError,
        "not allowed to log in to host n2",
        "ssh-copy-id",
    ),
    (
        "[proxy:0@n2] HYDU_sock_connect (sock.c): unable to connect from n2 to login (Connection refused)",
        RunError,
        "n2 cannot connect to login: Connection refused",
        "-iface",
    ),
    (
        "[1795632609.545959] [n1:22 :0] sock.c:348 UCX ERROR connect(fd=17, dest_addr=192.0.2.77:46075) "
        "failed: Connection refused",
        RunError,
        "a rank on 192.0.2.77 ended, or is not reached from here: Connection refused",
        "tilewise doctor on that host",
    ),
    (
        "There are not enough slots available in the system to satisfy the 6\nslots that were requested",
        UsageError,
        "fewer slots than 6 ranks",
        "--oversubscribe",
    ),
    ("mpiexec has detected an attempt to run as root.", UsageError, "not run as root", "another user"),
    ("ORTE was unable to reliably start one or more daemons.", RunError, "its daemons", "ssh to them"),
    (
        "slurmstepd: error: execve(): /opt/worker: No such file or directory",
        RunError,
        "/opt/worker cannot be started: No such file",
        "every host",
    ),
]


def of(**more: object) -> Start:
    known: dict[str, object] = {"ranks": 6, "launcher": SRUN, "family": "mpich", **more}
    return Start(["srun"], {}, **known)  # type: ignore[arg-type]


@pytest.mark.parametrize(("printed", "kind", "message", "advice"), KNOWN)
def test_known_causes(printed: str, kind: type, message: str, advice: str) -> None:
    noise = "=====\nsrun: error: n1: task 0: Exited with exit code 17"
    lines = f"{printed}\n{noise}".splitlines()
    error = diagnose.error_of(Outcome(ranks=6, returncode=17, chatter=lines), None, of())
    assert type(error) is kind
    assert message in error.message and advice in error.advice
    assert "\n" not in error.message + error.advice and "{" not in error.message + error.advice


def test_the_last_lines_are_those_that_say_something() -> None:
    lines = [
        "srun: Warning: can't run 2 processes on 9 nodes, setting nnodes to 2",
        "===================",
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "first",
        "  the   reason  ",
        "the reason",
        "x" * 999,
        "[mpiexec@n1] HYD_pmci_wait_for_completion (/pmiserv_pmci.c:180): error waiting for event",
        "srun: error: n1: task 0: Exited with exit code 2",
        "",
    ]
    assert causes.last_words(lines) == f"first / the reason / {'x' * 160}…"
    assert causes.last_words(["---"]) == ""


@pytest.mark.parametrize("started", [False, True])
def test_an_unknown_failure_has_the_last_lines(started: bool) -> None:
    outcome = Outcome(ranks=6, returncode=3, chatter=["it is broken"])
    if started:
        from test_diagnose import STARTED

        outcome.started = STARTED
    error = diagnose.error_of(outcome, None, of())
    assert isinstance(error, RunError)
    assert error.message.endswith("exit code 3; last output: it is broken") == started
    assert "last output: it is broken" in error.message


@pytest.mark.parametrize(
    ("start", "awaited"),
    [
        (of(), "srun, to start the ranks in a step of its own, was waited for"),
        (of(launcher=JOINED), "for which all 6 ranks of that launcher must be there"),
        (of(launcher=HYDRA), "MPICH's launcher, and each host, and MPI's start there, was waited for"),
        (of(launcher=OPEN_MPI), "Open MPI's launcher"),
        (of(launcher=ALONE), "MPI's start was waited for"),
    ],
)
def test_what_is_waited_for(start: Start, awaited: str) -> None:
    error = diagnose.error_of(Outcome(ranks=6, unstarted=30.6, chatter=["hm"]), None, start)
    assert isinstance(error, RunError)
    assert error.message.startswith("not all ranks had started after 30.6 s; ")
    assert awaited in error.message and error.message.endswith("last output: hm")
    late = diagnose.error_of(Outcome(ranks=6, timed_out=True, chatter=["hm"]), 3.0, start)
    assert late is not None and "--timeout 3 seconds" in late.message and awaited in late.message


def test_a_step_that_is_put_off() -> None:
    line = "srun: Job 8 step creation temporarily disabled, retrying (Requested nodes are busy)"
    assert causes.is_waiting(line) and causes.is_waiting("srun: job 5 queued and waiting for resources")
    assert not causes.is_waiting("hello")
    error = diagnose.error_of(Outcome(ranks=6, unstarted=30.6, chatter=[line]), None, of())
    assert error is not None and error.message.startswith(
        "not all ranks had started after 30.6 s: Slurm delays"
    )
