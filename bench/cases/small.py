"""What needs no peer: how much a rank receives, and how soon a command is back."""

from __future__ import annotations

import statistics

from harness import BIN, Row, Setting, say, tilewise, wall


def volume(setting: Setting) -> list[Row]:
    """Bytes that the busiest rank received, over the algorithm's own volume for square blocks."""
    n, item = (1024 if setting.quick else 2048), 8
    rows = []
    for algorithm, ranks, side in (("cannon", 4, 2), ("cannon", 9, 3), ("summa", 4, 2), ("summa", 6, (2, 3))):
        p, q = side if isinstance(side, tuple) else (side, side)
        out = setting.work / "c.npy"
        record = tilewise(
            "multiply", f"random:{n}x{n}:float64:1", f"random:{n}x{n}:float64:2", "-o", out,
            "-n", ranks, "-t", 1, "--grid", f"{p}x{q}", "--algorithm", algorithm,
            "--exchange", "nonblocking", "--verify", "off", record=setting.work / "r.json",
        )  # fmt: skip
        out.unlink()
        received = record["bytes"]["exchanged_max_rank"]
        own = cannon_volume(n, p) * item if algorithm == "cannon" else summa_volume(n, p, q) * item
        row = Row(
            f"volume-{algorithm}-{ranks}",
            f"bytes received, {algorithm} on {p}x{q}, over its own",
            "at most",
            1.15,
        )
        row.ratio, row.samples = received / own, {"received": [received], "own": [own]}
        rows.append(row)
    return rows


def cannon_volume(n: int, q: int) -> float:
    """Numbers that a rank receives in q - 1 shifts of A and of B; the skew can be had by reading."""
    return 2 * (q - 1) * (n / q) ** 2


def summa_volume(n: int, p: int, q: int) -> float:
    """Numbers that a rank receives: its rows of A and its columns of B, less what it owns."""
    return n / p * n * (1 - 1 / q) + n * n / q * (1 - 1 / p)


def startup(setting: Setting) -> list[Row]:
    """Wall-clock of whole commands, in seconds."""
    times = 5 if setting.quick else 20
    say(f"    {times} starts of each command")
    setting.work.mkdir(exist_ok=True)
    output = setting.work / "small.npy"
    for name in "AB":
        tilewise("generate", "-o", setting.work / f"{name}-100.npy", "--shape", "100x100", "-q", "--force")
    small = ["multiply", setting.work / "A-100.npy", setting.work / "B-100.npy", "-o", output, "-n", 1]
    commands = (
        ("help", "tilewise --help", 0.150, ["--help"]),
        ("small", "tilewise multiply, 100x100, one rank", 0.600, small),
    )
    rows = []
    for name, what, target, arguments in commands:
        seconds = []
        for _ in range(times):
            output.unlink(missing_ok=True)
            seconds.append(wall([BIN / "tilewise", *arguments]))
        row = Row(name, what, "at most", target, unit=" s", samples={"seconds": seconds})
        ordered = sorted(seconds)
        row.ratio, row.low, row.high = statistics.median(seconds), ordered[0], ordered[-1]
        row.note = "(spread: fastest - slowest)"
        rows.append(row)
    output.unlink()
    return rows
