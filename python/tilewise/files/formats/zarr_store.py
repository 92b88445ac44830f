"""Finds arrays in a Zarr store by name: a folder that is an array, or a group with arrays in its folders."""

from __future__ import annotations

import os
import stat

from tilewise.base.errors import UsageError
from tilewise.files.checks import missing, pick, printable
from tilewise.files.formats.zarr_metadata import FILE, Node, Stored, read_node, stored
from tilewise.files.regular import cannot_read

_LISTED = 10_000  # folders that are looked at to find the arrays


def root(path: str, name: str) -> Node:
    """The array or group at `path`; UsageError where there is none."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise cannot_read(error, path, name) from None
    if not stat.S_ISDIR(mode):
        advice = ""
        if stat.S_ISREG(mode):
            with open(path, "rb") as file:
                advice = f"unzip {name} -d FOLDER.zarr" if file.read(4) == b"PK\3\4" else ""
        raise UsageError(f"{name} is a file, but a Zarr store is a folder", advice)
    node = read_node(path, name)
    if node is None:
        raise UsageError(f"{name} is a folder without {FILE}, .zarray or .zgroup, so it is no Zarr store")
    return node


def choose(path: str, name: str, member: str) -> tuple[str, Stored]:
    """The array called `member`, or the only matrix; its name is empty where it is the store itself."""
    node = root(path, name)
    parts = steps(member, name)
    if not parts and node.array:
        return "", stored(node, name)
    if not parts:
        inside = arrays(path, name)
        matrices = [each for each, array in inside if array.dtype and len(array.shape) == 2]
        only = matrices if matrices or len(inside) != 1 else [inside[0][0]]
        parts = steps(pick(name, path, "array", only), name)
    found = read_node(os.path.join(path, *parts), name)
    if found is None or not found.array:
        raise missing(name, "array", member, [each for each, _ in arrays(path, name)])
    return "/" + "/".join(parts), stored(found, name)


def folder_of(path: str, member: str) -> str:
    """The folder of the array that `choose` found."""
    return os.path.join(path, member.lstrip("/"))


def steps(member: str, name: str) -> list[str]:
    """The folders that lead to `member`; UsageError for what would lead out of the store."""
    parts = [part for part in member.split("/") if part]
    if any(part in (".", "..") or "\0" in part for part in parts):
        raise UsageError(f"{name} names {printable(member)}, which leads out of its store")
    return parts


def arrays(path: str, name: str) -> list[tuple[str, Stored]]:
    """All arrays below the group at `path`, sorted by name; links to folders are not followed."""
    found, waiting, seen = [], [""], 0
    while waiting and seen < _LISTED:
        here = waiting.pop()
        seen += 1
        folder = path + here
        node = read_node(folder, name + here)
        if node is not None and node.array:
            found.append((here or "/", stored(node, name + here)))
        elif node is not None:
            with os.scandir(folder) as entries:
                waiting += [
                    f"{here}/{entry.name}"
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
                ]
    return sorted(found, key=lambda each: each[0])
