"""Sweeps over numbers that are none, that grow without end, or that no integer holds: right, or said."""

from __future__ import annotations

import json
from typing import Any

import numpy
import pytest
import stencil_runs
from conftest import Done, InProcess, Tilewise, one_message
from scipy import ndimage
from stencil_runs import BOUNDARIES, numbers, result, save
from tilewise.planning.names import EXCHANGES

JOB = ("stencil", "--force")
NANS = (0xFFF8000000000001, 0x7FF8000000000ABC, 0xFFFFFFFFFFFFFFFF, 0x7FF0000000000001)


def strange(dtype: str = "float64") -> Any:
    """Normal and subnormal numbers, zeros of both signs, infinities, NaNs of several signs and payloads."""
    swept = numbers((37, 41), "float64")
    swept[::3, ::2] *= 1e-310 if dtype == "float64" else 1e-40
    swept[5:9] = 0.0
    swept[7:12, 3:30] = -0.0
    swept.view("uint64")[[3, 3, 4, 20], [3, 4, 4, 35]] = NANS
    swept[30, 30:33] = numpy.inf, -numpy.inf, numpy.inf
    with numpy.errstate(invalid="ignore"):
        return swept.astype(dtype)


def same(swept: Any, expected: Any) -> bool:
    """Bit by bit, but for what a NaN says besides being one."""
    none = numpy.isnan(expected)
    bits = "uint32" if expected.dtype.itemsize == 4 else "uint64"
    return bool(
        (numpy.isnan(swept) == none).all() and (swept.view(bits)[~none] == expected.view(bits)[~none]).all()
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["B.npy", "B.txt"])
def test_results_with_nan_are_proved(tilewise: Tilewise, done: Done, dtype: str, name: str) -> None:
    numpy.save(tilewise.folder / "A.npy", strange(dtype))
    for ranks in (1, 3):
        for method in ("fast", "serial"):
            record = done("A.npy", "-o", name, "--steps", 3, "-n", ranks, "--verify", method)
            assert record["verification"]["passed"] and record["verification"]["share"] == 1
    plain = tilewise.folder / "P.npy"
    done("A.npy", "-o", plain, "--steps", 3, "--kernel", "plain", "-n", 1)
    if name == "B.npy":
        assert same(result(tilewise), numpy.load(plain))


def test_strange_numbers_come_out_the_same_in_every_way(tilewise: Tilewise, done: Done) -> None:
    numpy.save(tilewise.folder / "A.npy", strange())
    for at, exchange in enumerate(EXCHANGES):
        boundary, weights = BOUNDARIES[at % len(BOUNDARIES)], ("star5", "star9", "box3")[at % 3]
        words = ("--steps", 4, "--weights", weights, "--boundary", boundary)
        done("A.npy", "-o", "P.npy", *words, "--kernel", "plain", "-n", 1)
        ranks = 2 + at % 3
        record = done("A.npy", "-o", "B.npy", *words, "-n", ranks, "--exchange", exchange, "--verify", "fast")
        assert record["verification"]["passed"] and record["result"]["input_non_finite"] == 7
        assert same(result(tilewise), result(tilewise, "P.npy")), exchange
        assert record["result"]["non_finite"] == (~numpy.isfinite(result(tilewise))).sum()


@pytest.mark.parametrize(
    ("ranks", "cut", "depth", "value", "weights"),
    [
        (1, "rows", 1, "nan", "w5.npy"),
        (2, "rows", 3, "inf", "star5"),
        (3, "columns", 2, "-inf", "w5.npy"),
        (4, "grid", 3, "nan", "star5"),
    ],
)
def test_what_lies_outside_may_be_none(
    tilewise: Tilewise, done: Done, ranks: int, cut: str, depth: int, value: str, weights: str
) -> None:
    """Cells within reach of the edge become what lies there; weights of 0 are not part of the stencil."""
    save(tilewise)
    boundary = f"constant:{value}"
    words = ("--steps", 4, "--weights", weights, "--boundary", boundary, "--verify", "serial", "-n", ranks)
    record = done("A64.npy", "-o", "B.npy", *words, "--decomposition", cut, "--depth", depth)
    state = stencil_runs.swept(numbers(), weights, boundary, 4)
    assert record["verification"]["passed"] and record["result"]["input_non_finite"] == 0
    assert numpy.allclose(result(tilewise), state, rtol=0, atol=1e-12, equal_nan=True)
    assert record["result"]["non_finite"] == (~numpy.isfinite(state)).sum()


@pytest.mark.parametrize("method", ["fast", "serial"])
@pytest.mark.parametrize("shape", [(20, 30), (900, 800)])
def test_a_number_in_the_place_of_nan_is_found(
    tilewise: Tilewise, method: str, shape: tuple[int, int]
) -> None:
    """The fault changes the exponent of the last number: all is looked at there, and patches."""
    matrix = numbers(shape)
    matrix[-1, -1] = numpy.nan
    numpy.save(tilewise.folder / "A.npy", matrix)
    tilewise.environment["TILEWISE_FAULT"] = "element"
    words = ("stencil", "A.npy", "-o", "B.npy", "--steps", 3, "--verify", method, "-n", 2)
    one_message(tilewise(*words), 3)


def test_how_much_was_proved_is_said(tilewise: Tilewise, done: Done) -> None:
    """All of what is small; of what is not, the share that lies in patches, which may overlap."""
    for shape, steps, ranks in (
        ((40, 50), 9, 2),
        ((700, 900), 9, 2),
        ((900, 700), 40, 1),
        ((24, 50), 1700, 1),
    ):
        numpy.save(tilewise.folder / "A.npy", numbers(shape, "float32"))
        words = ("A.npy", "-o", "B.npy", "--steps", steps, "-n", ranks)
        for method in ("fast", "serial"):
            record = done(*words, "--verify", method)
            share, all_of_it = record["verification"]["share"], shape[0] * shape[1] * steps <= 2e6
            said = [text for text in record["warnings"] if "of the result, in patches" in text]
            if all_of_it or method == "serial":
                assert share == 1 and not said
            else:
                cells = share * shape[0] * shape[1]
                assert 24 * 24 < round(cells) <= 24 * 24 * 24 and cells == pytest.approx(round(cells))
                assert shape != (24, 50) or round(cells) == 24 * (50 - 13)  # the middle one and the last
                percent = float(said[0].split()[1])
                assert percent <= 100 * share and percent == pytest.approx(100 * share, rel=0.05)


def swept(matrix: Any, steps: int) -> Any:
    """What `star5:3,1` with zeros outside makes of it."""
    state = matrix
    with numpy.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            state = ndimage.correlate(
                state, numpy.array([[0, 1, 0], [1, 3, 1], [0, 1, 0]], matrix.dtype), mode="constant"
            )
    return state


GROWING = ("A.npy", "-o", "B.npy", "--weights", "star5:3,1")


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_what_diverges_never_settles(tilewise: Tilewise, inside: InProcess, dtype: str, ranks: int) -> None:
    numpy.save(tilewise.folder / "A.npy", numbers((30, 30), dtype))
    numpy.save(tilewise.folder / "B.npy", numpy.zeros(3))
    before = (tilewise.folder / "B.npy").read_bytes()
    ended = inside(
        "stencil", *GROWING, "--steps", 5000, "--until-change", 1, "-n", ranks, "--force", "--json", "r.json"
    )
    text = one_message(ended, 3)
    record = json.loads((tilewise.folder / "r.json").read_text())
    sweep, lost = record["result"]["sweeps"], record["result"]["non_finite"]
    assert sweep % 16 == 0 and sweep < 500 and 0 < lost <= 900 and record["result"]["last_change"] is None
    assert f"after sweep {sweep}, {lost} number" in text and "divide the weights by 7" in text
    assert record["verification"]["method"] == "convergence" and not record["verification"]["passed"]
    assert (tilewise.folder / "B.npy").read_bytes() == before
    assert tilewise.files() == {"A.npy", "B.npy", "r.json"}
    if dtype.startswith("float"):  # it was seen at the first look behind the first of them
        state = numbers((30, 30), dtype)
        assert numpy.isfinite(swept(state, sweep - 16)).all()
        assert (~numpy.isfinite(swept(state, sweep))).sum() == lost


def test_every_exchange_agrees_that_it_diverges(tilewise: Tilewise, inside: InProcess) -> None:
    numpy.save(tilewise.folder / "A.npy", numbers((30, 30), "float32"))
    words = ("stencil", *GROWING, "--steps", 500, "--until-change", 1)
    said = {one_message(inside(*words), 3)}
    for at, exchange in enumerate(EXCHANGES):
        said.add(one_message(inside(*words, "-n", 2 + at % 3, "--exchange", exchange), 3))
    assert len(said) == 1


def test_each_colour_may_diverge(tilewise: Tilewise, inside: InProcess) -> None:
    """The last of three: the others were written by then, and are thrown away too."""
    from PIL import Image

    picture = numpy.zeros((20, 30, 3), "uint8")
    picture[:, :, 2] = 7
    Image.fromarray(picture).save(tilewise.folder / "A.png")
    words = ("--steps", 500, "--until-change", 1, "--snapshot-every", 3, "-n", 2, "--weights", "star5:3,1")
    text = one_message(inside("stencil", "A.png", "-o", "B.png", *words), 3)
    assert "of the result were NaN or infinite" in text and tilewise.files() == {"A.png"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_diverges_is_counted_and_said(tilewise: Tilewise, done: Done, dtype: str) -> None:
    matrix = numbers((30, 30), dtype)
    numpy.save(tilewise.folder / "A.npy", matrix)
    steps = 55 if dtype == "float32" else 380
    lost = (~numpy.isfinite(swept(matrix, steps))).sum()
    for ranks in (1, 2):
        record = done(*GROWING, "--steps", steps, "-n", ranks)
        assert record["result"]["non_finite"] == lost > 0 and record["result"]["input_non_finite"] == 0
        [said] = record["warnings"]
        assert said.startswith(f"{lost} number") and "divide the weights by 7" in said
    record = done("A.npy", "-o", "B.npy", "--steps", 4, "--weights", "star5:3,1")
    assert record["result"]["non_finite"] == 0 and record["warnings"] == []


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64"])
def test_what_an_integer_cannot_hold_is_counted_and_said(tilewise: Tilewise, done: Done, dtype: str) -> None:
    matrix = numbers((31, 40), dtype)
    numpy.save(tilewise.folder / "A.npy", matrix)
    numpy.save(tilewise.folder / "W.npy", [[0.0, -3, 0], [3, 1, -3], [0, 3, 0]])
    limits, words = numpy.iinfo(dtype), ("A.npy", "-o", "B.npy", "--weights", "W.npy")
    for ranks in (1, 2):
        record = done(*words, "--steps", 1, "-n", ranks, "--verify", "serial")
        swept, held = result(tilewise), record["result"]["held"]
        state = ndimage.correlate(
            matrix.astype("float64"), numpy.load(tilewise.folder / "W.npy"), mode="constant"
        )
        beyond = (numpy.rint(state) > float(limits.max)) | (numpy.rint(state) < float(limits.min))
        assert abs(held - beyond.sum()) <= (0 if limits.bits < 64 else 2) and held > 0
        ends = numpy.where(state > 0, numpy.array(limits.max, dtype), numpy.array(limits.min, dtype))
        assert (swept[beyond] == ends[beyond]).all()
        assert record["result"]["non_finite"] == 0
        assert record["warnings"] == [
            f"{held} numbers of the result are beyond {dtype} and clamped to its range"
        ]
        record = done(*words, "--steps", 1500, "-n", ranks)
        lost = record["result"]["non_finite"]
        assert lost > 1000 and any(said.startswith(f"{lost} numbers") for said in record["warnings"])
        assert any("they become 0 and the ends of its range" in said for said in record["warnings"])
    record = done("A.npy", "-o", "B.npy", "--steps", 2)
    assert record["result"]["held"] == 0 and record["warnings"] == []


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf])
def test_what_is_no_number_from_the_start_never_rests(
    tilewise: Tilewise, inside: InProcess, value: float
) -> None:
    matrix = numpy.zeros((20, 30))
    matrix[0, 0] = value
    numpy.save(tilewise.folder / "A.npy", matrix)
    for ranks in (1, 2):
        words = ("--steps", 100, "--until-change", 0.1, "--check-every", 4, "-n", ranks)
        text = one_message(inside("stencil", "A.npy", "-o", "B.npy", *words), 3)
        assert "after sweep 4, 15 numbers" in text and "1 number of" in text and "finite numbers" in text
