"""A `--launcher` that starts no ranks, or those of another MPI, is a wrong request: exit code 2, told why."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import Tilewise, mpiexec, one_message
from launchers import VARIANT, program
from stopwatch import within
from tilewise.base.errors import UsageError
from tilewise.launch import launcher

WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", 2, "--launcher")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("true", "started no ranks, and ended with exit code 0"),
        ("false", "started no ranks, and ended with exit code 1"),
        ("echo oh", "started no ranks, and ended with exit code 0"),
        ("sh -c 'echo why >&2; exit 3'", "exit code 3; the launcher's last output: why"),
        ("sh -c 'exit 255'", "exit code 255"),
        ("no-such-launcher", "there is no program 'no-such-launcher'"),
        ("sh -c 'x", "No closing quotation"),
        (" ", "there is no program ''"),
    ],
)
def test_what_is_no_launcher(fake: Tilewise, words: str, said: str) -> None:
    with within(6):
        told = one_message(fake(*WORDS, words), 2)
    assert "--launcher" in told and said in told
    assert "C.npy" not in fake.files()


def test_the_launcher_of_another_mpi_names_both(fake: Tilewise) -> None:
    theirs = program(fake.folder, "mpiexec.theirs", 'echo "mpiexec.theirs (OpenRTE) 4.1.4"')
    told = one_message(fake(*WORDS, theirs), 2)
    assert "belongs to Open MPI, but the worker is built with MPICH" in told and "no --launcher" in told


def test_a_sites_worker_and_the_launcher_of_another_mpi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    ours = program(tmp_path, "orterun", "")
    theirs = program(tmp_path, "mpiexec.hydra", "")
    found = launcher.Worker("/w", {"mpi": "site", "mpiexec": str(ours)})
    assert found.family == "openmpi"
    with pytest.raises(UsageError, match="belongs to MPICH, but the worker is built with Open MPI"):
        launcher.own_start(found, VARIANT, (), str(theirs), False)
    start = launcher.own_start(found, VARIANT, (), str(ours), False)
    assert start.launcher is launcher.OPEN_MPI and start.patience == pytest.approx(25.2)


def test_ranks_of_a_launcher_that_mpi_does_not_see(fake: Tilewise) -> None:
    """What the worker says when it finds itself alone among several."""
    said = '{"event": "error", "kind": "launcher", "rank": 0, "message": "MPI sees 1: another MPI than X"}'
    wrong = program(fake.folder, "starts", f"printf '\\036%s\\n' '{said}'; exit 2")
    told = one_message(fake(*WORDS, wrong), 2)
    assert "another MPI than X" in told and "try: tilewise … -n 2 without another launcher" in told


def test_a_launcher_that_hangs_is_ended(fake: Tilewise, monkeypatch: pytest.MonkeyPatch) -> None:
    """As MPICH's did in a step of Slurm's; told is what was waited for, and what it printed."""
    sleeping = program(
        fake.folder,
        "srun",
        'echo "srun: Job 7 step creation temporarily disabled, retrying (Busy)" >&2; sleep 99',
    )
    fake.environment.update(SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n1", SLURM_JOB_NUM_NODES="1")
    code = (
        "import sys; from tilewise.launch import launcher; launcher._START = 0.5; "
        "from tilewise.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    with within(10):
        done = fake.run([sys.executable, "-c", code, *WORDS, sleeping])
    first, *rest = done.stderr.splitlines()
    assert done.returncode == 1 and first.startswith("srun: Job 7 step creation")  # at once, while it waits
    assert rest[0].startswith("tilewise: not all ranks had started after 0.7 s: Slurm delays the step: Busy")
    assert "SLURM_OVERLAP=1" in rest[1] and len(rest) == 2


def test_the_package_s_own_launcher_is_known_by_any_name(fake: Tilewise) -> None:
    found = launcher.Worker("/w", {"mpi": "wheel"})
    link = fake.folder / "launch-mpi"
    link.symlink_to(mpiexec())
    assert launcher.own_start(found, VARIANT, (), str(link), False).proxies
