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


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1,,2", "x", "١"])
def test_counts_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--pairs expects whole numbers such as 1,2,4"):
        asked.parse_counts(text, "--pairs")


def test_counts_and_names_come_once_in_their_order() -> None:
    assert asked.parse_counts("4,1, 4", "--pairs") == [4, 1]
    assert asked.parse_names("put,blocking,put", "--exchange") == ["put", "blocking"]
    assert asked.parse_names("none", "--collectives") == []
    assert asked.parse_io_names("all", "--io") == list(asked.BOTH_WAYS)


WRONG = [
    (("sing",), "KIND 'sing' is unknown; expected one of ping, file, memory, compute, all"),
    (("ping", "--levels", "core,moon"), "--levels 'moon' is unknown; expected one of sibling, core,"),
    (("ping", "--matrices"), "measure has no flag --matrices"),
    (("file", "--folder", "nowhere"), "--folder nowhere cannot be written"),
    (("file", "--folder", ""), "--folder expects a folder, not an empty name"),
    (("--bytes", "8"), "--bytes differs between ping and memory"),
    (("--ranks", "8"), "--ranks differs between ping and file"),
    (("ping", "file"), "does not take 'file'"),
    (("ping", "--hosts", "nowhere"), "--hosts nowhere cannot be read"),
    (("ping", "--levels", "node"), "only this host is known"),
    (("memory", "--json", "no/m.json"), "--json"),
    (("memory", "--html", "-"), "--html expects a file name, not -"),
    (("memory", "--plots", "A.npy"), "--plots expects a folder"),
    (("memory", "--tables", ""), "--tables expects a folder"),
    (("memory", "--json", "same", "--html", "same"), "--html same is also"),
    (("memory", "--json", "a", "--plots", "a"), "--plots a is already used by another flag"),
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
