"""The public C++ headers as Markdown: each declaration with its comment, without what is not for users."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
# Each part of the page: its heading, its header, and which names of it are public; empty: all.
PARTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Operations", "library/operations.hpp", ()),
    ("Options and results", "library/options.hpp", ()),
    ("Matrices in memory", "library/matrix.hpp", ()),
    ("Matrices in files", "library/files.hpp", ()),
    ("Types of numbers", "base/dtype.hpp", ("Dtype",)),
    ("Exchanges", "mpi/exchange/kinds.hpp", ("ExchangeKind",)),
    ("Verification", "base/outcome.hpp", ("Verification",)),
    ("Errors", "base/error.hpp", ("ErrorKind", "Error", "ErrorOf", *(
        f"{kind}Error" for kind in ("Usage", "Memory", "Io", "Mpi", "Launcher", "Verification", "Internal")
    ))),
)  # fmt: skip
_NAMESPACE = re.compile(r"^namespace tilewise[^{]*\{\n(.*?)^\}  // namespace", re.MULTILINE | re.DOTALL)
_TYPE = re.compile(r"^(?:template <[^>]*> )?(?:enum class|class|struct|using) (\w+)")
_FUNCTION = re.compile(r"(\w+)\(")


class Declaration(NamedTuple):
    """One declaration of a header: what it declares, its comment as a paragraph, and its code."""

    name: str
    said: str
    code: str


def page(root: Path = ROOT / "cpp/tilewise") -> str:
    """All parts, one below the other; an entity that is declared several times has one heading."""
    blocks = []
    for heading, header, public in PARTS:
        text = (root / header).read_text(encoding="utf-8")
        blocks += [
            f"## {heading}",
            f"`#include <tilewise/{header}>`, which `tilewise.hpp` includes. {opening(text)}",
        ]
        entities: dict[str, list[Declaration]] = {}
        for one in declarations(text):
            if not public or one.name in public:
                entities.setdefault(one.name, []).append(one)
        for name, overloads in entities.items():
            blocks.append(f"### `{name}`")
            for one in overloads:
                blocks += [*([one.said] if one.said else []), f"```cpp\n{one.code}\n```"]
    return "\n\n".join(blocks)


def opening(text: str) -> str:
    """What a header says of itself at its top, as one paragraph for each of the comment's."""
    lines = [line.removeprefix("//").strip() for line in text.partition("#pragma once")[0].splitlines()]
    return "\n\n".join(" ".join(part.split()) for part in "\n".join(lines).strip().split("\n\n"))


def declarations(text: str) -> Iterator[Declaration]:
    """The declarations in the header's namespace that are for users, in their order."""
    seen: set[str] = set()
    for body in _NAMESPACE.findall(text):
        said: list[str] = []
        code: list[str] = []
        for line in body.splitlines():
            if not code and (not line or line.startswith("//")):
                said = [*said, line.removeprefix("///").strip()] if line.startswith("///") else []
                continue
            code.append(line)
            whole = "\n".join(code)
            if whole.count("{") != whole.count("}") or not re.search(r"[;}](?:\s*//.*)?$", line):
                continue
            found = public_code(whole)
            name = (_TYPE.match(found) or _FUNCTION.search(found) or re.search(r"(\w+)", found)).group(1)  # type: ignore[union-attr]
            if found not in seen and not found.endswith(("class Exchange;", "struct Setting;")):
                yield Declaration(name, paragraph(said), found)
            seen.add(found)
            said, code = [], []


def paragraph(lines: list[str]) -> str:
    """A comment's lines as one paragraph; `@note Collective.` is set in bold."""
    return re.sub(r"@note (\w+\.)", r"**\1**", " ".join(lines)).strip()


def public_code(code: str) -> str:
    """A declaration without bodies of functions, and without members that are private or not for users."""
    kind = _TYPE.match(code)
    if kind is None or "{" not in code:
        return (
            code
            if code.endswith(";") and "{\n" not in code
            else re.sub(r"\s*\{\n?.*", ";", code, flags=re.DOTALL)
        )
    if code.startswith("enum"):
        return code
    head, _, rest = code.partition("{")
    code = re.sub(r"\)\s*\n?\s*: \w+[^;]*?\{\}", ");", rest)
    is_class = head.startswith("class ")
    kept, shown = [], not is_class
    for line in code.rpartition("}")[0].splitlines():
        word = line.strip()
        if word in ("public:", "private:", "protected:"):
            shown = word == "public:"
        elif "not for users" in word:
            shown = False
        elif shown and not word.startswith("friend "):
            kept.append(re.sub(r" \{ .* \}$", ";", line))
    inside = "\n".join(kept).strip("\n")
    public = "public:\n" if is_class and inside else ""
    return f"{head}{{\n{public}{inside}\n}};" if inside else f"{head}{{}};"
