"""Checks the promises of the layout.

Imports go downwards only, MPI stays in its folder, files stay small and open with what they are for, no two
classes of the Python package have one name, and no line of C++ is too long.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Floors from the ground up. A file uses its own folder and lower floors; neighbours do not know each other.
CXX_FLOORS: list[set[str]] = [
    {"base"},
    {"device"},  # graphics processors' driver, and memory of theirs
    {"simulated"},  # in a build for a simulator its files stand in for some of the base
    {"grid"},
    {"kernel"},
    {"mpi"},
    {"io"},
    {"dist"},  # what operations share: bands, columns dealt out anew, QR over ranks, a task of rank 0
    {"convert", "norm"},  # band after band, as transpose also goes where it has nothing better
    {"multiply", "transpose", "svd", "stencil", "measure"},
    {"worker", "library"},  # the two ways in
    {"tilewise.hpp"},
]
PYTHON_FLOORS: list[set[str]] = [
    {"base"},  # errors, units, staged files, processes
    {"files", "machine"},
    {"launch"},
    {"planning"},  # rules that all operations share
    {"operations"},  # a room each: what may be asked for, how it is planned, what it needs
    {"engine"},  # a request becomes a record, and nothing is printed
    {"lab"},  # what looks at jobs and machines from outside
    {"cli", "api"},
    {"__main__"},
]
LAB_FLOORS: list[set[str]] = [
    {"statistics"},  # one interval, one ratio, one test: for whoever has figures of several launches
    {"measurement"},
    {"study"},
    {"report"},  # draws what a study has found
]
# The one call from the tool to the laboratory: it measures a machine once.
INTO_THE_LAB = "engine/learning.py"
# Calls that one module makes for all, and which one.
ONLY_THERE = {"prctl": "base/processes.py", "pidfd_open": "base/processes.py"}
MAX_LINES = 600
MAX_COLUMNS = 120  # of C++; a formatter cuts code there, and leaves comments alone
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"tilewise/(\w+)/|<tilewise/(\w+)/)')
MPI_INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]mpi\.h[>"]')
SOURCES = ("cpp", "python", "tests", "tools", "bench", "examples")


def check(root: Path) -> list[str]:
    """Every broken promise under `root`, each as `file:line: what is wrong`."""
    return [*check_cxx(root), *check_python(root), *check_files(root)]


def check_cxx(root: Path) -> Iterator[str]:
    base = root / "cpp/tilewise"
    for file in files_under(base, ".hpp", ".cpp", ".h"):
        folder = file.relative_to(base).parts[0]
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            where = f"{file.relative_to(root)}:{number}"
            if MPI_INCLUDE.match(line) and folder not in ("mpi", "simulated"):
                yield f"{where}: only cpp/tilewise/mpi/ includes <mpi.h>; include a header of mpi/ instead"
            if match := INCLUDE.match(line):
                yield from judge(where, folder, match.group(1) or match.group(2), CXX_FLOORS)


def check_python(root: Path) -> Iterator[str]:
    base = root / "python/tilewise"
    classes: dict[str, Path] = {}
    for file in files_under(base, ".py"):
        parts = file.relative_to(base).with_suffix("").parts
        if parts == ("__init__",):
            continue
        name = file.relative_to(base).as_posix()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and classes.setdefault(node.name, file) != file:
                other = classes[node.name].relative_to(root)
                yield f"{file.relative_to(root)}:{node.lineno}: class {node.name} is also one of {other}"
            there = ONLY_THERE.get(node.attr, name) if isinstance(node, ast.Attribute) else name
            if there != name:
                yield f"{file.relative_to(root)}:{node.lineno}: only {there} calls {node.attr}"  # type: ignore[attr-defined]
            for target in imported(node, parts):
                where = f"{file.relative_to(root)}:{node.lineno}"  # type: ignore[attr-defined]
                if (name, target[0]) != (INTO_THE_LAB, "lab"):
                    yield from judge(where, parts[0], target[0], PYTHON_FLOORS)
                if parts[0] == target[0] == "lab" and len(parts) > 2 and len(target) > 1:
                    yield from judge(where, parts[1], target[1], LAB_FLOORS)


def imported(node: ast.AST, importer: tuple[str, ...]) -> Iterator[list[str]]:
    """What an import statement names of our package: folders from the outermost on, or top-level modules."""
    if isinstance(node, ast.Import):
        modules = [alias.name.split(".") for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        package = ["tilewise", *importer[: len(importer) - node.level]] if node.level else []
        module = package + (node.module.split(".") if node.module else [])
        modules = [[*module, alias.name] for alias in node.names]
    else:
        return
    for module in modules:
        if module[0] == "tilewise" and len(module) > 1 and not module[1].startswith("__"):
            yield module[1:]


def judge(where: str, user: str, used: str, floors: list[set[str]]) -> Iterator[str]:
    level = {name: height for height, names in enumerate(floors) for name in names}
    for name in (user, used):
        if name not in level:
            yield f"{where}: '{name}' has no floor; give it one in tools/check_floors.py"
            return
    if user != used and level[used] >= level[user]:
        relation = "above" if level[used] > level[user] else "beside"
        yield f"{where}: {user} uses {used}, which lies {relation} it; a floor may use lower floors only"


def check_files(root: Path) -> Iterator[str]:
    for folder in SOURCES:
        for file in files_under(root / folder, ".hpp", ".cpp", ".py"):
            text = file.read_text(encoding="utf-8")
            name = file.relative_to(root)
            if (lines := text.count("\n")) > MAX_LINES:
                yield f"{name}:1: {lines} lines; cut it, {MAX_LINES} is the most"
            if text.strip() and not opens_with_a_sentence(file.suffix, text):
                yield f"{name}:1: does not open with a sentence that says what the file is for"
            for number, line in enumerate(text.splitlines(), 1):
                if file.suffix != ".py" and len(line) > MAX_COLUMNS:
                    yield f"{name}:{number}: {len(line)} columns; wrap it, {MAX_COLUMNS} is the most"


def opens_with_a_sentence(suffix: str, text: str) -> bool:
    if suffix == ".py":
        opening = ast.get_docstring(ast.parse(text)) or ""
    else:
        comment = re.match(r"(?://[^\n]*\n)+", text)
        opening = re.sub(r"^///?", "", comment.group(), flags=re.MULTILINE) if comment else ""
    return bool(re.search(r"\w+\s+\w+.*[.:]", opening, re.DOTALL))


def files_under(folder: Path, *suffixes: str) -> Iterator[Path]:
    yield from sorted(file for file in folder.rglob("*") if file.suffix in suffixes)


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    broken = check(root)
    print("\n".join(broken) if broken else "Floors, headings and file sizes are as promised")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
