"""Memory of graphics processors, which the driver of the tests plays: figures, marks, faults, doctor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import graphics
import pytest
from conftest import Tilewise, one_message
from graphics import Graphics

FILE = (
    *("measure", "file", "--launches", 1, "--runs", 2, "--block", "64KiB", "--blocks-per-rank", 2),
    *("--check", "content", "-n", 2),
)
PING = (
    *("measure", "ping", "--launches", 1, "--runs", 3, "--bytes", "8,70000", "--no-matrix"),
    *("--collectives", "none", "--pairs", 1),
)
LOOK = "nvidia-smi"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graphics.built(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def devices(tilewise: Tilewise, driver: Path) -> Graphics:
    return Graphics(tilewise, driver)


def measured(on: Graphics, *words: object, **told: object) -> dict[str, Any]:
    ended = on(*words, "-q", "--json", "m.json", **told)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads((on.run.folder / "m.json").read_text())
    return found


def test_files_by_kind_of_memory_are_marked_as_simulated_and_never_stored(devices: Graphics) -> None:
    words = (*FILE, "--io", "positioned", "--buffer", "malloc,pinned,device,managed", "--store")
    found = measured(devices, *words)
    lines = [line for line in found["lines"] if line["kind"] == "file"]
    assert {line["buffer"] for line in lines if line["summary"]} == {"malloc", "pinned", "device", "managed"}
    for line in lines:
        played = line["buffer"] != "malloc"
        assert played == ("simulated device" in line["labels"]) == line["key"].endswith("/simulated-device")
        assert [name[:19] for name in line["devices"]] == [
            f"simulated device ({rank}" for rank in range(2 * played)
        ]
    assert found["environment"]["simulated_devices"] and len(found["environment"]["devices"]) == 2
    assert not any("managed" in cost["key"] for cost in found["model"]["costs"])
    assert [text for text in found["warnings"] if "device" in text] == [
        "the driver of the tests played the graphics processors: these figures say nothing of a device"
    ]
    assert not list(devices.run.folder.glob(".cache/**/measured-*"))
    shown = devices(*FILE, "--io", "positioned", "--buffer", "device", "--gpus", 1).stdout
    assert "buffers of ranks 0 and 1: simulated device (0" in shown and "simulated device" in shown


@pytest.mark.parametrize(
    ("buffer", "told", "code", "said"),
    [
        ("device", {"fault": "no_device"}, 2, "the driver says CUDA_ERROR_NO_DEVICE"),
        ("managed", {"devices": 0}, 2, "no graphics processor"),
        ("pinned", {"fault": "out_of_memory"}, 2, "cuMemAllocHost of 131072 bytes failed"),
        ("managed", {"fault": "out_of_memory", "rank": 1}, 2, "rank 1"),
        ("device", {"memory": 200_000, "devices": 1}, 2, "262144 bytes of device memory"),
        ("device", {"fault": "lost", "after": 9}, 1, LOOK),
        ("device", {"fault": "lost", "after": 30, "rank": 1}, 1, "graphics processor 1: CUDA_ERROR_UNKNOWN"),
        ("managed", {"fault": "launch_failed", "after": 3}, 1, "CUDA_ERROR_LAUNCH_FAILED"),
        ("device", {"fault": "wrong_bytes"}, 1, "came back wrong from its byte 32768 on"),
    ],
)
def test_each_fault_is_one_message(
    devices: Graphics, buffer: str, told: dict[str, object], code: int, said: str
) -> None:
    message = one_message(devices(*FILE, "--io", "positioned", "--buffer", buffer, **told), code)
    assert said in message
    assert not [name for name in devices.run.files() if name != "held.txt"]


def test_gpudirect_storage_is_measured_where_it_is_named(devices: Graphics) -> None:
    words = (*FILE, "--buffer", "device", "--cache", "direct", "--io", "positioned,gpudirect")
    found = measured(devices, *words)
    lines = [line for line in found["lines"] if line["name"] == "gpudirect"]
    assert len(lines) == 3 and all(line["summary"] and "simulated device" in line["labels"] for line in lines)
    assert all("nvidia-fs" in line["notes"][0] for line in lines)
    failed = one_message(devices(*words, fault="storage_lacks"), 1)
    assert "cuFileDriverOpen failed with 5001" in failed and "gdscheck" in failed
    warm = devices(*FILE, "--buffer", "device", "--io", "gpudirect")
    assert "--cache direct" in one_message(warm, 2)


def test_a_device_that_is_lost_where_ranks_wait_ends_them_all(devices: Graphics) -> None:
    """A strategy of one call for all blocks has no turning back: the ranks are ended, not left waiting."""
    message = one_message(
        devices(*FILE, "--io", "two_phase", "--buffer", "device", fault="lost", after=14, rank=1), 1
    )
    assert "rank 1" in message and "CUDA_ERROR_UNKNOWN" in message


@pytest.mark.parametrize("readable", ["", "1"])
def test_messages_go_straight_where_a_trial_shows_that_they_can(devices: Graphics, readable: str) -> None:
    found = measured(devices, *PING, "--buffer", "device,managed", readable=readable, fault="no_peer")
    lines = [line for line in found["lines"] if line["kind"] == "ping"]
    assert {line["name"] for line in lines} == {"blocking", "nonblocking"}
    for line in lines:
        direct = bool(readable) or line["buffer"] == "managed"
        assert line["summary"] and "simulated device" in line["labels"]
        assert any(note.startswith("direct" if direct else "staged") for note in line["notes"])
        assert any("refuse peer access" in note for note in line["notes"])
    why = [text for text in found["warnings"] if "from device memory go through pinned" in text]
    assert len(why) == (not readable) and all("SIGSEGV" in text for text in why)
    put = devices(*PING, "--buffer", "device", "--exchange", "put", readable=readable)
    assert "put acts on memory that MPI allocates" in one_message(put, 2)


def test_a_message_that_arrives_wrong_is_an_error(devices: Graphics) -> None:
    wrong = devices(*PING, "--buffer", "device", fault="wrong_bytes", rank=1)
    assert "from rank 1 arrived wrong from its byte 35000 on" in one_message(wrong, 1)


def test_doctor_says_what_there_is_and_tries_messages(devices: Graphics) -> None:
    def lines(**told: object) -> str:
        return devices("doctor", **told).stdout

    said = lines()
    assert "CUDA 12.4, 2 graphics processors simulated by the driver of the tests" in said
    assert (
        "256 MiB, compute 9.0, unified addressing, managed memory, page migration, peer access to 1" in said
    )
    assert "from device memory they do not arrive" in said and "from managed memory they arrive" in said
    assert "from device memory they arrive" in lines(readable=1)
    assert "no peer access" in lines(fault="no_peer")
    assert "CUDA_ERROR_NO_DEVICE: no device is detected), so" in lines(fault="no_device")
