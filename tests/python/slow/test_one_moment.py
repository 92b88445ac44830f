"""The moment when an output gets its name: before it nothing is changed, after it nothing is denied."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy
import pytest
from conftest import InProcess, Tilewise, one_message, wait_for
from format_files import check_target
from tilewise.base import owner
from tilewise.base.claim import Claim, verdict
from tilewise.base.errors import RunError
from tilewise.files import headed
from tilewise.files.output import create

PICTURE = ("generate", "--shape", "5x4", "--dtype", "uint8", "-o")
WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy")


@contextlib.contextmanager
def at_work(fake: Tilewise, *words: object) -> Iterator[subprocess.Popen[str]]:
    """A job whose ranks wait until the end of this."""
    hidden = fake.folder / ".cache"
    hidden.mkdir(exist_ok=True)
    gate, job = hidden / "gate", hidden / "job"
    job.unlink(missing_ok=True)
    fake.environment |= {"FAKE_GATE": str(gate), "FAKE_JOB": str(job)}
    child = fake.start(*words, how="gate")
    try:
        wait_for(lambda: (job.exists() and job.read_text().endswith("}")) or child.poll() is not None)
        yield child
    finally:
        gate.touch()
        child.wait(60)
        gate.unlink()


def after(child: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    out, err = child.communicate(timeout=60)
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


def patched(fake: Tilewise, code: str, *words: object) -> subprocess.CompletedProcess[str]:
    """The command in a process where `code` runs first."""
    before = "import os, signal, sys, time\nfront = os.getpid()\n"
    program = f"{before}{code}\nfrom tilewise import cli\ncli.command()\n"
    return fake.run([sys.executable, "-c", program, *words], timeout=60)


def part_of(fake: Tilewise, ending: str = ".part") -> Path:
    return next(path for path in fake.folder.iterdir() if path.name.endswith(ending))


# ------------------------------------------------------------------ containers
@pytest.mark.parametrize("ending", [".h5", ".nc"])
@pytest.mark.parametrize("new", [False, True])
def test_two_jobs_never_write_to_one_container_at_once(fake: Tilewise, ending: str, new: bool) -> None:
    if not new:
        assert fake(*WORDS[:4], f"C{ending}:old").returncode == 0
    with at_work(fake, *WORDS[:4], f"C{ending}:x") as first:
        message = one_message(fake(*WORDS[:4], f"C{ending}:y", "--force"), 2)
        assert f"another job (pid {first.pid} on " in message and "wait until it has finished" in message
    assert after(first).returncode == 0
    assert fake(*WORDS[:4], f"C{ending}:y").returncode == 0
    with h5py.File(fake.folder / f"C{ending}") as book:
        assert {"x", "y"} <= set(book)


@pytest.mark.parametrize("new", [False, True])
def test_what_another_program_adds_meanwhile_is_not_lost(fake: Tilewise, new: bool) -> None:
    path = fake.folder / "C.h5"
    if not new:
        with h5py.File(path, "w") as book:
            book["old"] = numpy.arange(3.0)
    with at_work(fake, *WORDS[:4], "C.h5:x", "--force") as child, h5py.File(path, "a") as book:
        book["theirs"] = numpy.arange(4.0)
    assert "C.h5 was changed by another program" in one_message(after(child), 1)
    with h5py.File(path) as book:
        assert set(book) == {"theirs"} | ({"old"} if not new else set())
    assert not [name for name in fake.files() if name.endswith(".part")]


def test_a_container_that_is_open_for_writing_is_left_alone(fake: Tilewise) -> None:
    path = fake.folder / "C.h5"
    with h5py.File(path, "w") as book:
        book["old"] = numpy.arange(3.0)
    with at_work(fake, *WORDS[:4], "C.h5:x") as child, h5py.File(path, "a") as book:
        (fake.folder / ".cache/gate").touch()
        child.wait(60)
        book["theirs"] = numpy.arange(4.0)
    assert "C.h5" in one_message(after(child), 1)
    with h5py.File(path) as book:
        assert set(book) == {"old", "theirs"}


# ------------------------------------------------------------------ interrupts and kills around the name
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_behind_the_naming_denies_nothing(fake: Tilewise, which: signal.Signals, old: bool) -> None:
    name = "replace" if old else "link"
    code = (
        f"real = os.{name}\ndef struck(part, path):\n    real(part, path)\n"
        f"    os.getpid() == front and path.endswith('C.npy') and os.kill(front, {int(which)})\n"
        f"os.{name} = struck"
    )
    if old:
        numpy.save(fake.folder / "C.npy", numpy.ones((2, 2)))
    done = patched(fake, code, *WORDS, "--json", "r.json", *(["--force"] if old else []))
    assert done.returncode == (-9 if which == signal.SIGKILL else 130)
    wait_for(lambda: "C.npy was written" in done.stderr and done.stderr.count("tilewise:") == 1)
    assert numpy.load(fake.folder / "C.npy").shape == (6, 3)
    wait_for(lambda: fake.files() <= {"A.npy", "B.npy", "C.npy", "r.json", "processes.log"})
    assert (
        which == signal.SIGKILL or json.loads((fake.folder / "r.json").read_text())["command"] == "multiply"
    )


@pytest.mark.parametrize(
    ("target", "moment"),
    [
        ("C.npy", "os.open"),
        ("C.npy", "os.pread"),
        ("C.npy", "os.truncate"),
        ("C.csv", "os.open"),
        ("C.png", "os.open"),
        ("C.tiles", "os.open"),
        ("C.h5:x", "os.pread"),
    ],
)
def test_a_kill_while_parts_are_made_leaves_nothing(fake: Tilewise, target: str, moment: str) -> None:
    module, name = moment.split(".")
    code = (
        f"import {module}\nreal = {moment}\ndef struck(path, *more, **options):\n"
        "    found = real(path, *more, **options)\n"
        "    hidden = any('.part' in name for _, _, names in os.walk('.') for name in names)\n"
        "    hidden and os.getpid() == front and os.kill(front, signal.SIGKILL)\n    return found\n"
        f"{module}.{name} = struck"
    )
    done = patched(fake, code, *PICTURE, target)
    assert done.returncode == -9
    assert done.stderr == f"tilewise: the job was killed; {target} was not written\n"
    wait_for(lambda: fake.files() <= {"A.npy", "B.npy"})


# ------------------------------------------------------------------ what dead jobs left
def test_leftovers_of_dead_jobs_are_swept(fake: Tilewise) -> None:
    code = "from tilewise.base.owner import new_owner\nprint(new_owner().identity)"
    dead = fake.run([sys.executable, "-c", code]).stdout.strip()
    here = owner.new_owner().identity
    elsewhere = "node9-000000-0000-1-1-abcdef"
    assert fake("convert", "A.npy", "-o", "C.tiles").returncode == 0
    for who in (dead, here, elsewhere):
        for name in (
            f".x.npy.{who}.part",
            f".x.png.{who}.part.raw",
            f".A.png.{who}.1.raw",
            f".r.json.{who}.part",
        ):
            (fake.folder / name).touch()
        (fake.folder / "C.tiles" / f"tile-{who[-6:]}-000000.npy").touch()
        (fake.folder / "C.tiles" / f".manifest.json.{who}.part").touch()
    for name, file in ((".svd.{}.part", "U.npy"), (".keep.{}.part.old", "s.npy")):
        (fake.folder / name.format(dead)).mkdir()
        (fake.folder / name.format(dead) / file).touch()
    assert fake("convert", "A.npy", "-o", "C.tiles", "--force").returncode == 0
    assert not [name for name in fake.files() if dead in name]
    assert len([name for name in fake.files() if here in name or elsewhere in name]) == 8
    assert os.listdir(fake.folder / "keep") == ["s.npy"]  # an old folder that was to be replaced
    tiles = sorted(os.listdir(fake.folder / "C.tiles"))
    assert not [name for name in tiles if dead[-6:] in name] and len(tiles) == 2 + 4


# ------------------------------------------------------------------ parts and inputs meanwhile
@pytest.mark.parametrize("what", ["replaced", "removed", "longer"])
def test_a_part_that_somebody_meddles_with_gets_no_name(fake: Tilewise, what: str) -> None:
    numpy.save(fake.folder / "C.npy", numpy.ones((2, 2)))
    with at_work(fake, *WORDS, "--force") as child:
        part = part_of(fake)
        if what == "longer":
            with part.open("ab") as file:
                file.write(b"more")
        else:
            content = part.read_bytes()
            part.unlink()
            if what == "replaced":
                part.write_bytes(content)
    message = one_message(after(child), 1)
    assert part.name in message and ("bytes where" if what == "longer" else f"was {what}") in message
    assert numpy.load(fake.folder / "C.npy").shape == (2, 2) and not part.exists()


@pytest.mark.parametrize("target", ["C.npy", "C.bin", "C.safetensors", "C.pgm", "C.tif", "C.h5:x"])
def test_a_header_that_changes_meanwhile_is_no_result(fake: Tilewise, target: str) -> None:
    words = ("generate", "-o", target, "--shape", "5x4", *(["--dtype", "uint8"] if "pgm" in target else []))
    with at_work(fake, *words) as child, part_of(fake).open("r+b") as file:
        file.seek(1)
        file.write(b"\xff")
    assert "the header of" in one_message(after(child), 3)
    assert not (fake.folder / target.split(":", maxsplit=1)[0]).exists()


@pytest.mark.parametrize("how", ["short", "lost"])
def test_headers_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """A file system may take half of what it is given, and may forget it when the file is closed."""

    class Half:
        def __init__(self, path: str, mode: str, buffering: int) -> None:
            self.file = open(path, mode, buffering=buffering)  # noqa: SIM115

        def __enter__(self) -> Half:
            return self

        def __exit__(self, *error: object) -> None:
            if how == "lost" and self.file.writable():
                self.file.truncate(10)
            self.file.close()

        def write(self, data: memoryview) -> int:
            return self.file.write(data[: max(1, len(data) // 2)]) or 0

        def read(self, count: int) -> bytes:
            return bytes(self.file.read(count))

    monkeypatch.setattr(headed, "open", Half, raising=False)
    target = check_target(str(tmp_path / "C.npy"), False)
    if how == "short":
        create(target, (2, 2), "int8", "C", "id").commit()
        assert numpy.load(tmp_path / "C.npy").shape == (2, 2)
    else:
        with pytest.raises(RunError, match="its header was not kept"):
            create(target, (2, 2), "int8", "C", "id")
        assert not list(tmp_path.iterdir())


def test_an_input_that_is_overwritten_meanwhile_is_said(fake: Tilewise) -> None:
    with at_work(fake, *WORDS) as child:
        content = (fake.folder / "A.npy").read_bytes()
        (fake.folder / "A.npy").write_bytes(content[:-8] + b"\1" * 8)
    done = after(child)
    assert done.returncode == 0
    assert "warning: A.npy was written to while it was read" in done.stderr and "B.npy" not in done.stderr


# ------------------------------------------------------------------ old tiles, snapshots, side files
def test_old_tiles_that_stay_are_said(
    fake: Tilewise, here: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here("convert", "A.npy", "-o", "C.tiles").returncode == 0
    old = next(name for name in os.listdir(fake.folder / "C.tiles") if name.startswith("tile-"))
    unlink = os.unlink

    def refusing(path: str, **options: object) -> None:
        if old in str(path):
            raise PermissionError(13, "no")
        unlink(path)

    monkeypatch.setattr(os, "unlink", refusing)
    done = here("convert", "B.npy", "-o", "C.tiles", "--force")
    assert done.returncode == 0 and f"{old} could not be removed" in done.stderr
    manifest = json.loads((fake.folder / "C.tiles/manifest.json").read_text())
    assert old not in [tile["file"] for tile in manifest["tiles"]]


@pytest.mark.parametrize("ending", [".npy", ".tiles"])
@pytest.mark.parametrize("old", [False, True])
def test_a_snapshot_stays_when_the_job_dies(fake: Tilewise, ending: str, old: bool) -> None:
    words = ("stencil", "A.npy", "-o", f"out{ending}", "--steps", 3, "--snapshot-every", 1)
    if old:
        assert fake("convert", "B.npy", "-o", f"out-000001{ending}").returncode == 0
    message = one_message(fake(*words, *(["--force"] if old else []), how="snapshot-then-die"), 1)
    assert f"out-000001{ending} was written; out-000002{ending} and out{ending} were not" in message
    info = json.loads(fake("info", f"out-000001{ending}", "--json", "-").stdout)
    assert info["shape"] == list(numpy.load(fake.folder / "A.npy").shape)
    assert not [name for name in fake.files() if name.startswith((".out", "out-000002"))]


def test_a_record_that_gets_no_name_denies_nothing(fake: Tilewise) -> None:
    with at_work(fake, *WORDS, "--json", "r.json") as child:
        (fake.folder / "r.json").mkdir()
    message = one_message(after(child), 1)
    assert "r.json cannot be written: Is a directory; C.npy was written" in message
    assert numpy.load(fake.folder / "C.npy").shape == (6, 3)


@pytest.mark.parametrize("flag", ["--json", "--trace"])
def test_side_files_replace_nothing_of_others(fake: Tilewise, flag: str) -> None:
    notes = fake.folder / "notes.txt"
    notes.write_text("mine")
    for words in ((*WORDS, flag, "notes.txt"), ("info", "A.npy", "--json", "notes.txt")):
        assert "notes.txt exists and was not written by tilewise" in one_message(fake(*words), 2)
    assert notes.read_text() == "mine" and not (fake.folder / "C.npy").exists()
    assert fake(*WORDS, flag, "notes.txt", "--force").returncode == 0
    assert fake(*WORDS, flag, "notes.txt", "--force").returncode == 0 and notes.read_text() != "mine"
    notes.write_text("")
    assert fake("info", "A.npy", "--json", "notes.txt").returncode == 0
    assert fake("info", "B.npy", "--json", "notes.txt").returncode == 0


def test_a_timeout_while_an_output_is_packed(fake: Tilewise) -> None:
    code = "from tilewise.files.formats import png\npng.encode = lambda *words, **more: time.sleep(60)"
    done = patched(fake, code, *PICTURE, "C.png", "--timeout", 2)
    assert "packing the output took longer than --timeout 2" in one_message(done, 1)
    assert fake.files() <= {"A.npy", "B.npy", "processes.log"}


@pytest.mark.parametrize(
    ("error", "said"),
    [("OSError(28, 'No space left')", "cannot be packed: No space left"), ("ValueError('odd')", "odd")],
)
def test_what_a_packer_says_comes_through(fake: Tilewise, error: str, said: str) -> None:
    code = "from tilewise.files.formats import png\n"
    code += f"def encode(*words, **more): raise {error}\npng.encode = encode"
    assert said in one_message(patched(fake, code, *PICTURE, "C.png"), 1)


def test_verdicts(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "abc"]
    claims = [Claim(str(path), path.name) for path in paths]
    assert verdict(claims) == "a, b and c were not written" and verdict([]) == ""
    for path, claim in zip(paths, claims, strict=True):
        path.touch()
        assert not claim.stands()
        claim.inode = path.stat().st_ino
    assert verdict(claims) == "this was written: a, b and c"
    assert verdict(claims[:1]) == "a was written"
    paths[1].unlink()
    assert verdict(claims) == "this was written: a and c; b was not"
