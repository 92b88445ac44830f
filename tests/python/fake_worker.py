#!/usr/bin/env python3
"""A worker that speaks the seam but does no work: tests tell it through FAKE how to behave.

FAKE is empty (does its job), or one of the names in `play`. FAKE_LOG names a file that gets one line a
process: its pid, rank and arguments. FAKE_JOB names a file that gets the job, FAKE_GATE the file that `gate`
waits for.
"""

import json
import os
import signal
import socket
import sys
import time

if sys.argv[1:] == ["--version"]:
    print("0")
    sys.exit()

RANK = int(os.environ.get("PMI_RANK", "0"))
SIZE = int(os.environ.get("PMI_SIZE", "1"))


def emit(event, lead=""):
    sys.stdout.write(f"{lead}\x1e{json.dumps(event)}\n")
    sys.stdout.flush()


def enter_mpi():
    """The first words of MPI_Init to hydra: from here on it ends all ranks when one dies."""
    if "PMI_FD" in os.environ:
        descriptor = int(os.environ["PMI_FD"])
        os.write(descriptor, b"cmd=init pmi_version=1 pmi_subversion=1\n")
        os.read(descriptor, 4096)


def leave_mpi():
    if "PMI_FD" in os.environ:
        descriptor = int(os.environ["PMI_FD"])
        os.write(descriptor, b"cmd=finalize\n")
        os.read(descriptor, 4096)


BYTES = ("read", "useful", "written", "exchanged", "copied_in_node", "read_in_input", "written_in_output")


def record(job, passed=True):
    ranks = job["variant"]["ranks"]

    def each(value):
        return [value] * ranks

    names = (
        "input input_parse input_file input_distribute compute exchange "
        "output output_format output_file output_collect verify total"
    )
    seconds = {name: [0.01 * (rank + 1) for rank in range(ranks)] for name in names.split()}
    verification = None
    if job["verify"] != "off":
        verification = {
            "method": job["verify"],
            "passed": passed,
            "error": 1e-17 if passed else 0.5,
            "tolerance": 1e-15,
        }
    return {
        "event": "record",
        "ranks": [
            {
                "rank": r,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "cpus": [r],
                "node": 0,
                "peak_rss_bytes": 1 << 20,
                "working": True,
            }
            for r in range(ranks)
        ],
        "seconds": seconds,
        "samples": [{"compute": 0.02, "exchange": 0.01}] * job["repeat"],
        "bytes": {name: each(1000) for name in BYTES},
        "messages": each(3),
        "io_calls": each(2),
        "flops": 1e9,
        "peak_flops": 2e11,
        "verification": verification,
        "result": {},
        "warnings": [],
        "environment": {
            "mpi_library": "fake",
            "mpi_standard": "4.1",
            "blas": "fake",
            "blas_kernel": "Fake",
            "worker_version": "0.1.0",
        },
        "oversubscribed": False,
    }


def play(job, how):
    started = {
        "event": "started",
        "ranks": [{"rank": 0, "host": socket.gethostname(), "pid": os.getpid(), "cpus": [0]}],
    }
    emit(started)
    if job["trace"]:
        with open(job["trace"], "w") as file:
            file.write("[]")
    for done in (0.1, 1.0):
        emit({"event": "progress", "phase": "compute", "done": done})
    if how == "":
        emit(record(job))
    elif how == "disturbed":
        emit(record(job) | {"peak_flops": 5e10})
    elif how == "chatter":
        print("a library says hello")
        print("and complains", file=sys.stderr)
        emit(record(job), lead="a word without an end ")
    elif how == "wrong":
        emit(record(job, passed=False))
    elif how == "usage":
        emit({"event": "error", "kind": "usage", "message": "A.npy shrank while it was read", "rank": 0})
    elif how == "io":
        emit(
            {
                "event": "error",
                "kind": "io",
                "message": "rank 1: writing C.npy at byte 4096: no space left on device",
                "rank": 1,
            }
        )
    elif how == "io-then-hang":
        emit({"event": "error", "kind": "io", "message": "the disk is full", "rank": 0})
        time.sleep(60)
    elif how == "die":
        print("last words")
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "exit-7":
        sys.exit(7)
    elif how == "silent":
        pass
    elif how == "record-then-die":
        emit(record(job))
        os.kill(os.getpid(), signal.SIGSEGV)
    elif how == "record-then-hang":
        emit(record(job))
        time.sleep(60)
    elif how in ("hang", "die-1"):
        time.sleep(60)
    elif how == "stubborn":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            log()
        time.sleep(60)
    elif how == "gate":
        while not os.path.exists(os.environ["FAKE_GATE"]):
            time.sleep(0.01)
        emit(record(job))
    elif how == "snapshot-then-die":
        emit({"event": "snapshot", "index": 0})
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "vanish":
        os.unlink(job["output"]["path"])
        emit(record(job))
    elif how == "nan":
        strange = record(job)
        strange["seconds"]["compute"] = [0.0] * job["variant"]["ranks"]
        emit(strange)


def log():
    if os.environ.get("FAKE_LOG"):
        with open(os.environ["FAKE_LOG"], "a") as file:
            file.write(json.dumps({"pid": os.getpid(), "rank": RANK, "arguments": sys.argv[1:]}) + "\n")


def front_is_ready():
    """Whether the front has started its own rank, and so heeds signals; without a log that is unknown."""
    if not os.environ.get("FAKE_LOG"):
        return True
    with open(os.environ["FAKE_LOG"]) as file:
        return any(json.loads(line)["rank"] == 0 for line in file if line.endswith("\n"))


def main():
    log()
    if sys.argv[1:] == ["--describe"]:
        print(json.dumps({"version": "0.1.0"}))
        return
    if sys.argv[1:] == ["--devices"]:
        print(json.dumps({"trouble": "no driver", "devices": []}))
        return
    enter_mpi()
    if RANK == 0:
        job = json.loads(sys.stdin.read())
        if os.environ.get("FAKE_JOB"):
            with open(os.environ["FAKE_JOB"], "w") as file:
                json.dump(job, file)
        if job["command"] != "quit":
            play(job, os.environ.get("FAKE", ""))
    elif os.environ.get("FAKE") == "die-1" and RANK == 1:
        while not front_is_ready():
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    elif os.environ.get("FAKE") in ("die-1", "hang", "stubborn", "io-then-hang"):
        time.sleep(60)
    leave_mpi()


main()
