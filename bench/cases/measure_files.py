"""Report 4's first table: every rank writes, then reads 64 blocks; ranks by block size."""

from __future__ import annotations

from typing import Any

from harness import Row, Setting, say

from cases.measure_run import lines, measure

WAYS = ("independent", "positioned")
BLOCKS = 64


def files(setting: Setting) -> list[Row]:
    """Bandwidths of an interleaved file over ranks 1, 2, 4 and blocks of 128000 to 16000000 bytes."""
    say("    ranks 1, 2, 4")
    sizes = "128K,256K" if setting.quick else "128K..16M"
    words = [
        "file",
        "--ranks",
        "1,2,4",
        "--block",
        sizes,
        "--blocks-per-rank",
        BLOCKS,
        "--io",
        ",".join(WAYS),
    ]
    measurement, seconds = measure(setting.work / "file.json", *words, "--folder", setting.work)
    setting.facts["files_seconds"] = seconds
    rows = []
    for line in lines(measurement, kind="file"):
        what = f"{line['ranks']} ranks, {line['bytes']} B, {line['name']} {line['series']}"
        row = Row(f"measure-file-{line['key']}", what, "", 0, unit=" GB/s")
        row.ratio = line["amount"] / line["summary"]["median"] / 1e9
        row.low, row.high = (line["amount"] / line["summary"][end] / 1e9 for end in ("high", "low"))
        row.samples = {"seconds": [one for launch in line["launches"] for one in launch]}
        row.note = f"{line['summary']['median']:.4g} s, {line['cache']}, n = {line['summary']['n']}"
        rows.append(row)
    return rows + [_skipped(line) for line in measurement["lines"] if line["skipped"]]


def _skipped(line: dict[str, Any]) -> Row:
    return Row(f"measure-file-{line['key']}", line["key"], "", 0, note=line["skipped"])
