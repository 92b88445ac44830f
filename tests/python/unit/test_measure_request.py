"""What may be asked of `tilewise measure`: sizes, names, numbers, and which flags belong to which kind."""

from __future__ import annotations

import json

import jsonschema
import pytest
from conftest import InProcess, one_message
from tilewise.base.errors import UsageError
from tilewise.lab.measurement import request as asked

REPORT = [128_000, 256_000, 512_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("128K..16M", REPORT),
        ("1..4MiB", [1 << power for power in range(23)]),
        ("8,1KiB", [8, 1024]),
        ("1..8,4..16,3", [1, 2, 4, 8, 16, 3]),
        ("64KiB..300KiB", [65536, 131072, 262144]),
        ("5..5", [5]),
        ("256M..2G", [256_000_000, 512_000_000, 1_000_000_000, 2_000_000_000]),
        ("512..2KiB", [512, 1024, 2048]),
    ],
)
def test_sizes(text: str, sizes: list[int]) -> None:
    assert asked.parse_sizes(text, "--block") == sizes


@pytest.mark.parametrize("text", ["", "0", "0..8", "8..1", "1..", "..8", "1...8", "x", "-1", "1,,2", "1e3"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--bytes"):
        asked.parse_sizes(text, "--bytes")


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "1,,2", "x", "99999999999", "١"])
def test_counts_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--pairs"):
        asked.parse_counts(text, "--pairs")


def test_counts_and_names_come_once_in_their_order() -> None:
    assert asked.parse_counts("4,1, 4", "--pairs") == [4, 1]
    assert asked.parse_names("put,blocking,put", "--exchange", asked.EXCHANGES) == ["put", "blocking"]
    assert asked.parse_collectives("none") == [] and asked.parse_collectives(None) is None
    assert asked.parse_io_names("all") == list(asked.BOTH_WAYS)


WRONG = [
    (("sing",), "'sing' cannot be measured; expected one of ping, file, memory, compute, all"),
    (("ping", "--bytes", "0"), "--bytes 0 makes no sense"),
    (("ping", "--pairs", "0"), "--pairs 0 makes no sense"),
    (("ping", "--pairs", "many"), "--pairs expects whole numbers"),
    (("ping", "--levels", "core,moon"), "expected one of sibling, core, cache, socket, node"),
    (("ping", "--exchange", "telepathy"), "expected one of blocking, nonblocking, put, get"),
    (("ping", "--pattern", "circle"), "expected one of roundtrip, stream"),
    (("ping", "--collectives", "reduce"), "expected one of bcast"),
    (("ping", "--block", "1M"), "--block belongs to file, not to ping"),
    (("ping", "--matrix", "--no-matrix"), "contradict"),
    (("ping", "--matrices"), "measure has no flag --matrices"),
    (("file", "--io", "thought"), "expected one of root"),
    (("file", "--layout", "spiral"), "expected one of interleaved"),
    (("file", "--cache", "hot"), "expected one of warm, cold, direct"),
    (("file", "--check", "none,counts"), "--check expects one"),
    (("file", "--buffer", "stone"), "expected one of malloc"),
    (("file", "--blocks-per-rank", "0"), "--blocks-per-rank 0"),
    (("file", "--shift=-1"), "--shift -1 makes no sense"),
    (("file", "--sync", "--no-sync"), "contradict"),
    (("file", "--folder", "nowhere"), "--folder nowhere cannot be written"),
    (("memory", "--pairs", "1"), "--pairs belongs to ping, not to memory"),
    (("memory", "--threads", "0"), "--threads 0"),
    (("compute", "--sizes", "0"), "--sizes 0"),
    (("compute", "--dtypes", "int8"), "expected one of float32"),
    (("--bytes", "8"), "--bytes differs between ping and memory"),
    (("--launches", "0"), "--launches 0"),
    (("--runs", "0"), "--runs 0"),
    (("--seconds", "0"), "--seconds 0"),
    (("--interval", "0"), "--interval 0"),
    (("--timeout", "0"), "--timeout 0"),
    (("--store", "--no-store"), "contradict"),
    (("-q", "-v"), "contradict"),
    (("ping", "file"), "does not take 'file'"),
    (("ping", "--hosts", "nowhere"), "--hosts nowhere cannot be read"),
    (("ping", "--levels", "node"), "only this host is known"),
    (("memory", "--json", "no/m.json"), "--json"),
    (("memory", "--html", "-"), "--html"),
    (("memory", "--plots", "A.npy"), "--plots expects a folder"),
    (("memory", "--json", "same", "--html", "same"), "--html same is also"),
    (("compare", "A.npy", "B.npy"), "A.npy is not a measurement"),
    (("compare", "nowhere", "B.npy"), "nowhere cannot be read"),
    (("compare", "A.npy"), "compare needs AFTER"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=lambda value: " ".join(value) if value else "all")
def test_wrong_requests_say_what_is_known(here: InProcess, words: tuple[str, ...], said: str) -> None:
    assert said in one_message(here("measure", *words), 2)


def test_the_schema_is_one(here: InProcess) -> None:
    result = here("measure", "--schema")
    schema = json.loads(result.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert result.returncode == 0 and "Measurement" in schema["$defs"]


def test_help_is_grouped(here: InProcess) -> None:
    said = here("measure", "--help").stdout
    places = [said.index(f"\n{heading}\n") for heading in ("What", "How", "Where", "Show")]
    assert places == sorted(places) and "compare" in said
