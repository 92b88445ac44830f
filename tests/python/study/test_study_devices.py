"""Report 4's whole study with the graphics processors that the driver of the tests plays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import graphics
import pytest
from conftest import Tilewise, one_message
from graphics import Graphics
from tilewise.base.errors import UsageError
from tilewise.lab.study import results


def marked(rows: list[dict[str, Any]], simulated: bool) -> str:
    """The points of a study; those on devices say that these were simulated, or that they were not."""
    for row in rows:
        environment = (row.get("record") or {}).get("environment", {})
        if environment.get("devices"):
            environment["simulated_devices"] = simulated
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_report_4_on_simulated_devices(tilewise: Tilewise, tmp_path_factory: Any) -> None:
    devices = Graphics(tilewise, graphics.built(tmp_path_factory.mktemp("driver")))
    ran = devices("study", "run", "file-bandwidth", "--scale", "tiny", "--into", "r")
    assert ran.returncode == 0, ran.stderr
    folder = devices.run.folder / "r"
    claims = {each["claim"]: each for each in json.loads((folder / "claims.json").read_text())}
    mine = claims["With 2 ranks, writing from CUDA managed memory is as fast as from memory"]
    assert (mine["verdict"], mine["reason"]) == ("untestable", "its figures come from simulated devices")
    assert mine["figure"] > 0
    path = folder / "points.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    played = [row for row in rows if row["run"] in ("managed", "device")]
    assert len(played) == 6 and all(row["status"] == "done" for row in played)
    for row in played:
        lines = [line for line in row["record"]["lines"] if line["kind"] == "file"]
        assert lines and all("simulated device" in line["labels"] for line in lines)
        assert len(lines[0]["devices"]) == row["axes"]["ranks"]
    reported(devices, folder, path, rows)


def reported(devices: Graphics, folder: Path, path: Path, rows: list[dict[str, Any]]) -> None:
    """The page says what was simulated; none shows that beside what a real device did."""
    assert devices.run("report", "r", "-o", "r.html", "--tables", "t").returncode == 0
    page = (devices.run.folder / "r.html").read_text()
    assert "simulated devices on " in page and "simulated device, single launch" in page
    table = (devices.run.folder / "t" / "study-managed.md").read_text()
    assert "simulated device" in table
    shutil.copytree(folder, folder.parent / "real")
    (folder.parent / "real" / "points.jsonl").write_text(marked(rows, False))
    for words in (("report", "r", "real", "-o", "mixed.html"), ("study", "compare", "r", "real")):
        assert "which no page mixes" in one_message(devices.run(*words), 2)
    half = len(rows) // 2
    path.write_text(marked(rows[:half], True) + marked(rows[half:], False))
    with pytest.raises(UsageError, match="real graphics processors and of simulated ones"):
        results.load(str(folder))
