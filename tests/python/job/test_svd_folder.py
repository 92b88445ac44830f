"""The folder that `tilewise svd` makes: what it may replace, and that it is there as a whole or not."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from conftest import InProcess, Tilewise, one_message, wait_for
from tilewise.base import staging

WORDS = ("svd", "A.npy", "-o", "svd/")
Contents = dict[str, bytes]


def contents(folder: Path) -> tuple[int, Contents]:
    """What shows whether anybody touched a folder: its identity, and every file's bytes."""
    return folder.stat().st_ino, {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def old(fake: Tilewise, here: InProcess) -> Path:
    """A folder of ours that lies there already; its numbers are all 7."""
    assert here(*WORDS, "--scaled").returncode == 0
    folder = fake.folder / "svd"
    for path in folder.glob("*.npy"):
        numpy.save(path, numpy.full_like(numpy.load(path), 7))
    return folder


def test_a_folder_with_factors_and_a_manifest(here: InProcess, fake: Tilewise) -> None:
    before = fake.files()

    result = here(*WORDS, "--json", "record.json")

    assert result.returncode == 0 and "svd/ (U.npy, s.npy, Vt.npy)" in result.stdout
    assert fake.files() == before | {"svd", "record.json"}
    folder = fake.folder / "svd"
    assert {path.name for path in folder.iterdir()} == {"U.npy", "s.npy", "Vt.npy", "manifest.json"}
    shapes = {name: numpy.load(folder / f"{name}.npy").shape for name in ("U", "s", "Vt")}
    assert shapes == {"U": (6, 4), "s": (4,), "Vt": (4, 4)}
    listed = json.loads((folder / "manifest.json").read_text())
    assert listed["tilewise"] == 1 and [each["file"] for each in listed["files"]] == [
        "U.npy",
        "s.npy",
        "Vt.npy",
    ]
    record = json.loads((fake.folder / "record.json").read_text())
    assert [(each["path"], each["shape"]) for each in record["outputs"]] == [
        (str(folder / "U.npy"), [6, 4]),
        (str(folder / "s.npy"), [4]),
        (str(folder / "Vt.npy"), [4, 4]),
    ]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--values-only",), {"s.npy"}),
        (("--scaled",), {"U.npy", "s.npy", "Vt.npy", "US.npy"}),
        (("--components", 2, "--values-only"), {"s.npy"}),
    ],
)
def test_which_files_there_are(
    here: InProcess, fake: Tilewise, words: tuple[object, ...], names: set[str]
) -> None:
    assert here(*WORDS, *words).returncode == 0
    assert {path.name for path in (fake.folder / "svd").iterdir()} == names | {"manifest.json"}


@pytest.mark.parametrize(
    ("name", "said", "advice"),
    [
        ("", "empty name", ""),
        ("U.npy", "named like a file", "-o U/"),
        ("photo.PNG", "named like a file", "-o photo/"),
        ("svd.tiles", "named like a file", ""),
        ("missing/svd", "missing does not exist", ""),
        ("A.npy/", "exists and is not a folder", ""),
        ("random:3x3", "the name of generated numbers", ""),
        ("A.npy/svd", "cannot be inspected: Not a directory", ""),
        ("plain", "exists and is not a folder", ""),
        (".", "exists already", "--force"),
        ("/", "exists already", "--force"),
        ("x" * 300, "cannot be inspected", ""),
    ],
)
def test_places_that_are_refused(here: InProcess, fake: Tilewise, name: str, said: str, advice: str) -> None:
    (fake.folder / "plain").touch()
    before = fake.files()

    message = one_message(here("svd", "A.npy", "-o", name), 2)

    assert said in message and advice in message and fake.files() == before


@pytest.mark.parametrize("name", ["pca.v2", "svd.npy/", "sub/../svd", "ünïcode", "with space/"])
def test_names_that_are_taken(here: InProcess, fake: Tilewise, name: str) -> None:
    (fake.folder / "sub").mkdir()
    assert here("svd", "A.npy", "-o", name).returncode == 0
    assert (fake.folder / name / "U.npy").is_file()


def test_an_old_folder_is_not_replaced_without_force(here: InProcess, old: Path) -> None:
    before = contents(old)
    assert "--force replaces it" in one_message(here(*WORDS), 2)
    assert contents(old) == before


def test_force_replaces_the_whole_folder(here: InProcess, fake: Tilewise, old: Path) -> None:
    old.chmod(0o750)
    before, names = contents(old), fake.files()

    assert here(*WORDS, "--force", "--values-only", "--sync").returncode == 0

    assert {path.name for path in old.iterdir()} == {"s.npy", "manifest.json"}
    assert contents(old)[0] != before[0] and not numpy.load(old / "s.npy").any()
    assert stat.S_IMODE(old.stat().st_mode) == 0o750 and fake.files() == names


def test_a_link_to_a_folder_stays_one(here: InProcess, fake: Tilewise, old: Path) -> None:
    (fake.folder / "far").mkdir()
    old.rename(fake.folder / "far/real")
    (fake.folder / "svd").symlink_to("far/real")
    assert here(*WORDS, "--force").returncode == 0
    assert (fake.folder / "svd").is_symlink() and os.listdir(fake.folder / "far") == ["real"]
    assert not numpy.load(fake.folder / "far/real/s.npy").any()


def spoil(folder: Path, how: str) -> None:
    """Makes a folder one that is not ours alone."""
    manifest = folder / "manifest.json"
    if how == "foreign":
        (folder / "notes.txt").write_text("mine")
    elif how == "hidden":
        (folder / ".notes").write_text("mine")
    elif how == "none":
        manifest.unlink()
    elif how == "broken":
        manifest.write_text("{")
    elif how == "tiles":
        manifest.write_text('{"tilewise": 1, "shape": [2, 2], "dtype": "float64", "tiles": []}')
    elif how == "newer":
        manifest.write_text('{"tilewise": 2, "command": "svd", "files": []}')
    elif how == "large":
        manifest.write_text(" " * (2 << 20))
    elif how == "a folder":
        manifest.unlink()
        manifest.mkdir()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("foreign", "holds notes.txt, which is not part of it"),
        ("hidden", "holds .notes"),
        ("none", "without a manifest.json by tilewise"),
        ("broken", "not a manifest by tilewise"),
        ("tiles", "not a manifest by tilewise"),
        ("newer", "of version 2, but 1 was expected"),
        ("large", "not a manifest by tilewise"),
        ("a folder", "is a folder"),
    ],
)
def test_force_spares_what_is_not_ours(
    here: InProcess, fake: Tilewise, old: Path, how: str, said: str
) -> None:
    spoil(old, how)
    before, names = sorted(os.listdir(old)), fake.files()

    message = one_message(here(*WORDS, "--force"), 2)

    assert said in message and sorted(os.listdir(old)) == before and fake.files() == names
    assert numpy.load(old / "s.npy").any()


@pytest.mark.parametrize(("how", "code"), [("wrong", 3), ("usage", 2), ("io", 1), ("die", 1), ("silent", 1)])
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_run_that_fails_leaves_the_old_folder(
    fake: Tilewise, old: Path, how: str, code: int, ranks: int
) -> None:
    before, names = contents(old), fake.files()
    one_message(fake(*WORDS, "--force", "-n", ranks, how=how), code)
    assert contents(old) == before and fake.files() == names


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing_new(
    fake: Tilewise, old: Path, processes: Callable[[], list[int]], number: signal.Signals
) -> None:
    before, names = contents(old), fake.files()
    child = fake.start(*WORDS, "--force", how="hang")
    wait_for(processes)
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    if number != signal.SIGKILL:
        one_message(subprocess.CompletedProcess([], child.returncode, out, err), 130)
    wait_for(lambda: not processes())
    wait_for(
        lambda: fake.files() <= names | {"processes.log"}
    )  # after SIGKILL it is the guardian who does it
    assert contents(old) == before


@pytest.mark.parametrize(("force", "foreign"), [(False, False), (True, True), (True, False)])
def test_a_folder_that_somebody_makes_meanwhile(
    fake: Tilewise, processes: Callable[[], list[int]], force: bool, foreign: bool
) -> None:
    script = fake.folder / "launcher"
    script.write_text(
        "#!/bin/sh\nmkdir svd\n"
        + ("echo mine > svd/notes\n" if foreign else "")
        + ("cp manifest.json svd/\n" if force else "")
        + 'shift 2\nexec "$@"\n'
    )
    script.chmod(0o755)
    (fake.folder / "manifest.json").write_text('{"tilewise": 1, "command": "svd", "files": []}')
    words = ("-n", 1, "--launcher", script, *(["--force"] if force else []))
    done = fake(*WORDS, *words)
    if force and not foreign:
        assert done.returncode == 0 and (fake.folder / "svd/U.npy").exists()
        return
    message = one_message(done, 1)
    assert ("holds notes" if foreign else "another program created") in message
    assert not (fake.folder / "svd/U.npy").exists()
    assert not [name for name in fake.files() if name.endswith(".part")]


def test_an_input_in_the_folder_is_not_replaced(here: InProcess, fake: Tilewise, old: Path) -> None:
    before = contents(old)
    for name in ("svd/U.npy", "./svd/../svd/Vt.npy"):
        message = one_message(here("svd", name, "-o", "svd", "--force", "--values-only"), 2)
        assert f"the input {name} lies in the output svd" in message and "another name" in message
    assert contents(old) == before
    assert here("svd", "svd/U.npy", "-o", "svd2").returncode == 0


def test_force_replaces_what_is_made_at_the_last_moment(
    fake: Tilewise, here: InProcess, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside, name_new = fake.folder / "aside", staging.name_new
    old.rename(aside)

    def late(part: str, path: str) -> None:
        os.rename(aside, path)
        name_new(part, path)

    monkeypatch.setattr(staging, "name_new", late)
    assert here(*WORDS, "--force").returncode == 0
    assert not numpy.load(old / "s.npy").any() and not aside.exists()


def test_what_fails_behind_the_name_is_a_warning(
    fake: Tilewise, here: InProcess, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(path: str) -> None:
        if path == str(fake.folder):
            raise OSError(errno.EIO, "no")

    monkeypatch.setattr(staging, "sync_path", refusing)
    result = here(*WORDS, "--force", "--sync")
    assert result.returncode == 0 and "its name may be lost in a crash" in result.stderr
    assert not numpy.load(old / "s.npy").any()


def test_an_old_folder_that_stays_aside_is_removed(
    fake: Tilewise, here: InProcess, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, names = os.rename, fake.files()

    def refusing(source: str, target: str) -> None:
        if source.endswith(staging.ASIDE):
            raise OSError(errno.EIO, "no")
        rename(source, target)

    monkeypatch.setattr(staging, "_renameat2", lambda: None)
    monkeypatch.setattr(os, "rename", refusing)
    assert here(*WORDS, "--force").returncode == 0
    assert not numpy.load(old / "s.npy").any() and fake.files() == names


def test_a_kill_between_two_renamings_gives_the_old_folder_its_name_again(
    fake: Tilewise, old: Path, tmp_path: Path
) -> None:
    """Where folders cannot change names at once: the old one is aside, and the new one has no name yet."""
    code = (
        "import os, signal, sys\nfrom tilewise.base import staging\nfrom tilewise.cli import main\n"
        "staging._renameat2 = lambda: None\nrename, front = os.rename, os.getpid()\n"
        "def killing(source, target):\n"
        "    rename(source, target)\n"
        "    os.getpid() == front and os.kill(front, signal.SIGKILL)\n"
        "os.rename = killing\nmain(sys.argv[1:])\n"
    )
    before, names = contents(old), fake.files()
    words = [sys.executable, "-c", code, *map(str, WORDS), "--force"]
    done = subprocess.run(
        words, cwd=fake.folder, env=fake.environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL and "svd was not written" in done.stderr
    wait_for(lambda: fake.files() == names)
    assert contents(old) == before


def test_a_record_does_not_go_into_the_folder(here: InProcess, old: Path) -> None:
    message = one_message(here(*WORDS, "--force", "--json", "svd/record.json"), 2)
    assert "--json svd/record.json is in a folder" in message


def test_a_disk_that_is_too_small(here: InProcess, mount: Callable[..., Path]) -> None:
    folder = mount("-t", "tmpfs", "-o", "size=1m", "tmpfs")
    message = one_message(here("svd", "random:300x300", "-o", folder / "svd"), 1)
    assert "the disk is too full" in message and "1.38 MiB" in message
    assert os.listdir(folder) == []


# ---- renaming ------------------------------------------------------------------------------------


@pytest.fixture(params=["at once", "step by step"])
def two(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A new and an old folder, each with a file; with the kernel's exchange and without."""
    if request.param == "step by step":
        monkeypatch.setattr(staging, "_renameat2", lambda: None)
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    return str(tmp_path / "new"), str(tmp_path / "old")


def test_two_folders_change_names(two: tuple[str, str]) -> None:
    new, old = two
    assert staging.exchange(new, old) == new
    assert os.listdir(new) == ["old"] and os.listdir(old) == ["new"]
    assert sorted(os.listdir(os.path.dirname(new))) == ["new", "old"]


def test_a_new_name_is_never_taken_from_another(two: tuple[str, str]) -> None:
    new, old = two
    with pytest.raises(FileExistsError):
        staging.name_new(new, old)
    os.unlink(os.path.join(old, "old"))
    with pytest.raises(FileExistsError):
        staging.name_new(new, old)  # an empty one, too
    staging.name_new(new, old + "er")
    assert os.listdir(old + "er") == ["new"]


def test_the_first_step_is_taken_back(two: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    new, old = two
    monkeypatch.setattr(staging, "_renameat2", lambda: None)
    rename = os.rename

    def refusing(source: str, target: str) -> None:
        if source == new:
            raise OSError(errno.EIO, "no")
        rename(source, target)

    monkeypatch.setattr(os, "rename", refusing)
    with pytest.raises(OSError, match="no"):
        staging.exchange(new, old)
    assert os.listdir(new) == ["new"] and os.listdir(old) == ["old"]
