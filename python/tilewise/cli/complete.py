"""`tilewise --complete LINE`: what the last word of a command line may be; a shell asks on every TAB.

    tilewise multiply A.npy --kernel=b      ──▶  --kernel=blas
    tilewise measure ping --levels core,s   ──▶  core,sibling   list

A line for each word, with what it does behind a TAB; or `file`, `folder` (which ends with a slash), or
`list`, where more may follow in the same word.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence

from tilewise.base.declare import Argument, Value
from tilewise.cli.commands import COMMANDS, JOBS
from tilewise.cli.pages import names, page_of, subcommands

HELP = {"--help": "Print help.", "-h": "Print help on one screen."}
_TOP = {
    **HELP,
    "--version": "Print the version.",
    "--install-completion": "Complete words on TAB.",
    "--show-completion": "Print the script of a shell.",
}


class _Place:
    """Where a line has come to: its command, the flag whose value is next, and the place of that word."""

    def __init__(self, words: Sequence[str]) -> None:
        self.command, self.number = "", 1
        self.flag: Argument | None = None
        self.only_positions = False
        self._known = {*names(), *(f"plan {job}" for job in JOBS)}
        self.arguments: list[Argument] = []
        for word in words:
            self._pass(word)

    def flags(self) -> dict[str, Argument]:
        """The flags of its command, by every spelling."""
        places = self.positions()
        return {
            spelt: each for each in self.arguments if each not in places for spelt in each.parameter.spellings
        }

    def positions(self) -> list[Argument]:
        """What its command takes by place."""
        return [each for each in self.arguments if not each.parameter.spellings[0].startswith("-")]

    def _pass(self, word: str) -> None:
        if self.flag is not None:
            self.flag = None
        elif self.only_positions or not word.startswith("-") or word == "-" or not self.command:
            longer = f"{self.command} {word}".strip()
            if self.number == 1 and longer in self._known:
                self.command = longer
                self.arguments = page_of(longer.removeprefix("plan ")).arguments.shown()
            else:
                self.number += 1
        elif word == "--":
            self.only_positions = True
        else:
            flag = self.flags().get(word)
            self.flag = flag if flag is not None and flag.kind is not bool else None


def main(words: list[str]) -> int:
    """Prints what the last word of the line may be; returns the exit code."""
    for word, text in offers(" ".join(words)):
        print(f"{word}\t{text}" if text else word)
    return 0


def offers(line: str) -> Iterator[tuple[str, str]]:
    """Each word that may stand at the end of `line`, whole, with what is said of it."""
    *before, current = _split(line)
    place, kept = _Place(before[1:]), ""
    if place.flag is None and not place.only_positions and current.startswith("-"):
        spelt, equals, value = current.partition("=")
        if not (equals and spelt.startswith("--")):
            yield from ((each, text) for each, text in _flags(place).items() if each.startswith(current))
            return
        place.flag = place.flags().get(spelt)
        if place.flag is None:
            return
        kept, current = f"{spelt}=", value
    if place.flag is None and place.number == 1:
        yield from ((each, text) for each, text in _commands(place).items() if each.startswith(current))
    one = place.flag or _position(place)
    if one is not None:
        yield from ((kept + word, said) for word, said in _values(one, current))


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
        return _TOP
    said = {spelt: _first_sentence(each.parameter.help) for spelt, each in place.flags().items()}
    if place.command.startswith("plan "):
        from tilewise.cli import plan

        said |= dict.fromkeys(plan.ALL.spellings, plan.ALL.help)
    return HELP | said


def _commands(place: _Place) -> dict[str, str]:
    """Commands, or subcommands of one, with what they do."""
    if not place.command:
        return {name: said.partition(":")[0] for name, said in COMMANDS.items()}
    below = {
        name.rpartition(" ")[2]: _first_sentence(page_of(name).description)
        for name in subcommands(place.command)
    }
    if place.command == "plan":
        below |= {name: said.partition(":")[0] for name, said in COMMANDS.items() if name in JOBS}
    return below


def _position(place: _Place) -> Argument | None:
    positions = place.positions()
    if place.number <= len(positions):
        return positions[place.number - 1]
    return positions[-1] if positions and positions[-1].rest else None


def _values(one: Argument, current: str) -> Iterator[tuple[str, str]]:
    """Words and files that the value of an argument may be, of those that begin with `current`."""
    words = one.choices or (one.value.known() if one.value.known else ())
    joined = one.parameter.joined
    kept, _, start = current.rpartition(joined) if joined else ("", "", current)
    kept += joined if kept else ""
    for word in words:
        if word.startswith(start):
            yield kept + word, "list" if joined else ""
    if one.value.endings:
        yield from _paths(current, one.value)


def _paths(typed: str, value: Value) -> Iterator[tuple[str, str]]:
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
            elif each.name.endswith(tuple(ending for ending in value.endings if ending != "/")):
                yield f"{folder}{slash}{each.name}", "file"


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")
