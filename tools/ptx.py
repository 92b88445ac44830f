"""Makes cpp/tilewise/device/pattern.ptx of pattern.cu with NVRTC, the compiler of CUDA that is a library.

    python tools/ptx.py            writes it
    python tools/ptx.py --check    compares what is there with a fresh compilation

NVRTC comes with CUDA, and from PyPI: pip install --target DIR nvidia-cuda-nvrtc-cu12, then
NVRTC=DIR. The text says that it is for an old processor and an old driver, so that all newer ones
take it; `ptxas`, of any version, refuses it should it use more than that: ptxas -arch sm_90 pattern.ptx.
"""

from __future__ import annotations

import ctypes
import glob
import os
import re
import sys
from pathlib import Path

DEVICE = Path(__file__).resolve().parents[1] / "cpp/tilewise/device"
TARGETS = ("compute_52", "compute_75")  # the oldest that NVRTC 11 and 12, and that 13 compile for
SAID = ".target sm_52"
LANGUAGE = ".version 6.4"  # drivers from 418 on


class NoCompilerError(Exception):
    """There is no NVRTC here."""


def compiler() -> ctypes.CDLL:
    """NVRTC: in the folder that NVRTC names, or the system's."""
    folder = os.environ.get("NVRTC", "")
    found = (
        sorted(glob.glob(os.path.join(glob.escape(folder), "**/libnvrtc.so*"), recursive=True))
        if folder
        else []
    )
    for name in [*found, "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise NoCompilerError("NVRTC is not here; NVRTC names the folder that it was installed into")


def version(nvrtc: ctypes.CDLL) -> str:
    """Its version, as in `11.7`."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compiled(nvrtc: ctypes.CDLL, source: str) -> str:
    """The PTX text of `source`, as it is kept. Raises RuntimeError with the compiler's words."""
    said = ""
    for target in TARGETS:
        text, said = _compiled(nvrtc, source, target)
        if text:
            return kept(text)
    raise RuntimeError(said)


def _compiled(nvrtc: ctypes.CDLL, source: str, target: str) -> tuple[str, str]:
    """The text, empty where there is none, and what the compiler says."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"pattern.cu", 0, None, None)
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture={target}".encode())
    failed = nvrtc.nvrtcCompileProgram(program, 1, options)
    said = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
    return "" if failed else _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program), said


def _text(
    size_of: ctypes._NamedFuncPointer, text_of: ctypes._NamedFuncPointer, program: ctypes.c_void_p
) -> str:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    text_of(program, text)
    return text.value.decode()


def kept(text: str) -> str:
    """`text` without the compiler's remarks, for the oldest driver and processor that can take it."""
    lines = [line.rstrip() for line in re.sub(r"//.*", "", text).splitlines()]
    body = "\n".join(line for line in lines if line)
    body = re.sub(r"^\.version .*$", LANGUAGE, body, flags=re.M)
    body = re.sub(r"^\.target .*$", SAID, body, flags=re.M)
    return f"// Made by tools/ptx.py of pattern.cu: not to be edited.\n{body}\n"


def main(words: list[str]) -> int:
    """Writes the text, or says whether it is as fresh."""
    nvrtc = compiler()
    fresh = compiled(nvrtc, (DEVICE / "pattern.cu").read_text(encoding="utf-8"))
    file = DEVICE / "pattern.ptx"
    if words == ["--check"]:
        same = file.read_text(encoding="utf-8") == fresh
        print("the same" if same else f"{file} differs from what NVRTC {version(nvrtc)} makes of pattern.cu")
        return 0 if same else 1
    file.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
