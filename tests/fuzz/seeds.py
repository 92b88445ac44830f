"""Where fuzzing begins: small honest inputs for each target, made rather than kept."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from malformed_files import mtx as market
from measurements import hostile, whole
from reports import STUDY, record
from reports import results as study_results
from studies import FLAGS, MACHINE
from tilewise.base.owner import new_owner
from tilewise.engine.journal import JournalHeader
from tilewise.files.region import Region
from tilewise.lab.measurement.stored import encode
from tilewise.lab.study import shipped
from tilewise.launch.job import quit_job
from tilewise.machine.profile import MeasuredTile, MeasuredTimes, Profile
from timelines import made_up

__all__ = ["FLAGS", "MACHINE", "RESULTS_STUDY"]

WHOLE_STUDY = 'title = "T"\n' + STUDY.format(sizes="64, 128", launches=1)
TOKEN = "0123456789abcdef" * 2  # of a job
IDENTITY = new_owner().identity
# Without plots, each of which takes a while to be drawn.
RESULTS_STUDY = "\n[[".join(part for part in WHOLE_STUDY.split("\n[[") if not part.startswith("plots"))


def _json(*values: object) -> Iterator[bytes]:
    for value in values:
        yield json.dumps(value).encode()


def texts() -> Iterator[bytes]:
    """Lines of numbers in every style."""
    yield b"1 2 3\n4 5 6\n"
    yield b"# words\n1,2\r\n\r\n3,4  # more\r\n"
    yield b"1\t2\n\t3\n"
    yield b"2 3\n1 2 3\n4 5 6\n"
    yield b"3,2\n1,2\n3,4\n5,6\n"
    yield b"(1+2j),3-4j\n5,6j\n"
    yield b"nan inf -Infinity\n1d5 2D-3 1e308\n"
    yield b"\xef\xbb\xbf1;2\n% words\n3;4"


def mtx() -> Iterator[bytes]:
    """MatrixMarket of every kind."""
    for field in ("real", "complex", "integer"):
        yield market(field)
    yield market(symmetry="symmetric")
    yield b"%%MatrixMarket matrix coordinate real general\n% words\n3 2 2\n1 1 5.5\n3 2 -1\n"
    yield b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n2 1\n"


def manifests() -> Iterator[bytes]:
    """Folders of tiles."""
    tile = {"file": "a.npy", "rows": [0, 4], "columns": [0, 3]}
    beside = {"file": "b.npy", "rows": [0, 4], "columns": [3, 6]}
    whole = {"tilewise": 1, "shape": [4, 6], "dtype": "float64", "tiles": [tile, beside]}
    up = {**tile, "file": "../../a.npy"}
    yield from _json(whole, {**whole, "tiles": [up, beside]}, {**whole, "tiles": [tile] * 9})


def arrays() -> Iterator[bytes]:
    """Metadata of Zarr arrays, of both versions."""
    codec = {"name": "bytes", "configuration": {"endian": "little"}}
    three = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 3],
        "data_type": "float64",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": "NaN",
        "codecs": [codec],
        "attributes": {"scale_factor": 2},
    }
    turned = {"name": "transpose", "configuration": {"order": [1, 0]}}
    packed = {"name": "gzip", "configuration": {"level": 1}}
    two = {"zarr_format": 2, "shape": [4, 3], "chunks": [2, 3], "dtype": "<f8", "order": "F", "fill_value": 1}
    two |= {"compressor": {"id": "zlib", "level": 1}, "filters": None, "dimension_separator": "."}
    yield from _json(three, {**three, "codecs": [turned, codec]}, {**three, "codecs": [codec, packed]})
    yield from _json(two, {**two, "compressor": None}, {"zarr_format": 3, "node_type": "group"})


def listings() -> Iterator[bytes]:
    """Folders of a decomposition."""
    file = {"file": "U.npy", "shape": [4, 3], "dtype": "float64"}
    yield from _json(
        {"tilewise": 1, "command": "svd", "files": [file, {**file, "file": "s.npy", "shape": [3]}]}
    )


def studies() -> Iterator[bytes]:
    """Studies: one of every kind of table, and those that come with us."""
    yield WHOLE_STUDY.encode()
    for name in shipped.names():
        yield Path(shipped.FOLDER, f"{name}.toml").read_bytes()


@functools.cache
def _points() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        found = study_results(Path(folder) / "r", sizes=2, launches=1)
        return b"".join(path.read_bytes() for path in sorted(found.rglob("points*.jsonl")))


def points() -> Iterator[bytes]:
    """What the launches of a study left."""
    lines = _points().splitlines(keepends=True)
    yield b"".join(lines[:3])
    yield b"".join(lines[-3:])


def results() -> Iterator[bytes]:
    """Records, measurements and a timeline, honest and hostile."""
    yield from _json(record(), record(command="svd"), record(command="stencil", result={"sweeps": 5}))
    told: dict[str, Any] = record()
    yield from _json({**told, "predicted_seconds": {"input": 1.0, "total": 3.0, "low": 2.0, "high": 4.0}})
    for measurement in (hostile(), whole()):
        data = encode(measurement)
        if len(data) < 200_000:
            yield msgspec.json.encode(msgspec.json.decode(data))
    with tempfile.TemporaryDirectory() as folder:
        yield made_up(Path(folder) / "t.json", name="<b>").read_bytes()


def profiles() -> Iterator[bytes]:
    """What a machine was measured as."""
    tiles = {"h|c|8|1": MeasuredTile(8, 8, False, 1e9)}
    yield msgspec.json.encode(Profile(tiles=tiles, measured={"h|c": MeasuredTimes({"ping": "now"})}))


def events() -> Iterator[bytes]:
    """What ranks say, with a library's chatter before and behind."""
    place = {"rank": 0, "host": "a", "pid": 7, "cpus": [0]}
    for told in (
        {"event": "started", "ranks": [place], "segments": ["x"]},
        {"event": "progress", "phase": "compute", "done": 0.5},
        {"event": "error", "kind": "io", "message": "no room", "rank": 1},
        {
            "event": "record",
            "ranks": [{**place, "node": 0}],
            "seconds": {"total": [1.0]},
            "result": {"a": [1]},
        },
    ):
        yield b"chatter\x1e" + json.dumps(told).encode() + b"\n"


def hosts() -> Iterator[bytes]:
    """Hosts files."""
    yield b"node1:4\nnode2 slots=8 # the big one\n\nnode3\n"


def journals() -> Iterator[bytes]:
    """The header of a product and of a stencil with states, and lines of a log of either kind."""
    region = Region(path="/C.npy", name="C.npy", rows=9, columns=8, dtype="float64", offset=128)
    job = msgspec.structs.replace(quit_job(), command="multiply", inputs=[region, region], output=region)
    made = JournalHeader(
        **{"tilewise": "0.1.0", "line": "tilewise multiply A B", "name": "C.npy", "base": "C.npy"},
        **{"member": "", "extension": ".npy", "began": 1.0, "job": job, "inputs": [None], "head": b"x"},
    )
    pieces = b"\n0 4 0 8 00000000000000ff\n4 9 0 8 0123456789abcdef"
    yield msgspec.json.encode(made) + pieces
    states = b"\n0 3 0 9 0 8 00000000000000ff\n0 3 whole 5 ff"
    yield msgspec.json.encode(msgspec.structs.replace(made, states=True)) + states


def greetings() -> Iterator[bytes]:
    """A rank's first words and what follows, and a stranger's."""
    beat = b'\x1e{"event": "beat", "rank": 0, "pid": 7, "host": "far", "phase": "c", "ticks": 3}\n'
    yield f"{TOKEN} far 7\n".encode() + beat + b"bye\n"
    yield b"guessed far 7\n"
    yield b"x" * 600
