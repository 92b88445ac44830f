"""How `auto` reads and writes on one rank; reading in place and writing early give the same product."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest
from conftest import Tilewise
from tilewise.base.errors import UsageError
from tilewise.files.region import Region
from tilewise.launch.job import Variant
from tilewise.machine import profile, storage
from tilewise.operations.multiply.cost import multiply_need
from tilewise.planning import io
from tilewise.planning.choices import Strategies, parse_io

WITHOUT_CHILD = True


def region(**changes: object) -> Region:
    facts: dict[str, object] = {
        "path": "/A.npy",
        "name": "A.npy",
        "offset": 128,
        "rows": 4,
        "columns": 5,
        "dtype": "float64",
        "byte_order": "little",
        "order": "C",
        "file_bytes": 288,
    }
    return Region(**{**facts, **changes})  # type: ignore[arg-type]


def chosen(algorithm: str, exchange: str, *, read: str, write: str, ranks: int, threads: int = 1) -> Variant:
    return Variant(
        algorithm=algorithm,
        exchange=exchange,
        read=read,
        write=write,
        grid=(1, ranks),
        copies=1,
        ranks=ranks,
        threads=threads,
        kernel="fast",
        remainder="spread",
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"order": "F"}, True),
        ({"dtype": "float32"}, False),
        ({"byte_order": "big"}, False),
        ({"generator": "random", "path": ""}, False),
        ({"rows": 0}, False),
    ],
)
def test_numbers_are_used_in_place_only_as_they_are(changes: dict[str, object], expected: bool) -> None:
    assert io.in_place(region(**changes), "float64") is expected


def test_the_hints_are_for_mpi_io_alone_and_the_users_win() -> None:
    variant = chosen("summa", "overlap", read="collective", write="positioned", ranks=2)
    assert io.hints(variant, {"romio_cb_read": "enable"})["romio_cb_read"] == "enable"
    assert io.hints(variant, {})["romio_cb_read"] == "disable"


def test_a_shared_file_pointer_only_reads() -> None:
    assert parse_io("ordered") == Strategies("ordered", None)
    assert parse_io("shared_pointer:root") == Strategies("shared_pointer", "root")
    with pytest.raises(UsageError, match="shared_pointer only reads"):
        parse_io("root:shared_pointer")
    variant = chosen("summa", "overlap", read="ordered", write="positioned", ranks=2)
    assert io.hints(variant, {"cb_nodes": "1"}) == {**io.HINTS, "cb_nodes": "1"}


def test_the_probe_leaves_nothing_behind(tmp_path: Path) -> None:
    rate = storage.direct_write_rate(str(tmp_path))
    assert rate is None or rate > 1e5
    assert not list(tmp_path.iterdir())
    assert storage.direct_write_rate(str(tmp_path / "missing")) is None


def test_a_device_is_asked_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked: list[str] = []
    monkeypatch.setattr(storage, "_asked", {})
    monkeypatch.setattr(storage, "direct_write_rate", lambda folder: asked.append(folder) or 1e9)
    first, kept = storage.device_of(str(tmp_path), "host")
    assert first is not None and first.bytes_per_second == 1e9 and kept is not None
    assert storage.device_of(str(tmp_path), "host") == (first, kept)  # planning keeps nothing
    profile.store_device(*kept)
    assert storage.device_of(str(tmp_path), "host") == (first, None) and len(asked) == 1
    assert storage.device_of(str(tmp_path), "other")[1] is not None and len(asked) == 2
    old = profile.Device(1e9, first.when - 25 * 3600)
    profile.store_device(kept.key, old)
    monkeypatch.setattr(storage, "_asked", {kept.key: old})
    assert storage.device_of(str(tmp_path), "host")[1] is not None and len(asked) == 3


def direct(tmp_path: Path) -> None:
    if storage.direct_write_rate(str(tmp_path)) is None:
        pytest.skip(f"the file system of {tmp_path} has no O_DIRECT or no nameless files")


@pytest.mark.parametrize("ranks", [1, 2])
def test_early_output_in_several_parts(tilewise: Tilewise, tmp_path: Path, ranks: int) -> None:
    """2100 × 2050 float64 are written in two parts on one rank; rows end in the middle of pages."""
    direct(tmp_path)
    random = numpy.random.default_rng(5)
    left, right = random.standard_normal((2100, 70)), random.standard_normal((70, 2050))
    numpy.save(tilewise.folder / "A.npy", left)
    numpy.save(tilewise.folder / "B.npy", numpy.asfortranarray(right))
    done = tilewise("multiply", "A.npy", "B.npy", "-o", "C.npy", "--io", "mapped:uncached", "-n", ranks)
    assert done.returncode == 0, done.stderr
    numpy.testing.assert_allclose(numpy.load(tilewise.folder / "C.npy"), left @ right, atol=1e-11)


def test_a_wrong_product_written_early_never_gets_its_name(tilewise: Tilewise, tmp_path: Path) -> None:
    direct(tmp_path)
    numpy.save(tilewise.folder / "A.npy", numpy.ones((600, 600)))
    (tilewise.folder / "C.npy").write_bytes(b"old")
    tilewise.environment["TILEWISE_FAULT"] = "element"
    words = ("multiply", "A.npy", "A.npy", "-o", "C.npy", "--force", "--verify", "fast")
    done = tilewise(*words, "--io", "mapped:uncached")
    assert done.returncode == 3, done.stderr
    assert (tilewise.folder / "C.npy").read_bytes() == b"old"
    assert tilewise.files() == {"A.npy", "C.npy"}


def test_auto_says_what_it_chose_and_why(tilewise: Tilewise, tmp_path: Path) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.ones((300, 300)))
    done = tilewise("multiply", "A.npy", "A.npy", "-o", "C.npy", "-n", 1, "--json", "r.json", "-q")
    assert done.returncode == 0, done.stderr
    record = json.loads((tilewise.folder / "r.json").read_text())
    assert record["variant"]["io"] == "mapped:positioned"
    assert any("mapped" in reason for reason in record["reasons"])


def test_what_lies_in_files_needs_no_memory(tmp_path: Path) -> None:
    """In place and streamed, a product of 80 GB fits into a machine with 2 GiB."""
    kept = chosen("local", "none", read="mapped", write="uncached", ranks=1, threads=2)
    n = 100_000
    small = multiply_need(n, n, n, "float64", kept, "fast", in_place=(True, True))
    assert small.node < 2 << 30
    large = multiply_need(n, n, n, "float64", kept, "fast", in_place=(True, False))
    assert large.node > n * n * 8
