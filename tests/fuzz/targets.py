"""What is fuzzed: each target takes bytes that a stranger may have made, and does what tilewise does.

A target raises BrokenPromise, or anything that is no TilewiseError, where something is wrong.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import malformed_headers  # it has the cases of malformed_files, and more
import numpy
import seeds
from malformed_files import WHOLE
from pages import check_page, check_terminal
from rich.console import Console, RenderableType
from tilewise import files
from tilewise.base import journal
from tilewise.base.errors import TilewiseError
from tilewise.base.owner import part_path
from tilewise.engine import journal as going_on
from tilewise.engine.journal import check_of
from tilewise.files import contents
from tilewise.files import folder as folders
from tilewise.files.decoded import unpack
from tilewise.files.target import find_target
from tilewise.lab.report import load_results as results
from tilewise.lab.report.explain import explain
from tilewise.lab.report.render import html
from tilewise.lab.study import points
from tilewise.lab.study.study import parse
from tilewise.launch import events
from tilewise.launch.connections import Connections
from tilewise.machine import profile
from tilewise.machine.allocation import read_hosts
from tilewise.operations.multiply.options import Multiply
from watch import SECONDS, BrokenPromise, ran_out_of_memory, watched

LARGEST = 1 << 20  # bytes of numbers that are decoded; more may be right, and take long


@dataclasses.dataclass(frozen=True)
class Target:
    """One way for strangers' bytes into tilewise; `run` gets them and an empty folder of its own."""

    run: Callable[[bytes, Path], object]
    seeds: Callable[[], Iterator[bytes]]
    structured: bool = False  # JSON: mutated as a tree too
    seconds: float = SECONDS  # of processor time; figures take a while to be drawn


def called(target: Target, data: bytes, folder: Path, watching: bool = True) -> None:
    """Gives `data` to `target` under watch; what it raises is a finding. `folder` is empty again after it."""
    try:
        with watched(str(folder), target.seconds) if watching else contextlib.nullcontext():
            target.run(data, folder)
    except TilewiseError as error:
        if ran_out_of_memory(error):
            raise BrokenPromise(f"more memory than there is: {error.message}") from error
        check_terminal(error.text())
        if len(error.text()) > 2000:
            raise BrokenPromise(f"a message of {len(error.text())} characters") from error
    for left in folder.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()


def _matrix(name: str, folder: Path) -> None:
    """What `info` and a job do with an input."""
    source = files.inspect(name)
    for text in (*source.notes, *source.warnings):
        check_terminal(text)
    if source.packed and source.bytes <= LARGEST:
        with open(folder / "decoded.raw", "w+b") as out:
            unpack(source, out)


def _file(name: str) -> Callable[[bytes, Path], object]:
    def run(data: bytes, folder: Path) -> None:
        base, colon, member = name.partition(":")
        (folder / base).write_bytes(data)
        _matrix(f"{folder / base}{colon}{member}", folder)

    return run


def _tiles(data: bytes, folder: Path) -> None:
    inside = folder / "x.tiles"
    inside.mkdir()
    numpy.save(inside / "a.npy", numpy.zeros((4, 3)))
    numpy.save(inside / "b.npy", numpy.zeros((4, 3)))
    (inside / "manifest.json").write_bytes(data)
    _matrix(str(inside), folder)


def _zarr(data: bytes, folder: Path) -> None:
    inside = folder / "x.zarr"
    inside.mkdir()
    (inside / "c.0.0").write_bytes(bytes(48))
    (inside / ("zarr.json" if b'"zarr_format":3' in data else ".zarray")).write_bytes(data)
    contents(str(inside))
    source = files.inspect(str(inside))
    for text in (*source.notes, *source.warnings):
        check_terminal(text)


def _svd(data: bytes, folder: Path) -> None:
    (folder / folders.MANIFEST).write_bytes(data)
    folders.read_listing(str(folder), "out")


def _study(data: bytes, folder: Path) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    study = parse(text, str(folder / "s.toml"), "s")
    points.expand(study, seeds.MACHINE, lambda command: seeds.FLAGS)


def _shown(content: RenderableType) -> None:
    """What a terminal gets to see, without the colours that are ours."""
    console = Console(file=io.StringIO(), force_terminal=False, width=200, highlight=False, emoji=False)
    console.print(content)
    check_terminal(console.file.getvalue())  # type: ignore[attr-defined]


def _result(data: bytes, folder: Path) -> None:
    """A record, a measurement or a timeline, as a page; a record also as a run ends."""
    path = folder / "result.json"
    path.write_bytes(data)
    there = results.find([str(path)])
    for _, record in there.records:
        _shown(explain(record))
    check_page(html(results.report_page(there)))


def _study_results(data: bytes, folder: Path) -> None:
    """Points of somebody's study, as a page."""
    (folder / "study.toml").write_text(seeds.RESULTS_STUDY)
    (folder / "points.jsonl").write_bytes(data)
    check_page(html(results.report_page(results.find([str(folder)]))))


def _profile(data: bytes, folder: Path) -> None:
    (folder / "tilewise").mkdir()
    (folder / "tilewise" / "profile.json").write_bytes(data)
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    try:
        profile.load()
    finally:
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before


def _events(data: bytes, folder: Path) -> None:
    for line in data.splitlines(keepends=True):
        events.split_line(line)


def _hosts(data: bytes, folder: Path) -> None:
    (folder / "hosts").write_bytes(data)
    for host in read_hosts(str(folder / "hosts")):
        if host.startswith("-") or not host.isprintable():
            raise BrokenPromise(f"a host called {host!r}")


def _journal(data: bytes, folder: Path) -> None:
    """What somebody left for us to go on with, with checksums that hold."""
    path = str(folder / "C.npy")
    part = part_path(path, seeds.IDENTITY)
    beside = Path(journal.folder_of(part))
    beside.mkdir()
    header, *lines = data.split(b"\n")
    (beside / journal.HEADER).write_bytes(header + b"\n" + check_of(header))
    log = b"".join(b"%s %016x\n" % (line, journal._check(line + b" ")) for line in lines)
    for name in ("0-0.log", "0-0.state.log"):
        (beside / name).write_bytes(log)
    Path(part).write_bytes(bytes(4096))
    journal.beside(path)
    going_on.facts_of(part)
    begun = going_on.find(
        find_target(path), Multiply(a="A.npy", b="B.npy", output=path), resume=True, force=False
    )
    if begun is not None:
        journal.saved(begun.folder), journal.pieces(begun.folder)
        begun.let_go()


class _Door:
    """Where one caller waits, who has said all that he will say."""

    def __init__(self, data: bytes) -> None:
        self.ours, theirs = socket.socketpair()
        self.theirs = theirs
        theirs.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            theirs.send(data)

    def _accept(self) -> tuple[int, object]:
        if self.ours.fileno() < 0:
            raise BlockingIOError
        return self.ours.detach(), None

    def fileno(self) -> int:
        return -1


def _greeting(data: bytes, folder: Path) -> None:
    """What anybody says at the door for ranks elsewhere, and what is heard of it."""
    heard: list[bytes] = []
    connections = Connections("fuzz", 4, False, heard.append)
    connections._token = seeds.TOKEN
    connections._capacity[True] = 1
    door = _Door(data)
    connections._accept_ranks(door, True)  # type: ignore[arg-type]
    for _ in range(200):
        for descriptor in list(connections._connections):
            connections.hear(descriptor)
    if (heard or connections.hosts()) and seeds.TOKEN.encode() not in data:
        raise BrokenPromise("a stranger is heard")
    if 0 in connections.local_pids():
        raise BrokenPromise("a stranger's end would be ours")
    for line in heard:
        events.split_line(line)
    door.theirs.close()
    connections.close()


def _whole(*kinds: str) -> Callable[[], Iterator[bytes]]:
    """Seeds of a format: what its own writer makes, and the headers that lie."""

    def made() -> Iterator[bytes]:
        names = set()
        for kind in kinds:
            name, make = WHOLE[kind]
            names.add(name.partition(":")[0])
            yield make()
        for name, make in malformed_headers.CASES.values():
            if name in names:
                data = make()
                if len(data) < 8192:
                    yield data

    return made


TARGETS: dict[str, Target] = {
    "npy": Target(_file("x.npy"), _whole("npy")),
    "npz": Target(_file("x.npz"), _whole("npz", "packed npz")),
    "bin": Target(_file("x.bin"), _whole("bin")),
    "raw": Target(_file("x.raw:24x18"), _whole("raw")),
    "txt": Target(_file("x.txt"), seeds.texts),
    "csv": Target(_file("x.csv"), seeds.texts),
    "tsv": Target(_file("x.tsv"), seeds.texts),
    "mtx": Target(_file("x.mtx"), seeds.mtx),
    "h5": Target(_file("x.h5"), _whole("h5", "chunked h5")),
    "nc": Target(_file("x.nc"), _whole("nc", "64-bit nc")),
    "safetensors": Target(_file("x.safetensors"), _whole("safetensors")),
    "tif": Target(_file("x.tif"), _whole("tiff", "packed tiff", "tiled tiff")),
    "pgm": Target(_file("x.pgm"), _whole("pgm", "plain pgm")),
    "ppm": Target(_file("x.ppm"), _whole("ppm")),
    "png": Target(_file("x.png"), _whole("png", "png of 16 bits")),
    "jpg": Target(_file("x.jpg"), _whole("jpeg")),
    "petsc": Target(_file("x.petsc"), _whole("petsc")),
    "mat": Target(_file("x.mat"), _whole("mat", "packed mat", "mat 7.3")),
    "tiles": Target(_tiles, seeds.manifests, structured=True),
    "zarr": Target(_zarr, seeds.arrays, structured=True),
    "svd": Target(_svd, seeds.listings, structured=True),
    "study": Target(_study, seeds.studies),
    "result": Target(_result, seeds.results, structured=True, seconds=5),
    "points": Target(_study_results, seeds.points, structured=True, seconds=5),
    "profile": Target(_profile, seeds.profiles, structured=True),
    "events": Target(_events, seeds.events),
    "hosts": Target(_hosts, seeds.hosts),
    "journal": Target(_journal, seeds.journals, structured=True),
    "greeting": Target(_greeting, seeds.greetings),
}
if "parquet" in WHOLE:
    TARGETS |= {
        "parquet": Target(_file("x.parquet"), _whole("parquet")),
        "feather": Target(_file("x.feather"), _whole("feather", "packed feather")),
        "arrow": Target(_file("x.arrow"), _whole("arrow stream")),
    }
