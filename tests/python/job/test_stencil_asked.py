"""What `tilewise stencil` refuses, and what it plans: weights, cuts, depths, exchanges, snapshots, memory."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import InProcess, Tilewise, one_message
from tilewise.base.errors import UsageError
from tilewise.files.target import snapshot_name
from tilewise.operations.stencil import cut
from tilewise.operations.stencil.cut import Cut
from tilewise.operations.stencil.options import HALOS
from tilewise.operations.stencil.weights import parse_weights


def square(weights: Any, side: int) -> Any:
    return numpy.array(weights).reshape(side, side)


def test_weights_by_name() -> None:
    star5 = parse_weights("star5")
    assert star5.radius == 1 and star5.taps == 5
    assert numpy.array_equal(square(star5.values, 3), [[0, 0.1, 0], [0.1, 0.6, 0.1], [0, 0.1, 0]])
    assert numpy.array_equal(square(parse_weights("star5:0.2,0.3").values, 3)[1], [0.3, 0.2, 0.3])
    star9 = square(parse_weights("star9").values, 5)
    assert star9.sum() == pytest.approx(1) and numpy.array_equal(star9, star9.T)
    assert numpy.count_nonzero(star9) == 9 and star9[2, 0] == -1 / 120
    assert numpy.array_equal(square(parse_weights("star9:1,2,3").values, 5)[:, 2], [3, 2, 1, 2, 3])
    assert parse_weights("box3").values == (1 / 9,) * 9


def test_weights_out_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = numpy.arange(9.0).reshape(3, 3) - 3
    numpy.save("w.npy", wanted.astype("float32"))
    numpy.save("f.npy", numpy.asfortranarray(wanted))
    numpy.savetxt("w.csv", wanted, delimiter=",")
    numpy.save("one.npy", numpy.array([[2]]))
    for name in ("w.npy", "f.npy", "w.csv"):
        found = parse_weights(name)
        assert found.radius == 1 and numpy.array_equal(square(found.values, 3), wanted)
    assert parse_weights("one.npy").values == (0, 0, 0, 0, 2, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("star7", "expected one of star5, star5:CENTRE,NEIGHBOUR, star9"),
        ("", "expected one of star5"),
        ("star5:1", "needs 2 finite numbers"),
        ("star5:1,x", "needs 2 finite numbers"),
        ("star5:1,nan", "needs 2 finite numbers"),
        ("star9:1,2", "needs 3 finite numbers"),
        ("box3:1", "box3 takes none"),
        ("missing.npy", "does not exist"),
        ("wide.npy", "is 3×5, but weights have a square"),
        ("even.npy", "is 4×4, but weights have an odd number of rows"),
        ("big.npy", "the largest radius is 4, 9×9"),
        ("nan.npy", "has nan in row 1, column 2"),
        ("complex.npy", "weights must be real"),
        ("random:3x3:float64", "is unknown"),
    ],
)
def test_weights_that_are_refused(here: InProcess, fake: Tilewise, weights: str, said: str) -> None:
    bad = numpy.ones((3, 3))
    bad[1, 2] = numpy.nan
    for name, values in {
        "wide": numpy.ones((3, 5)),
        "even": numpy.ones((4, 4)),
        "big": numpy.ones((11, 11)),
        "nan": bad,
        "complex": numpy.ones((3, 3), complex),
    }.items():
        numpy.save(fake.folder / f"{name}.npy", values)
    assert said in one_message(here("stencil", "A.npy", "-o", "C.npy", "--steps", 1, "--weights", weights), 2)
    assert "C.npy" not in fake.files()


@pytest.mark.parametrize(
    ("words", "said", "advice"),
    [
        (
            ("--boundary", "mirrored"),
            "expected one of zero, fixed, periodic, reflect, mirror, nearest, const",
            "",
        ),
        (("--boundary", "constant"), "needs a number after constant and a colon", "--boundary constant:0"),
        (("--boundary", "constant:x"), "needs a number after constant", "--boundary constant:0"),
        (("--boundary", "constant:1e999"), "is a number that float64 cannot hold", "--boundary constant:inf"),
        (("--steps", "100000", "--snapshot-every", "1"), "99999 files", "--snapshot-every 10"),
        (("-n", 7, "--decomposition", "rows"), "7 ranks cannot share 6 rows of a 6×4 matrix", "-n 6"),
        (("-n", 5, "--decomposition", "columns"), "5 ranks cannot share 4 columns", "--decomposition rows"),
        (("-n", 7), "7 ranks cannot share 6 rows", "-n 6"),
        (("-n", 4, "--grid", "1x5"), "makes 5 ranks, but there are 4", "-n 5"),
        (("-n", 4, "--grid", "0x5"), "has no ranks", ""),
        (("-n", 4, "--grid", "2x2", "--decomposition", "rows"), "contradict", "--grid 4x1"),
        (
            ("-n", 2, "--depth", 4),
            "needs 4 rows of each neighbour, but the smallest part has 3 rows",
            "--depth 3",
        ),
        (
            ("-n", 2, "--decomposition", "columns", "--depth", 3),
            "the smallest part has 2 columns",
            "--depth 2",
        ),
        (("-n", 3, "--weights", "w7.npy"), "the smallest part has 2 rows", "fewer ranks"),
        (
            ("-n", 2, "--exchange", "shared", "--halo", "datatype"),
            "--halo datatype makes no sense",
            "--halo packed",
        ),
        (("-n", 2, "--exchange", "collective", "--halo", "elementwise"), "--halo elementwise makes no", ""),
        (("--memory", "1MiB"), "of memory on a node, but --memory allows", ""),
    ],
)
def test_what_is_refused(
    here: InProcess, fake: Tilewise, words: tuple[object, ...], said: str, advice: str
) -> None:
    numpy.save(fake.folder / "w7.npy", numpy.full((7, 7), 1 / 49))
    before = fake.files()
    steps = () if "--steps" in words else ("--steps", 8)
    message = one_message(here("stencil", "A.npy", "-o", "C.npy", *steps, *words), 2)
    assert said in message and advice in message
    assert fake.files() == before


@pytest.mark.parametrize(
    ("dtype", "output", "said", "advice"),
    [
        ("float16", "C.npy", "holds float16", "--dtype float32"),
        ("complex64", "C.npy", "works on real numbers", "convert"),
        ("float64", "C.png", "cannot hold float64", "--dtype uint8"),
        ("uint8", "C.ppm", "holds colours only", ".png"),
    ],
)
def test_types_that_are_refused(
    here: InProcess, fake: Tilewise, dtype: str, output: str, said: str, advice: str
) -> None:
    numpy.save(fake.folder / "A.npy", numpy.ones((5, 5), dtype))
    message = one_message(here("stencil", "A.npy", "-o", output, "--steps", 2), 2)
    assert said in message and advice in message


def test_weights_too_large_for_the_type(here: InProcess, fake: Tilewise) -> None:
    words = ("-o", "C.npy", "--steps", 1, "--weights", "star5:1e39,0")
    numpy.save(fake.folder / "F.npy", numpy.ones((5, 5), "float32"))
    assert "float32 cannot hold" in one_message(here("stencil", "F.npy", *words), 2)
    assert here("plan", "stencil", "A.npy", *words).returncode == 0


def job(fake: Tilewise, *words: object) -> dict[str, Any]:
    """What the worker is told."""
    fake.environment["FAKE_JOB"] = str(fake.folder / "job.json")
    run = fake("stencil", "A.npy", "-o", "C.npy", "--force", "-q", *words)
    assert run.returncode == 0, run.stderr
    told: dict[str, Any] = json.loads((fake.folder / "job.json").read_text())
    return told


def test_the_job(fake: Tilewise) -> None:
    told = job(fake, "--steps", 40, "--boundary", "reflect", "--snapshot-every", 15, "--until-change", 1e-3)
    stencil = told["stencil"]
    assert told["command"] == "stencil" and told["dtype"] == "float64"
    assert told["variant"]["algorithm"] == "sweeps" and told["variant"]["exchange"] == "none"
    assert (stencil["steps"], stencil["radius"], stencil["boundary"]) == (40, 1, "reflect")
    assert (stencil["until_change"], stencil["check_every"], stencil["planes"]) == (1e-3, 16, 1)
    assert [Path(region["path"]).name[:13] for region in stencil["snapshots"]] == [
        ".C-000015.npy",
        ".C-000030.npy",
    ]
    # This worker has written none of them, so none is left.
    assert fake.files() == {"A.npy", "B.npy", "C.npy", "job.json"}


@pytest.mark.parametrize(
    ("dtype", "computed"),
    [
        ("uint8", "float32"),
        ("int16", "float32"),
        ("int32", "float64"),
        ("uint64", "float64"),
        ("float32", "float32"),
    ],
)
def test_the_type_that_is_computed_in(fake: Tilewise, dtype: str, computed: str) -> None:
    numpy.save(fake.folder / "A.npy", numpy.ones((5, 5), dtype))
    assert job(fake, "--steps", 1)["dtype"] == computed


@pytest.mark.parametrize(
    ("halo", "exchange"), [(halo, exchange) for halo, taken in HALOS.items() for exchange in taken]
)
def test_exchanges_and_halos(here: InProcess, halo: str, exchange: str) -> None:
    words = ("plan", "stencil", "A.npy", "-o", "C.npy", "--steps", 4, "--exchange", exchange, "--halo", halo)
    assert f"exchange {exchange}, halos {halo}" in " ".join(here(*words, "-n", 2).stdout.split())
    assert "there is one rank, so" in " ".join(here(*words, "-n", 1).stdout.split())


def test_a_halo_leads_to_an_exchange_that_has_it(fake: Tilewise) -> None:
    variant = job(fake, "--steps", 4, "-n", 2, "--halo", "elementwise")["variant"]
    assert variant["exchange"] == "overlap" and variant["ranks"] == 2


def decomposed(what: Cut, ranks: int, wanted: str | None = None) -> tuple[str, tuple[int, int]]:
    return cut.decompose(what, ranks, wanted, None, None, [])


def test_decompositions() -> None:
    square = Cut(rows=8000, columns=8000, radius=1, by_rows=True)
    assert decomposed(square, 2) == decomposed(square, 2, "rows") == ("rows", (2, 1))
    assert decomposed(square, 4, "grid") == ("grid", (2, 2)) and decomposed(square, 6, "columns")[1] == (1, 6)
    assert decomposed(square, 64) == ("grid", (16, 4))  # less surface is worth scattered columns now
    turned = Cut(rows=8000, columns=8000, radius=1, by_rows=False)
    assert decomposed(turned, 2) == ("columns", (1, 2)) and decomposed(turned, 64)[1] == (4, 16)
    flat = Cut(rows=3, columns=8000, radius=1, by_rows=True)
    assert decomposed(flat, 4) == ("columns", (1, 4))
    assert decomposed(flat, 2, "grid")[0] == "grid"
    assert cut.most_ranks(Cut(rows=3, columns=2, radius=1, by_rows=True), 5, None, None) == 4
    with pytest.raises(UsageError, match="cannot share"):
        decomposed(Cut(rows=3, columns=2, radius=1, by_rows=True), 7)


def test_nothing_cannot_be_shared() -> None:
    empty = Cut(rows=0, columns=5, radius=1, by_rows=True)
    assert decomposed(empty, 1) == ("rows", (1, 1)) and cut.most_ranks(empty, 4, None, None) == 1
    with pytest.raises(UsageError, match="cannot share a 0×5 matrix: it is empty"):
        decomposed(empty, 2)


def test_depths() -> None:
    square = Cut(rows=1000, columns=1000, radius=2, by_rows=True)
    assert cut.choose_depth(square, (1, 1), None, 200, 40) == 40
    assert cut.choose_depth(square, (1, 1), None, 3, 40) == 3
    assert cut.choose_depth(square, (1, 1), 5000, 10_000, 40) == 5000  # nobody has to give so many
    assert cut.choose_depth(square, (1, 1), 5000, 200, 40) == 200
    assert cut.choose_depth(square, (20, 1), None, 200, 40) == 50 // 2 // cut.SHARE
    assert cut.choose_depth(square, (500, 1), None, 200, 40) == 1
    with pytest.raises(UsageError, match="2 rows of each neighbour, but the smallest part has 1 row"):
        cut.choose_depth(square, (1000, 1), None, 200, 40)
    assert cut.choose_depth(square, (2, 1), 30, 7, 40) == cut.choose_depth(square, (2, 1), None, 7, 40) == 7
    assert cut.pass_sweeps(parse_weights("star5"), "float32") == 40
    assert cut.pass_sweeps(parse_weights("box3"), "float32") == 20
    assert cut.pass_sweeps(parse_weights("star9"), "float64") == 20


def test_the_plan_takes_no_more_ranks_than_there_are_parts(here: InProcess, fake: Tilewise) -> None:
    numpy.save(fake.folder / "A.npy", numpy.ones((1, 1)))
    shown = here("plan", "stencil", "A.npy", "-o", "C.npy", "--steps", 3, "--decomposition", "rows")
    assert shown.returncode == 0 and "1 rank " in shown.stdout


def test_the_plan_says_what_and_why(here: InProcess) -> None:
    words = ("stencil", "A.npy", "-o", "C.npy", "--steps", 30, "--snapshot-every", 10, "-n", 2)
    shown = " ".join(here("plan", *words).stdout.split())
    for said in (
        "30 with 5 weights of 3×3, boundary zero",
        "2, every 10 sweeps",
        "rows on a 2×1 grid",
        "halos packed",
    ):
        assert said in shown


@pytest.mark.parametrize(
    ("name", "sweep", "last", "expected"),
    [
        ("out.npy", 100, 900, "out-000100.npy"),
        ("a.b/out.tiles/", 7, 9, "a.b/out-000007.tiles"),
        ("T.h5:/x/T", 5, 12345678, "T-00000005.h5:/x/T"),
    ],
)
def test_names_of_snapshots(name: str, sweep: int, last: int, expected: str) -> None:
    assert snapshot_name(name, sweep, last) == expected


def test_a_snapshot_is_not_replaced_unasked(here: InProcess, fake: Tilewise) -> None:
    (fake.folder / "C-000010.npy").write_bytes(b"old")
    words = ("stencil", "A.npy", "-o", "C.npy", "--steps", 20, "--snapshot-every", 10)
    assert "C-000010.npy exists already" in one_message(here(*words), 2)
    assert "also an input or an output" in one_message(here(*words, "--json", "C-000010.npy"), 2)
    assert (fake.folder / "C-000010.npy").read_bytes() == b"old" and "C.npy" not in fake.files()


def test_failures_leave_no_snapshot(fake: Tilewise) -> None:
    before = fake.files()
    for how in ("io", "die", "wrong"):
        words = ("stencil", "A.npy", "-o", "C.npy", "--steps", 20, "--snapshot-every", 5, "--verify", "fast")
        assert fake(*words, how=how).returncode in (1, 3)
        assert fake.files() == before


def test_a_part_that_cannot_be_removed_is_said(
    here: InProcess, fake: Tilewise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot that was not reached, and that stays: the result is still worth having."""
    remove = os.unlink

    def unlink(path: str, *more: Any, **named: Any) -> None:
        if "-000005" in str(path):
            raise PermissionError(path)
        remove(path, *more, **named)

    monkeypatch.setattr(os, "unlink", unlink)
    run = here("stencil", "A.npy", "-o", "C.npy", "--steps", 8, "--snapshot-every", 5)
    assert run.returncode == 0 and "received no state, could not be removed" in run.stderr
    assert "C.npy" in fake.files() and "C-000005.npy" not in fake.files()


def test_the_disk_must_hold_all_of_them(
    here: InProcess, fake: Tilewise, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = os.statvfs(fake.folder)

    class Small:
        f_bavail, f_frsize, f_blocks, f_flag = 1, 500, 1000, room.f_flag

    monkeypatch.setattr(os, "statvfs", lambda folder: Small())
    words = ("stencil", "A.npy", "-o", "C.npy", "--steps", 20, "--snapshot-every", 5)
    message = one_message(here(*words), 1)
    assert "C.npy and 3 snapshots: it needs 768 bytes" in message
    assert fake.files() == {"A.npy", "B.npy"}
