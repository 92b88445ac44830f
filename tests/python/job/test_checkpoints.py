"""Jobs that keep their state by time, die, and go on from it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import Tilewise, one_message, wait_for
from numpy.testing import assert_allclose, assert_array_equal
from oracle import matrix, processes_in
from PIL import Image
from tilewise.base import journal
from tilewise.base.errors import Stopped
from tilewise.engine.limit import Limit
from tilewise.files.region import Region
from tilewise.launch.job import Journal
from tilewise.launch.signals import Signals

STEPS = 8000
# Long enough for some looks at the clock, which ranks share every tenth of a second.
FIELD = ("stencil", "A.npy", "-o", "B.npy", "--steps", STEPS, "--kernel", "plain", "-t", 1)
OFTEN = ("--checkpoint", "0.01s")
RING = ("svd", "S.npy", "-o", "F", "--algorithm", "jacobi", "--inner", "rotations", "-t", 1)


@pytest.fixture
def field(tilewise: Tilewise) -> Any:
    """A.npy."""
    a = matrix((301, 277), "float64", 1)
    numpy.save(tilewise.folder / "A.npy", a)
    return a


def logs(run: Tilewise) -> str:
    """All that the ranks have written down of states by now."""
    return "".join(log.read_text() for log in run.folder.glob(".*.journal/*.state.log"))


def killed(run: Tilewise, *words: object, states: int = 2) -> str:
    """Runs a job of which a rank is killed once so many states are whole; what it says."""
    front = run.start(*words)
    wait_for(lambda: logs(run).count("whole") >= states or front.poll() is not None)
    ranks = [pid for pid in processes_in(run.folder) if "worker" in Path(f"/proc/{pid}/comm").read_text()]
    os.kill(ranks[-1], signal.SIGKILL)
    _, said = front.communicate(timeout=60)
    assert front.returncode == 1, said
    assert not [name for name in run.files() if name.endswith(".part")]
    return said


def record_of(run: Tilewise, *words: object) -> dict[str, Any]:
    done = run(*words, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert not [name for name in run.files() if name.startswith(".")]
    return dict(json.loads(done.stdout))


def undisturbed(run: Tilewise, *words: object, output: str = "B.npy") -> bytes:
    """What the output holds if nothing happens."""
    assert run(*words, "-q").returncode == 0
    held = (run.folder / output).read_bytes()
    (run.folder / output).unlink()
    return held


@pytest.mark.parametrize(("ranks", "later"), [(1, 1), (2, 2), (2, 3), (3, 1)])
def test_sweeps_go_on(tilewise: Tilewise, field: Any, ranks: int, later: int) -> None:
    wanted = undisturbed(tilewise, *FIELD)
    said = killed(tilewise, *FIELD, *OFTEN, "-n", ranks)
    assert "of B.npy is kept" in said and f"-n {ranks} --resume" in said
    record = record_of(tilewise, *FIELD, "-n", later, "--resume")
    assert record["result"]["resumed"]["starts"] == 2
    assert 0 < record["result"]["resumed"]["sweeps"] < STEPS
    assert record["result"]["resumed"]["spoilt_checkpoints"] == 0
    assert record["result"]["sweeps"] == STEPS
    assert (tilewise.folder / "B.npy").read_bytes() == wanted


@pytest.mark.parametrize("output", ["B.csv", "B.tiles", "B.npz"])
def test_the_output_may_have_any_format(tilewise: Tilewise, field: Any, output: str) -> None:
    words = (*FIELD[:3], output, *FIELD[4:])
    killed(tilewise, *words, *OFTEN, "-n", 2)
    record = record_of(tilewise, *words, "-n", 2, "--resume")
    assert record["result"]["resumed"]["sweeps"] > 0
    assert tilewise("convert", output, "-o", "C.npy", "-q").returncode == 0
    wanted = undisturbed(tilewise, *FIELD)
    (tilewise.folder / "W.npy").write_bytes(wanted)
    assert_array_equal(numpy.load(tilewise.folder / "C.npy"), numpy.load(tilewise.folder / "W.npy"))


@pytest.mark.parametrize("more", [("--boundary", "periodic"), ("--weights", "box3"), ("--order", "C")])
def test_columns_stay_columns(tilewise: Tilewise, field: Any, more: tuple[str, ...]) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.asfortranarray(field.astype("float32")))
    wanted = undisturbed(tilewise, *FIELD, *more)
    killed(tilewise, *FIELD, *more, *OFTEN, "-n", 2)
    assert record_of(tilewise, *FIELD, *more, "-n", 1, "--resume")["result"]["resumed"]["sweeps"] > 0
    assert (tilewise.folder / "B.npy").read_bytes() == wanted


def test_a_field_larger_than_memory(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "A.npy", matrix((3000, 2900), "float32", 2))
    words = ("stencil", "A.npy", "-o", "B.npy", "--steps", 60, "--depth", 6, "-t", 1, "-n", 1)
    wanted = undisturbed(tilewise, *words)
    streamed = (*words, "--memory", "70MiB", "--io", "positioned")
    tilewise.environment["TILEWISE_FAULT"] = "kill:0:output*40"
    said = one_message(tilewise(*streamed, *OFTEN), 1)
    del tilewise.environment["TILEWISE_FAULT"]
    assert "of B.npy is kept" in said
    record = record_of(tilewise, *streamed, "--resume")
    assert record["result"]["resumed"]["sweeps"] > 0 and record["result"]["passes"] > 0
    assert (tilewise.folder / "B.npy").read_bytes() == wanted


def test_snapshots(tilewise: Tilewise, field: Any) -> None:
    words = (*FIELD, "--snapshot-every", STEPS // 8)
    assert tilewise(*words, "-q").returncode == 0
    wanted = {path.name: path.read_bytes() for path in tilewise.folder.glob("B*.npy")}
    assert len(wanted) == 8
    for name in wanted:
        (tilewise.folder / name).unlink()
    killed(tilewise, *words, *OFTEN, "-n", 2, states=3)
    assert record_of(tilewise, *words, "-n", 2, "--resume")["result"]["resumed"]["sweeps"] > 0
    assert {path.name: path.read_bytes() for path in tilewise.folder.glob("B*.npy")} == wanted


def test_the_front_dies_behind_a_snapshot(tilewise: Tilewise, field: Any) -> None:
    front = tilewise.start(*FIELD, "--snapshot-every", STEPS // 8, *OFTEN, "-n", 2)
    wait_for(lambda: any(tilewise.folder.glob("B-*.npy")) and "whole" in logs(tilewise))
    front.send_signal(signal.SIGKILL)
    _, said = front.communicate(timeout=30)
    assert "B-001000.npy" in said and "B.npy were not" in said
    assert "what was done is kept: " in said and "--resume" in said


def test_until_nothing_changes(tilewise: Tilewise, field: Any) -> None:
    words = (*FIELD, "--until-change", "2e-5", "--check-every", 7)
    whole = record_of(tilewise, *words)
    wanted = (tilewise.folder / "B.npy").read_bytes()
    (tilewise.folder / "B.npy").unlink()
    killed(tilewise, *words, *OFTEN, "-n", 2)
    record = record_of(tilewise, *words, "-n", 2, "--resume")
    assert record["result"]["sweeps"] == whole["result"]["sweeps"] < STEPS
    assert record["result"]["last_change"] == whole["result"]["last_change"]
    assert (tilewise.folder / "B.npy").read_bytes() == wanted


def test_what_the_input_was_is_still_known(tilewise: Tilewise, field: Any) -> None:
    field[17, 4] = numpy.nan
    numpy.save(tilewise.folder / "A.npy", field)
    killed(tilewise, *FIELD, *OFTEN, "-n", 2)
    done = tilewise(*FIELD, "-n", 3, "--resume")
    assert done.returncode == 0 and "1 number of the input is NaN or infinite" in done.stderr


@pytest.mark.parametrize("spoilt", [1, 2])
def test_a_spoilt_state_is_not_believed(tilewise: Tilewise, field: Any, spoilt: int) -> None:
    """A bit of the newest is another, and it is longer; the older is there, or is not."""
    wanted = undisturbed(tilewise, *FIELD)
    killed(tilewise, *FIELD, *OFTEN, "-n", 2, states=3)
    (folder,) = tilewise.folder.glob(".B*.journal")
    newest = journal.saved(str(folder))
    with open(journal.slot_of(str(folder), newest[0].slot), "r+b") as file:
        file.seek(8 * 277 * 150)
        (byte,) = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
        file.seek(0, os.SEEK_END)
        file.write(b"more")
    if spoilt == 2:
        os.unlink(journal.slot_of(str(folder), newest[1].slot))
    done = tilewise(*FIELD, "-n", 2, "--resume", "--json", "r.json")
    assert done.returncode == 0
    said = "a checkpoint did not hold" if spoilt == 1 else "two checkpoints did not hold"
    assert f"{said} what the journal says" in done.stderr
    record = json.loads((tilewise.folder / "r.json").read_text())
    before = newest[1].version if spoilt == 1 else 0
    assert record["result"]["resumed"] == {"starts": 2, "sweeps": before, "spoilt_checkpoints": spoilt}
    assert (tilewise.folder / "B.npy").read_bytes() == wanted


def test_it_ends_when_it_is_asked_to(tilewise: Tilewise, field: Any) -> None:
    wanted = undisturbed(tilewise, *FIELD)
    words = (*FIELD, "-n", 2)
    front = tilewise.start(*words, "--time-limit", "1h")
    wait_for(lambda: any(tilewise.folder.glob(".B*.journal/0-1.state.log")))
    (folder,) = tilewise.folder.glob(".B*.journal")
    journal.ask_to_stop(str(folder))  # as the front does shortly before the limit
    _, said = front.communicate(timeout=60)
    assert front.returncode == 4, said
    assert "the job has ended in time" in said and "of B.npy is kept" in said
    facts = json.loads(tilewise("info", folder.name, "--json", "-").stdout)
    assert facts["of"] == "B.npy" and 0 < facts["sweeps"] < STEPS and 0 < facts["done"] < 1
    assert f"up to sweep {facts['sweeps']}" in tilewise("info", folder.name).stdout
    record = record_of(tilewise, *words, "--resume")
    assert record["result"]["resumed"]["sweeps"] == facts["sweeps"]
    assert (tilewise.folder / "B.npy").read_bytes() == wanted


def test_a_limit_that_passes_before_anything_is_kept(tilewise: Tilewise, field: Any) -> None:
    """Nothing is left then, and nothing is offered; a new start would not help either."""
    tilewise.environment["TILEWISE_FAULT"] = "hang:0:output"
    said = one_message(tilewise(*FIELD, "-n", 2, "--time-limit", "3s", "--retries", 2), 1)
    assert "nothing is kept" in said and "--resume" not in said
    assert tilewise.files() == {"A.npy"}


def test_the_room_that_a_limit_leaves(tmp_path: Path) -> None:
    """By what a state is predicted to take, and never more than half; the first state comes early."""
    for writing, asked in ((0.0, 90.0), (1.0, 90.0), (10.0, 70.0), (1000.0, 50.0)):
        limit = Limit(str(tmp_path), 100.0, Signals(), False, writing)
        assert limit._timer is not None and limit._timer.interval == pytest.approx(asked)
        limit.close()
    slots = [Region(name="s", path="s", rows=1, columns=1, dtype="float64")] * 2
    kept = limit.told(Journal(folder="f", slots=slots), near=True)
    assert kept.every == pytest.approx(100 / 3) and kept.ends == limit.ends
    assert limit.told(Journal(folder="f", slots=slots, every=5.0), near=False).every == 5.0
    assert limit.told(Journal(folder="f"), near=True) == Journal(folder="f")
    assert limit.reached(None, kept=True).exit_code == 4
    assert limit.reached(Stopped("asked to"), kept=False).exit_code == 1


def test_another_job_is_refused(tilewise: Tilewise, field: Any) -> None:
    killed(tilewise, *FIELD, *OFTEN)
    (folder,) = tilewise.folder.glob(".B*.journal")
    said = one_message(tilewise(*FIELD), 2)
    assert str(folder) in said and "--resume to resume it, or --force to start over" in said
    assert "the sweeps were others" in one_message(tilewise(*FIELD, "--boundary", "mirror", "--resume"), 2)
    assert tilewise(*FIELD[:5], 3, "--force", "-q").returncode == 0
    assert not [name for name in tilewise.files() if name.startswith(".")]


@pytest.mark.parametrize(("ranks", "kind"), [(1, "float64"), (2, "float32"), (2, "complex128")])
def test_a_decomposition_goes_on(tilewise: Tilewise, ranks: int, kind: str) -> None:
    numpy.save(tilewise.folder / "S.npy", matrix((420, 400), kind, 3))
    words = (*RING, "-n", ranks, "--start", "none")
    assert tilewise(*words, "-q").returncode == 0
    wanted = {path.name: path.read_bytes() for path in (tilewise.folder / "F").glob("*.npy")}
    whole = json.loads(tilewise(*words, "--force", "--json", "-").stdout)
    assert tilewise("svd", "S.npy", "-o", "G", "-q").returncode == 0
    for path in (tilewise.folder / "F").iterdir():
        path.unlink()
    (tilewise.folder / "F").rmdir()
    said = killed(tilewise, *words, *OFTEN)
    assert "the state after" in said and "of F is kept" in said
    (folder,) = tilewise.folder.glob(".F*.journal")
    assert "sweep" in tilewise("info", folder.name).stdout
    record = record_of(tilewise, *words, "--resume")
    assert record["result"]["resumed"]["sweeps"] >= 2 and record["verification"]["passed"]
    assert record["result"]["off_norm"] == whole["result"]["off_norm"]
    assert {path.name: path.read_bytes() for path in (tilewise.folder / "F").glob("*.npy")} == wanted


def test_a_state_of_another_start_is_not_taken(tilewise: Tilewise) -> None:
    s = matrix((420, 400), "float64", 3)
    numpy.save(tilewise.folder / "S.npy", s)
    killed(tilewise, *RING, "--start", "qr", *OFTEN, "-n", 2)
    done = tilewise(*RING, "--start", "qr", "-n", 3, "--resume", "--json", "r.json")
    assert done.returncode == 0, done.stderr
    values = numpy.load(tilewise.folder / "F/s.npy")
    assert_allclose(values, numpy.linalg.svd(s, compute_uv=False), rtol=0, atol=1e-12 * values[0])


def test_a_product_is_kept_tile_by_tile(tilewise: Tilewise) -> None:
    a, b = matrix((900, 800), "float64", 1), matrix((800, 700), "float64", 2)
    numpy.save(tilewise.folder / "A.npy", a)
    numpy.save(tilewise.folder / "B.npy", b)
    words = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", 1, "-t", 1, "--checkpoint", "0.01s")
    tilewise.environment["TILEWISE_FAULT"] = "kill:0:verify*4"
    assert "of C.npy is kept" in one_message(tilewise(*words), 1)
    del tilewise.environment["TILEWISE_FAULT"]
    record = record_of(tilewise, *words, "--resume")
    assert record["result"]["resumed"]["kept_pieces"] > 0
    assert_allclose(numpy.load(tilewise.folder / "C.npy"), a @ b, rtol=0, atol=1e-10 * 800)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("stencil", "A.npy", "-o", "B.npy", "--steps", 1), "it is one sweep"),
        (("stencil", "A.npy", "-o", "B.npy", "--steps", 9, "--repeat", 2), "sweeps are repeated"),
        (("stencil", "P.png", "-o", "Q.png", "--steps", 9), "colours of a picture"),
        (("stencil", "T.npy", "-o", "B.npy", "--steps", 9, "--each", 0), "slices are done one after"),
        (("multiply", "A.npy", "A.npy", "-o", "B.npy", "--algorithm", "cannon", "-n", 4), "tiles of C"),
        (("svd", "A.npy", "-o", "F", "--algorithm", "local"), "local keeps nothing"),
        (("svd", "A.npy", "-o", "F", "--repeat", 2), "sweeps are repeated"),
    ],
)
def test_what_keeps_nothing_says_why(tilewise: Tilewise, words: tuple[object, ...], why: str) -> None:
    numpy.save(tilewise.folder / "A.npy", matrix((20, 20), "float64", 1))
    numpy.save(tilewise.folder / "T.npy", numpy.ones((3, 4, 5)))
    if "P.png" in words:
        Image.fromarray(numpy.zeros((8, 9, 3), dtype="uint8")).save(tilewise.folder / "P.png")
    said = one_message(tilewise(*words, "--checkpoint", "10min"), 2)
    assert "--checkpoint makes no sense" in said and why in said


def test_a_decomposition_takes_an_algorithm_that_keeps_its_state(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "S.npy", matrix((60, 40), "float64", 3))
    shown = tilewise("plan", "svd", "S.npy", "-o", "F", "--checkpoint", "1min").stdout
    assert "jacobi: --checkpoint requires it" in shown and "the state is kept every 1 min" in shown
    assert "jacobi: --" not in tilewise("plan", "svd", "S.npy", "-o", "F", "--checkpoint", "off").stdout


def test_long_work_keeps_its_state_by_itself(tilewise: Tilewise, field: Any) -> None:
    reasons = tilewise("plan", *FIELD[:5], 10**9).stdout
    assert "the state is kept every 10 min" in reasons
    assert "the state is kept" not in tilewise("plan", *FIELD[:5], 10**9, "--checkpoint", "off").stdout
    assert "the state is kept" not in tilewise("plan", *FIELD).stdout
