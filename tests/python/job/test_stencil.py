"""`tilewise stencil` beside scipy and itself: boundaries, cuts, exchanges, halos, depths, rank counts."""

from __future__ import annotations

import itertools

import numpy
import pytest
from conftest import Done, Tilewise
from stencil_cover import CHOICES, Way, cover
from stencil_runs import BOUNDARIES, WEIGHTS, numbers, result, save, swept
from tilewise.planning.names import EXCHANGES

JOB = ("stencil", "--force")


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("weights", ["star5", "star5:0.2,-0.3", "star9", "box3", *WEIGHTS])
def test_scipy_says_the_same(tilewise: Tilewise, done: Done, boundary: str, weights: str) -> None:
    save(tilewise)
    words = ("--steps", 7, "--weights", weights, "--boundary", boundary)
    for name, tolerance in (("A64.npy", 1e-13), ("A32.npy", 1e-5)):
        record = done(name, "-o", "B.npy", *words)
        expected = swept(result(tilewise, name), weights, boundary, 7)
        found = result(tilewise)
        assert found.dtype == result(tilewise, name).dtype and record["result"]["sweeps"] == 7
        assert numpy.abs(found - expected).max() <= tolerance * numpy.abs(expected).max()


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (1, 9), (9, 1), (2, 2), (3, 5), (5, 130), (131, 4)])
def test_small_shapes(tilewise: Tilewise, done: Done, boundary: str, shape: tuple[int, int]) -> None:
    save(tilewise)
    numpy.save(tilewise.folder / "S.npy", numbers(shape))
    for weights in ("star5", "w9.npy") if min(shape) > 1 else ("w5.npy",):
        done("S.npy", "-o", "B.npy", "--steps", 5, "--weights", weights, "--boundary", boundary)
        expected = swept(numbers(shape), weights, boundary, 5) if min(shape) else numbers(shape)
        assert numpy.allclose(result(tilewise), expected, rtol=0, atol=1e-12 * abs(expected).max(initial=1))


def words_of(way: Way) -> tuple[object, ...]:
    flags = {"ranks": "-n", "threads": "-t", "cut": "--decomposition", "weights": "--weights"}
    return tuple(word for name, value in way.items() for word in (flags.get(name, f"--{name}"), value))


WAYS = list(cover())


@pytest.mark.parametrize("boundary", CHOICES["boundary"])
def test_bits_are_the_same_in_every_way(tilewise: Tilewise, done: Done, boundary: str) -> None:
    """Any two values of any two choices meet somewhere; each way is compared with plain loops on one rank."""
    save(tilewise)
    plain: dict[object, bytes] = {}
    for way in (way for way in WAYS if way["boundary"] == boundary):
        weights = way["weights"]
        name = {"star9": "A64.npy", "w3.npy": "F64.npy"}.get(str(weights), "A32.npy")
        if weights not in plain:
            words = ("--steps", 12, "--weights", weights, "--boundary", boundary)
            done(name, "-o", "B.npy", *words, "-n", 1, "--kernel", "plain")
            plain[weights] = (tilewise.folder / "B.npy").read_bytes()
        record = done(name, "-o", "B.npy", "--steps", 12, *words_of(way))
        assert (tilewise.folder / "B.npy").read_bytes() == plain[weights], way
        variant = record["variant"]
        for ours, theirs in (
            ("exchange", "exchange"),
            ("halo", "halo"),
            ("depth", "depth"),
            ("cut", "decomposition"),
        ):
            assert variant[theirs] == way[ours]
        assert record["ranks_working"] == way["ranks"]


def test_the_cover_has_every_exchange_on_every_number_of_ranks() -> None:
    assert len({(way["exchange"], way["ranks"]) for way in WAYS}) == 4 * len(EXCHANGES)
    assert len(WAYS) < 60


def test_auto_on_any_number_of_ranks(tilewise: Tilewise, done: Done) -> None:
    save(tilewise)
    outputs = []
    for ranks in (1, 2, 3, 5):
        done("A32.npy", "-o", "B.npy", "--steps", 60, "-n", ranks)
        outputs.append((tilewise.folder / "B.npy").read_bytes())
    assert len(set(outputs)) == 1


def test_mpi_may_say_which_rank_has_which_block(tilewise: Tilewise, done: Done) -> None:
    """Whatever it says, each rank has a place of its own, and the result is the same."""
    save(tilewise)
    for ranks, grid, boundary in ((4, "2x2", "periodic"), (3, "3x1", "zero")):
        words = ("--steps", 12, "--boundary", boundary)
        done("A64.npy", "-o", "B.npy", *words, "-n", 1, "--kernel", "plain")
        plain = (tilewise.folder / "B.npy").read_bytes()
        record = done("A64.npy", "-o", "B.npy", *words, "-n", ranks, "--grid", grid, "--reorder")
        assert (tilewise.folder / "B.npy").read_bytes() == plain
        assert record["variant"]["reorder"] is True
        order, moved = record["result"]["order"], record["result"]["moved_ranks"]
        assert sorted(order) == list(range(ranks))
        assert moved == sum(place != rank for rank, place in enumerate(order))
    record = done("A64.npy", "-o", "B.npy", "--steps", 2, "-n", 2)
    assert record["variant"]["reorder"] is None and "order" not in record["result"]


def test_nothing_is_lost_where_it_goes_round(tilewise: Tilewise, done: Done) -> None:
    save(tilewise)
    done("A64.npy", "-o", "B.npy", "--steps", 300, "--boundary", "periodic", "-n", 3)
    assert result(tilewise).sum() == pytest.approx(numbers().sum(), rel=1e-12)
    done("A64.npy", "-o", "B.npy", "--steps", 300, "--boundary", "reflect", "-n", 2)
    assert result(tilewise).sum() == pytest.approx(numbers().sum(), rel=1e-12)


def test_mirrored_input_gives_mirrored_output(tilewise: Tilewise, done: Done) -> None:
    for weights, boundary in zip(itertools.cycle(("star5", "star9", "box3")), BOUNDARIES, strict=False):
        states = []
        for mirror in (slice(None), slice(None, None, -1)):
            numpy.save(tilewise.folder / "M.npy", numbers()[mirror, ::-1])
            done("M.npy", "-o", "B.npy", "--steps", 9, "--weights", weights, "--boundary", boundary)
            states.append(result(tilewise)[mirror])
        assert numpy.array_equal(*states)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64"])
def test_integers_are_rounded_and_held(tilewise: Tilewise, done: Done, dtype: str) -> None:
    """Weights that sum to 1.2, so that many results lie beyond the type's ends."""
    matrix = numbers((31, 40), dtype)
    matrix[4:9, 4:9] = numpy.iinfo(dtype).max
    numpy.save(tilewise.folder / "A.npy", matrix)
    words = ("--weights", "star5:0.8,0.1", "--boundary", "reflect", "--verify", "serial")
    done("A.npy", "-o", "B.npy", "--steps", 3, "-n", 2, *words)
    limits = numpy.iinfo(dtype)
    expected = numpy.rint(swept(matrix, "star5:0.8,0.1", "reflect", 3))
    found = result(tilewise)
    assert found.dtype == matrix.dtype and (found == limits.max).any()
    held = numpy.clip(expected, float(limits.min), float(limits.max))
    off = numpy.abs(found.astype("float64") - held)
    assert (off <= max(1, limits.max * 2.0**-50)).all() and (off > 0).mean() < (
        0.02 if limits.bits < 64 else 1
    )


def test_no_steps_change_nothing(tilewise: Tilewise, done: Done) -> None:
    for dtype in ("float32", "int64", "uint8"):
        matrix = numbers((20, 30), dtype) >> 12 if dtype == "int64" else numbers((20, 30), dtype)
        numpy.save(tilewise.folder / "A.npy", matrix)
        for ranks in (1, 2):
            record = done("A.npy", "-o", "B.npy", "--steps", 0, "-n", ranks)
            assert numpy.array_equal(result(tilewise), matrix) and record["result"]["sweeps"] == 0


def test_numbers_that_are_none_are_counted_and_spread(tilewise: Tilewise, done: Done) -> None:
    matrix = numbers((20, 30))
    matrix[3, 4], matrix[10, 11] = numpy.nan, numpy.inf
    numpy.save(tilewise.folder / "A.npy", matrix)
    for ranks in (1, 3):
        record = done("A.npy", "-o", "B.npy", "--steps", 2, "-n", ranks)
        assert record["result"]["input_non_finite"] == 2
        said = (
            "2 numbers of the input are NaN or infinite, and spread with every sweep: 26 numbers of the res"
        )
        assert any(said in each for each in record["warnings"])
        assert (~numpy.isfinite(result(tilewise))).sum() == 13 + 13 == record["result"]["non_finite"]


def test_orders_of_storage(tilewise: Tilewise, done: Done) -> None:
    """What is stored by columns is swept so, and written so unless another order is asked for."""
    save(tilewise)
    words = ("--steps", 9, "--weights", "w5.npy", "-n", 2)
    expected = swept(numbers(), "w5.npy", "zero", 9)
    for order in (None, "C", "F"):
        more = () if order is None else ("--order", order)
        for name in ("A64.npy", "F64.npy"):
            record = done(name, "-o", "B.npy", *words, *more)
            found = result(tilewise)
            assert numpy.allclose(found, expected, rtol=0, atol=1e-13)
            assert found.flags.f_contiguous == ((order or name[0]) in ("F"))
            assert record["variant"]["decomposition"] == ("columns" if name[0] == "F" else "rows")


def test_snapshots(tilewise: Tilewise, done: Done) -> None:
    save(tilewise)
    words = ("A32.npy", "--steps", 40, "--snapshot-every", 15, "--depth", 4)
    for ranks in (1, 3):
        record = done(*words, "-o", "out.npy", "-n", ranks)
        assert record["result"]["snapshots"] == [15, 30]
        names = [output["path"].split("/")[-1] for output in record["outputs"]]
        assert names == ["out.npy", "out-000015.npy", "out-000030.npy"]
        for sweep, name in ((15, names[1]), (30, names[2]), (40, names[0])):
            done("A32.npy", "-o", "B.npy", "--steps", sweep)
            assert (tilewise.folder / name).read_bytes() == (tilewise.folder / "B.npy").read_bytes()
    done(*words, "-o", "T.h5:/x/T", "-n", 2)
    assert {"T.h5", "T-000015.h5", "T-000030.h5"} <= tilewise.files()
    assert not [name for name in tilewise.files() if name.startswith(".")]


def test_until_nothing_changes(tilewise: Tilewise, done: Done) -> None:
    save(tilewise)
    state, sweep, change = numbers(), 0, numpy.inf
    while not (sweep % 5 == 0 and change < 0.02):
        after = swept(state, "star5", "reflect", 1)
        change, state, sweep = numpy.abs(after - state).max(), after, sweep + 1
    outputs = set()
    for more in (("-n", 1), ("-n", 3, "--depth", 2), ("-n", 2, "--depth", 7, "--kernel", "plain")):
        words = ("--steps", 1000, "--boundary", "reflect", "--until-change", 0.02, "--check-every", 5)
        record = done("A64.npy", "-o", "B.npy", *words, "--snapshot-every", 10, *more)
        assert record["result"]["sweeps"] == sweep
        assert record["result"]["last_change"] == pytest.approx(change)
        written = record["result"]["snapshots"]
        assert written[0] == 10 and written[-1] <= sweep
        outputs.add((tilewise.folder / "B.npy").read_bytes())
        snapshots = {name for name in tilewise.files() if name.startswith("B-")}
        assert snapshots == {f"B-{number:06}.npy" for number in written}
    assert len(outputs) == 1 and numpy.allclose(result(tilewise), state, rtol=0, atol=1e-13)


def test_the_record(tilewise: Tilewise, done: Done) -> None:
    save(tilewise)
    words = (
        "--steps",
        20,
        "-n",
        2,
        "--exchange",
        "blocking",
        "--depth",
        5,
        "--repeat",
        3,
        "--trace",
        "t.json",
    )
    record = done("A32.npy", "-o", "B.npy", *words)
    assert len(record["samples"]) == 3 and record["flops"] > 0 and (tilewise.folder / "t.json").exists()
    assert record["messages"] == 2 * 4 and record["bytes"]["exchanged"] == 2 * 4 * 5 * 53 * 4
    for name in ("points_per_second", "gflops", "copy_bytes_per_second", "fraction_of_copy", "model_bytes"):
        assert record["result"][name] > 0
    assert record["result"]["flops_per_point"] == 9
    # A pass of 5 sweeps reads both halves of 67 × 53 numbers with 5 rows of the neighbour, and writes them.
    assert record["result"]["model_bytes"] == 4 * 4 * ((67 + 2 * 5) * 53 + 67 * 53)
    shown = tilewise("stencil", "A32.npy", "-o", "C.npy", "--steps", 20, "-n", 2)
    for said in ("point/s", "the memory-copy limit", "rows", "depth", "sweeps"):
        assert said in shown.stdout


def test_messages_by_halo(tilewise: Tilewise, done: Done) -> None:
    """The same bytes in one message for each neighbour, or in one for each number."""
    save(tilewise)
    words = ("A64.npy", "-o", "B.npy", "--steps", 2, "-n", 2, "--exchange", "blocking", "--depth", 1)
    for cut, length in (("rows", 53), ("columns", 67)):
        for halo, messages in (("packed", 1), ("datatype", 1), ("elementwise", length)):
            record = done(*words, "--decomposition", cut, "--halo", halo)
            assert record["messages"] == 2 * 2 * messages
            assert record["bytes"]["exchanged"] == 2 * 2 * length * 8


@pytest.mark.parametrize("method", ["fast", "serial"])
def test_results_are_proved(tilewise: Tilewise, done: Done, method: str) -> None:
    save(tilewise)
    numpy.save(tilewise.folder / "A8.npy", numbers(dtype="uint8"))
    for name, boundary in zip(itertools.cycle(("A32.npy", "F64.npy", "A8.npy")), BOUNDARIES, strict=False):
        for more in (("-n", 1), ("-n", 4, "--decomposition", "grid", "--depth", 3)):
            words = ("--steps", 11, "--boundary", boundary, "--verify", method)
            record = done(name, "-o", "B.npy", *words, *more)
            assert record["verification"]["method"] == method and record["verification"]["passed"]


@pytest.mark.parametrize("method", ["fast", "serial"])
def test_a_wrong_number_is_found(tilewise: Tilewise, done: Done, method: str) -> None:
    save(tilewise)
    (tilewise.folder / "B.npy").write_bytes(b"old")
    tilewise.environment["TILEWISE_FAULT"] = "element"
    before = tilewise.files()
    words = ("--steps", 8, "--snapshot-every", 3, "--force", "--verify", method)
    run = tilewise("stencil", "A32.npy", "-o", "B.npy", *words)
    assert run.returncode == 3 and "discarded" in run.stderr
    kept = {"B-000003.npy", "B-000006.npy"}
    assert (
        "this was written: B-000003.npy and B-000006.npy; B.npy was not; snapshots are not verified"
        in run.stderr
    )
    assert (tilewise.folder / "B.npy").read_bytes() == b"old" and tilewise.files() == before | kept
