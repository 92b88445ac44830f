"""`tilewise --complete LINE`: what the last word of a command line may be; a shell asks on every TAB.

    tilewise multiply A.npy --kernel=b      ──▶  --kernel=blas
    tilewise measure ping --levels core,s   ──▶  core,sibling   list

A line for each word, with what it does behind a TAB; or `file`, `folder` (which ends with a slash), or
`list`, where more may follow in the same word.

What commands take stands in `complete.tsv`, which is made from their declarations: to import these takes
longer than a person waits for a word.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tilewise.cli import COMMANDS, JOBS, SUBCOMMANDS

TABLE = os.path.join(os.path.dirname(__file__), "complete.tsv")
HELP = {"--help": "Print help.", "-h": "Print help on one screen."}
_SCRIPTS = {
    "--install-completion": "Complete words on TAB.",
    "--show-completion": "Print the script of a shell.",
}


class Row(NamedTuple):
    """A flag, or a word by its position, that some commands take, and what completes its value.

    It `takes` no word where it is a switch, else 1; 2 means all positions that are left. `joined` parts
    several `words` in one; `endings` are those of `tilewise.base.declare.Value`.
    """

    names: tuple[str, ...]
    takes: int
    words: tuple[str, ...]
    joined: str
    endings: tuple[str, ...]
    text: str

    @property
    def by_place(self) -> bool:
        """Return whether it is a word by its position."""
        return not self.names[0].startswith("-")


def rows_of(command: str) -> list[Row]:
    """Return the rows of `command` in the sequence of its declarations."""
    rows = []
    with open(TABLE, encoding="utf-8") as table:
        for line in table:
            commands, names, takes, words, joined, endings, text = line.rstrip("\n").split("\t")
            if command in commands.split(","):
                known = tuple(each[1:] for each in endings.split())
                rows.append(Row(tuple(names.split()), int(takes), tuple(words.split()), joined, known, text))
    return rows


class _Place:
    """Position in a line: its command, the flag whose value is next, and the number of the next word."""

    def __init__(self, words: Sequence[str]) -> None:
        self.command, self.number = "", 1
        self.flag: Row | None = None
        self.only_positions = False
        self.rows: list[Row] = []
        for word in words:
            self._pass(word)

    def flags(self) -> dict[str, Row]:
        """The flags of its command, by every name."""
        return {name: each for each in self.rows if not each.by_place for name in each.names}

    def position(self) -> Row | None:
        """The word that its command takes here."""
        positions = [each for each in self.rows if each.by_place]
        if self.number <= len(positions):
            return positions[self.number - 1]
        return positions[-1] if positions and positions[-1].takes > 1 else None

    def _pass(self, word: str) -> None:
        if self.flag is not None:
            self.flag = None
        elif self.only_positions or not word.startswith("-") or word == "-" or not self.command:
            if self.number == 1 and word in _commands(self.command) | ({} if self.command else _SCRIPTS):
                self.command = f"{self.command} {word}".strip()
                self.rows = rows_of(self.command.removeprefix("plan "))
                if self.command.startswith("plan "):  # what a plan takes beside what its job does
                    self.rows += [row for row in rows_of("plan") if row.names[0] in ("--all", "--machine")]
            else:
                self.number += 1
        elif word == "--":
            self.only_positions = True
        else:
            flag = self.flags().get(word)
            self.flag = flag if flag is not None and flag.takes else None


def main(words: list[str]) -> int:
    """Print what the last word of the line may be; return the exit code."""
    for word, text in offers(" ".join(words)):
        print(f"{word}\t{text}" if text else word)
    return 0


def offers(line: str) -> Iterator[tuple[str, str]]:
    """Each word that may stand at the end of `line`, whole, with what is said of it."""
    *before, current = _split(line)
    place, kept = _Place(before[1:]), ""
    if place.flag is None and not place.only_positions and current.startswith("-"):
        name, equals, value = current.partition("=")
        if not (equals and name.startswith("--")):
            yield from ((each, text) for each, text in _flags(place).items() if each.startswith(current))
            return
        place.flag = place.flags().get(name)
        if place.flag is None:
            return
        kept, current = f"{name}=", value
    if place.flag is None and place.number == 1:
        yield from (
            (each, text) for each, text in _commands(place.command).items() if each.startswith(current)
        )
    row = place.flag or place.position()
    if row is not None:
        yield from ((kept + word, text) for word, text in _values(row, current))


def _split(line: str) -> list[str]:
    """The words of a line as a shell reads them; the last one, which may be empty, is not finished yet."""
    for quote in ("", "'", '"'):
        try:
            words = shlex.split(f"{line}{quote}")
        except ValueError:  # a quote, or what a backslash stands before, is still to come
            continue
        return [*words, ""] if not quote and (line[-1:].isspace() or not words) else words
    return [*line.split(" ")]


def _flags(place: _Place) -> dict[str, str]:
    if not place.command:
        return HELP | {"--version": "Print the version."} | _SCRIPTS
    return HELP | {name: row.text for name, row in place.flags().items()}


def _commands(command: str) -> dict[str, str]:
    """Commands, or subcommands of one, with what they do."""
    if command and command != "plan":
        return SUBCOMMANDS.get(command, {})
    return {name: text.partition(":")[0] for name, text in COMMANDS.items() if not command or name in JOBS}


def _values(row: Row, current: str) -> Iterator[tuple[str, str]]:
    """Words and files that the value may be, of those that begin with `current`."""
    kept, _, start = current.rpartition(row.joined) if row.joined else ("", "", current)
    kept += row.joined if kept else ""
    for word in row.words:
        if word.startswith(start):
            yield kept + word, "list" if row.joined else ""
    if row.endings:
        yield from _paths(current, row.endings)


def _paths(typed: str, endings: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Folders, and files with an ending that fits."""
    folder, slash, start = typed.rpartition("/")
    try:
        there = sorted(os.scandir(os.path.expanduser(folder + slash) or "."), key=lambda each: each.name)
    except OSError:
        return
    for each in there:
        if each.name.startswith(start) and (start or not each.name.startswith(".")):
            if each.is_dir():
                yield f"{folder}{slash}{each.name}/", "folder"
            elif each.name.endswith(tuple(ending for ending in endings if ending != "/")):
                yield f"{folder}{slash}{each.name}", "file"
