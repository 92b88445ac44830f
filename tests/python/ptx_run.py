"""Runs a kernel's PTX text, as `pattern.ptx` has it, one thread after the other.

Only the instructions that this text is made of are known; any other is an error. Numbers are unsigned; an
instruction whose type is signed takes them as such.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_WIDTHS = {"8": 1, "16": 2, "32": 4, "64": 8}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
}
_TWO: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
}


class Kernel:
    """The entry `name` of `text`."""

    def __init__(self, text: str, name: str) -> None:
        (body,) = re.findall(rf"\.entry {name}\((.*?)\)\s*\{{(.*?)\n\}}", text, re.S)
        self.parameters = re.findall(r"\.param \.u64 (\w+)", body[0])
        self._steps: list[str] = []
        self._labels: dict[str, int] = {}
        for line in (part.strip() for part in body[1].splitlines()):
            if line.endswith(":"):
                self._labels[line[:-1]] = len(self._steps)
            elif line and not line.startswith("."):
                self._steps.append(line.rstrip(";"))

    def launch(self, blocks: int, threads: int, arguments: list[int], memory: bytearray) -> None:
        """Addresses are places in `memory`."""
        told = dict(zip(self.parameters, arguments, strict=True))
        for block in range(blocks):
            for thread in range(threads):
                place = {"%ctaid.x": block, "%tid.x": thread, "%nctaid.x": blocks, "%ntid.x": threads}
                self._thread(told, place, memory)

    def _thread(self, told: Mapping[str, int], place: Mapping[str, int], memory: bytearray) -> None:
        registers = dict(place)
        at = 0
        while at < len(self._steps):
            step = self._steps[at]
            at += 1
            if guard := re.match(r"@(!?)(%p\d+)\s+", step):
                step = step[guard.end() :]
                if bool(registers[guard[2]]) == bool(guard[1]):
                    continue
            words = step.replace(",", " ").split()
            name, _, kind = words[0].partition(".")
            if name == "ret":
                return
            if name == "bra":
                at = self._labels[words[1]]
            else:
                _step(name, kind, words[1:], registers, told, memory)


def _step(
    name: str,
    kind: str,
    words: list[str],
    registers: dict[str, int],
    told: Mapping[str, int],
    memory: bytearray,
) -> None:
    """One instruction that is no jump."""
    types = re.findall(r"[busf](\d+)", kind)
    width = _WIDTHS[types[0]]
    signed = re.search(r"\bs\d+$", kind) is not None

    def value(word: str) -> int:
        known = registers[word] if word.startswith("%") else int(word)
        wrapped = known & (1 << 8 * width) - 1
        return wrapped - (1 << 8 * width) if signed and wrapped >> 8 * width - 1 else wrapped

    def put(result: int, size: int = width) -> None:
        registers[words[0]] = result & (1 << 8 * size) - 1

    if name == "ld" and kind.startswith("param"):
        put(told[words[1].strip("[]")])
    elif name == "ld":
        begin = registers[words[1].strip("[]")]
        put(int.from_bytes(memory[begin : begin + width], "little"))
    elif name == "st":
        begin = registers[words[0].strip("[]")]
        memory[begin : begin + width] = value(words[1]).to_bytes(width, "little")
    elif name == "atom" and kind.startswith("global.min"):
        begin = registers[words[1].strip("[]")]
        before = int.from_bytes(memory[begin : begin + width], "little")
        put(before)
        memory[begin : begin + width] = min(before, value(words[2])).to_bytes(width, "little")
    elif name in ("mov", "cvta") or (name == "cvt" and re.fullmatch(r"[ub]\d+\.[ub]\d+", kind)):
        put(registers[words[1]] if words[1].startswith("%") else int(words[1]))
    elif name == "setp":
        registers[words[0]] = int(_COMPARE[kind.partition(".")[0]](value(words[1]), value(words[2])))
    elif name == "mul" and kind.startswith("wide"):
        put(value(words[1]) * value(words[2]), 2 * width)
    elif name in _TWO:
        put(_TWO[name](value(words[1]), value(words[2])))
    else:
        raise NotImplementedError(f"{name}.{kind}")
