"""A sample of `make torture`: the faults and kills that once did most harm, the same ones each time."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

TORTURE = Path(__file__).parents[2] / "torture"
TILEWISE = Path(sys.executable).with_name("tilewise")

# What is done to which job; each once ended with wrong numbers, lost ones, a lie, or litter.
SWEEPS = {
    "close loses what was written": "multiply,convert --faults close:lost --every 4",
    "close loses, with --sync": "transpose --options=--sync --faults close:lost",
    "a short write of a header": "multiply --faults write:short --who front",
    "a short write of a tile's header": "multiply --io per_rank --faults write:short --who front",
    "a read of nothing": "multiply --io collective --faults pread:zero --who rank --every 4",
    "a staged read of nothing": "transpose --options=--algorithm=staged --faults pread:zero --every 25",
    "old tiles cannot be removed": "multiply --io per_rank --faults unlink --who front --every 2",
    "an interrupt while renaming": "multiply --faults rename:SIGINT,rename:SIGTERM --who front",
    "an interrupt while naming anew": "multiply --faults link:SIGINT,unlink:SIGINT --who front --new",
    "a kill beside the part file": "multiply --faults all:SIGKILL --who front --path *.part* --every 3",
    "a kill beside tiles": "multiply --io per_rank --faults all:SIGKILL --who front --path *.tiles --every 9",
    "a write error that aborts the job": "convert --faults pwrite:EIO --who rank --every 2",
    "snapshots cannot be renamed": "stencil --faults rename:EIO --who front",
    "snapshots of tiles, not renamed": "stencil --io per_rank --faults rename,read:EIO --who front --every 6",
    "anything else": "svd,generate --faults all --every 60",
}
KILLS = {
    "at any time": "multiply,svd --count 8",
    "at the start": "multiply --size small --moment start --within 0.12 --count 8",
    "around the rename": "multiply,convert --targets front --moment named --within 0.005 --count 6",
}


@pytest.fixture(scope="module")
def _possible(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips all of it where a library cannot be compiled and preloaded."""
    if sys.platform != "linux":
        pytest.skip("the shim is for Linux")
    sys.path.insert(0, str(TORTURE))
    from sweep import compile_shim

    library = tmp_path_factory.mktemp("shim") / "shim.so"
    try:
        compile_shim(library)
        environment = {**os.environ, "LD_PRELOAD": str(library)}
        said = subprocess.run(["true"], env=environment, capture_output=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no library can be compiled and preloaded here: {error}")
    if said:
        pytest.skip(f"no library can be preloaded here: {said.decode()}")


@pytest.mark.usefixtures("_possible")
@pytest.mark.parametrize(
    ("program", "words"),
    [
        *(pytest.param("sweep", words, id=what) for what, words in SWEEPS.items()),
        *(pytest.param("kills", words, id=f"kills {when}") for when, words in KILLS.items()),
    ],
)
def test_a_job_may_fail_but_not_lie_hang_or_litter(tmp_path: Path, program: str, words: str) -> None:
    told = tmp_path / "told.json"
    given = ["--ranks", "2", "--tilewise", TILEWISE, "--work", tmp_path, "--json", told, "--commands"]
    command = [sys.executable, TORTURE / f"{program}.py", *given, *shlex.split(words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert told.exists(), done.stdout + done.stderr
    runs = json.loads(told.read_text())
    assert runs, "nothing was disturbed"
    wrong = [f"{run['what']}: {'; '.join(run['wrong'])}\n{run['said']}" for run in runs if run["wrong"]]
    assert not wrong, "\n".join(wrong)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_left_is_damaged(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    given = ["--tilewise", TILEWISE, "--kills", "4", "--json", told]
    command = [sys.executable, TORTURE / "damaged.py", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(told.read_text())) == 4


def test_what_other_libraries_write_is_read_to_the_bit(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    sample = ["--files", "300", "--seed", "10000", "--brief"]  # with all options that were once read wrongly
    command = [sys.executable, TORTURE / "formats.py", *sample, "--json", told]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ends = {end for counted in json.loads(told.read_text())["files"].values() for end in counted}
    ways = ("in place", "unpacked by ranks", "parsed by ranks", "decoded by the front")
    assert {f"equal, {way}" for way in ways} <= ends
