"""What may stand at each place of a command line: the declarations, as scripts for shells need them."""

from __future__ import annotations

from typing import NamedTuple

from tilewise.base.declare import Argument
from tilewise.cli import plan
from tilewise.cli.commands import COMMANDS, JOBS
from tilewise.cli.pages import Page, names, page_of, subcommands


class Offer(NamedTuple):
    """What completes one word: `words`, and names of files with `endings` ("/" folders, "" any file).

    `joined` parts several of the words in one.
    """

    words: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    joined: str = ""

    def __bool__(self) -> bool:
        return bool(self.words or self.endings)


class Flag(NamedTuple):
    """A flag; one without `offer` is a switch, and takes no value. `value` is what the value stands for."""

    spellings: list[str]
    text: str
    value: str = ""
    offer: Offer | None = None
    several: bool = False


class Command(NamedTuple):
    """A command or subcommand; `rest`: the last position may be given again and again."""

    name: str  # empty: tilewise itself
    text: str
    flags: list[Flag]
    positions: list[Offer]
    rest: bool = False

    @property
    def planned(self) -> bool:
        """Whether it is a job behind `plan`."""
        return self.name.startswith("plan ")

    def below(self, among: list[Command]) -> list[Command]:
        """Its subcommands; of tilewise itself, the commands."""
        return [each for each in among if each.name and each.name.rpartition(" ")[0] == self.name]


_HELP = Flag(["--help", "-h"], "Print help.")


def commands() -> list[Command]:
    """Every command line there is: tilewise, commands, subcommands, and for each job what `plan` takes."""
    listed = [_command(page_of(name)) for name in names()]
    own = [Flag([each.name], each.text) for each in listed if each.name.startswith("-")]
    top = Command(
        "",
        "",
        [_HELP, Flag(["--version"], "Print the version."), *own],
        [Offer(tuple(COMMANDS))],
    )
    everything = Flag(plan.ALL.spellings, plan.ALL.help)
    planned = [
        each._replace(name=f"plan {each.name}", flags=[*each.flags, everything])
        for each in listed
        if each.name in JOBS
    ]
    return [top, *listed, *planned]


def _command(page: Page) -> Command:
    below = tuple(name.split()[-1] for name in subcommands(page.name))
    positions = [_offer(each) for each in page.arguments.positions]
    if below:
        words = dict.fromkeys((*positions[0].words, *below))
        positions[0] = positions[0]._replace(words=tuple(words))
    shown = page.arguments.shown()
    return Command(
        page.name,
        _first_sentence(page.description),
        [_HELP, *(_flag(each) for each in shown if each not in page.arguments.positions)],
        positions,
        any(each.rest for each in page.arguments.positions),
    )


def _flag(one: Argument) -> Flag:
    offer = None if one.kind is bool else _offer(one)
    text = _first_sentence(one.parameter.help)
    return Flag(one.parameter.spellings, text, one.value.name, offer, one.several)


def _offer(one: Argument) -> Offer:
    known = one.value.known
    words = one.choices or (known() if known else ())
    return Offer(words, one.value.endings, one.parameter.joined)


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")
