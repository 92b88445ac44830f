"""A release is refused where versions or files differ, and every Python that works is found."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import release  # noqa: E402


def python(folder: Path, name: str, answer: str, mode: int = 0o755) -> Path:
    """A program that says its version as a Python would."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{answer}\n")
    path.chmod(mode)
    return path


def test_each_version_is_tried_once_and_in_order(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    python(one, "python3", "echo 3.9.18")
    python(one, "python3.10", "echo 3.10.13")
    python(one, "python3.12", "exit 127")  # as a shim of a version that is not chosen
    python(one, "python3.13", "echo 3.13.0", mode=0o644)
    python(one, "python3.11-config", "echo 3.11.5")
    last = python(one, "python3.14", "echo 3.14.10")
    first = python(other, "python3", "echo 3.11.2")
    python(other, "python3.11", "echo 3.11.2")
    python(other, "python3.14", "echo 3.14.10")
    before = python(other, "python3.14t", "echo 3.14.9").rename(other / "python3.15")

    found = release.interpreters([one, tmp_path / "missing", other], ">=3.11")

    assert list(found.items()) == [("3.11.2", first), ("3.14.9", before), ("3.14.10", last)]


def test_this_python_is_found() -> None:
    version = ".".join(map(str, sys.version_info[:3]))

    assert version in release.interpreters([Path(sys.executable).parent], release.OLDEST)


def wheel(folder: Path, metadata: str, package: str, worker: str) -> Path:
    """A wheel with nothing but its versions."""
    path = folder / "tilewise.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tilewise-1.dist-info/METADATA", f"Metadata-Version: 2.4\nVersion: {metadata}\n")
        archive.writestr("tilewise/__init__.py", f'"""Text."""\n__version__ = "{package}"\n')
        archive.writestr("tilewise/bin/build.json", f'{{"version": "{worker}"}}')
    return path


@pytest.mark.parametrize("wrong", ["metadata", "package", "worker"])
def test_a_wheel_of_another_version_is_refused(tmp_path: Path, wrong: str) -> None:
    told = dict.fromkeys(("metadata", "package", "worker"), release.VERSION)
    release.agree(release.versions_in(wheel(tmp_path, **told)))

    with pytest.raises(release.ReleaseError, match=rf"but tilewise\.whl's {wrong} has 9\.9\.9$"):
        release.agree(release.versions_in(wheel(tmp_path, **{**told, wrong: "9.9.9"})))


def test_a_wheel_is_refused_where_it_cannot_run() -> None:
    name = "tilewise-0.1.0-py3-none-manylinux_2_27_x86_64.whl"
    fine = {"sym_tag": "manylinux_2_27_x86_64", "external_libs": {release.MPI: None}}
    assert release.objections(fine, name) == []

    newer = {"sym_tag": "manylinux_2_34_x86_64", "external_libs": {release.MPI: None, "libgomp.so.1": None}}
    assert release.objections(newer, name) == [
        "runs on manylinux_2_34_x86_64 only",
        "needs libgomp.so.1, which it does not bring",
    ]


def test_a_file_without_a_version_is_refused() -> None:
    with pytest.raises(release.ReleaseError, match="but CITATION.cff has none"):
        release.agree({"CITATION.cff": None, "CHANGELOG.md": release.VERSION})


def test_the_source_archive_has_what_git_has() -> None:
    kept = ["README.md", "bench/run.py", "bench/results/io.json", "build"]

    def differing(*archived: str) -> list[str]:
        return release.differing_files(archived, kept, ["build", "bench/results"])

    assert differing("PKG-INFO", "README.md", "bench/run.py") == []
    assert differing("PKG-INFO", "README.md", "notes.txt") == ["-bench/run.py", "+notes.txt"]


def test_a_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    release.table(("Python", "install"), ("3.11.10", "9.1 s"))

    assert capsys.readouterr().out == "Python   install\n3.11.10  9.1 s\n"


def test_the_workflow_calls_commands_that_there_are_and_actions_that_are_pinned() -> None:
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"- run: make (.+)$", workflow, re.MULTILINE)
    actions = re.findall(r"uses: \S+?@(.+)$", workflow, re.MULTILINE)

    assert commands == ["demo", "lint", "docs", "test", "release"]
    assert [name for name in commands if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []
    assert actions and all(re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", each) for each in actions)
