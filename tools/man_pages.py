"""Writes docs/man/*.1, the pages of `man tilewise`, from what the commands declare.

`python tools/man_pages.py` writes them; a test compares, and looks for mistakes with mandoc and groff.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tilewise import __version__
from tilewise.base.declare import Argument, Arguments, Example
from tilewise.base.errors import Interrupted, RunError, Stopped, UsageError, VerificationError
from tilewise.cli import JOBS, Page, names, page_of, subcommands
from tilewise.cli.help import groups, parts_of, shown_value, usage

DOCS = Path(__file__).resolve().parents[1] / "docs"
TARGET = DOCS / "man"
DATE = "2026-11-23"  # of the version
ABOUT = "operations on dense matrices in files, in parallel over MPI"
DESCRIPTION = (
    "Reads matrices from files, works on them with as many processes as are worth it, verifies the result "
    "and writes it to a file. A plan chooses ranks, threads, algorithm and the way to read and write; each "
    "choice can also be a flag. All commands take --help."
)
CODES = {
    0: "Done, and verified where asked.",
    RunError.exit_code: "It failed while running; an existing output is unchanged.",
    UsageError.exit_code: "The request is wrong, or does not fit in memory; nothing has changed.",
    VerificationError.exit_code: "The result failed its verification, or did not converge.",
    Stopped.exit_code: "Ended at its time limit; the message has the command that resumes it.",
    Interrupted.exit_code: "Interrupted; all ranks are gone.",
}
DOCTOR = {0: "Jobs can run here.", 1: "Jobs cannot run here.", 2: CODES[2]}
FOR_COMPLETION = {
    "SHELL": "The shell that --install-completion means by default.",
    "XDG_DATA_HOME, BASH_COMPLETION_USER_DIR, XDG_CONFIG_HOME": "Where --install-completion writes scripts.",
}
_WIDTH = 76


def pages() -> dict[str, str]:
    """Each page's text by its file name."""
    listed = [page_of(name) for name in names() if not name.startswith("-")]
    return {"tilewise.1": _top(listed), **{f"{_name(page.name)}.1": _of(page) for page in listed}}


def variables() -> dict[str, str]:
    """The environment variables that users set and what each does, from the page of common flags."""
    page = (DOCS / "reference/common-flags.md").read_text(encoding="utf-8")
    table = page.partition("\n## Environment variables\n\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)
    return {
        name: text.replace("`", "") for name, text in rows if name != "TILEWISE_FAULT"
    }  # that is for tests


def _top(listed: list[Page]) -> str:
    own = [page_of(name) for name in names() if name.startswith("-")]
    lines = [*_head("tilewise", ABOUT), ".SH SYNOPSIS", *_line("COMMAND [ARGUMENT…]")]
    lines += [".br", *_line("--help | --version")]
    for page in own:
        lines += [".br", *_line(usage(page.name, page.arguments))]
    lines += [".SH DESCRIPTION", *_text(DESCRIPTION), ".SH COMMANDS"]
    for page in listed:
        lines += [".TP", f".BR {_plain(_name(page.name))} (1)", *_text(page.description)]
    lines += [".SH OPTIONS", *_option("--help, -h", "Print the commands; behind a command, its help.")]
    lines += _option("--version", "Print the version.")
    for page in own:
        value = usage(page.name, page.arguments).removeprefix(page.name).replace(" [flags]", "")
        lines += _option(page.name, page.description, value.strip())
        for each in page.arguments.every():
            lines += [".RS", *_argument(each), ".RE"]
    examples = [page_of(name).examples[0] for name in ("multiply", "plan", "measure", "--install-completion")]
    lines += [*_codes(CODES), *_variables(variables() | FOR_COMPLETION), *_examples(examples)]
    lines += _see([_name(page.name) for page in listed])
    return "\n".join([*lines, ""])


def _of(page: Page) -> str:
    lines = [*_head(_name(page.name), _in_short(_name(page.name), page.description)), ".SH SYNOPSIS"]
    below = [page_of(name) for name in subcommands(page.name)]
    lines += _line(usage(page.name, page.arguments))
    for each in below:
        lines += [".br", *_line(usage(each.name, each.arguments))]
    lines += [".SH DESCRIPTION", *_text(page.description), *_options(page.arguments)]
    works = page.name in JOBS or page.name.startswith(("measure", "study"))
    verifies = page.name in JOBS or page.name == "study run"
    left_out = {VerificationError.exit_code: not verifies, Stopped.exit_code: page.name not in JOBS}
    codes = {code: text for code, text in CODES.items() if not left_out.get(code)}
    lines += _codes(DOCTOR if page.name == "doctor" else codes)
    lines += _variables(variables() if works or page.name in ("plan", "doctor") else {})
    lines += _examples(page.examples)
    parent = page.name.split()[0]
    near = [parent, *subcommands(parent)] if " " in page.name or below else []
    near += ["plan"] if page.name in JOBS else list(JOBS) if page.name == "plan" else []
    lines += _see(["tilewise", *(_name(name) for name in near if name != page.name)])
    return "\n".join([*lines, ""])


def _in_short(name: str, text: str) -> str:
    """The first clause of `text`, without what stands behind a comma where a line is too short for that."""
    clause = re.split(r"[:;.](?= |$)", text, maxsplit=1)[0]
    while len(f"{_plain(name)} \\- {_escaped(clause)}") > _WIDTH and "," in clause:
        clause = clause.rpartition(",")[0]
    return clause[0].lower() + clause[1:]


def _name(name: str) -> str:
    return "-".join(["tilewise", *name.split()])


def _head(name: str, said: str) -> Iterator[str]:
    yield '.\\" Written by tools/man_pages.py from what the commands declare.'
    yield f'.TH {_plain(name.upper())} 1 {DATE} "tilewise {__version__}" "tilewise manual"'
    yield from (".nh", ".ad l", ".SH NAME")  # names are long, and cannot be cut
    yield f"{_plain(name)} \\- {_escaped(said)}"


def _line(words: str) -> Iterator[str]:
    """A command line: what is typed is bold, what stands for something else italic."""
    marked = re.sub(r"(?<![\w-])(-{1,2}[a-z][\w-]*)", r"\\fB\1\\fR", words)
    marked = re.sub(r"(?<![\w-])([A-Z][A-Zx]*|flags)(?![\w-])", r"\\fI\1\\fR", marked)
    marked = re.sub(r"^([a-z][a-z ]*[a-z]|[a-z]+)(?= |$)", r"\\fB\1\\fR", marked)
    yield f"\\fBtilewise\\fR {_escaped(marked)}"


def _options(arguments: Arguments) -> Iterator[str]:
    yield ".SH OPTIONS"
    for heading, group in groups(arguments):
        yield f".SS {heading}"
        for each in group:
            yield from _argument(each)
    yield from _option("-h, --help", "Print help.")


def _argument(one: Argument) -> Iterator[str]:
    said, choices, default = parts_of(one)
    text = f"{said} One of {', '.join(choices)}." if choices else said
    if default:
        text += f" Default: {default}."
    if one.several:
        text += " May be repeated."
    spelt = ", ".join(sorted(one.spellings, key=len))
    valued = spelt.startswith("-") and one.kind is not bool
    yield from _option(spelt, text, shown_value(one) if valued else "")


def _option(spelt: str, text: str, value: str = "") -> Iterator[str]:
    font = "B" if spelt.startswith("-") else "I"
    yield ".TP"
    marked = ", ".join(f"\\f{font}{each}\\fR" for each in spelt.split(", "))
    yield _escaped(f"{marked} \\fI{value}\\fR" if value else marked)
    yield from _text(text)


def _codes(codes: dict[int, str]) -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code, text in sorted(codes.items()):
        yield from (".TP", f".B {code}", *_text(text))


def _variables(table: dict[str, str]) -> Iterator[str]:
    if table:
        yield ".SH ENVIRONMENT"
    for name, text in table.items():
        yield from (".TP", f".B {name}", *_text(text))


def _examples(examples: list[Example]) -> Iterator[str]:
    yield ".SH EXAMPLES"
    for number, (line, said) in enumerate(examples):
        yield from [".PP"] if number else []
        yield from _text(said)
        yield from (".PP", ".EX", f"    {_escaped(line)}", ".EE")


def _see(others: list[str]) -> Iterator[str]:
    yield ".SH SEE ALSO"
    for number, name in enumerate(others, 1):
        yield f".BR {_plain(name)} (1){',' if number < len(others) else ''}"


def _text(text: str) -> Iterator[str]:
    for line in textwrap.wrap(_escaped(text), _WIDTH, break_long_words=False, break_on_hyphens=False):
        yield f"\\&{line}" if line[0] in ".'" else line


def _plain(name: str) -> str:
    return name.replace("-", "\\-")


def _escaped(text: str) -> str:
    """As roff reads it: in ASCII, with hyphens to copy, and with backslashes unless they begin a font."""
    text = re.sub(r"\\(?!f[BIR])", r"\\e", text)
    text = text.replace("-", "\\-")
    return "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in text)


def write() -> None:
    """Writes all pages, and removes those of commands that are no more."""
    TARGET.mkdir(exist_ok=True)
    made = pages()
    for old in TARGET.glob("*.1"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (TARGET / name).write_text(text, encoding="ascii")


if __name__ == "__main__":
    write()
