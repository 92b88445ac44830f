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
from tilewise.launch.job import PROTOCOL, Job, Stencil, Variant
from tilewise.plan.names import ALGORITHMS, BOUNDARIES, HALOS, IO, exchanges_of


@pytest.fixture
def described(tilewise: Tilewise) -> dict[str, object]:
    """What the worker says of itself."""
    path = worker.find()
    assert path is not None
    result = subprocess.run([path, "--describe"], capture_output=True, env=tilewise.environment, check=True)
    found: dict[str, object] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("name", "struct"), [("job", Job), ("region", Region), ("variant", Variant), ("stencil", Stencil)]
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
    }
    assert described["halos"] == list(HALOS)
    assert described["boundaries"] == list(BOUNDARIES)
    assert described["io"] == list(IO)
    assert described["dtypes"] == list(ITEMSIZE)
