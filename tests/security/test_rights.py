"""What replaces an old file has its owner, rights, access list and attributes, whoever runs the job."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import InProcess
from tilewise.base import rights

USER, GROUP = 4321, 4322
LIST, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
ANY = 0xFFFFFFFF
WAYS = {
    "C.npy": ("multiply", "A.npy", "B.npy", "-o", "C.npy"),
    "C.npz": ("multiply", "A.npy", "B.npy", "-o", "C.npz"),
    "C.h5": ("multiply", "A.npy", "B.npy", "-o", "C.h5:/x"),
    "C.tiles": ("multiply", "A.npy", "B.npy", "-o", "C.tiles"),
    "C.zarr": ("multiply", "A.npy", "B.npy", "-o", "C.zarr"),
    "factors": ("svd", "A.npy", "-o", "factors"),
    "R.json": ("norm", "A.npy", "--json", "R.json"),
    "T.json.gz": ("norm", "A.npy", "--trace", "T.json.gz"),
}


def access(*entries: tuple[int, int, int]) -> bytes:
    """An access list as the kernel has it: tag, rights and id of each entry."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *each) for each in entries)


WITH_USER = access((1, 6, ANY), (2, 4, USER), (4, 0, ANY), (0x10, 4, ANY), (0x20, 0, ANY))


def set_owner(path: Path) -> object:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(path, USER, GROUP)
    return owner(path)


def owner(path: Path) -> object:
    return path.stat().st_uid, path.stat().st_gid


def set_mode(path: Path) -> object:
    path.chmod(0o710 if path.is_dir() else 0o604)
    return mode(path)


def mode(path: Path) -> object:
    return path.stat().st_mode


def set_attributes(path: Path) -> object:
    attribute(path, "user.note", b"kept")
    return attributes(path)


def set_list(path: Path) -> object:
    attribute(path, LIST, WITH_USER)
    return path.stat().st_mode, attributes(path)


def listed(path: Path) -> object:
    return path.stat().st_mode, attributes(path)


def attribute(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"this file system takes no {name}: {error.strerror}")


def attributes(path: Path) -> dict[str, bytes]:
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


def all_of(path: Path) -> list[Path]:
    return [path, *(sorted(path.iterdir()) if path.is_dir() else [])]


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(
    ("put", "look"),
    [(set_owner, owner), (set_mode, mode), (set_attributes, attributes), (set_list, listed)],
    ids=["owner", "mode", "attributes", "access list"],
)
def test_what_replaces_a_file_has_what_it_had(
    here: InProcess, name: str, put: Callable[[Path], object], look: Callable[[Path], object]
) -> None:
    for path in map(Path, ("A.npy", "B.npy")):
        path.chmod(0o644)
    assert here(*WAYS[name], "-n", 1, "-q").returncode == 0
    old = all_of(Path(name))
    inodes = {path.stat().st_ino for path in old}
    wanted = {path.is_dir(): put(path) for path in old}
    done = here(*WAYS[name], "-n", 1, "-q", "--force")
    assert done.returncode == 0, done.stderr
    new = all_of(Path(name))
    assert len(new) == len(old) and not inodes & {path.stat().st_ino for path in new if path.is_file()}
    assert [look(path) for path in new] == [wanted[path.is_dir()] for path in new]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    new.touch(0o600)
    return old, new


def test_no_program_is_made_of_a_result(pair: tuple[Path, Path]) -> None:
    old, new = pair
    old.chmod(0o6755)
    rights.hand_on(str(old), str(new))
    assert new.stat().st_mode & 0o7777 == 0o755


def test_a_list_that_the_folder_hands_down_is_not_added(pair: tuple[Path, Path]) -> None:
    old, new = pair
    old.chmod(0o640)
    attribute(new, LIST, WITH_USER)
    rights.hand_on(str(old), str(new))
    assert not attributes(new) and new.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("lost", ["group", "access list"])
def test_rights_of_a_group_are_not_given_to_another(
    pair: tuple[Path, Path], lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*words: object) -> None:
        raise PermissionError

    old, new = pair
    if lost == "group":
        set_owner(old)
        monkeypatch.setattr(os, "chown", fails)
    else:
        attribute(old, LIST, WITH_USER)
        monkeypatch.setattr(os, "setxattr", fails)
    old.chmod(0o664)
    rights.hand_on(str(old), str(new))
    assert new.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("how", ["link", "second name", "another"])
def test_nothing_is_given_away_that_was_put_in_the_place_of_a_part(pair: tuple[Path, Path], how: str) -> None:
    old, new = pair
    set_owner(old)
    secret = new.with_name("secret")
    secret.touch(0o600)
    inode = new.stat().st_ino
    new.unlink()
    if how == "link":
        new.symlink_to(secret)
    elif how == "second name":
        new.hardlink_to(secret)
    else:
        secret.rename(new)
        secret = new
    rights.hand_on(str(old), str(new), inode)
    assert secret.stat().st_uid == os.geteuid()
