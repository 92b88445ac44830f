"""Zarr stores with metadata that are broken or lie: each is refused in one line that names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tilewise import files
from tilewise.base.errors import UsageError


def broken() -> dict[str, tuple[str, object]]:
    """A file of metadata and its content each."""
    bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
    regular = {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}
    good = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 3],
        "data_type": "float64",
        "chunk_grid": regular,
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [bytes_codec],
    }
    old = {"zarr_format": 2, "shape": [4, 3], "chunks": [2, 3], "dtype": "<f8", "order": "C", "fill_value": 0}
    three = {
        "no JSON": b"zarr!",
        "empty": b"",
        "deep": b"[" * 100_000,
        "a list": [],
        "version 1": good | {"zarr_format": 1},
        "no version": {},
        "no node": good | {"node_type": "folder"},
        "negative": good | {"shape": [-4, 3]},
        "huge": good | {"shape": [1 << 62, 1 << 62]},
        "beyond 64 bits": good | {"shape": [1 << 80, 3]},
        "one dimension of chunks": good | {"chunk_grid": {**regular, "configuration": {"chunk_shape": [2]}}},
        "no extent": good | {"chunk_grid": {**regular, "configuration": {"chunk_shape": [0, 3]}}},
        "no chunks": good | {"chunk_grid": {"name": "regular"}},
        "huge chunks": good
        | {"chunk_grid": {**regular, "configuration": {"chunk_shape": [1 << 40, 1 << 40]}}},
        "no codecs": good | {"codecs": 5},
        "no endian": good | {"codecs": ["bytes"]},
        "pickle": good | {"codecs": [bytes_codec, {"name": "numcodecs.pickle"}]},
        "hidden pickle": good
        | {"codecs": [{"name": "sharding_indexed", "configuration": {"codecs": [{"name": "pickle"}]}}]},
        "a wrong word": good | {"fill_value": "none"},
        "a fraction": good | {"data_type": "int8", "fill_value": 0.5},
        "out of range": good | {"data_type": "uint8", "fill_value": 256},
        "many bits": good | {"fill_value": "0x10000000000000000"},
        "strings": good | {"data_type": "string"},
        "a cut chunk": good,
    }
    two = {
        "records": old | {"dtype": [["a", "<f8"]]},
        "texts": old | {"dtype": "<U4"},
        "another order": old | {"order": "K"},
        "a pickled filter": old | {"filters": [{"id": "pickle"}]},
        "another separator": old | {"dimension_separator": "/../"},
        "a cut old chunk": old,
    }
    return {what: ("zarr.json", each) for what, each in three.items()} | {
        what: (".zarray", each) for what, each in two.items()
    }


@pytest.mark.parametrize("what", broken())
def test_broken_stores_are_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file, text = broken()[what]
    Path("x.zarr/c/1").mkdir(parents=True)
    Path("x.zarr/c/1/0").write_bytes(bytes(47))
    Path("x.zarr/1.0").write_bytes(bytes(47))
    (Path("x.zarr") / file).write_bytes(text if isinstance(text, bytes) else json.dumps(text).encode())
    with pytest.raises(UsageError) as refused:
        files.inspect("x.zarr")
    assert "x.zarr" in refused.value.message and refused.value.message.isprintable()
    assert len(refused.value.message) < 400
