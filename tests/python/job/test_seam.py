"""The seam: both sides describe the same fields and the same names."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import msgspec
import pytest
from conftest import Tilewise
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.launch import worker
from tilewise.launch.job import (
    PROTOCOL,
    Job,
    Measure,
    Point,
    Seen,
    Site,
    StagedOutput,
    Stencil,
    Stop,
    Svd,
    Variant,
    encode,
    quit_job,
)
from tilewise.operations import OPERATIONS, exchanges_of, options_of
from tilewise.operations.stencil.cut import pass_sweeps
from tilewise.operations.stencil.options import BOUNDARIES, HALOS
from tilewise.operations.stencil.weights import Weights
from tilewise.planning.names import IO


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
        ("site", Site),
        ("made", StagedOutput),
        ("seen", Seen),
        ("stop", Stop),
        ("point", Point),
    ],
)
def test_both_sides_have_the_same_fields(described: dict[str, object], name: str, struct: type) -> None:
    assert described[name] == sorted(field.encode_name for field in msgspec.structs.fields(struct))


def test_both_sides_have_the_same_names(described: dict[str, object]) -> None:
    assert described["protocol"] == PROTOCOL
    assert described["algorithms"] == {
        name: list(table) for name in OPERATIONS if (table := options_of(name).algorithms)
    }
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


def _jobs() -> dict[str, Job]:
    """One of each command, for one rank; no file is needed to refuse them."""
    made = Region(path="", name="made", rows=4, columns=4, dtype="float64", generator="normal")
    out = Region(path="B.part", name="B", rows=4, columns=4, dtype="float64")
    told: dict[str, Any] = {"id": "x", "inputs": [made], "output": out, "dtype": "float64"}

    def variant(algorithm: str) -> Variant:
        return msgspec.structs.replace(quit_job().variant, algorithm=algorithm)

    stencil = Stencil(steps=1, radius=1, weights=[0, 0, 0, 0, 1, 0, 0, 0, 0], boundary="zero")
    values = Region(path="s.part", name="s", rows=1, columns=4, dtype="float64")
    halo = msgspec.structs.replace(variant("sweeps"), halo="packed")
    return {
        "multiply": Job(
            command="multiply", variant=variant("local"), **told | {"inputs": [made, made], "output": None}
        ),
        "transpose": Job(command="transpose", variant=variant("reread"), **told),
        "convert": Job(command="convert", variant=variant("local"), **told),
        "stencil": Job(command="stencil", variant=halo, stencil=stencil, **told),
        "svd": Job(
            command="svd",
            variant=variant("jacobi"),
            svd=Svd(values_only=True, s=values, u=None, vt=None, us=None),
            **told | {"output": None},
        ),
        "norm": Job(command="norm", variant=variant("local"), **told | {"output": None}),
    }


_FILES = ("variant.read", "variant.write")
_MEMORY = (*_FILES, "variant.algorithm", "variant.exchange", "variant.kernel", "variant.remainder", "verify")
_NAMES: dict[str, tuple[str, ...]] = {
    "multiply": (*_MEMORY, "overflow", "dtype"),
    "transpose": (*_MEMORY, "variant.root_write"),
    "convert": _FILES,
    "stencil": (
        *(name for name in _MEMORY if name != "variant.algorithm"),
        "variant.halo",
        "stencil.boundary",
        "dtype",
    ),
    "svd": (
        *(name for name in _MEMORY if name != "variant.kernel"),
        "variant.start",
        "variant.inner",
        "dtype",
    ),
    "norm": ("variant.read",),
}


@pytest.mark.parametrize("command", _NAMES)
def test_an_unknown_name_is_an_error_wherever_it_stands(tilewise: Tilewise, command: str) -> None:
    """A worker that took it for another one would do what nobody asked for."""
    program = worker.find()
    assert program is not None
    for name in ("command", "place", *_NAMES[command], "order", "byte_order", "encoding"):
        told = json.loads(encode(_jobs()[command]))
        parts = name.split(".")
        place = told["inputs"][0] if name in ("order", "byte_order", "encoding") else told
        for part in parts[:-1]:
            place = place[part]
        place[parts[-1]] = "qrx"
        ended = subprocess.run(
            [program],
            input=json.dumps(told),
            capture_output=True,
            text=True,
            env=tilewise.environment,
            timeout=60,
            check=False,
        )
        said = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
        errors = [event for event in said if event["event"] == "error"]
        assert [event["kind"] for event in errors] == ["usage"], (name, said)
        assert "unknown" in errors[0]["message"] and "'qrx'" in errors[0]["message"], (name, said)
