"""Whether the choice between tiles and BLAS is called right, wrong or undecided, from made-up samples."""

from __future__ import annotations

import pytest
from machines import FACTS
from measurements import wrap
from tilewise.lab.measurement import plans, result
from tilewise.lab.measurement.lines import choices, sentences
from tilewise.lab.measurement.request import MeasureRequest
from tilewise.lab.measurement.result import Line
from tilewise.lab.report import measure_node
from tilewise.lab.statistics.summary import summarise


def both(size: int, chosen: str, ratios: list[float], dtype: str = "float64") -> list[Line]:
    """Lines of tiles and of BLAS, the latter taking so many times as long in each launch.

    The launches drift by far more than the two kernels differ.
    """
    lines = []
    for kernel in ("tiles", "blas"):
        factors = [1.0] * len(ratios) if kernel == "tiles" else ratios
        launches = [
            [0.01 * (1 + 0.4 * launch) * factor * wobble for wobble in (1.0, 0.999, 1.001)]
            for launch, factor in enumerate(factors)
        ]
        line = Line(
            key=f"{dtype}/{size}/{kernel}",
            kind="compute",
            name="gemm",
            series=kernel,
            kernel=kernel,
            chosen=chosen,
        )
        line.dtype, line.size, line.launches = dtype, size, launches
        line.summary, _ = summarise(launches)
        lines.append(line)
    return lines


@pytest.mark.parametrize(
    ("chosen", "ratios", "holds"),
    [
        ("tiles", [1.19, 1.20, 1.21], True),
        ("blas", [1.19, 1.20, 1.21], False),
        ("blas", [0.98, 0.99, 0.985], True),
        ("tiles", [0.98, 0.99, 0.985], True),  # BLAS is ahead by less than it is worth
        ("tiles", [0.80, 0.81, 0.80], False),
        ("blas", [0.9, 1.2, 1.1], None),
        ("blas", [1.3], None),  # nobody knows what the next launch would say
    ],
)
def test_a_choice_is_right_wrong_or_undecided(chosen: str, ratios: list[float], holds: bool | None) -> None:
    (choice,) = choices(both(2048, chosen, ratios))
    assert choice.holds is holds and (choice.chosen, choice.size) == (chosen, 2048)
    middle = sorted(ratios)[len(ratios) // 2]
    assert choice.ratio == pytest.approx(middle if chosen == "blas" else 1 / middle)
    assert choice.low <= choice.ratio <= choice.high


def test_one_sentence_for_each_type() -> None:
    right = both(128, "blas", [0.9, 0.91, 0.9]) + both(3072, "tiles", [1.1, 1.11, 1.1])
    wrong = both(1024, "blas", [1.12, 1.13, 1.12], "float32") + both(512, "blas", [1.08, 1.2, 1.0], "float32")
    assert sentences(choices(right)) == [
        "float64: the choice of kernel holds here: BLAS at 128², tiles at 3072²"
    ]
    told, other = sentences(choices(wrong + right))
    assert told.startswith("float32: the choice of BLAS is wrong here: tiles are 1.12 (1.1")
    assert told.endswith("times as fast at 1024²; use --kernel tiles") and other.startswith("float64")
    (twice,) = sentences(choices(wrong + both(2048, "blas", [1.1, 1.11, 1.1], "float32")))
    assert "as fast at 1024², and faster at 2048²; use --kernel tiles" in twice
    (undecided,) = sentences(choices(both(512, "tiles", [1.08, 1.2, 0.8])))
    assert "undecided here at 512²" in undecided and "BLAS is 0.93" in undecided
    table = measure_node.compute(wrap([Line(key="", kind="compute", name="gemm", kernel="fast"), *wrong]))
    assert table is not None and told in table.notes and len(table.rows) == 1


def test_lines_that_were_not_run_decide_nothing() -> None:
    lines = both(64, "tiles", [1.0, 1.0])
    lines[1].summary, lines[1].launches = None, []
    assert choices(lines) == [] and sentences([]) == []


def test_both_kernels_are_measured_on_all_cores_for_real_numbers() -> None:
    request = MeasureRequest(kind="compute", sizes=[64, 100], dtypes=["float64", "complex64"])
    (launch,) = plans.product_launches(request, FACTS)
    asks = [ask for ask in launch.asks if ask.point.kernels]
    assert [(ask.point.dtype, ask.point.size) for ask in asks] == [("float64", 64), ("float64", 100)]
    assert {ask.point.threads for ask in asks} == {launch.threads}
    line = result.line_of(asks[0], "tiles", launch.stop)
    assert line.kernel == "tiles" and line.key.endswith("/64/tiles")
    usual = result.line_of(launch.asks[0], "seconds", launch.stop)
    assert usual.kernel == "fast" and usual.key.endswith("threads/64")
    crowded = plans.product_launches(MeasureRequest(kind="compute", threads=[FACTS.cpus + 1]), FACTS)
    assert not any(ask.point.kernels for launch in crowded for ask in launch.asks)
