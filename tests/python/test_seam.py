"""The seam: both sides describe the same fields and the same names."""

from __future__ import annotations

import json
import subprocess

import msgspec
import pytest
from conftest import Tilewise
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.launch import worker
from tilewise.launch.job import PROTOCOL, Job, Measure, Point, Stencil, Stop, Svd, Variant
from tilewise.plan.cut import pass_sweeps
from tilewise.plan.names import ALGORITHMS, BOUNDARIES, HALOS, IO, exchanges_of
from tilewise.plan.weights import Weights


@pytest.fixture
def described(tilewise: Tilewise) -> dict[str, object]:
    """What the worker says of itself."""
    path = worker.find()
    assert path is not None
    result = subprocess.run([path, "--describe"], capture_output=True, env=tilewise.environment, check=True)
    found: dict[str, object] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("name", "struct"),
    [
        ("job", Job),
        ("region", Region),
        ("variant", Variant),
        ("stencil", Stencil),
        ("svd", Svd),
        ("measure", Measure),
        ("stop", Stop),
        ("point", Point),
    ],
)
def test_both_sides_have_the_same_fields(described: dict[str, object], name: str, struct: type) -> None:
    assert described[name] == sorted(field.encode_name for field in msgspec.structs.fields(struct))


def test_both_sides_have_the_same_names(described: dict[str, object]) -> None:
    assert described["protocol"] == PROTOCOL
    assert described["algorithms"] == {command: list(table) for command, table in ALGORITHMS.items()}
    assert described["exchanges"] == {
        "multiply": ["none", *exchanges_of("multiply")],
        "transpose": exchanges_of("transpose"),
        "stencil": ["none", *exchanges_of("stencil")],
        "svd": ["none", *exchanges_of("svd")],
    }
    assert described["halos"] == list(HALOS)
    assert described["boundaries"] == list(BOUNDARIES)
    assert described["io"] == list(IO)
    assert described["dtypes"] == list(ITEMSIZE)


def test_both_sides_do_as_many_sweeps_in_a_pass(described: dict[str, object]) -> None:
    found: dict[str, dict[str, list[int]]] = {}
    for dtype in ("float32", "float64"):
        for form in ("star", "box"):
            for radius in (1, 2, 3, 4):
                side = 2 * radius + 1
                cells = [(row, column) for row in range(side) for column in range(side)]
                values = tuple(float(form == "box" or radius in cell) for cell in cells)
                sweeps = pass_sweeps(Weights("w", radius, values), dtype)
                found.setdefault(dtype, {}).setdefault(form, []).append(sweeps)
    assert described["best_steps"] == found
