"""What the two programs share on their command lines, and the surroundings that they make for themselves."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from jobs import COMMANDS, STRATEGIES, Job, jobs, streamed
from runs import OWN_SHM, Run
from verdict import judge

LIMIT = 30.0  # seconds that any run may take


def listed(text: str) -> list[str]:
    return text.split(",")


def parser(what: str, size: str) -> argparse.ArgumentParser:
    """The options that both programs have."""
    made = argparse.ArgumentParser(description=what)
    add = made.add_argument
    add("--tilewise", default=".venv/bin/tilewise", metavar="PATH", help="the command to try (%(default)s)")
    add(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir(), "tilewise-torture"),
        metavar="DIR",
        help="for all files (%(default)s)",
    )
    add("--commands", type=listed, default=COMMANDS, help=f"of {','.join(COMMANDS)} (all)")
    add("--io", type=listed, default=["auto"], help=f"auto, all, or of {','.join(STRATEGIES)} (auto)")
    add("--ranks", type=listed, default=["2", "3"], help="numbers of ranks (2,3)")
    add(
        "--size",
        choices=["small", "large", "streamed"],
        default=size,
        help="jobs of a moment, of about a second, or of more than --memory (%(default)s)",
    )
    add(
        "--options", type=str.split, default=[], help="more of each job, as in --options='--sync --no-verify'"
    )
    add("--new", action="store_true", help="no old outputs lie there: new ones are made, without --force")
    add("--limit", type=float, default=LIMIT, help="seconds after which a run hangs (%(default)s)")
    add("--seed", type=int, default=1)
    add("--json", type=Path, metavar="FILE", help="every run, and what was wrong with it")
    return made


def undisturbed(given: argparse.Namespace, run: Callable[[Job], Run]) -> Iterator[tuple[Job, Run]]:
    """The jobs asked for, each with a run that nothing disturbs; what tilewise refuses is left out."""
    strategies = ["auto", *STRATEGIES] if given.io == ["all"] else given.io
    if unknown := set(given.commands) - set(COMMANDS) | set(strategies) - {"auto", *STRATEGIES}:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}")
    for command, io, ranks in itertools.product(given.commands, strategies, given.ranks):
        made = (
            streamed(command, io, ranks, given.options)
            if given.size == "streamed"
            else jobs(command, io, ranks, given.options, given.size == "large")
        )
        for job in made:
            done = run(job)
            if done.code == 2:
                print(f"{job.name}: left out, as it is refused: {done.said.splitlines()[0]}")
            elif wrong := judge(done) or ([done.said] if done.code else []):
                raise SystemExit(f"{job.name} is not right even when nothing disturbs it: {wrong}")
            else:
                yield job, done


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C and SIGTERM end what stands inside; the table of what was done is still shown."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        yield


def with_own_shared_memory() -> None:
    """Starts this program again with a /dev/shm of its own, where that is allowed."""
    for options in (["-m", "--ipc"], ["-r", "-m", "--ipc"]):
        command = ["unshare", *options, "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
        if OWN_SHM in os.environ or not shutil.which("unshare"):
            return
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            os.execvpe(command[0], [*command, sys.executable, *sys.argv], {**os.environ, OWN_SHM: "1"})
    print("/dev/shm is shared with all else that runs here: what is left in it is not judged")
