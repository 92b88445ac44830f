"""Ranks start in every place that Slurm puts a user, whatever MPI type its administrator chose."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy
import pytest
from account import Account, account, messages, slurm_site
from slurm import MPI_TYPES

WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "--force")
NODES = ("n1", "n2", "n3")
OPEN_MPI = Path(
    os.environ.get(
        "TILEWISE_OPENMPI_WORKER",
        Path(__file__).resolve().parents[2] / "build" / "openmpi" / "tilewise-worker",
    )
)
ENDED = {
    **dict.fromkeys(("SLURM_JOB_ID", "SLURM_JOBID"), "99999"),
    **dict.fromkeys(("SLURM_NODELIST", "SLURM_JOB_NODELIST"), "n[1-2]"),
    **dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS"), "2"),
    **dict.fromkeys(("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"), "1(x2)"),
}
Done = subprocess.CompletedProcess[str]


def tilewise(*words: object) -> list[str]:
    return [sys.executable, "-m", "tilewise", *map(str, words)]


def run(account: Account, before: str, *words: object) -> Done:
    """`before tilewise words…`, typed on the login host."""
    done = account.site.run([*before.split(), *tilewise(*words)], account.folder, account.environment)
    assert account.site.left_after(5) == []
    return done


def hosts_of(account: Account, before: str, *words: object) -> list[str]:
    """The host of each rank of a product that must end well."""
    done = run(account, before, *WORDS, *words, "--json", "r.json")
    assert done.returncode == 0, done.stderr
    return placed(account)


def placed(account: Account) -> list[str]:
    record: dict[str, Any] = json.loads((account.folder / "r.json").read_text())
    return [place["host"] for place in record["placement"]]


def in_terminal(account: Account, starts_shell: str, *lines: str) -> str:
    """What a terminal of the login host shows when `starts_shell` starts a shell in it that does the lines.

    The shell is a script with job control, as if they were typed: what is really typed while srun takes over
    a terminal may be lost. Only the first task has it; the others end, as bash does at an end of file.
    """
    if shutil.which("script") is None:
        pytest.skip("script (bsdutils), which makes a terminal, is not installed")
    shell = account.folder / "shell"
    shell.write_text("\n".join(["#!/bin/bash", "test -t 0 || exit 0", "set -m", *lines, ""]))
    shell.chmod(0o755)
    words = ["script", "-qec", f"env SHELL={shell} {starts_shell}", os.devnull]
    done = account.site.run(words, account.folder, account.environment)
    assert done.returncode == 0, done.stdout
    return done.stdout


def said(done: Done, code: int) -> str:
    """The message of a run that ended with `code`, without what srun and salloc add."""
    lines = [
        line for line in done.stderr.splitlines() if not line.startswith(("srun:", "salloc:", "slurmstepd"))
    ]
    assert done.returncode == code, done.stderr
    assert len(messages(done.stderr)) == 1, done.stderr
    return "\n".join(lines)


@pytest.fixture(params=MPI_TYPES)
def anywhere(request: pytest.FixtureRequest, account: Account) -> Account:
    """An account on sites of each MpiDefault."""
    account.site.mpi(request.param)
    return account


@pytest.fixture
def open_mpi(account: Account) -> Account:
    """The account with the worker on Open MPI."""
    if not os.access(OPEN_MPI, os.X_OK) or shutil.which("mpiexec.openmpi") is None:
        pytest.skip(f"Open MPI is not installed, or there is no worker on it at {OPEN_MPI}")
    account.environment["TILEWISE_WORKER"] = str(OPEN_MPI)
    return account


# ---- it works ------------------------------------------------------------------------------------


def test_from_the_login_host(anywhere: Account) -> None:
    """Without a flag: as many ranks as salloc was asked for."""
    for name in ("A.npy", "B.npy"):  # worth several ranks
        numpy.save(anywhere.folder / name, numpy.ones((400, 400)))
    assert hosts_of(anywhere, "salloc -Q -N3 -n6") == ["n1", "n1", "n2", "n2", "n3", "n3"]


def test_from_a_step(anywhere: Account) -> None:
    """It uses the whole allocation, not only its own step's node."""
    assert set(hosts_of(anywhere, "salloc -Q -N3 -n6 srun -Q -N1 -n1", "-n", 6)) == set(NODES)


@pytest.mark.parametrize("ranks", [1, 2])
def test_one_rank_of_a_step_is_a_job(anywhere: Account, ranks: int) -> None:
    """On one node, whose ranks need neither srun nor a network."""
    assert hosts_of(anywhere, "srun -Q -n 1", "-n", ranks) == ["n1"] * ranks
    record = json.loads((anywhere.folder / "r.json").read_text())
    assert "srun" not in record["environment"]["launcher"]


def test_from_a_shell_on_a_node(anywhere: Account) -> None:
    """`srun --pty bash` over several tasks: its shell is the first of them, and no rank."""
    line = " ".join(tilewise(*WORDS, "-n", 6, "--json", "r.json", "-q"))
    shown = in_terminal(anywhere, "srun -Q --pty -N3 -n6 ./shell", line)
    assert (anywhere.folder / "r.json").exists(), shown
    assert set(placed(anywhere)) == set(NODES)


def test_from_an_interactive_step(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """What salloc gives where a site has LaunchParameters=use_interactive_step."""
    settings = f"{account.site._settings}\nLaunchParameters=use_interactive_step"
    monkeypatch.setattr(account.site, "_settings", settings)
    account.site.mpi("pmix")
    line = " ".join(tilewise(*WORDS, "-n", 6, "--json", "r.json", "-q"))
    shown = in_terminal(account, "salloc -Q -N3 -n6", "hostname >where", line)
    assert (account.folder / "where").read_text().strip() == "n1"
    assert (account.folder / "r.json").exists(), shown
    assert set(placed(account)) == set(NODES)


def test_what_a_script_is_told_is_not_for_our_steps(account: Account) -> None:
    """Options of the job, in variables: each srun would take them for its own."""
    account.site.mpi("pmix")
    options = "-N3 -n6 -c1 --ntasks-per-node=2 --mem-per-cpu=100 --export=NONE --distribution=cyclic"
    line = " ".join(tilewise(*WORDS, "-n", 6, "--json", "r.json"))
    kept = ("PYTHONPATH", "XDG_CACHE_HOME", "UCX_TLS", "TILEWISE_WORKER", "PATH")
    exports = [f"export {key}='{account.environment[key]}'" for key in kept if key in account.environment]
    script = account.folder / "job.sh"
    script.write_text("\n".join(["#!/bin/bash", *exports, "export SLURM_LABELIO=1", line, ""]))
    words = ["sbatch", "-Q", *options.split(), "-o", "out", script]
    assert account.site.run(words, account.folder, account.environment).returncode == 0
    deadline = time.monotonic() + 60
    while account.site.ask("squeue", "-h") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (account.folder / "r.json").exists(), (account.folder / "out").read_text()
    assert set(placed(account)) == set(NODES)


def test_open_mpi(open_mpi: Account) -> None:
    """By srun, with the MPI type that Open MPI understands, whatever the site's is."""
    open_mpi.site.mpi("none")
    assert set(hosts_of(open_mpi, "salloc -Q -N3 -n6", "-n", 6)) == set(NODES)
    record = json.loads((open_mpi.folder / "r.json").read_text())
    assert "--mpi=pmix" in record["environment"]["launcher"]
    open_mpi.site.mpi("pmi2")
    assert set(hosts_of(open_mpi, "salloc -Q -N3 -n6 srun -Q -N1 -n1", "-n", 6)) == set(NODES)
    assert hosts_of(open_mpi, "srun -Q --mpi=pmix -n 1") == ["n1"]


def test_open_mpis_own_launcher(open_mpi: Account) -> None:
    """Its daemons are started by an srun of its own, which wants the MPI type none."""
    open_mpi.site.mpi("pmix")
    words = ("-n", 6, "--launcher", "mpiexec.openmpi --bind-to none")
    assert set(hosts_of(open_mpi, "salloc -Q -N3 -n6 srun -Q -N1 -n1", *words)) == set(NODES)


def test_a_launcher_of_the_users(account: Account) -> None:
    """srun, which allocates by itself: ranks get the type that their MPI understands."""
    account.site.mpi("pmix")
    assert set(hosts_of(account, "", "-n", 6, "--exchange", "overlap", "--launcher", "srun -N3")) == set(
        NODES
    )


@pytest.mark.parametrize("crashes", [1, 2])
def test_a_crash_of_mpi_itself_is_survived_once(
    open_mpi: Account, monkeypatch: pytest.MonkeyPatch, crashes: int
) -> None:
    """Open MPI 4.1 started by srun may crash on a busy node: a message comes before it can take any."""
    srun, folder = shutil.which("srun"), open_mpi.folder / "bin"
    folder.mkdir()
    (folder / "crash").write_text(
        f"""#!/bin/sh
        test $# = 0 || exec {OPEN_MPI} "$@"
        test $SLURM_PROCID != 1 || kill -SEGV $$
        sleep 30
        """
    )
    (folder / "srun").write_text(
        f"""#!/bin/bash
        for turn in {{1..{crashes}}}; do
            if [[ "${{@: -1}}" == *tilewise-worker ]] && mkdir {folder}/$turn 2>/dev/null; then
                exec {srun} "${{@/%*tilewise-worker/{folder}/crash}}"
            fi
        done
        exec {srun} "$@"
        """
    )
    for script in ("crash", "srun"):
        (folder / script).chmod(0o755)
    monkeypatch.setitem(open_mpi.environment, "PATH", f"{folder}:{open_mpi.environment['PATH']}")
    done = run(open_mpi, "salloc -Q -N3 -n6", *WORDS, "-n", 6)
    assert done.stderr.count("rank 1 was killed by signal 11 (SIGSEGV)") == crashes, done.stderr
    assert done.stderr.count("tilewise: retrying") == 1
    assert done.returncode == crashes - 1
    assert (open_mpi.folder / "C.npy").exists() == (crashes == 1)


# ---- it does not, and says why -------------------------------------------------------------------


@pytest.mark.parametrize("mpi", ["none", "pmix"])
def test_ranks_that_srun_started_by_another_type(account: Account, mpi: str) -> None:
    account.site.mpi(mpi)
    told = said(run(account, "srun -Q -N3 -n6", *WORDS), 2)
    assert f"srun started these 6 ranks with {'no MPI type' if mpi == 'none' else 'MPI type pmix'}" in told
    assert "\n  try: srun --mpi=pmi2 -n 6 tilewise" in told


def test_ranks_on_open_mpi_by_another_type(open_mpi: Account) -> None:
    open_mpi.site.mpi("none")
    done = run(open_mpi, "srun -Q -N3 -n6", *WORDS)
    assert done.returncode == 2
    assert "does not support srun's MPI type\n  try: srun --mpi=pmix -n 6" in done.stderr


@pytest.mark.parametrize(
    ("launcher", "code", "message", "advice"),
    [
        ("srun --mpi=pmi9", 2, "this Slurm has no MPI type pmi9", "srun --mpi=list"),
        ("srun --jobid 99999", 2, "Slurm does not know allocation 99999", "salloc"),
        ("srun -w n9", 2, "Slurm gives no allocation: Invalid node name", "--launcher"),
        ("mpiexec.openmpi", 2, "belongs to Open MPI, but the worker is built with MPICH", "no --launcher"),
    ],
)
def test_launchers_that_fail(account: Account, launcher: str, code: int, message: str, advice: str) -> None:
    if shutil.which(launcher.partition(" ")[0]) is None:
        pytest.skip("Open MPI is not installed")
    told = said(run(account, "", *WORDS, "-n", 2, "--launcher", launcher), code)
    lines = told.splitlines()
    assert message in lines[0] and advice in lines[1]


def test_an_allocation_that_has_ended(account: Account) -> None:
    done = account.site.run(
        tilewise(*WORDS, "-n", 2),
        account.folder,
        {**account.environment, **ENDED},
    )
    assert "Slurm does not know allocation 99999" in said(done, 2)


def test_shared_memory_of_the_dead_is_swept_on_every_node(account: Account) -> None:
    """The next ranks there do that: nobody else may be on a node whose job was killed."""
    nodes = account.site.nodes
    for node in nodes:
        (node.shared_memory / "mpich_shm_1_dead").write_bytes(bytes(4096))
    try:
        assert set(hosts_of(account, "salloc -Q -N3 -n6", "-n", 6)) == set(NODES)  # which wants none left
    finally:
        for node in nodes:
            (node.shared_memory / "mpich_shm_1_dead").unlink(missing_ok=True)


# ---- doctor --------------------------------------------------------------------------------------


def test_doctor_starts_ranks_on_every_node(account: Account) -> None:
    account.site.mpi("pmix")
    account.site.ask("scontrol", "reconfigure")
    try:
        told = run(account, "salloc -Q -N3 -n6", "doctor").stdout
    finally:
        account.site.mpi("none")
        account.site.ask("scontrol", "reconfigure")
    assert "Slurm grants 2 processors on each of 3 nodes" in told
    assert "note: pmix (MpiDefault)" in told and "try: srun --mpi=pmi2 tilewise" in told
    assert "3 ranks      on n1, n2 and n3 started and ended" in told
