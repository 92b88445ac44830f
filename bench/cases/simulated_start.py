"""How long simulated ranks take before the first phase and after the last, and with how many messages.

A trace of the simulator's own has every message, those of collective calls, too. The first barrier of all
ranks ends the start, and the last one begins the end.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from harness import BIN, NotRun, Row, Setting, run, say

RATES = "12.5GB/s:1.5us:40GF/s:10GB/s"
RANKS = (4, 16, 64, 256, 1024)
JOB = (
    "transpose",
    "random:1024x1024",
    "-o",
    "none",
    "--algorithm",
    "swap",
    "--exchange",
    "nonblocking",
    "-q",
)
GROWTH = 2.1  # of seconds, at most, where there are four times as many ranks
WRAPPER = """#!/bin/sh
exec {real} --cfg=tracing:yes --cfg=tracing/smpi:yes --cfg=tracing/smpi/internals:yes \\
  --cfg=tracing/smpi/display-sizes:yes --cfg=tracing/precision:9 --cfg=tracing/filename:{trace} "$@"
"""
# The first words of a line of the trace (Paje's format): what the line is of.
NAME, PUSH, POP, SEND, RECEIVE = "5", "12", "13", "15", "16"


class Stretch(NamedTuple):
    """Seconds; messages of all ranks, of them those that rank 0 sends or receives; and the bytes of all."""

    seconds: float
    messages: int
    with_rank_0: int
    bytes: int


def start(setting: Setting) -> list[Row]:
    """A row for the start and one for the end at each number of ranks: seconds over those of a quarter."""
    rows: list[Row] = []
    before: dict[str, Stretch] = {}
    for ranks in RANKS[:3] if setting.quick else RANKS:
        say(f"    {ranks} ranks")
        stretches = dict(zip(("start", "end"), traced(setting, ranks), strict=True))
        for name, stretch in stretches.items():
            row = Row(
                f"simulated-{name}-{ranks}",
                f"{name}, {ranks} ranks" + (f" over {ranks // 4}" if before else ""),
                "at most" if before else "",
                GROWTH,
                stretch.seconds / before[name].seconds if before else None,
            )
            row.samples = {"seconds": [stretch.seconds]}
            row.note = f"{1e6 * stretch.seconds:.1f} µs, {stretch.messages} messages, {stretch.bytes} B"
            row.note += f"; rank 0: {stretch.with_rank_0} messages"
            rows.append(row)
        before = stretches
    return rows


def traced(setting: Setting, ranks: int) -> tuple[Stretch, Stretch]:
    trace = setting.work / "messages.trace"
    folder = setting.work / "traced"
    folder.mkdir(exist_ok=True)
    wrapper = folder / "smpirun"
    real = run(["sh", "-c", "command -v smpirun || true"]).strip()
    if not real:
        raise NotRun("no smpirun: SimGrid is not installed")
    wrapper.write_text(WRAPPER.format(real=real, trace=trace))
    wrapper.chmod(0o755)
    path = os.pathsep.join([str(folder), str(BIN), os.environ["PATH"]])
    run([BIN / "tilewise", *JOB, "--simulate", f"{ranks}x1:{RATES}", "-n", ranks], PATH=path)
    found = ends_of(trace)
    trace.unlink()
    return found


def ends_of(trace: Path) -> tuple[Stretch, Stretch]:
    """The start and the end of the ranks whose messages the file has."""
    calls: dict[str, str] = {}
    open_calls: dict[str, list[str]] = defaultdict(list)
    barriers: dict[str, list[tuple[float, float]]] = defaultdict(list)  # of each rank: begun and ended
    begun: dict[str, float] = {}
    sent: list[tuple[float, str, str, int]] = []
    last = 0.0
    with open(trace, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if not words or words[0] not in (NAME, PUSH, POP, SEND, RECEIVE):
                continue
            if words[0] == NAME:
                calls[words[1]] = words[3]
                continue
            now = float(words[1])
            last = max(last, now)
            if words[0] == PUSH:
                open_calls[words[3]].append(calls[words[4]])
                begun[words[3]] = now
            elif words[0] == POP and open_calls[words[3]]:
                if "Barrier" in open_calls[words[3]].pop():
                    barriers[words[3]].append((begun[words[3]], now))
            elif words[0] == SEND:
                sender, receiver = words[6].split("_")[:2]
                sent.append((now, sender, receiver, int(words[7])))
    if not barriers:
        raise NotRun("the trace has no barriers")
    first = max(each[0][1] for each in barriers.values())
    final = min(each[-1][1] for each in barriers.values())
    return (
        _stretch([message for message in sent if message[0] < first], first),
        _stretch([message for message in sent if message[0] >= final], last - final),
    )


def _stretch(messages: list[tuple[float, str, str, int]], seconds: float) -> Stretch:
    with_rank_0 = sum("1" in message[1:3] for message in messages)  # the trace counts ranks from 1
    return Stretch(seconds, len(messages), with_rank_0, sum(message[3] for message in messages))
