"""Files whose system breaks its word: closes that lose data, reads that bring nothing, interrupts."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from conftest import Tilewise, one_message
from faults import Call, Faults, built
from oracle import assert_product, matrix, save
from tilewise.planning.names import ONE_FILE

VIEWS = ("collective", "split_collective", "independent")
BUFFERED = tuple(f"--hint=romio_{way}=enable" for way in ("cb_read", "ds_read"))
LEFT, RIGHT = matrix((31, 17), seed=1), matrix((17, 23), seed=2)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes calls fail."""
    return built(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def faults(tilewise: Tilewise, library: Path) -> Faults:
    """A folder with A.npy (31×17) and B.npy (17×23), and the means to break calls there."""
    save(tilewise.folder, LEFT, RIGHT)
    return Faults(tilewise, library)


def strike(faults: Faults, words: tuple[object, ...], call: Call, effect: str) -> str:
    """Breaks one call; the job must fail, say so, and leave no output. What it said."""
    before = faults.run.files()
    ended = faults(*words, who=call.who, kind=call.kind, nth=call.nth, effect=effect)
    assert ended.returncode != 0, f"{call} {effect}: exit 0"
    assert faults.run.files() == before, f"{call} {effect}"
    return one_message(ended, ended.returncode)


def calls_of(faults: Faults, words: tuple[object, ...], kind: str = "") -> list[Call]:
    """The calls, or those of `kind`, of a run that nothing breaks; its outputs are removed."""
    before = faults.run.files()
    calls = faults.calls(*words)
    for made in faults.run.files() - before:
        remove(faults.run.folder / made)
    return [call for call in calls if kind in ("", call.kind)]


def some(calls: list[Call]) -> list[Call]:
    """One of each rank: the first, one in the middle, the last."""
    ranks = sorted({call.who for call in calls})
    own = [[call for call in calls if call.who == rank] for rank in ranks]
    return [of_rank[(len(of_rank) - 1) * place // 2] for place, of_rank in enumerate(own)]


# ---- writing -------------------------------------------------------------------------------------

PRODUCT = ("multiply", "A.npy", "B.npy", "-n", 2)
# Of tiles in a queue each rank takes what it comes to: then no call is the same in two runs.
STAGED = ("transpose", "A.npy", "-o", "C.npy", "-n", 2, "--algorithm", "staged", "--tiles", "fixed")
WRITERS: dict[str, tuple[object, ...]] = {
    **{f"multiply {way}": (*PRODUCT, "-o", "C.npy", "--io", way) for way in ONE_FILE if way != "mapped"},
    "sync": (*PRODUCT, "-o", "C.npy", "--sync"),
    "local": ("multiply", "A.npy", "B.npy", "-n", 1, "-o", "C.npy", "--io", "uncached"),
    "tiles": (*PRODUCT, "-o", "C.tiles"),
    "text": (*PRODUCT, "-o", "C.txt"),
    "gather": ("transpose", "A.npy", "-o", "C.npy", "-n", 2, "--algorithm", "gather", "--root-write", "rows"),
    "staged": (*STAGED, "--io", "positioned"),
    "staged mapped": (*STAGED, "--io", "mapped:positioned"),
    "svd": ("svd", "A.npy", "-o", "C", "-n", 2, "--no-verify"),
    "randomized": (
        *("svd", "A.npy", "-o", "C", "-n", 2, "--algorithm", "randomized", "--components", 3, "--no-verify"),
        *("--tolerance", 1e-3),
    ),
    "stencil": ("stencil", "A.npy", "-o", "C.npy", "--steps", 2, "-n", 2, "--no-verify"),
    "convert": ("convert", "A.npy", "-o", "C.csv", "-n", 2),
    "generate": ("generate", "-o", "C.npy", "--shape", "31x17", "-n", 2),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_close_that_loses_what_was_written(faults: Faults, name: str) -> None:
    """The first and the last close of a descriptor that something was written through."""
    words = WRITERS[name]
    closes = [call for call in calls_of(faults, words, "close") if call.bytes > 0]
    assert closes
    for call in closes[:1] + closes[1:][-1:]:
        said = strike(faults, words, call, "lost")
        assert "closing" in said or "close" in said or "does not hold" in said, said


def test_pages_that_are_not_written_back(faults: Faults) -> None:
    """A mapped file tells of that when its pages are flushed, or when it is closed after them."""
    words = (*PRODUCT, "-o", "C.npy", "--io", "mapped")
    calls = calls_of(faults, words)
    flushes = [call for call in calls if call.kind == "msync"]
    assert {call.who for call in flushes} == {"rank:0", "rank:1"}
    for flush in flushes:
        behind = calls[calls.index(flush) + 1 :]
        close = next(
            call for call in behind if (call.who, call.kind, call.path) == (flush.who, "close", flush.path)
        )
        for call in (flush, close):
            said = strike(faults, words, call, "EIO")
            assert "C.npy: closing it failed; written data may be lost" in said, said


def test_a_flush_to_disk_that_fails(faults: Faults) -> None:
    words = (*PRODUCT, "-o", "C.npy", "--sync")
    flushes = calls_of(faults, words, "fsync")
    assert flushes
    for call in flushes:
        assert "C.npy: flushing to disk failed" in strike(faults, words, call, "EIO")


def remove(path: Path) -> None:
    """A file, or a folder of files."""
    for inside in path.iterdir() if path.is_dir() else ():
        inside.unlink()
    path.rmdir() if path.is_dir() else path.unlink()


# ---- reading -------------------------------------------------------------------------------------

VIEWED = (*PRODUCT, "--grid", "1x2", "-o", "C.npy", "--io")
READERS: dict[str, tuple[object, ...]] = {
    **{f"multiply {way}": (*VIEWED, f"{way}:root") for way in VIEWS},
    **{f"multiply {way} buffered": (*VIEWED, f"{way}:root", *BUFFERED) for way in VIEWS},
    "staged": (*STAGED, "--io", "collective:positioned"),
    "svd": ("svd", "A.npy", "-o", "C", "-n", 2, "--io", "collective:root", "--no-verify"),
    "stencil": ("stencil", "A.npy", "-o", "C.npy", "--steps", 2, "-n", 2, "--io", "independent:root"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_read_that_brings_nothing(faults: Faults, name: str) -> None:
    faults.pattern = "A.npy"
    words = READERS[name]
    reads = calls_of(faults, words, "pread")
    for call in {call.nth: call for call in (*some(reads), reads[-1])}.values():
        assert "A.npy" in strike(faults, words, call, "zero")


@pytest.mark.parametrize("way", VIEWS)
def test_an_input_that_is_rewritten_in_place(tilewise: Tilewise, way: str) -> None:
    """With the same bytes: for a moment the file is shorter, and then nothing shows it any more."""
    left, right = matrix((700, 300), seed=3), matrix((300, 200), seed=4)
    save(tilewise.folder, left, right)
    stop = threading.Event()
    whole = (tilewise.folder / "A.npy").read_bytes()

    def rewrite() -> None:
        while not stop.is_set():
            (tilewise.folder / "A.npy").write_bytes(whole)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for _ in range(5):
            ended = tilewise(
                *("multiply", "A.npy", "B.npy", "-o", "C.npy", "--force", "-n", 2, "--grid", "1x2"),
                *("--io", f"{way}:positioned", "--no-verify"),
            )
            if ended.returncode == 0:
                assert_product(tilewise.folder / "C.npy", left, right)
            else:
                assert "A.npy" in ended.stderr
    finally:
        stop.set()
        writer.join()


# ---- interrupts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [*VIEWS, "positioned", "mapped", "root"])
def test_what_a_signal_interrupts_is_done_again(faults: Faults, way: str) -> None:
    words = (*PRODUCT, "-o", "C.npy", "--force", "--io", way)
    calls = faults.calls(*words)
    kinds = ("open", "pread", "pwrite", "fallocate", "ftruncate", "close")
    for kind in kinds:
        for call in some([call for call in calls if call.kind == kind])[-1:]:
            ended = faults(*words, who=call.who, kind=kind, nth=call.nth, effect="EINTR")
            assert ended.returncode == 0, f"{call}: {ended.stderr}"
            assert_product(faults.run.folder / "C.npy", LEFT, RIGHT)
