"""The kernels of `pattern.ptx`: made of their source, doing what is meant; the names of what they need."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ptx_run import Kernel

ROOT = Path(__file__).parents[3]
DEVICE = ROOT / "cpp" / "tilewise" / "device"
TEXT = (DEVICE / "pattern.ptx").read_text(encoding="utf-8")
MASK = (1 << 64) - 1

sys.path.insert(0, str(ROOT / "tools"))
import ptx  # noqa: E402


def pattern(seed: int, count: int) -> bytes:
    """As `memory_pattern.hpp` has it, written once more."""
    made = b""
    for index in range(-(-count // 8)):
        word = (seed + (index + 1) * 0x9E3779B97F4A7C15) & MASK
        word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & MASK
        word = ((word ^ word >> 27) * 0x94D049BB133111EB) & MASK
        made += (word ^ word >> 31).to_bytes(8, "little")
    return made[:count]


def test_the_text_is_a_fresh_compilation_of_the_source() -> None:
    try:
        nvrtc = ptx.compiler()
    except ptx.NoCompilerError as error:
        pytest.skip(str(error))
    source = (DEVICE / "pattern.cu").read_text(encoding="utf-8")
    assert ptx.compiled(nvrtc, source) == TEXT
    assert ptx.compiled(nvrtc, source.replace("8 * (at % 8)", "8 * (at % 4)")) != TEXT


def test_every_assembler_that_is_here_takes_the_text(tmp_path: Path) -> None:
    assembler = shutil.which("ptxas", path="/usr/local/cuda/bin:/usr/local/cuda-13.0/bin:/usr/bin")
    if assembler is None:
        pytest.skip("ptxas is not here")
    for processor in ("sm_75", "sm_80", "sm_90"):
        words = [assembler, "-arch", processor, "-o", tmp_path / "x", DEVICE / "pattern.ptx"]
        subprocess.run(words, check=True)


@pytest.mark.parametrize(("blocks", "threads"), [(1, 1), (1, 7), (3, 4)])
@pytest.mark.parametrize("count", [0, 1, 8, 61])
def test_the_text_does_what_is_meant(blocks: int, threads: int, count: int) -> None:
    fill, compare = Kernel(TEXT, "tilewise_fill"), Kernel(TEXT, "tilewise_compare")
    seed, begin, none = 0xFEDCBA9876543210, 11, MASK
    memory = bytearray(b"\xee" * 100)

    def wrong() -> int:
        memory[:8] = none.to_bytes(8, "little")
        compare.launch(blocks, threads, [begin, count, seed, 0], memory)
        return int.from_bytes(memory[:8], "little")

    fill.launch(blocks, threads, [begin, count, seed], memory)
    assert memory[begin : begin + count] == pattern(seed, count)
    assert memory[8:begin] + memory[begin + count :] == b"\xee" * (92 - count)
    assert wrong() == none
    for at in sorted({count - 1, count // 2, 0} & set(range(count)), reverse=True):
        memory[begin + at] ^= 0x80
        assert wrong() == at


def names() -> list[str]:
    """The calls that are looked for in the driver."""
    found = re.findall(r'find\(calls\.\w+, "(\w+)"\)', (DEVICE / "driver.cpp").read_text(encoding="utf-8"))
    assert len(found) == 27
    return found


def test_a_real_driver_has_the_calls_by_these_names() -> None:
    """The stub that CUDA has for linkers exports what the driver does."""
    stubs = sorted(Path("/usr/local").glob("cuda*/**/stubs/libcuda.so"))
    if not stubs:
        pytest.skip("CUDA's stub of the driver is not here")
    stub = ctypes.CDLL(str(stubs[0]))
    assert [name for name in names() if not hasattr(stub, name)] == []


def test_gpudirect_storage_has_the_calls_by_these_names() -> None:
    found = re.findall(r'find\(opened\.calls\.\w+, "(\w+)"\)', (DEVICE / "storage.cpp").read_text("utf-8"))
    assert len(found) == 8
    libraries = sorted(Path("/usr/local").glob("cuda*/**/libcufile.so.0"))
    if not libraries:
        pytest.skip("libcufile.so.0 is not here")
    library = ctypes.CDLL(str(libraries[0]))
    assert [name for name in found if not hasattr(library, name)] == []


def test_calls_and_numbers_are_those_of_the_headers() -> None:
    headers = sorted(Path("/usr/local").glob("cuda*/**/include/cuda.h"))
    if not headers:
        pytest.skip("cuda.h is not here")
    source = ROOT / "tests" / "cuda" / "prototypes.cpp"
    words = ["c++", "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'cpp'}", f"-I{headers[0].parent}", source]
    subprocess.run(words, check=True)
