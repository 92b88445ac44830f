"""Judges how a run ended, and tells of many runs in a table and as JSON."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from jobs import Job
from runs import GONE, OWN_SHM, Run

CODES = {0, 1, 2, 3, 4, 130}

# What can be wrong with the end of a run, worst first.
KINDS = [
    "WRONG",
    "BROKEN",
    "MIXED",
    "UNTRUE",
    "CHANGED",
    "HANG",
    "LATE",
    "LIVING",
    "TRACEBACK",
    "MESSAGES",
    "CODE",
]
KINDS += ["LEFT", "SHM"]

# Which words of a message admit that the new output stands, and which deny it.
ADMITS = re.compile(
    r"(?<!not )\b(was written|is written|is complete|is in place|stands|has its name|is new)", re.I
)
DENIES = re.compile(
    r"nothing was written|was not written|cannot get the name|is kept|is unchanged|kept the old", re.I
)


def judge(run: Run, silent: bool = False, codes: Iterable[int] = ()) -> list[str]:
    """What is wrong with the end of a run, worst first; each begins with the name of its kind.

    `silent`: the front was killed, so that nobody need say anything; `codes`: more exit codes that are right.
    """
    if run.code is None:
        return [f"HANG no end after {run.seconds:.0f} s; living: {', '.join(run.living)}"]
    wrong, end = [], f"exit {run.code}"
    good = ("right",) if run.code == 0 else ("old", "absent", "right")
    bad = [f"{name}: {state}" for name, state in run.states.items() if state not in good]
    new = [name for name, state in run.states.items() if state == "right"]
    if bad:
        wrong += [f"{'WRONG' if run.code == 0 else 'BROKEN'} {end}, {'; '.join(bad)}"]
    elif run.code and len(set(run.states.values())) > 1:
        if not all(name in run.said for name in new):
            wrong += [f"MIXED {end}, and the message does not say which are new: {run.states}"]
    elif run.code and new and (DENIES.search(run.said) or not (silent or ADMITS.search(run.said))):
        wrong += [f"UNTRUE {end} over a new and right {', '.join(new)}, and the message does not say so"]
    wrong += [f"CHANGED input {name}" for name in run.changed]
    if run.living:
        wrong += [f"LIVING {GONE:g} s after the end: {', '.join(run.living)}"]
    if "Traceback" in run.said:
        wrong += ["TRACEBACK"]
    elif run.code and not silent and run.code not in codes:
        beside = ("  ", "tilewise: warning", "tilewise: note")
        lines = [line for line in run.said.splitlines() if line.strip() and not line.startswith(beside)]
        if len(lines) != 1 or not lines[0].startswith("tilewise: "):
            wrong += [f"MESSAGES {len(lines)}" + (f", as {lines[-1][:80]!r}" if lines else "")]
    if run.code not in CODES | set(codes):
        wrong += [f"CODE {run.code}"]
    if left := [name for name in run.left if Path(name).name not in run.said and not kept(name, run.said)]:
        wrong += [f"LEFT {', '.join(left)}"]
    if run.segments and OWN_SHM in os.environ:  # else they may be others'
        wrong += [f"SHM {', '.join(run.segments)}"]
    return wrong


def kept(name: str, said: str) -> bool:
    """Whether a message says that what is called so is kept, and what goes on with it."""
    return Path(name).suffix in (".part", ".journal") and "is kept" in said and "--resume" in said


class Tally:
    """Shows runs as they end, and at last a table: what was done, and the kinds of what was wrong."""

    def __init__(self, total: int = 0) -> None:
        self.total, self.bad, self.begin = total, 0, time.monotonic()
        self.records: list[dict[str, object]] = []
        self.rows: dict[str, Counter[str]] = {}
        self._clear = "\r\033[K" if sys.stdout.isatty() else ""  # a live line on a terminal only

    def add(self, row: str, what: str, job: Job, run: Run, wrong: list[str]) -> None:
        self.records.append({"what": what, "words": job.words, "wrong": wrong, **vars(run)})
        self.rows.setdefault(row, Counter()).update(["runs", *(each.split()[0] for each in wrong)])
        self.bad += bool(wrong)
        if wrong:
            print(f"{self._clear}{what}: {'; '.join(wrong)}\n    {run.said.strip()[:300]!r}")
        if self._clear or len(self.records) % 200 == 0:
            print(self._clear + self._state(), end="" if self._clear else "\n", flush=True)

    def _state(self) -> str:
        done, seconds = len(self.records), time.monotonic() - self.begin
        return f"{done} of {self.total} runs, {self.bad} with something wrong, {seconds:.0f} s"

    def finish(self, file: Path | None) -> int:
        """Prints the table, writes the records; the exit status."""
        if file:
            file.write_text(json.dumps(self.records, indent=1) + "\n")
        found = {kind for counts in self.rows.values() for kind in counts}
        kinds = ["runs", *(kind for kind in KINDS if kind in found)]
        width = max(map(len, [*self.rows, ""])) + 2
        print("\n" + " " * width + "".join(f"{kind:>10}" for kind in kinds))
        for row, counts in sorted(self.rows.items()):
            print(row.ljust(width) + "".join(f"{counts[kind] or '.':>10}" for kind in kinds))
        print(self._state())
        return int(self.bad > 0)
