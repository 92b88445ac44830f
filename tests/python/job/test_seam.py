"""The seam: both sides describe the same fields and the same names."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Tilewise, one_message
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.launch import worker
from tilewise.launch.job import (
    PROTOCOL,
    ConvertJob,
    Job,
    Measure,
    Point,
    Seen,
    Site,
    Stack,
    StagedOutput,
    StencilJob,
    Stop,
    SvdJob,
    Variant,
    encode,
    quit_job,
)
from tilewise.operations import OPERATIONS, options_of
from tilewise.operations.stencil.options import HALOS
from tilewise.operations.stencil.weights import BOUNDARIES
from tilewise.planning.choices import exchanges_of
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
        ("stencil", StencilJob),
        ("svd", SvdJob),
        ("stack", Stack),
        ("convert", ConvertJob),
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
        "multiply": ["none", *exchanges_of(options_of("multiply"))],
        "transpose": exchanges_of(options_of("transpose")),
        "stencil": ["none", *exchanges_of(options_of("stencil"))],
        "svd": ["none", *exchanges_of(options_of("svd"))],
    }
    assert described["halos"] == list(HALOS)
    assert set(described["boundaries"]) == {name.partition(":")[0] for name in BOUNDARIES}
    assert described["io"] == list(IO)
    assert described["dtypes"] == list(ITEMSIZE)


def test_the_file_beside_the_worker_has_its_constants(described: dict[str, object]) -> None:
    program = worker.find()
    assert program is not None
    built = json.loads((Path(program).parent / worker.FACTS).read_text())
    assert built["constants"] == described["constants"]
    assert (
        built["constants"]["digest"] == Job(**_told(), command="convert", variant=_alone("local")).constants
    )


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_plan_by_other_constants_is_refused(tilewise: Tilewise, tmp_path: Path, ranks: int) -> None:
    """As where a worker was replaced, and the file beside it was not."""
    program = worker.find()
    assert program is not None
    built = json.loads((Path(program).parent / worker.FACTS).read_text())
    built["constants"]["digest"] ^= 1
    place = tmp_path / "other"
    place.mkdir()
    (place / worker.FACTS).write_text(json.dumps(built))
    (place / worker.NAME).symlink_to(program)
    tilewise.environment["TILEWISE_WORKER"] = str(place / worker.NAME)
    result = tilewise("generate", "-o", "A.npy", "--shape", "30x20", "-n", str(ranks))
    message = one_message(result, 2)
    assert "constants" in message and "reinstall tilewise" in message
    assert not (tilewise.folder / "A.npy").exists()


def _alone(algorithm: str) -> Variant:
    return msgspec.structs.replace(quit_job().variant, algorithm=algorithm)


def _told() -> dict[str, Any]:
    made = Region(path="", name="made", rows=4, columns=4, dtype="float64", generator="normal")
    out = Region(path="B.part", name="B", rows=4, columns=4, dtype="float64")
    return {"id": "x", "inputs": [made], "output": out, "dtype": "float64"}


def _jobs() -> dict[str, Job]:
    """One of each command, for one rank; no file is needed to refuse them."""
    told = _told()
    [made] = told["inputs"]
    stencil = StencilJob(steps=1, radius=1, weights=[0, 0, 0, 0, 1, 0, 0, 0, 0], boundary="zero")
    values = Region(path="s.part", name="s", rows=1, columns=4, dtype="float64")
    halo = msgspec.structs.replace(_alone("sweeps"), halo="packed")
    return {
        "multiply": Job(
            command="multiply", variant=_alone("local"), **told | {"inputs": [made, made], "output": None}
        ),
        "transpose": Job(command="transpose", variant=_alone("reread"), **told),
        "convert": Job(command="convert", variant=_alone("local"), **told),
        "stencil": Job(command="stencil", variant=halo, stencil=stencil, **told),
        "svd": Job(
            command="svd",
            variant=_alone("jacobi"),
            svd=SvdJob(values_only=True, s=values, u=None, vt=None, us=None),
            **told | {"output": None},
        ),
        "norm": Job(command="norm", variant=_alone("local"), **told | {"output": None}),
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
        ended = tilewise.run([program], input=json.dumps(told), timeout=60)
        said = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
        errors = [event for event in said if event["event"] == "error"]
        assert [event["kind"] for event in errors] == ["usage"], (name, said)
        assert "unknown" in errors[0]["message"] and "'qrx'" in errors[0]["message"], (name, said)


@pytest.mark.parametrize("wrong", [{"row": -1}, {"row": 7}, {"column": 3}, {"columns": 3, "column": 0}])
def test_a_part_outside_of_its_matrix_is_refused(tilewise: Tilewise, wrong: dict[str, int]) -> None:
    """Ranks would read what lies elsewhere."""
    program = worker.find()
    assert program is not None
    told = json.loads(encode(_jobs()["norm"]))
    told["inputs"][0]["whole"] = {"rows": 10, "columns": 6, "row": 6, "column": 2} | wrong
    ended = tilewise.run([program], input=json.dumps(told), timeout=60)
    assert "a part outside of its matrix" in ended.stdout
