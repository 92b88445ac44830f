"""Jobs larger than memory that die, and go on from what they have written."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import Tilewise, one_message, wait_for
from numpy.testing import assert_allclose, assert_array_equal
from oracle import matrix, processes_in
from tilewise.base import journal

WITHOUT_CHILD = True
M, K, N = 2100, 1900, 2300
PRODUCT = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "-t", 1)
TURNED = ("transpose", "T.npy", "-o", "C.npy", "-t", 1)
MEMORY = {1: "45MiB", 2: "78MiB", 3: "113MiB"}


@pytest.fixture
def product(tilewise: Tilewise) -> Any:
    """A.npy and B.npy, and what their product is."""
    a, b = matrix((M, K), "float64", 1), matrix((K, N), "float64", 2)
    numpy.save(tilewise.folder / "A.npy", a)
    numpy.save(tilewise.folder / "B.npy", b)
    return a @ b


@pytest.fixture
def turned(tilewise: Tilewise) -> Any:
    """T.npy, and its transpose."""
    t = matrix((3001, 5777), "int32", 3)
    numpy.save(tilewise.folder / "T.npy", t)
    return t.T


def killed(run: Tilewise, *words: object, fault: str) -> str:
    """Runs a job that dies in its midst; what it says."""
    run.environment["TILEWISE_FAULT"] = fault
    try:
        return one_message(run(*words), 1)
    finally:
        del run.environment["TILEWISE_FAULT"]


def left(run: Tilewise) -> tuple[Path, Path]:
    """The one part file that there is, and its journal."""
    (part,), (folder,) = run.folder.glob(".C*.part"), run.folder.glob(".C*.journal")
    return part, folder


def record_of(run: Tilewise, *words: object) -> dict[str, Any]:
    done = run(*words, "--json", "-")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize(("ranks", "later"), [(1, 1), (2, 2), (2, 3), (3, 1)])
def test_a_product_goes_on(tilewise: Tilewise, product: Any, ranks: int, later: int) -> None:
    words = (*PRODUCT, "-n", ranks, "--memory", MEMORY[ranks])
    said = killed(tilewise, *words, fault=f"kill:{ranks - 1}:output*6")
    assert "of C.npy is kept" in said and f"-n {ranks} --memory {MEMORY[ranks]} --resume" in said
    assert not (tilewise.folder / "C.npy").exists()
    _, folder = left(tilewise)
    before = len(journal.pieces(str(folder)))
    assert before > 0
    record = record_of(tilewise, *PRODUCT, "-n", later, "--memory", "180MiB", "--resume")
    assert record["result"]["resumed"] == {"starts": 2, "kept_pieces": before, "spoilt_pieces": 0}
    assert record["verification"]["passed"] and record["verification"]["share"] == 1
    result = numpy.load(tilewise.folder / "C.npy")
    assert_allclose(result, product, rtol=0, atol=1e-10 * K)
    assert not [name for name in tilewise.files() if name.startswith(".")]
    if ranks == later:
        assert tilewise(*words, "--force", "-q").returncode == 0
        assert_array_equal(numpy.load(tilewise.folder / "C.npy"), result)


def test_what_stands_is_not_computed_again(tilewise: Tilewise, product: Any) -> None:
    words = (*PRODUCT, "-n", 1, "--memory", MEMORY[1], "--verify", "off")
    killed(tilewise, *words, fault="kill:0:output*9")
    _, folder = left(tilewise)
    kept = sum(piece.numbers for piece in journal.pieces(str(folder)))
    record = record_of(tilewise, *words, "--resume")
    assert record["bytes"]["written"] == 8 * (M * N - kept)
    assert_allclose(numpy.load(tilewise.folder / "C.npy"), product, rtol=0, atol=1e-10 * K)


@pytest.mark.parametrize("io", ["uncached", "uncached:positioned", "collective", "root"])
def test_strategies(tilewise: Tilewise, product: Any, io: str) -> None:
    staged = io != "uncached:positioned"
    words = (*PRODUCT, "-n", 2, "--memory", "142MiB" if staged else MEMORY[2], "--io", io)
    killed(tilewise, *words, fault="kill:1:output*6")
    record = record_of(tilewise, *words, "--resume")
    assert record["result"]["resumed"]["kept_pieces"] > 0 and record["verification"]["passed"]
    assert_allclose(numpy.load(tilewise.folder / "C.npy"), product, rtol=0, atol=1e-10 * K)


@pytest.mark.parametrize("io", ["positioned", "uncached"])
@pytest.mark.parametrize(("ranks", "later"), [(1, 2), (2, 1), (2, 3)])
def test_a_transposition_goes_on(tilewise: Tilewise, turned: Any, ranks: int, later: int, io: str) -> None:
    memory = 62 * ranks if io == "positioned" else 72 * ranks
    words = (*TURNED, "-n", ranks, "--memory", f"{memory}MiB", "--io", io)
    killed(tilewise, *words, fault=f"kill:{ranks - 1}:output*6")
    more = ("-n", later, "--memory", "400MiB", "--io", io, "--resume", "--verify", "fast")
    record = record_of(tilewise, *TURNED, *more)
    assert record["result"]["resumed"]["kept_pieces"] > 0 and record["verification"]["passed"]
    assert_array_equal(numpy.load(tilewise.folder / "C.npy"), turned)
    assert not [name for name in tilewise.files() if name.startswith(".")]


def test_nothing_that_was_spoilt_is_believed(tilewise: Tilewise, turned: Any) -> None:
    words = (*TURNED, "-n", 1, "--memory", "62MiB", "--io", "positioned")
    killed(tilewise, *words, fault="kill:0:output*8")
    part, folder = left(tilewise)
    with part.open("r+b") as file:  # the header, and a number that a rank wrote
        file.write(b"spoilt")
        top, _, column, _ = journal.pieces(str(folder))[0].block
        file.seek(part.stat().st_size - 4 * 3001 * 5777 + 4 * (top * 3001 + column))
        (number,) = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([number ^ 4]))
    (log,) = folder.glob("*.log")
    with log.open("ab") as file:
        file.write(b"0 3001 0 5777 00000000000000")  # torn
    done = tilewise(*words, "--resume", "--json", "r.json")
    assert done.returncode == 0 and "1 piece of the result did not hold what the journal says" in done.stderr
    record = json.loads((tilewise.folder / "r.json").read_text())
    assert record["result"]["resumed"]["spoilt_pieces"] == 1
    assert_array_equal(numpy.load(tilewise.folder / "C.npy"), turned)


def test_an_interrupt_says_that_a_part_is_kept(tilewise: Tilewise, turned: Any) -> None:
    tilewise.environment["TILEWISE_FAULT"] = "hang:1:output*6"
    front = tilewise.start(*TURNED, "-n", 2, "--memory", "124MiB", "--io", "positioned")
    wait_for(lambda: any(log.stat().st_size for log in tilewise.folder.glob(".C*.journal/*.log")))
    front.send_signal(signal.SIGINT)
    _, said = front.communicate(timeout=60)
    assert front.returncode == 130 and "--resume" in said
    assert "all ranks were ended; C.npy was not written; " in said and "of C.npy is kept" in said
    assert "nothing was written" not in said
    left(tilewise)


def test_the_front_dies(tilewise: Tilewise, turned: Any) -> None:
    words = (*TURNED, "-n", 2, "--memory", "124MiB", "--io", "positioned")
    front = tilewise.start(*words)
    wait_for(lambda: any(log.stat().st_size for log in tilewise.folder.glob(".C*.journal/*.log")))
    front.send_signal(signal.SIGKILL)
    _, said = front.communicate(timeout=60)
    assert "C.npy was not written; what was done is kept" in said and "--resume" in said
    wait_for(lambda: not processes_in(tilewise.folder))
    left(tilewise)
    assert tilewise(*words, "--resume", "-q").returncode == 0
    assert_array_equal(numpy.load(tilewise.folder / "C.npy"), turned)


def test_it_goes_on_by_itself(tilewise: Tilewise, turned: Any) -> None:
    words = (*TURNED, "-n", 2, "--memory", "124MiB", "--io", "positioned", "--retries", 2)
    front = tilewise.start(*words)
    wait_for(lambda: any(log.stat().st_size for log in tilewise.folder.glob(".C*.journal/0-*.log")))
    ranks = [
        pid for pid in processes_in(tilewise.folder) if "worker" in Path(f"/proc/{pid}/comm").read_text()
    ]
    os.kill(ranks[-1], signal.SIGKILL)
    _, said = front.communicate(timeout=60)
    assert front.returncode == 0, said
    assert "retrying; 1 attempt left" in said
    assert_array_equal(numpy.load(tilewise.folder / "C.npy"), turned)


@pytest.mark.parametrize(
    ("first", "second", "rows"),
    [("A.npy[:2000]", "A.npy[100:]", slice(2000)), ("G.npy[:,0]", "G.npy[:,1]", slice(None))],
)
def test_another_part_is_another_job(
    tilewise: Tilewise, product: Any, first: str, second: str, rows: slice
) -> None:
    """Also where the parts are copied before they are read."""
    a = numpy.load(tilewise.folder / "A.npy")
    numpy.save(tilewise.folder / "G.npy", numpy.stack([a, -a], 1))
    words = ("B.npy", "-o", "C.npy", "-t", 1, "-n", 1, "--memory", MEMORY[1])
    killed(tilewise, "multiply", first, *words, fault="kill:0:output*6")
    other = one_message(tilewise("multiply", second, *words, "--resume"), 2)
    assert "is of another job: the inputs were others" in other
    assert tilewise("multiply", first, *words, "--resume", "-q").returncode == 0
    assert_allclose(numpy.load(tilewise.folder / "C.npy"), product[rows], atol=1e-9)


def test_what_lies_there_is_refused_without_a_word(tilewise: Tilewise, product: Any) -> None:
    words = (*PRODUCT, "-n", 1, "--memory", MEMORY[1])
    killed(tilewise, *words, fault="kill:0:output*6")
    part, folder = left(tilewise)
    said = one_message(tilewise(*words), 2)
    assert str(part) in said and "--resume to resume it, or --force to start over" in said
    assert "another run has resumed it" in _held(tilewise, folder, *words, "--resume")
    numpy.save(tilewise.folder / "D.npy", product[:K])
    other = ("multiply", "A.npy", "D.npy", "-o", "C.npy", "-t", 1, "-n", 1, "--memory", MEMORY[1], "--resume")
    assert "is of another job: the inputs were others" in one_message(tilewise(*other), 2)
    a = numpy.load(tilewise.folder / "A.npy")
    a[0, 0] += 1
    numpy.save(tilewise.folder / "A.npy", a)
    assert "A.npy has changed since" in one_message(tilewise(*words, "--resume"), 2)
    left(tilewise)
    assert tilewise(*words, "--force", "-q").returncode == 0
    b = numpy.load(tilewise.folder / "B.npy")
    assert_allclose(numpy.load(tilewise.folder / "C.npy"), a @ b, rtol=0, atol=1e-10 * K)
    assert not [name for name in tilewise.files() if name.startswith(".")]


def test_it_is_of_one_output(tilewise: Tilewise, product: Any) -> None:
    """Not of one with a name that begins alike; and of one command and format, with tiles of one size."""
    words = ("multiply", "A.npy", "B.npy", "-t", 1, "-n", 1, "--memory", MEMORY[1], "--verify", "off")
    killed(tilewise, *words, "-o", "C.raw", fault="kill:0:output*6")
    assert tilewise(*words, "-o", "C.raw.npy", "--resume", "-q").returncode == 0
    whole = numpy.load(tilewise.folder / "C.raw.npy")
    assert_allclose(whole, product, rtol=0, atol=1e-10 * K)
    left(tilewise)
    said = one_message(tilewise("transpose", "A.npy", "-o", "C.raw", "--resume"), 2)
    assert "is of another job: the command was multiply" in said
    said = one_message(tilewise(*words[:7], "-o", "C.raw", "--memory", "40MiB", "--resume"), 2)
    assert "resumes with the tiles that it began with" in said
    assert "MiB to resume, or --force to start over with other tiles" in said
    said = one_message(tilewise(*words, "-o", "C.raw", "--repeat", 2, "--resume"), 2)
    assert "is of another job: --repeat was another" in said
    (tilewise.folder / "C.npy").symlink_to("C.raw")
    said = one_message(tilewise(*words, "-o", "C.npy", "--resume"), 2)
    assert "the result had another format" in said
    assert tilewise(*words, "-o", "C.raw", "--resume", "-q").returncode == 0
    assert (tilewise.folder / "C.raw").read_bytes() == whole.tobytes()


def test_a_copy_goes_on_with_its_own_files(tilewise: Tilewise, turned: Any) -> None:
    """Of a folder with a journal, which names the part file of the original."""
    (tilewise.folder / "a").mkdir()
    words = ("transpose", "T.npy", "-t", 1, "-n", 1, "--memory", "62MiB", "--io", "positioned", "-o")
    killed(tilewise, *words, "a/C.npy", fault="kill:0:output*8")
    shutil.copytree(tilewise.folder / "a", tilewise.folder / "b")
    (part,) = (tilewise.folder / "a").glob(".*.part")
    before = part.read_bytes()
    assert tilewise(*words, "b/C.npy", "--resume", "-q").returncode == 0
    assert_array_equal(numpy.load(tilewise.folder / "b/C.npy"), turned)
    assert part.read_bytes() == before


def test_a_header_that_is_damaged_is_refused(tilewise: Tilewise, turned: Any) -> None:
    words = (*TURNED, "-n", 1, "--memory", "62MiB", "--io", "positioned")
    killed(tilewise, *words, fault="kill:0:output*8")
    header = left(tilewise)[1] / journal.HEADER
    text = header.read_bytes()
    middle = text.index(b'"head":"') + len('"head":"')
    flipped = text[:middle] + bytes([text[middle] ^ 1]) + text[middle + 1 :]
    for damaged, more in ((flipped, ()), (flipped, ("--resume",)), (b"", ("--resume",))):
        header.write_bytes(damaged)
        said = one_message(tilewise(*words, *more), 2)
        assert f"{header} is damaged" in said and "--force to start over" in said
    assert tilewise(*words, "--force", "-q").returncode == 0
    assert_array_equal(numpy.load(tilewise.folder / "C.npy"), turned)
    assert not [name for name in tilewise.files() if name.startswith(".")]


def test_an_input_whose_time_was_put_back_is_refused(tilewise: Tilewise, turned: Any) -> None:
    words = (*TURNED, "-n", 1, "--memory", "62MiB", "--io", "positioned")
    killed(tilewise, *words, fault="kill:0:output*8")
    path = tilewise.folder / "T.npy"
    found = path.stat()
    with path.open("r+b") as file:
        file.seek(100_000)  # between two of the pages that are looked at
        file.write(b"new!")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    said = one_message(tilewise(*words, "--resume"), 2)
    assert f"{path} was touched since, and may have changed" in said and "--force" in said


def _held(run: Tilewise, folder: Path, *words: object) -> str:
    """What is said while another run goes on with it."""
    descriptor = journal.hold(str(folder))
    assert descriptor is not None
    try:
        return one_message(run(*words), 2)
    finally:
        os.close(descriptor)


def test_info_says_how_far_it_got(tilewise: Tilewise, product: Any) -> None:
    words = (*PRODUCT, "-n", 1, "--memory", MEMORY[1])
    killed(tilewise, *words, fault="kill:0:output*6")
    for path in left(tilewise):
        facts = json.loads(tilewise("info", path.name, "--json", "-").stdout)
        assert facts["of"] == "C.npy" and facts["shape"] == [M, N] and not facts["running"]
        assert 0 < facts["done"] < 1 and facts["starts"] == 1 and facts["goes_on"].endswith("--resume")
    shown = tilewise("info", left(tilewise)[0].name).stdout
    assert "a part of C.npy, by multiply of A.npy and B.npy" in shown


def test_it_ends_when_it_is_asked_to(tilewise: Tilewise, product: Any) -> None:
    words = (*PRODUCT, "-n", 1, "--memory", MEMORY[1])
    front = tilewise.start(*words, "--kernel", "plain", "--time-limit", "1h")
    wait_for(lambda: any(log.stat().st_size for log in tilewise.folder.glob(".C*.journal/*.log")))
    journal.ask_to_stop(str(left(tilewise)[1]))  # as the front does shortly before the limit
    _, said = front.communicate(timeout=60)
    assert front.returncode == 4, said
    assert "the job has ended in time" in said and "of C.npy is kept" in said and "--resume" in said
    assert tilewise(*words, "--resume", "-q").returncode == 0
    assert_allclose(numpy.load(tilewise.folder / "C.npy"), product, rtol=0, atol=1e-10 * K)


def test_a_limit_that_passes(tilewise: Tilewise) -> None:
    many = ("random:4000x4000", "random:4000x4000", "-o", "C.npy", "--memory", MEMORY[1], "-n", 1, "-t", 1)
    done = tilewise("multiply", *many, "--kernel", "plain", "--time-limit", "3s")
    said = one_message(done, done.returncode)
    assert ("nothing is kept" in said, "--resume" in said) == (done.returncode == 1, done.returncode == 4)


def test_a_wrong_result_is_not_kept(tilewise: Tilewise, product: Any) -> None:
    tilewise.environment["TILEWISE_FAULT"] = "element"
    done = tilewise(*PRODUCT, "-n", 1, "--memory", MEMORY[1], "-q")
    assert done.returncode == 3 and "is kept" not in done.stderr
    assert not [name for name in tilewise.files() if name.startswith(".")]


def test_without_anything_to_go_on_with_it_begins(tilewise: Tilewise, product: Any) -> None:
    record = record_of(tilewise, *PRODUCT, "-n", 1, "--memory", MEMORY[1], "--resume")
    assert any("no earlier run left anything" in reason for reason in record["reasons"])


def test_what_keeps_nothing_has_no_limit(tilewise: Tilewise, product: Any) -> None:
    said = one_message(tilewise(*PRODUCT, "--time-limit", "1h"), 2)
    assert "--time-limit makes no sense here" in said
