"""Batch jobs on a real Slurm: products, studies, arrays, and ends from outside that leave nothing behind."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy
import psutil
import pytest
from account import Account, account, make_inputs, slurm_site
from cluster import NoClusterError
from slurm import slurm

HANG = "hang:3:compute"  # rank 3, which is on the second node
STENCIL = "tilewise stencil A.npy --steps 5 -o C.npy -n 6 --force"
STUDY = """
title = "Parts"
command = "multiply"
flags = {{ verify = "off" }}
axes.ranks = [1, 2]
axes.io = ["root", "positioned"]
output = "C.npy"
inputs.A = {{ shape = "8x8", seed = 1 }}
inputs.B = {{ shape = "8x8", seed = 2 }}
launches = 1
{more}
"""


@pytest.fixture(scope="module", autouse=True)
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Account, str]]:
    """An account on a site of its own, and a job there that soon meets its limit; seen to in the last test.

    Slurm counts limits in minutes. It looks every 30 s, and then for the end of reservations, too, which may
    be any second; it ends the job in the same way.
    """
    folder = tmp_path_factory.mktemp("limited")
    try:
        with slurm() as site:
            account = Account(site, folder)
            make_inputs(folder)
            now = datetime.now()
            end = (now + timedelta(seconds=15)).isoformat(timespec="seconds")
            words = ("StartTime=now", f"EndTime={end}", "Nodes=ALL", "Users=root", "ReservationName=short")
            site.ask("scontrol", "create", "reservation", *words)
            yield account, running(account, b"old", options="-N3 -n6 --reservation=short")
    except NoClusterError as reason:
        pytest.skip(f"no Slurm: {reason}")


def script(account: Account, *lines: str, options: str = "-N3 -n6") -> Path:
    """A batch script in the folder; what its job says goes to `out` beside it."""
    path = account.folder / "job.sbatch"
    path.write_text("\n".join(["#!/bin/bash", f"#SBATCH {options} --output=out", *lines, ""]))
    return path


def said(account: Account) -> str:
    return (account.folder / "out").read_text()


def submit(account: Account, *words: object, more: dict[str, str] | None = None) -> str:
    """Hands a script over; the number of its job."""
    told = {**account.environment, **(more or {})}
    done = account.site.run(["sbatch", "--parsable", *words], account.folder, told)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def state(account: Account, job: str) -> str:
    """Of the whole job: RUNNING, COMPLETED, CANCELLED …"""
    shown = account.site.ask("scontrol", "show", "job", job)
    states = {word.removeprefix("JobState=") for word in shown.split() if word.startswith("JobState=")}
    return states.pop() if len(states) == 1 else "MIXED"


def wait(account: Account, job: str, seconds: float = 60) -> str:
    """The state in which the job ended."""
    deadline = time.monotonic() + seconds
    while (now := state(account, job)) in ("PENDING", "RUNNING", "COMPLETING", "MIXED"):
        assert time.monotonic() < deadline, f"job {job} is {now} after {seconds:g} s"
        time.sleep(0.1)
    return now


def test_a_product_by_sbatch(account: Account) -> None:
    job = submit(account, script(account, "tilewise multiply A.npy B.npy -o C.npy -n 6 --json r.json"))
    assert wait(account, job) == "COMPLETED", said(account)
    record: dict[str, Any] = json.loads((account.folder / "r.json").read_text())
    assert {place["host"] for place in record["placement"]} == {"n1", "n2", "n3"}
    a, b, c = (numpy.load(account.folder / f"{name}.npy") for name in "ABC")
    assert numpy.allclose(c, a @ b, rtol=0, atol=1e-12)
    assert account.site.left_after(5) == []


def _started(rank: psutil.Process) -> bool:
    """Whether MPI's start is over: then its shared memory has no name any more."""
    try:
        maps = Path(f"/proc/{rank.pid}/maps").read_text()
    except OSError:
        return False
    return any("mpich_shm" in line and line.endswith("(deleted)") for line in maps.splitlines())


def running(account: Account, old: bytes, options: str = "-N3 -n6") -> str:
    """A job of six ranks, of which one hangs, that is to replace `old`; its ranks are on all nodes."""
    (account.folder / "C.npy").write_bytes(old)
    job = submit(account, script(account, STENCIL, options=options), more={"TILEWISE_FAULT": HANG})
    deadline = time.monotonic() + 60
    while sum(_started(rank) for ranks in account.site.ranks().values() for rank in ranks) < 6:
        assert time.monotonic() < deadline and state(account, job) != "FAILED", said(account)
        time.sleep(0.1)
    assert account.site.ranks().keys() == {"n1", "n2", "n3"}
    return job


def test_scancel_leaves_no_rank_and_the_old_output(account: Account) -> None:
    job = running(account, b"old")
    account.site.ask("scancel", job)
    assert wait(account, job) == "CANCELLED"
    assert account.site.left_after(5) == []
    assert (account.folder / "C.npy").read_bytes() == b"old"
    assert not list(account.folder.glob(".C.npy*"))


def test_a_job_that_has_itself_queued_again_goes_on(account: Account) -> None:
    """As the how-to has it: the first start has too little time, the second all it wants."""
    numpy.save(account.folder / "A.npy", numpy.random.default_rng(1).standard_normal((300, 200)))
    sweeps = "tilewise stencil A.npy -n 6 --kernel plain --steps 20000 --no-verify"
    lines = (
        'limit=5min; [ "${SLURM_RESTART_COUNT:-0}" = 0 ] && limit=3s',
        f"{sweeps} -o C.npy --checkpoint 0.2s --time-limit $limit --resume",
        "if [ $? -eq 4 ]; then scontrol requeue $SLURM_JOB_ID; fi",
    )
    options = "-N3 -n6 --requeue --open-mode=append"
    job = submit(account, script(account, *lines, options=options))
    assert wait(account, job, 240) == "COMPLETED", said(account)
    told = said(account)
    assert (
        "--time-limit" in told
        and "--resume" in told
        and "Restarts=1" in account.site.ask("scontrol", "show", "job", job)
    ), told
    undisturbed = script(account, f"{sweeps} -o D.npy")
    assert wait(account, submit(account, undisturbed), 120) == "COMPLETED", said(account)
    assert (account.folder / "C.npy").read_bytes() == (account.folder / "D.npy").read_bytes()
    assert not list(account.folder.glob(".C.npy*"))


def test_an_array_whose_parts_share_one_study(account: Account) -> None:
    (account.folder / "s.toml").write_text(STUDY.format(more=""))
    line = "tilewise study run s.toml --into r --machine site --part $SLURM_ARRAY_TASK_ID"
    job = submit(account, script(account, line, options="--array=0-2 -N1 -n2 --open-mode=append"))
    assert wait(account, job) == "COMPLETED", said(account)
    assert len(list((account.folder / "r").glob("points.*.jsonl"))) == 3
    done = [
        json.loads(line)
        for path in (account.folder / "r").glob("points.*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert len(done) == 4, done


def test_a_study_handed_to_slurm(account: Account) -> None:
    (account.folder / "s.toml").write_text(STUDY.format(more='slurm.options = ["--mem=1G"]'))
    words = ["tilewise", "study", "run", "s.toml", "--submit", "slurm", "--go", "--into", "r"]
    done = account.site.run(words, account.folder, account.environment)
    assert done.returncode == 0 and "Submitted batch job" in done.stdout, done.stderr
    job = done.stdout.split()[-1]
    assert wait(account, job) == "COMPLETED", list((account.folder / "r").iterdir())


def test_a_time_limit_leaves_no_rank_and_the_old_output(limited: tuple[Account, str]) -> None:
    account, job = limited
    assert wait(account, job) == "TIMEOUT"
    assert account.site.left_after(10) == []
    assert (account.folder / "C.npy").read_bytes() == b"old"
    assert not list(account.folder.glob(".C.npy*"))
    assert "SIGTERM" in said(account) and said(account).count("tilewise:") == 1
