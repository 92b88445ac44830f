"""Checks the English that users read: words to avoid, openings without a noun, long or chained sentences.

Pages are checked whole, and so are the string literals of the Python package and of the C++ sources: help
texts and messages are among them. `prose_words.txt` lists the words. A docstring of the package opens with a
noun or a verb, not with a riddle.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

WORDS = Path(__file__).with_name("prose_words.txt")
PAGES = ("*.md", "docs/**/*.md")
GENERATED = ("docs/reference/cpp.md", "docs/tutorial/notebook.md")  # from headers, and from a script
MAX_WORDS = 40
MAX_SEMICOLONS = 1
# Pages for contributors: their words are checked, the shape of their sentences is not.
WORDS_ONLY = ("docs/design/", "docs/reference/seam.md")
FENCE = re.compile(r"^\s*(```|~~~)")
# What no reader takes for prose: code, the targets of links, comments of HTML.
NO_PROSE = re.compile(r"``.+?``|`[^`]*`|\]\([^)]*\)|<[^>\s][^>]*>|https?://\S+")
BLOCK = re.compile(r"^\s*([-*+]|\d+\.|#+|>|\|)\s*|^\s*$")
SENTENCE_END = re.compile(r"(?<=[.!?:])\s+| · ")
WORD = re.compile(r"[^\W\d_][\w'’-]*")
PHRASE = 3  # words from which on a string literal is prose
RIDDLE = re.compile(r"(What|Whether|Those|The same|Of)\b")  # as the first words of a docstring
# Openings of a sentence that has no noun for its subject; a question may begin so.
OPENING = re.compile(r"[*_ ]*(?:What (?!lost)|Whether|Those|Of (?:a|an|the|all|any|what)\b)")
CXX_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


class Rule(NamedTuple):
    """A pattern to avoid, and what to write instead."""

    pattern: re.Pattern[str]
    instead: str


class Text(NamedTuple):
    """A piece of prose, and the line that it begins on."""

    line: int
    text: str


def rules(path: Path = WORDS) -> list[Rule]:
    """The rules of the file at `path`. Raises ValueError for a line that is not one."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pattern, arrow, instead = line.partition(" => ")
        if not arrow:
            raise ValueError(f"{path.name}: {line!r} is not of the form 'pattern => instead'")
        found.append(Rule(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), instead))
    return found


def pages(text: str) -> Iterator[Text]:
    """The paragraphs, list items, headings and table cells of a Markdown page, without code."""
    fenced = False
    begin, gathered = 0, ""
    for number, read in enumerate(text.splitlines(), 1):
        fence = FENCE.match(read) is not None
        fenced ^= fence
        if fenced and not fence:
            continue
        line = "" if fence else read
        if BLOCK.match(line) and gathered:
            yield Text(begin, gathered)
            gathered = ""
        if line.lstrip().startswith("|"):
            for cell in NO_PROSE.sub("x", line).split("|"):
                yield Text(number, cell)
        elif line.strip():
            begin = begin if gathered else number
            gathered += f" {line.strip()}"
    if gathered:
        yield Text(begin, gathered)


def python_texts(source: str) -> Iterator[Text]:
    """The string literals of a module that may be prose; docstrings are not among them."""
    tree = ast.parse(source)
    quiet = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            quiet |= {id(part) for part in ast.walk(node) if isinstance(part, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet:
            yield Text(node.lineno, node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            yield Text(node.lineno, "".join(map(str, parts)))


def riddles(source: str) -> Iterator[str]:
    """Lines and openings of docstrings that do not say what they are about."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            match = RIDDLE.match(ast.get_docstring(node) or "")
            if match:
                yield f"{node.body[0].lineno}: a docstring opens with {match[0]!r}; say a noun or a verb"


def cxx_texts(source: str) -> Iterator[Text]:
    """The string literals of a C++ source, one by one, outside of comments."""
    for number, line in enumerate(source.splitlines(), 1):
        if not line.lstrip().startswith(("//", "#include")):
            for literal in CXX_LITERAL.findall(line.split(" // ")[0]):
                yield Text(number, literal)


def faults(found: Text, avoid: list[Rule], shape: bool) -> Iterator[str]:
    """What is wrong with `found`, as `what; say instead`."""
    text = NO_PROSE.sub("x", found.text)
    for rule in avoid:
        for match in rule.pattern.finditer(text):
            yield f"{match[0]!r}; say {rule.instead}"
    if not shape:
        return
    for sentence in SENTENCE_END.split(text):
        words = len(WORD.findall(sentence))
        if words > MAX_WORDS:
            yield f"{words} words in a sentence, {sentence.strip()[:50]!r} …; make it two"
        elif sentence.count(";") > MAX_SEMICOLONS:
            chained = sentence.count(";")
            yield f"{chained} semicolons in a sentence, {sentence.strip()[:50]!r} …; make it a list"


def openings(found: Text) -> Iterator[str]:
    """Sentences of `found` that open without a noun for their subject."""
    if found.text.lstrip().startswith("#"):
        return
    for sentence in SENTENCE_END.split(NO_PROSE.sub("x", found.text)):
        if OPENING.match(sentence) and "?" not in sentence:
            yield f"a sentence opens with {sentence.strip()[:30]!r} …; begin with a noun"


def check(root: Path) -> list[str]:
    """Every finding under `root`, as `file:line: what; say instead`."""
    avoid = rules()
    found = []
    for pattern in PAGES:
        for path in sorted(root.glob(pattern)):
            name = path.relative_to(root).as_posix()
            if name in GENERATED:
                continue
            for text in pages(path.read_text(encoding="utf-8")):
                shape = not name.startswith(WORDS_ONLY)
                found += [f"{name}:{text.line}: {fault}" for fault in faults(text, avoid, shape)]
                found += [f"{name}:{text.line}: {fault}" for fault in openings(text)]
    for folder, ending, texts in (
        ("python/tilewise", "*.py", python_texts),
        ("cpp/tilewise", "*.[ch]pp", cxx_texts),
    ):
        for path in sorted((root / folder).rglob(ending)):
            name = path.relative_to(root).as_posix()
            for text in texts(path.read_text(encoding="utf-8")):
                if len(WORD.findall(text.text)) >= PHRASE:
                    found += [f"{name}:{text.line}: {fault}" for fault in faults(text, avoid, shape=False)]
    for path in sorted((root / "python/tilewise").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        found += [f"{name}:{said}" for said in riddles(path.read_text(encoding="utf-8"))]
    return found


def main() -> int:
    """Prints every finding; returns 1 if there is one."""
    found = check(Path(__file__).resolve().parents[1])
    print("\n".join(found) or "The English is plain, as far as a list of words can tell")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
