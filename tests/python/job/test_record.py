"""The record: every field of the contract, valid JSON whatever happens, and the table made from it."""

from __future__ import annotations

import fcntl
import json
import math
import os
from pathlib import Path

import msgspec
import numpy
import pytest
from conftest import Tilewise, one_message
from tilewise.engine.record import spread
from tilewise.launch import record

WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy")
CONTRACT = {
    *("tilewise", "command", "inputs", "outputs", "variant", "chosen_by", "fixed", "seconds", "samples"),
    *(
        "bytes",
        "messages",
        "io_calls",
        "flops",
        "rates",
        "fraction_of_peak",
        "peak_rss_bytes",
        "ranks_working",
    ),
    *("placement", "predicted_seconds", "verification", "result", "warnings", "environment"),
}


def test_record_and_timeline_go_to_streams(fake: Tilewise) -> None:
    """As `--json >(jq .)` and `--json /dev/stdout` name them; nothing else is left in the folder."""
    before = sorted(os.listdir(fake.folder))
    pipes = [os.pipe(), os.pipe()]
    for _, target in pipes:
        fcntl.fcntl(target, fcntl.F_SETPIPE_SZ, 1 << 20)
    ends = [f"/proc/{os.getpid()}/fd/{target}" for _, target in pipes]
    assert fake(*WORDS, "--json", ends[0], "--trace", ends[1]).returncode == 0
    for _, target in pipes:
        os.close(target)
    record, timeline = (json.loads(Path(f"/dev/fd/{source}").read_bytes()) for source, _ in pipes)
    assert record["command"] == "multiply" and timeline == []  # as the stand-in writes it
    assert json.loads(fake(*WORDS, "--force", "-q", "--json", "/dev/stdout").stdout)["command"] == "multiply"
    assert sorted(os.listdir(fake.folder)) == sorted([*before, "C.npy"])


def test_every_field_of_the_contract_is_there(fake: Tilewise) -> None:
    result = fake(*WORDS, "-n", 2, "-t", 1, "--repeat", 2, "--json", "-")
    record = json.loads(result.stdout)
    assert set(record) >= CONTRACT
    assert record["command"] == "multiply" and record["fixed"] == ["ranks", "threads"]
    assert record["outputs"] == [
        {
            "path": str(fake.folder / "C.npy"),
            "format": "npy",
            "shape": [6, 3],
            "dtype": "float64",
            "order": "C",
            "planes": 1,
        }
    ]
    assert {"algorithm", "exchange", "io", "grid", "ranks", "threads"} <= set(record["variant"])
    seconds = record["seconds"]
    assert set(seconds) == {"input", "compute", "exchange", "output", "verify", "total", "wall"}
    assert set(seconds["input"]) == {"min", "mean", "max", "parse", "file", "distribute"}
    assert set(seconds["output"]) == {"min", "mean", "max", "format", "file", "collect"}
    assert seconds["compute"] == {"min": 0.01, "mean": 0.015, "max": 0.02}
    assert seconds["wall"] > 0
    assert len(record["samples"]) == 2
    assert record["bytes"]["read"] == 2000 and record["bytes"]["exchanged_max_rank"] == 1000
    assert (record["messages"], record["io_calls"], record["ranks_working"]) == (6, 4, 2)
    assert record["rates"]["flops_per_second"] == pytest.approx(1e9 / 0.02)
    assert record["peak_rss_bytes"] == {"per_rank": [1 << 20] * 2, "max_rank": 1 << 20, "node_sum": 2 << 20}
    assert [place["rank"] for place in record["placement"]] == [0, 1]
    assert record["verification"]["passed"] is True
    environment = record["environment"]
    assert environment["blas_kernel"] == "Fake" and environment["versions"]["worker"] == "0.1.0"
    assert {entry["path"] for entry in environment["storage"]} == {
        str(fake.folder / name) for name in ("A.npy", "B.npy", "C.npy")
    }


def test_json_on_stdout_is_alone_there(fake: Tilewise) -> None:
    result = fake(*WORDS, "--json", "-", how="chatter")
    json.loads(result.stdout)
    assert "hello" in result.stderr


OLD = '{"tilewise": "of another run"}'


def test_a_failed_verification_is_recorded(fake: Tilewise) -> None:
    (fake.folder / "r.json").write_text(OLD)
    one_message(fake(*WORDS, "--json", "r.json", how="wrong"), 3)
    record = json.loads((fake.folder / "r.json").read_text())
    assert record["verification"]["passed"] is False
    assert fake.files() == {"A.npy", "B.npy", "r.json"}


@pytest.mark.parametrize("how", ["die", "io", "usage"])
def test_a_failed_run_leaves_an_old_record_alone(fake: Tilewise, how: str) -> None:
    (fake.folder / "r.json").write_text(OLD)
    assert fake(*WORDS, "--json", "r.json", how=how).returncode in (1, 2)
    assert (fake.folder / "r.json").read_text() == OLD


def test_what_is_no_number_becomes_null(fake: Tilewise) -> None:
    found = json.loads(fake(*WORDS, "--json", "-", how="nan").stdout)
    assert found["rates"]["flops_per_second"] is None and found["fraction_of_peak"] is None
    assert record._finite({"a": [math.nan, (math.inf, 1.0)]}) == {"a": [None, [None, 1.0]]}


def test_no_rank_is_no_fault() -> None:
    assert spread([]) == record.RankSeconds(0.0, 0.0, 0.0)


LARGE = ("multiply", "random:4000x4000", "random:4000x4000", "-o", "L.npy", "--force", "--json", "-")


def test_a_rate_is_of_what_moved_in_these_seconds(tilewise: Tilewise) -> None:
    """Not of a mapped file that is read while its transpose is written, nor of what the check reads again."""

    def rates(*words: str) -> dict[str, float | None]:
        done = tilewise(*words, "-o", "O.npy", "--force", "--json", "-", "-n", "1")
        return json.loads(done.stdout)["rates"]

    numpy.save(tilewise.folder / "A.npy", numpy.random.default_rng(1).random((300, 300)))
    turned, made = rates("transpose", "A.npy"), rates("multiply", "random:200x200", "random:200x200")
    copied = rates("convert", "A.npy")
    assert turned["read_bytes_per_second"] is None and turned["written_bytes_per_second"]
    assert made["read_bytes_per_second"] is None and made["written_bytes_per_second"]
    assert copied["read_bytes_per_second"] and copied["written_bytes_per_second"]


def test_the_share_of_the_peak(fake: Tilewise) -> None:
    """Of what the units can do; of a job that was faster than the loops that tell, nobody knows it."""
    known = json.loads(fake(*LARGE).stdout)
    assert known["peak_flops"] == 2e11 and known["fraction_of_peak"] == pytest.approx(1e9 / 0.01 / 2e11)
    disturbed = json.loads(fake(*LARGE, how="disturbed").stdout)
    assert disturbed["peak_flops"] is None and disturbed["fraction_of_peak"] is None


def test_the_table_says_where_the_time_went(fake: Tilewise) -> None:
    lines = fake(*WORDS, "--io", "positioned").stdout.splitlines()
    labels = "phase input compute exchange output verify total memory check how result"
    assert " ".join(line.split()[0] for line in lines) == labels
    assert "GFLOP/s" in lines[2] and "Freivalds" in lines[8]
    assert lines[9].endswith("local · positioned · 1 rank × 1 thread (plan)")
    assert all(line == line.rstrip() for line in lines)


def test_the_table_of_several_ranks_has_their_spread(fake: Tilewise) -> None:
    lines = fake(*WORDS, "-n", 2, "--io", "root:positioned").stdout.splitlines()
    assert lines[0].split()[:7] == ["phase", "min", "s", "mean", "s", "max", "s"]
    assert "summa · shared · root in, positioned out · 2×1 grid · 2 ranks × 1 thread (plan)" in "\n".join(
        lines
    )
    assert "on the largest rank" in "\n".join(lines)


def test_oversubscription_is_labelled(fake: Tilewise) -> None:
    result = fake(*WORDS, "-n", 2, "-t", 500, "--json", "r.json")
    assert "oversubscribed" in result.stderr
    record = json.loads((fake.folder / "r.json").read_text())
    assert record["environment"]["oversubscribed"] is True
    assert any("oversubscribed" in warning for warning in record["warnings"])


def test_structs_are_decodable_again(fake: Tilewise) -> None:
    text = fake(*WORDS, "--json", "-").stdout
    again = msgspec.json.decode(text.encode(), type=record.Record)
    assert again.variant.ranks == 1


def test_brackets_in_names_are_no_markup(fake: Tilewise) -> None:
    numpy.save(fake.folder / "[red]A.npy", numpy.zeros((2, 4)))
    result = fake("multiply", "[red]A.npy", "B.npy", "-o", "[bold]:smile:.npy")
    assert "[bold]:smile:.npy" in result.stdout
    assert "[red]A.npy" in fake("plan", "multiply", "[red]A.npy", "B.npy", "-o", "x.npy").stdout
